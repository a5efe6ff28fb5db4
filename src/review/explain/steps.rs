//! The forms of a text on the way to the one in which something was found.

use std::ops::Range;

use serde::Serialize;

use crate::detect::ReadAs;
use crate::detect::command::{Programs, Script};
use crate::inspect::{Finding, Trace};
use crate::record::Redactor;
use crate::rules::{Find, RuleSet};
use crate::text::{Reading, Text, cut, escape_invisible};

use super::{is_private, matched_text};

/// Maximum length of the context that is shown on each side of a match, in bytes.
const CONTEXT_BYTES: usize = 120;
/// Maximum length of a match that is shown, in bytes.
const MAX_MATCH_BYTES: usize = 600;
/// Maximum length of a text in which earlier readings are searched, in bytes.
const MAX_READ_BYTES: usize = 1 << 20;
/// Maximum length of the shape of a secret, in characters.
const MAX_SHAPE_CHARS: usize = 48;

/// The form of a text after one reading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The transformation that was applied.
    pub reading: String,
    /// The text, cut to the surroundings of the match.
    pub parts: Vec<Part>,
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The part, escaped except for its line feeds. Code that displays it must mark each line as
    /// belonging to the part.
    pub text: String,
    pub matched: bool,
}

/// Returns the matched texts of all secrets; they must not be displayed.
pub(super) fn secrets(rules: &RuleSet, findings: &[Finding]) -> Vec<String> {
    let is_secret = |finding: &&Finding| {
        rules.rules().iter().any(|rule| {
            rule.id == finding.rule && (is_private(rule) || matches!(*rule.find, Find::Secret(_)))
        })
    };
    let traces = findings
        .iter()
        .filter(is_secret)
        .filter_map(|finding| finding.trace.as_deref());
    traces
        .map(|trace| matched_text(trace).to_owned())
        .filter(|secret| !secret.is_empty())
        .collect()
}

/// Returns the readings of a text up to the one that matched, without those that changed nothing.
pub(super) fn steps(
    raw: Option<&str>,
    finding: &Finding,
    trace: &Trace,
    secrets: &[String],
    programs: &Programs,
) -> Vec<Step> {
    let mut out = StepList {
        secrets,
        steps: Vec::new(),
        last: String::new(),
    };
    let is_same = raw == Some(trace.text.as_str());
    if let Some(raw) = raw.filter(|_| !is_same) {
        let at = raw
            .find(matched_text(trace))
            .map(|start| start..start + matched_text(trace).len());
        out.add("as received", raw, at);
    }
    let label = match (is_same, trace.hidden, finding.reading) {
        (true, ..) => "as received",
        (false, true, _) => "text that markup hides from a person",
        (false, false, "bare") => "without control characters, erased text kept",
        _ if raw
            .is_some_and(|raw| raw.contains('<') && !raw.trim_start().starts_with(['{', '['])) =>
        {
            "rendered as a page, without markup"
        }
        _ => "nested text",
    };
    // A finding without a span of its own is for the whole text.
    out.add(
        label,
        &trace.text,
        trace.span.clone().or(Some(0..trace.text.len())),
    );
    if trace.text.len() > MAX_READ_BYTES {
        return out.steps;
    }
    let text = Text::new(trace.text.as_str());
    let is_place = |reading: &Reading, span: &Range<usize>| {
        *span == reading.span || reading.repeats.contains(span)
    };
    let readings = || {
        text.readings().iter().filter(|reading| {
            trace
                .span
                .as_ref()
                .is_none_or(|span| is_place(reading, span))
        })
    };
    if readings().any(|reading| reading.path == finding.reading) {
        let names: Vec<&str> = finding.reading.split(" → ").collect();
        for n in 1..=names.len() {
            let path = names.get(..n).unwrap_or_default().join(" → ");
            if let Some(reading) = readings().find(|reading| reading.path == path) {
                out.add(
                    &format!("read as {}", names.get(n - 1).unwrap_or(&"")),
                    &reading.text,
                    None,
                );
            }
        }
    } else if text.plain() != text.raw() {
        let match_text = Text::new(matched_text(trace));
        let at = text
            .plain()
            .find(match_text.plain())
            .map(|start| start..start + match_text.plain().len());
        out.add(
            "visible text: look-alike forms folded, invisible characters removed",
            text.plain(),
            at.filter(|_| trace.span.is_some()),
        );
    }
    if matches!(trace.read_as, ReadAs::Shell | ReadAs::Code(_)) {
        let script = Script::new(&trace.text, trace.read_as).with_programs(programs);
        let mut lines: Vec<String> = script.lines().take(20).collect();
        lines.dedup();
        out.add("commands that would run", &lines.join("\n"), None);
    }
    out.steps
}

struct StepList<'s> {
    secrets: &'s [String],
    steps: Vec<Step>,
    last: String,
}

impl StepList<'_> {
    fn add(&mut self, reading: &str, text: &str, span: Option<Range<usize>>) {
        if text.is_empty() || text == self.last {
            return;
        }
        text.clone_into(&mut self.last);
        let span = span.filter(|span| text.get(span.clone()).is_some());
        let parts = match span {
            None => vec![(cut(text, MAX_MATCH_BYTES), false)],
            Some(span) => {
                let start = tail(text.get(..span.start).unwrap_or_default());
                let end = cut(text.get(span.end..).unwrap_or_default(), CONTEXT_BYTES);
                let match_text = text.get(span).unwrap_or_default();
                vec![
                    (start, false),
                    (cut(match_text, MAX_MATCH_BYTES), true),
                    (end, false),
                ]
            }
        };
        let shown_bytes: usize = parts.iter().map(|(part, _)| part.len()).sum();
        let joined: String = parts.iter().map(|(part, _)| *part).collect();
        let masked_text = self.mask_secrets(&joined);
        let mut parts: Vec<Part> = if masked_text == joined {
            let part = |(text, matched): (&str, bool)| Part {
                text: lines(text),
                matched,
            };
            parts
                .into_iter()
                .filter(|(text, _)| !text.is_empty())
                .map(part)
                .collect()
        } else {
            vec![Part {
                text: lines(&masked_text),
                matched: false,
            }]
        };
        if shown_bytes < text.len() {
            parts.push(Part {
                text: format!(" … ({} bytes in total)", text.len()),
                matched: false,
            });
        }
        self.steps.push(Step {
            reading: reading.to_owned(),
            parts,
        });
    }

    /// Masks the secrets that were found and everything that looks like one.
    fn mask_secrets(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.secrets {
            text = text.replace(secret.as_str(), "[redacted]");
        }
        Redactor::shared().map_or(String::new(), |redactor| {
            redactor.text(&text, text.len()).into_owned()
        })
    }
}

/// Escapes a text line by line.
fn lines(text: &str) -> String {
    text.split('\n')
        .map(escape_invisible)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the end of a text.
fn tail(text: &str) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(CONTEXT_BYTES))..)
        .unwrap_or_default()
}

/// Describes the form of a secret without revealing any character of it: `Aaa-000`, and its length.
pub(super) fn describe_shape(secret: &str) -> String {
    let class = |c: char| match c {
        c if c.is_numeric() => '0',
        c if c.is_uppercase() => 'A',
        c if c.is_alphabetic() => 'a',
        ' ' | '-' | '_' | '.' | '/' | '+' | '=' | ':' => c,
        _ => '?',
    };
    let shape: String = secret.chars().take(MAX_SHAPE_CHARS).map(class).collect();
    let more = if secret.chars().count() > MAX_SHAPE_CHARS {
        "…"
    } else {
        ""
    };
    format!("{shape}{more} ({} bytes)", secret.len())
}
