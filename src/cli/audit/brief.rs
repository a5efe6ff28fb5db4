//! An audit line as a person reads it.

use crate::message::{Value, ValueKind};
use crate::record::{harmless, names};
use crate::review::Entry;
use crate::text::cut;

/// Longest text shown of a member, in bytes.
const TEXT_BYTES: usize = 160;
/// Most rules named.
const RULES: usize = 4;
/// What a brief line shows by itself or leaves out.
const SHOWN: [&str; 14] = [
    names::TIME,
    names::EVENT,
    names::SEVERITY,
    names::SEQ,
    names::PREV,
    names::AUDIT,
    names::AGENT,
    names::SESSION,
    names::UPSTREAM,
    names::ERA,
    names::REVISION,
    names::TRANSPORT,
    names::TRACE,
    names::SPAN,
];

/// Select Graphic Rendition parameters (ECMA-48, 8.3.117).
fn look(word: &str, severity: &str) -> &'static str {
    match (word, severity) {
        ("block", _) | (_, "Critical" | "High") => "31",
        ("rewrite" | "ask", _) | (_, "Medium") => "33",
        ("pass", _) => "32",
        _ => "36",
    }
}

/// A line in short.
pub(super) fn brief(entry: &Entry, colour: bool) -> String {
    let text = |name: &str| entry.text(name).map(|text| harmless(cut(&text, TEXT_BYTES)).into_owned()).unwrap_or_default();
    let event = text(names::EVENT);
    let judged = event == "judged";
    let word = if judged { text(names::VERDICT) } else { event.clone() };
    let time = text(names::TIME).replacen('T', " ", 1).replace('Z', "");
    let mut out = format!("{time}  ");
    let shown = format!("{word:<8}");
    if colour {
        let severity = if judged { String::new() } else { text(names::SEVERITY) };
        out.push_str(&format!("\u{1b}[{}m{shown}\u{1b}[0m", look(&word, &severity)));
    } else {
        out.push_str(&shown);
    }
    let arrow = match text(names::DIRECTION).as_str() {
        "outbound" => "-> ",
        "inbound" => "<- ",
        _ => "",
    };
    let mut parts = vec![format!("{arrow}{}", text(names::UPSTREAM))];
    if judged {
        let what = [names::TOOL, names::PROMPT, names::RESOURCE].into_iter().map(text).find(|name| !name.is_empty());
        let kind = text(names::KIND);
        parts.push(format!("{} {kind}", text(names::METHOD)));
        parts.extend(what);
        parts.push(found(entry));
        if !text(names::WOULD).is_empty() && text(names::WOULD) != word {
            parts.push(format!("(would {})", text(names::WOULD)));
        }
        if text(names::COVERAGE) == "partial" {
            parts.push("(not all was looked at)".to_owned());
        }
        if !text(names::ERROR).is_empty() {
            parts.push(format!("error {}", text(names::ERROR)));
        }
    } else {
        parts.extend(rest(entry));
    }
    let who = text(names::AGENT);
    parts.push(if who.is_empty() { who } else { format!("by {who}") });
    parts.push(text(names::AUDIT));
    for part in parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()) {
        out.push(' ');
        out.push_str(part);
    }
    out
}

/// The rules that found something, each once.
fn found(entry: &Entry) -> String {
    let mut rules: Vec<String> = Vec::new();
    for found in entry.findings() {
        let rule = harmless(&found.rule()).into_owned();
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let more = rules.len().saturating_sub(RULES);
    rules.truncate(RULES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if rules.is_empty() { more } else { format!("[{}{more}]", rules.join(", ")) }
}

/// What else stands in the line, as `name=value`.
fn rest(entry: &Entry) -> impl Iterator<Item = String> {
    let members = entry.root().members().filter(|(name, _)| !SHOWN.contains(&&**name));
    members.map(|(name, value)| format!("{}={}", harmless(&name), plain(value))).take(12)
}

/// A value in one line, harmless and cut.
pub(super) fn plain(value: Value<'_>) -> String {
    match value.kind() {
        ValueKind::String => {
            let text = value.str().unwrap_or_default();
            let head = cut(&text, TEXT_BYTES);
            let more = if head.len() < text.len() { "…" } else { "" };
            format!("{}{more}", harmless(head))
        }
        ValueKind::Array => {
            let items: Vec<String> = value
                .elements()
                .take(RULES)
                .map(|item| harmless(cut(item.raw().trim_matches('"'), TEXT_BYTES)).into_owned())
                .collect();
            let more = if value.elements().nth(RULES).is_some() { ", …" } else { "" };
            format!("{}{more}", items.join(", "))
        }
        _ => harmless(cut(value.raw(), 4 * TEXT_BYTES)).into_owned(),
    }
}
