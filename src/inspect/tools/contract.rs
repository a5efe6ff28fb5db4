//! Checks that a call conforms to what was declared about its tool: that there is such a tool, the
//! server's schema of its arguments, and the operator's.

use serde_json::{Value as Json, json};

use super::overlay::{Overlays, merge};
use super::schema::{ArgumentFault, Schema};
use super::{Tools, example};
use crate::config::SchemaConfig;
use crate::detect::{Surface, work};
use crate::inspect::finding::GateFinding;
use crate::inspect::{Inspection, Refusal, SkipReason, Uninspected};
use crate::message::{Envelope, Message, Value};
use crate::rules::{Action, Severity};

/// Maximum length of an example in a refusal, in bytes.
const EXAMPLE_BYTES: usize = 600;

const TOO_COSTLY: &str = "schema-too-costly";

/// What calls are checked against.
pub(in crate::inspect) struct Contract<'a> {
    pub(in crate::inspect) overlays: &'a Overlays,
    pub(in crate::inspect) config: SchemaConfig,
    pub(in crate::inspect) tools: Option<&'a Tools>,
}

/// A violation by a call.
struct Breach {
    rule: &'static str,
    title: &'static str,
    pointer: String,
    why: String,
}

impl Contract<'_> {
    /// Checks one message of a body, if it is a call; records findings, and returns the refusal
    /// that they require.
    pub(in crate::inspect) fn check(
        &self,
        message: &Message,
        envelope: &Envelope,
        item: usize,
        inspection: &mut Inspection,
    ) -> Option<Refusal> {
        let params = message
            .body(envelope)
            .filter(|_| envelope.method() == Some("tools/call"))?;
        let tool = params.get_str("name")?;
        let prefix = if message.is_batch() {
            format!("/{item}")
        } else {
            String::new()
        };
        let at = |pointer: &str| format!("{prefix}/params{pointer}");
        let breach = self.find_breach(&tool, params.get("arguments"), |reason, bytes| {
            inspection.coverage.uninspected.push(Uninspected {
                at: at("/arguments"),
                reason,
                bytes,
            });
        })?;
        let matched = params
            .get("arguments")
            .map_or(&*tool, |arguments| arguments.raw());
        let gate_finding = GateFinding {
            rule: breach.rule,
            title: breach.title,
            severity: Severity::Medium,
            surface: Surface::Arguments,
            at: at(&breach.pointer),
            item,
            reading: if breach.rule == TOO_COSTLY {
                work::SCHEMA
            } else {
                "schema"
            },
        };
        inspection
            .findings
            .push(gate_finding.finding(Action::Block, matched));
        Some(gate_finding.refusal(breach.why))
    }

    fn find_breach(
        &self,
        tool: &str,
        arguments: Option<Value<'_>>,
        mut unchecked: impl FnMut(SkipReason, usize),
    ) -> Option<Breach> {
        let printable: String = tool
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .take(64)
            .collect();
        if self.overlays.hides(tool) {
            return Some(Breach {
                rule: "hidden-tool",
                title: "The tool is not offered",
                pointer: "/name".to_owned(),
                why: format!(
                    "`{printable}` may not be called here. Use one of the tools in the list, or ask the user."
                ),
            });
        }
        let definition = self.tools.and_then(|tools| tools.definition(tool));
        if definition.is_none() && !self.config.unlisted && self.tools.is_some() {
            return Some(Breach {
                rule: "unlisted-tool",
                title: "The server does not list the tool",
                pointer: "/name".to_owned(),
                why: format!(
                    "No list of the server's has `{printable}`. Ask for `tools/list`, and call a tool that is in it."
                ),
            });
        }
        let enforced = self.config.enforce && !self.tools.is_some_and(Tools::is_stale);
        let compiled = definition
            .as_deref()
            .filter(|_| enforced)
            .and_then(|definition| definition.compiled_schema());
        let own_schema = match compiled {
            Some(Err(reason)) => {
                unchecked(
                    *reason,
                    arguments.map_or(0, |arguments| arguments.raw().len()),
                );
                None
            }
            Some(Ok(schema)) => Some(schema),
            None => None,
        };
        let schemas: Vec<&Schema> = self
            .overlays
            .check_schemas(tool)
            .chain(own_schema)
            .collect();
        if schemas.is_empty() {
            return None;
        }
        let argument_breach = |pointer: &str, why: String| Breach {
            rule: "argument-schema",
            title: "The arguments do not fit the tool's schema",
            pointer: format!("/arguments{pointer}"),
            why,
        };
        // Numbers become doubles, as in most servers; rounding preserves their order.
        let Ok(parsed) =
            serde_json::from_str::<Json>(arguments.map_or("{}", |arguments| arguments.raw()))
        else {
            let why =
                "A number among them is out of range, or they nest too deep. Send smaller ones.";
            return Some(argument_breach("", why.to_owned()));
        };
        let mut all_faults = Vec::new();
        for schema in &schemas {
            match schema.check(&parsed) {
                Ok(faults) => all_faults.extend(faults),
                Err(_) => {
                    return Some(Breach {
                        rule: TOO_COSTLY,
                        title: "The arguments take too long to check against the tool's schema",
                        pointer: "/arguments".to_owned(),
                        why: "Send fewer or smaller arguments at a time.".to_owned(),
                    });
                }
            }
        }
        let first = all_faults.first()?;
        let why = fault_text(&all_faults) + &self.example(tool, own_schema, &schemas, &all_faults);
        Some(argument_breach(&first.pointer, why))
    }

    /// Returns, as a sentence, arguments that pass all checks, if they can be generated.
    fn example(
        &self,
        tool: &str,
        own_schema: Option<&Schema>,
        schemas: &[&Schema],
        faults: &[ArgumentFault],
    ) -> String {
        let mut merged_schema = own_schema.map_or_else(|| json!({}), |schema| schema.value.clone());
        if let Some(over) = self.overlays.merged_patch(tool).get("inputSchema") {
            merge(&mut merged_schema, over);
        }
        for schema in schemas {
            merge_formats(&mut merged_schema, &schema.value);
        }
        let names: Vec<&str> = faults
            .iter()
            .filter_map(|wrong| wrong.argument.split('.').next())
            .collect();
        let arguments = example::object(&merged_schema, &names);
        let passes = schemas
            .iter()
            .all(|schema| schema.check(&arguments).is_ok_and(|wrong| wrong.is_empty()));
        let text = arguments.to_string();
        if passes && text.len() <= EXAMPLE_BYTES {
            format!(" An example that fits: {text}")
        } else {
            " Ask for `tools/list` to see what fits.".to_owned()
        }
    }
}

/// Replaces the pattern that represents an operator's format in lists by the format itself.
fn merge_formats(base: &mut Json, over: &Json) {
    let (Some(properties), Some(all)) = (
        over.get("properties").and_then(Json::as_object),
        base.get_mut("properties"),
    ) else {
        return;
    };
    for (name, property) in properties {
        if let (Some(format), Some(Json::Object(base))) =
            (property.get("format"), all.get_mut(name))
        {
            base.remove("pattern");
            base.insert("format".to_owned(), format.clone());
        }
    }
}

/// Returns the faults in words, each once.
fn fault_text(faults: &[ArgumentFault]) -> String {
    let mut out: Vec<String> = Vec::new();
    for ArgumentFault {
        argument,
        description: what,
        ..
    } in faults
    {
        let subject = if argument.is_empty() {
            "the call".to_owned()
        } else {
            format!("`{argument}`")
        };
        let line = match what.strip_prefix("it ") {
            Some(rest) => format!("{subject} {rest}"),
            None => format!("{subject} {what}"),
        };
        if !out.contains(&line) {
            out.push(line);
        }
    }
    let mut text = out.join("; ") + ".";
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}
