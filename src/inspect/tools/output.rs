//! Ensures that edited `structuredContent` still conforms to the tool's `outputSchema` (2025-06-18
//! and later, `server/tools`): a client that validates it would discard the result, and with it the
//! notice to the agent.

use bytes::Bytes;
use serde_json::Value as Json;

use super::Definition;
use super::schema::Schema;
use crate::inspect::rewrite::{MARK, without_notices};
use crate::message::{Edit, Value, splice};

/// Maximum number of edits that are fitted individually, and maximum length of the value in which
/// that is done, in bytes.
const EDITS: usize = 32;
const FITTED_BYTES: usize = 256 << 10;

/// Replacements of a text for which the schema requires a format: they obviously belong to nobody
/// and are of no use to anybody.
const FORMS: [&str; 7] = [
    MARK,
    "",
    "withheld@withheld.invalid",
    "https://withheld.invalid/",
    "withheld.invalid",
    "00000000-0000-0000-0000-000000000000",
    "0.0.0.0",
];

/// Replacements of a number.
const VALUES: [&str; 3] = ["null", "0", "1"];

/// The error that no edit makes a result conform to its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::inspect) struct FitError;

impl Definition {
    fn output_schema(&self) -> Option<&Schema> {
        // Formats are enforced here: clients check them, whereas servers do not.
        let compiled = self
            .compiled_output
            .get_or_init(|| self.output.as_deref().map(Schema::compile_strict));
        compiled.as_ref().and_then(|schema| schema.as_ref().ok())
    }

    /// Adjusts the edits within a result's structured value so that it conforms to the schema as
    /// before. A value that did not conform, or has no schema that can be checked, is edited
    /// regardless.
    ///
    /// # Errors
    /// It is impossible: for example, an `enum` has no value for what is withheld.
    pub(in crate::inspect) fn fit(
        &self,
        structured: Value<'_>,
        edits: &mut [&mut Edit],
    ) -> Result<(), FitError> {
        let Some(schema) = self.output_schema().filter(|_| !edits.is_empty()) else {
            return Ok(());
        };
        let fits = |edits: &[Edit]| {
            apply_edits(structured, edits)
                .is_some_and(|value| schema.check(&value).is_ok_and(|wrong| wrong.is_empty()))
        };
        let all = |edits: &[&mut Edit]| {
            edits
                .iter()
                .map(|edit| (**edit).clone())
                .collect::<Vec<_>>()
        };
        if !fits(&[]) || fits(&all(edits)) {
            return Ok(());
        }
        if edits.len() > EDITS || structured.raw().len() > FITTED_BYTES {
            return Err(FitError);
        }
        for edit in edits.iter_mut() {
            if fits(std::slice::from_ref(edit)) {
                continue;
            }
            let replacement = if edit.is_json {
                VALUES
                    .into_iter()
                    .find(|form| fits(&[Edit::json(edit.span.clone(), (*form).to_owned())]))
            } else {
                candidate_texts(&edit.replacement)
                    .find(|form| fits(&[Edit::text(edit.span.clone(), *form)]))
            };
            edit.replacement = replacement.ok_or(FitError)?.to_owned();
        }
        if fits(&all(edits)) {
            Ok(())
        } else {
            Err(FitError)
        }
    }
}

/// Returns the possible replacements of a text: the remaining text without its notice, or nothing
/// of it.
fn candidate_texts(replacement: &str) -> impl Iterator<Item = &str> {
    let remaining =
        Some(without_notices(replacement)).filter(|left| !left.is_empty() && *left != replacement);
    remaining.into_iter().chain(FORMS)
}

fn apply_edits(structured: Value<'_>, edits: &[Edit]) -> Option<Json> {
    let start = structured.span().start;
    let shifted = edits.iter().map(|edit| {
        let span = edit.span.start.checked_sub(start)?..edit.span.end.checked_sub(start)?;
        Some(Edit {
            span,
            ..edit.clone()
        })
    });
    let edited = splice(
        &Bytes::copy_from_slice(structured.raw().as_bytes()),
        shifted.collect::<Option<_>>()?,
    )?;
    serde_json::from_slice(&edited).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::rewrite::NOTICE;
    use crate::inspect::tests::{context, message};
    use crate::inspect::tools::Tools;
    use crate::message::{Json as Read, ReadLimits};

    fn definition(property: &str) -> std::sync::Arc<Definition> {
        let list = format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{{"name":"t","inputSchema":{{"type":"object"}},"outputSchema":
            {{"type":"object","properties":{{"a":{property}}},"required":["a"]}}}}]}}}}"#
        );
        let tools = Tools::default();
        tools.record_list(&message(&list), &context("tools/list", None));
        tools.definition("t").unwrap()
    }

    fn parse(text: &'static str) -> Read {
        Read::parse(text.into(), &ReadLimits::default()).unwrap()
    }

    /// Returns the result of replacing "bad" in `{"a":"bad"}` with `with`.
    fn fitted(property: &str, with: &str) -> Result<String, FitError> {
        let json = parse(r#"{"a":"bad"}"#);
        let mut edit = Edit::text(6..9, with);
        definition(property).fit(json.root(), &mut [&mut edit])?;
        Ok(edit.replacement)
    }

    #[test]
    fn an_edit_is_chosen_that_fits() {
        let notice = format!("{NOTICE}1 passage …]\n{MARK}");
        for (property, becomes) in [
            (r#"{"type":"string"}"#, Ok(notice.as_str())),
            (r#"{"type":"string","maxLength":12}"#, Ok(MARK)),
            (r#"{"type":"string","maxLength":3}"#, Ok("")),
            (r#"{"type":"string","pattern":"^[a-z]*$"}"#, Ok("")),
            (r#"{"type":"string","pattern":"^[a-z]+$"}"#, Err(FitError)),
            (r#"{"enum":["bad","good"]}"#, Err(FitError)),
            (r#"{"const":"bad"}"#, Err(FitError)),
            // A value that did not conform before is not constrained.
            (r#"{"type":"integer"}"#, Ok(notice.as_str())),
            (
                r#"{"$ref":"https://example.org/x.json"}"#,
                Ok(notice.as_str()),
            ),
        ] {
            assert_eq!(
                fitted(property, &notice),
                becomes.map(str::to_owned),
                "{property}"
            );
        }
    }

    #[test]
    fn a_form_is_kept() {
        let json = parse(r#"{"a":"ann@example.org"}"#);
        let mut edit = Edit::text(6..21, "[redacted: email]");
        definition(r#"{"type":"string","format":"email"}"#)
            .fit(json.root(), &mut [&mut edit])
            .unwrap();
        assert_eq!(edit.replacement, "withheld@withheld.invalid");
    }
}
