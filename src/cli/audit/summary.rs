//! Formats an audit line for people.

use crate::message::{Value, ValueKind};
use crate::record::entry::member;
use crate::record::entry::object::finding;
use crate::record::terminal_safe;
use crate::review::Entry;
use crate::text::cut;

/// Maximum length of a member's text that is shown, in bytes.
const MAX_TEXT_BYTES: usize = 160;
/// Maximum number of rules that are named.
const MAX_RULES: usize = 4;
/// Members that a brief line shows in a form of their own, or omits.
const SHOWN: [&str; 14] = [
    member::time::NAME,
    member::event::NAME,
    member::severity::NAME,
    member::seq::NAME,
    member::prev::NAME,
    member::audit::NAME,
    member::agent::NAME,
    member::session::NAME,
    member::upstream::NAME,
    member::era::NAME,
    member::revision::NAME,
    member::transport::NAME,
    member::trace::NAME,
    member::span::NAME,
];

/// Returns Select Graphic Rendition parameters (ECMA-48, 8.3.117).
fn colour_code(word: &str, severity: &str) -> &'static str {
    match (word, severity) {
        ("block", _) | (_, "Critical" | "High") => "31",
        ("rewrite" | "ask", _) | (_, "Medium") => "33",
        ("pass", _) => "32",
        _ => "36",
    }
}

/// Formats a line in brief.
pub(super) fn format_brief(entry: &Entry, colour: bool) -> String {
    let text = |name: &str| {
        entry
            .text(name)
            .map(|text| terminal_safe(cut(&text, MAX_TEXT_BYTES)).into_owned())
            .unwrap_or_default()
    };
    let event = text(member::event::NAME);
    let is_judged = event == "judged";
    let word = if is_judged {
        text(member::verdict::NAME)
    } else {
        event.clone()
    };
    let time = text(member::time::NAME)
        .replacen('T', " ", 1)
        .replace('Z', "");
    let mut out = format!("{time}  ");
    let padded = format!("{word:<8}");
    if colour {
        let severity = if is_judged {
            String::new()
        } else {
            text(member::severity::NAME)
        };
        out.push_str(&format!(
            "\u{1b}[{}m{padded}\u{1b}[0m",
            colour_code(&word, &severity)
        ));
    } else {
        out.push_str(&padded);
    }
    let arrow = match text(member::direction::NAME).as_str() {
        "outbound" => "-> ",
        "inbound" => "<- ",
        _ => "",
    };
    let mut parts = vec![format!("{arrow}{}", text(member::upstream::NAME))];
    if is_judged {
        let target = [
            member::tool::NAME,
            member::prompt::NAME,
            member::resource::NAME,
        ]
        .into_iter()
        .map(text)
        .find(|name| !name.is_empty());
        let kind = text(member::kind::NAME);
        parts.push(format!("{} {kind}", text(member::method::NAME)));
        parts.extend(target);
        parts.push(finding_text(entry));
        if !text(member::would::NAME).is_empty() && text(member::would::NAME) != word {
            parts.push(format!("(would {})", text(member::would::NAME)));
        }
        if text(member::coverage::NAME) == "partial" {
            parts.push("(partially inspected)".to_owned());
        }
        if !text(member::error::NAME).is_empty() {
            parts.push(format!("error {}", text(member::error::NAME)));
        }
    } else {
        parts.extend(other_members(entry));
    }
    let agent = text(member::agent::NAME);
    parts.push(if agent.is_empty() {
        agent
    } else {
        format!("by {agent}")
    });
    parts.push(text(member::audit::NAME));
    for part in parts
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty())
    {
        out.push(' ');
        out.push_str(part);
    }
    out
}

/// Lists the rules that have findings, each once.
fn finding_text(entry: &Entry) -> String {
    let mut rules: Vec<String> = Vec::new();
    for found in entry.findings() {
        let rule = terminal_safe(&found.text(finding::rule)).into_owned();
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let more = rules.len().saturating_sub(MAX_RULES);
    rules.truncate(MAX_RULES);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    if rules.is_empty() {
        more
    } else {
        format!("[{}{more}]", rules.join(", "))
    }
}

/// Returns the other members of the line, as `name=value`.
fn other_members(entry: &Entry) -> impl Iterator<Item = String> {
    let members = entry
        .root()
        .members()
        .filter(|(name, _)| !SHOWN.contains(&&**name));
    members
        .map(|(name, value)| format!("{}={}", terminal_safe(&name), format_value(value)))
        .take(12)
}

/// Formats a value on one line, escaped and truncated.
pub(super) fn format_value(value: Value<'_>) -> String {
    match value.kind() {
        ValueKind::String => {
            let text = value.str().unwrap_or_default();
            let head = cut(&text, MAX_TEXT_BYTES);
            let more = if head.len() < text.len() { "…" } else { "" };
            format!("{}{more}", terminal_safe(head))
        }
        ValueKind::Array => {
            let items: Vec<String> = value
                .elements()
                .take(MAX_RULES)
                .map(|item| {
                    terminal_safe(cut(item.raw().trim_matches('"'), MAX_TEXT_BYTES)).into_owned()
                })
                .collect();
            let more = if value.elements().nth(MAX_RULES).is_some() {
                ", …"
            } else {
                ""
            };
            format!("{}{more}", items.join(", "))
        }
        _ => terminal_safe(cut(value.raw(), 4 * MAX_TEXT_BYTES)).into_owned(),
    }
}
