//! A definition in a form that does not depend on who wrote it.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::Kind;
use crate::message::{Json, ParseError, ReadLimits, Value, ValueKind, hex, quote};

/// Maximum length of a container that stays on one line, in bytes.
const LINE_BYTES: usize = 100;

/// The content of a definition, as canonical JSON: no whitespace, members sorted by name. Cheap to
/// clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(Arc<str>);

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Content({})", self.digest())
    }
}

impl Content {
    /// Returns the content of a definition. Members that describe the current data of a resource
    /// (`size`, `annotations.lastModified`) are not a part of it.
    pub fn new(definition: Value<'_>, kind: Kind) -> Self {
        Self(canonical(definition, kind).into())
    }

    /// Parses the content from any equivalent JSON.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn read(text: &str, kind: Kind) -> Result<Self, ParseError> {
        Ok(Self::new(
            Json::parse(text.to_owned().into(), &limits(text))?.root(),
            kind,
        ))
    }

    /// Returns the content as canonical JSON, on one line.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the content as JSON values.
    pub(super) fn json(&self) -> Option<Json> {
        Json::parse(self.0.to_string().into(), &limits(&self.0)).ok()
    }

    /// Returns the SHA-256 of the content, in hex.
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(self.0.as_bytes()))
    }

    /// Formats the content on several lines, for people: invisible characters are written as
    /// escapes.
    pub fn pretty(&self) -> String {
        let Some(json) = self.json() else {
            return self.0.to_string();
        };
        let mut out = String::new();
        for c in lines(json.root()).chars() {
            match c {
                c if is_invisible(c) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _infallible = write!(out, "\\u{unit:04x}");
                    }
                }
                c => out.push(c),
            }
        }
        out
    }
}

/// Returns limits that allow anything to be parsed again that was a part of a message within its
/// limits, whatever those are now.
fn limits(text: &str) -> ReadLimits {
    ReadLimits {
        message_bytes: text.len(),
        strings_per_message: text.len(),
        depth: 1024,
        ..ReadLimits::default()
    }
}

/// Returns whether a reader of the lock file would not see a character, or whether it reverses the
/// direction of the line.
fn is_invisible(c: char) -> bool {
    !c.is_ascii()
        && (c.is_control()
            || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'))
}

enum Part<'j> {
    Value(Value<'j>, usize),
    Text(String),
}

/// Writes the texts before the next value, and returns it with its depth.
fn next_value<'j>(open: &mut Vec<Part<'j>>, out: &mut String) -> Option<(Value<'j>, usize)> {
    loop {
        match open.pop()? {
            Part::Text(text) => out.push_str(&text),
            Part::Value(value, depth) => return Some((value, depth)),
        }
    }
}

fn canonical(root: Value<'_>, kind: Kind) -> String {
    let mut out = String::new();
    let mut open = vec![Part::Value(root, 0)];
    while let Some((value, depth)) = next_value(&mut open, &mut out) {
        match value.kind() {
            ValueKind::Object => {
                let mut members: Vec<_> = value
                    .members()
                    .filter(|(key, _)| !is_volatile(kind, depth, key))
                    .collect();
                members.sort_by(|a, b| a.0.cmp(&b.0));
                out.push('{');
                open.push(Part::Text("}".to_owned()));
                for (index, (key, value)) in members.into_iter().enumerate().rev() {
                    open.push(Part::Value(value, depth + 1));
                    open.push(Part::Text(format!(
                        "{}{}:",
                        if index == 0 { "" } else { "," },
                        quote(&key)
                    )));
                }
            }
            ValueKind::Array => {
                out.push('[');
                open.push(Part::Text("]".to_owned()));
                let elements: Vec<_> = value.elements().collect();
                for (index, value) in elements.into_iter().enumerate().rev() {
                    open.push(Part::Value(value, depth + 1));
                    if index > 0 {
                        open.push(Part::Text(",".to_owned()));
                    }
                }
            }
            ValueKind::String => out.push_str(&quote(&value.str().unwrap_or_default())),
            _ => out.push_str(value.raw()),
        }
    }
    out
}

/// Returns whether a member describes the current state of the data rather than what they are.
fn is_volatile(kind: Kind, depth: usize, key: &str) -> bool {
    match kind {
        Kind::Resource => matches!((depth, key), (0, "size") | (1, "lastModified")),
        Kind::Server => (depth, key) == (1, "version"),
        Kind::Tool | Kind::Prompt | Kind::Template => false,
    }
}

fn lines(root: Value<'_>) -> String {
    let mut out = String::new();
    let mut open = vec![Part::Value(root, 0)];
    while let Some((value, depth)) = next_value(&mut open, &mut out) {
        let margin = "  ".repeat(depth + 1);
        let (members, elements): (Vec<_>, Vec<_>) =
            (value.members().collect(), value.elements().collect());
        let filled = !members.is_empty() || !elements.is_empty();
        if !filled || (depth > 0 && value.raw().len() + margin.len() <= LINE_BYTES) {
            out.push_str(value.raw());
            continue;
        }
        let (opens, closes) = if elements.is_empty() {
            ('{', '}')
        } else {
            ('[', ']')
        };
        out.push(opens);
        open.push(Part::Text(format!("\n{}{closes}", "  ".repeat(depth))));
        let comma = |index: usize| if index == 0 { "" } else { "," };
        for (index, (key, value)) in members.into_iter().enumerate().rev() {
            open.push(Part::Value(value, depth + 1));
            open.push(Part::Text(format!(
                "{}\n{margin}{}: ",
                comma(index),
                quote(&key)
            )));
        }
        for (index, value) in elements.into_iter().enumerate().rev() {
            open.push(Part::Value(value, depth + 1));
            open.push(Part::Text(format!("{}\n{margin}", comma(index))));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_layout_do_not_matter_and_everything_else_does() {
        let of = |text: &str| Content::read(text, Kind::Tool).unwrap();
        let one = of(r#"{"name":"t","inputSchema":{"b":1,"a":[1, "\u0041"]}}"#);
        assert_eq!(
            one.as_str(),
            r#"{"inputSchema":{"a":[1,"A"],"b":1},"name":"t"}"#
        );
        assert_eq!(
            one,
            of(r#"{ "inputSchema" : {"a":[1,"A"],"b":1}, "name":"t" }"#)
        );
        assert_ne!(
            one.digest(),
            of(r#"{"name":"t","inputSchema":{"b":1,"a":["A",1]}}"#).digest()
        );
        let file = |size| {
            Content::read(&format!(r#"{{"uri":"a","size":{size}}}"#), Kind::Resource).unwrap()
        };
        assert_eq!(
            file(1),
            file(2),
            "how much there is now is no part of what it is"
        );
    }

    #[test]
    fn what_people_read_hides_nothing_and_reads_back() {
        let long = "x".repeat(120);
        let text = format!(
            r#"{{"description":"a\u200bb\ud83d\ude00 '''\udb40\udc41 ä","inputSchema":{{"p":"{long}","q":{{}},"r":[1,2]}}}}"#
        );
        let content = Content::read(&text, Kind::Tool).unwrap();
        let pretty = content.pretty();
        assert!(
            pretty.contains("a\\u200bb😀 '''\\udb40\\udc41 ä") && pretty.lines().count() == 8,
            "{pretty}"
        );
        assert_eq!(Content::read(&pretty, Kind::Tool).unwrap(), content);
    }
}
