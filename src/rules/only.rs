//! Where a rule applies: `only = { tools, arguments, methods, surfaces, hidden, instruction_files,
//! source_code
//! }`.

use crate::detect::{Place, Surface};
use crate::document::{Located, Table};
use crate::text::glob_matches;

/// Where a rule applies. A field that is empty or `None` allows everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Only {
    /// Tool names; `*` matches anything.
    pub tools: Vec<String>,
    /// Argument names joined by dots (`steps.command`); `*` matches anything.
    pub arguments: Vec<String>,
    pub methods: Vec<String>,
    /// Parts of a message.
    pub surfaces: Vec<Surface>,
    /// Only text that markup hides from a human reader (`true`), or only text that it does not hide
    /// (`false`).
    pub hidden: Option<bool>,
    /// Only files that instruct agents (`true`), or only other texts (`false`). Text that is hidden
    /// or encoded in such a file counts as another text.
    pub instruction_files: Option<bool>,
    /// Only code that is run or written to a file of code, of a build or of settings (`true`), or
    /// only other texts (`false`).
    pub source_code: Option<bool>,
}

impl Only {
    /// Parses the `only` table of a rule.
    pub(super) fn read(rule: &Table<'_>) -> Option<Self> {
        let Some(table) = rule.table("only") else {
            return (!rule.has("only")).then(Self::default);
        };
        let words = |key: &str| {
            let words = table.strings(key);
            if table.has(key) && words.is_empty() {
                table.fault_at_key(
                    key,
                    format!("`{key}` is empty, so the rule would never match"),
                    Some("add values, or remove it"),
                );
            }
            words
        };
        let names = |key: &str| {
            words(key)
                .into_iter()
                .map(|word| word.value)
                .collect::<Vec<_>>()
        };
        let only = Self {
            tools: names("tools"),
            arguments: names("arguments"),
            methods: names("methods"),
            surfaces: surfaces(&table, words("surfaces")),
            hidden: table.boolean("hidden"),
            instruction_files: table.boolean("instruction_files"),
            source_code: table.boolean("source_code"),
        };
        table.finish();
        Some(only)
    }

    /// Returns whether a rule with this restriction applies at `place`; `open` is set if the text
    /// found there is neither hidden nor encoded.
    pub fn admits(&self, place: &Place<'_>, open: bool) -> bool {
        allows(&self.tools, place.tool)
            && allows(&self.arguments, place.outbound().argument)
            && allows(&self.methods, place.method)
            && (self.surfaces.is_empty() || self.surfaces.contains(&place.surface))
            && self
                .hidden
                .is_none_or(|hidden| hidden == place.inbound().hidden)
            && self
                .instruction_files
                .is_none_or(|expected| expected == (place.inbound().instruction_file && open))
            && self
                .source_code
                .is_none_or(|expected| expected == place.outbound().source_code)
    }
}

fn surfaces(table: &Table<'_>, words: Vec<Located<String>>) -> Vec<Surface> {
    let surface = |word: Located<String>| {
        table.find(&word, &Surface::WORDS, || {
            format!("unknown surface `{}`", word.value)
        })
    };
    words.into_iter().filter_map(surface).collect()
}

fn allows(globs: &[String], name: Option<&str>) -> bool {
    globs.is_empty() || name.is_some_and(|name| globs.iter().any(|glob| glob_matches(glob, name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::{Details, InboundDetails};

    #[test]
    fn an_instruction_file_is_another_text_where_it_is_not_open() {
        let place = Place {
            details: Details::Inbound(InboundDetails {
                instruction_file: true,
                ..InboundDetails::default()
            }),
            ..Place::default()
        };
        let (inside, outside) = [true, false]
            .map(|of| Only {
                instruction_files: Some(of),
                ..Only::default()
            })
            .into();
        assert!(inside.admits(&place, true) && !outside.admits(&place, true));
        assert!(!inside.admits(&place, false) && outside.admits(&place, false));
        assert!(outside.admits(&Place::default(), true) && Only::default().admits(&place, true));
    }

    #[test]
    fn a_named_tool_is_not_an_unknown_one() {
        let only = Only {
            tools: vec!["run_*".into()],
            ..Only::default()
        };
        for (tool, is_admitted) in [(Some("run_it"), true), (None, false)] {
            let place = Place {
                tool,
                ..Place::default()
            };
            assert_eq!(only.admits(&place, true), is_admitted, "{tool:?}");
        }
        let hidden = Only {
            hidden: Some(true),
            ..Only::default()
        };
        assert!(!hidden.admits(&Place::default(), true));
    }
}
