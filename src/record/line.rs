//! One line of JSON, safe to show: no character in it ends a line, moves a cursor or turns text around.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};
use std::time::{Duration, SystemTime};

use super::chain::Sha;
use super::digits::{Decimal, Hex};
use crate::protocol::AuditId;

/// Room for most lines, which saves growing them step by step. What the writer adds to a line is not in it.
const LINE_BYTES: usize = 1280;

/// A JSON object on one line, written member by member.
pub(super) struct Line(String);

impl Line {
    /// An object without members, within another one.
    pub(super) fn open() -> Self {
        Self("{".to_owned())
    }

    /// An object without members, with room for all that a line usually holds.
    pub(super) fn whole() -> Self {
        let mut text = String::with_capacity(LINE_BYTES);
        text.push('{');
        Self(text)
    }

    /// Names of members are words of this module's own, which need no escapes.
    fn key(&mut self, key: &'static str) {
        self.0.push_str(if self.0.len() > 1 { ",\"" } else { "\"" });
        self.0.push_str(key);
        self.0.push_str("\":");
    }

    /// Adds a string.
    pub(super) fn text(&mut self, key: &'static str, value: &str) {
        self.key(key);
        quote_into(value, &mut self.0);
    }

    /// Adds one of the gate's own words, which need no escapes.
    pub(super) fn word(&mut self, key: &'static str, word: &'static str) {
        self.plain(key, word);
    }

    /// Adds an audit id.
    pub(super) fn id(&mut self, key: &'static str, id: AuditId) {
        let mut text = uuid::Uuid::encode_buffer();
        self.plain(key, id.0.hyphenated().encode_lower(&mut text));
    }

    /// Adds a digest.
    pub(super) fn digest(&mut self, key: &'static str, sha: &Sha) {
        self.plain(key, Hex::of(sha).as_str());
    }

    /// Adds a time, with milliseconds.
    pub(super) fn time(&mut self, key: &'static str, time: SystemTime) {
        self.key(key);
        // Writing to a `String` cannot fail.
        let _infallible = write!(self.0, "\"{}\"", humantime::format_rfc3339_millis(time));
    }

    fn plain(&mut self, key: &'static str, text: &str) {
        debug_assert!(!text.contains(needs_escape), "{text:?} needs escapes");
        self.key(key);
        self.0.push('"');
        self.0.push_str(text);
        self.0.push('"');
    }

    /// Adds a string, if there is one.
    pub(super) fn maybe(&mut self, key: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// Adds a whole number.
    pub(super) fn number(&mut self, key: &'static str, number: impl TryInto<u64>) {
        self.key(key);
        self.0.push_str(Decimal::of(number.try_into().unwrap_or(u64::MAX)).as_str());
    }

    /// Adds `true` or `false`.
    pub(super) fn flag(&mut self, key: &'static str, flag: bool) {
        self.key(key);
        self.0.push_str(if flag { "true" } else { "false" });
    }

    /// Adds a time span in milliseconds, with three decimals.
    pub(super) fn milliseconds(&mut self, key: &'static str, span: Duration) {
        let micros = span.as_nanos().saturating_add(500) / 1000;
        let decimals = Decimal::of(u64::try_from(micros % 1000 + 1000).unwrap_or_default());
        self.number(key, micros / 1000);
        self.0.push('.');
        self.0.push_str(decimals.as_str().get(1..).unwrap_or_default());
    }

    /// Adds a text that is JSON by itself.
    pub(super) fn raw(&mut self, key: &'static str, json: &str) {
        self.key(key);
        self.0.push_str(json);
    }

    /// Adds what is JSON by itself when it is displayed.
    pub(super) fn json(&mut self, key: &'static str, value: impl Display) {
        self.key(key);
        // Writing to a `String` cannot fail.
        let _infallible = write!(self.0, "{value}");
    }

    /// Adds a list of objects.
    pub(super) fn list(&mut self, key: &'static str, items: impl IntoIterator<Item = Self>) {
        self.key(key);
        self.0.push('[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            self.0.push_str(&item.close());
        }
        self.0.push(']');
    }

    /// Adds a list of strings.
    pub(super) fn texts(&mut self, key: &'static str, items: impl IntoIterator<Item: AsRef<str>>) {
        self.key(key);
        self.0.push('[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.0.push(',');
            }
            quote_into(item.as_ref(), &mut self.0);
        }
        self.0.push(']');
    }

    /// The finished object, with the line feed that ends its line.
    pub(super) fn finish(mut self) -> String {
        self.0.push_str("}\n");
        self.0
    }

    /// The finished object.
    pub(super) fn close(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Writes a text as a JSON string. Beyond what JSON asks for (RFC 8259, section 7) it escapes every
/// character that a terminal or an editor may obey instead of showing.
pub(super) fn quote_into(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    // Without a branch for each byte, so that the compiler makes vector code of it.
    if text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b'\\')) {
        out.push_str(text);
        out.push('"');
        return;
    }
    let mut plain_from = 0;
    for (at, c) in text.char_indices() {
        if !needs_escape(c) {
            continue;
        }
        out.push_str(text.get(plain_from..at).unwrap_or_default());
        plain_from = at + c.len_utf8();
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _infallible = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push_str(text.get(plain_from..).unwrap_or_default());
    out.push('"');
}

/// A text of an agent or a server as a terminal may be given it: what it would obey instead of showing is spelled out.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| needs_escape(c) && !matches!(c, '"' | '\\');
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let spelled = |mut out: String, c: char| {
        if obeyed(c) {
            out.extend(c.escape_unicode())
        } else {
            out.push(c)
        }
        out
    };
    Cow::Owned(text.chars().fold(String::with_capacity(text.len()), spelled))
}

/// JSON as a terminal may be given it: what it would obey instead of showing is escaped in its strings. Line feeds between its
/// tokens stay.
pub fn harmless_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if needs_escape(c) && !matches!(c, '"' | '\\' | '\n') {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _infallible = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

fn needs_escape(c: char) -> bool {
    match c {
        '"' | '\\' => true,
        ' '..='~' => false,
        c => {
            c.is_control()
                || matches!(c,
                    // Marks and controls of direction, separators of lines, invisible joiners and fillers, tags.
                    '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out() {
        assert_eq!(harmless("a \"ä\" \\ 漢"), "a \"ä\" \\ 漢");
        assert_eq!(harmless("\u{1b}[2J\n\u{202e}x\u{9b}"), "\\u{1b}[2J\\u{a}\\u{202e}x\\u{9b}");
    }

    #[test]
    fn what_is_written_reads_back_and_stays_on_its_line() {
        let hostile = "a\"\\\n\r\t\u{0}\u{1b}[2J\u{7f}\u{9b}\u{2028}\u{2029}\u{202e}\u{200b}\u{e0041}\u{feff} ä 漢 🦀";
        let mut line = Line::open();
        line.text("hostile", hostile);
        line.maybe("none", None);
        line.number("n", 12_u64);
        line.flag("b", true);
        for nanos in [0, 12_345_678, 999_500, 61_000_000_499] {
            line.milliseconds("ms", Duration::from_nanos(nanos));
        }
        line.id("id", AuditId(uuid::Uuid::from_u128(0xab << 120 | 7)));
        line.digest("d", &[0xa5; 32]);
        line.time("t0", SystemTime::UNIX_EPOCH);
        let id = r#""id":"ab000000-0000-0000-0000-000000000007","d":"#;
        let spans = r#""ms":0.000,"ms":12.346,"ms":1.000,"ms":61000.000,"#;
        let expected = format!("{spans}{id}\"{}\",\"t0\":\"1970-01-01T00:00:00.000Z\"", "a5".repeat(32));
        assert!(line.0.ends_with(&expected), "{}", line.0);
        line.raw("r", "[1]");
        line.list("l", [Line::open(), Line::open()]);
        line.texts("t", ["x\n".to_owned()]);
        let line = line.close();
        assert!(line.chars().all(|c| !c.is_control() && !needs_escape(c) || matches!(c, '"' | '\\')), "{line}");
        #[allow(clippy::disallowed_types, reason = "a second opinion")]
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["hostile"], hostile);
        assert_eq!((read["n"].as_u64(), read["t"][0].as_str(), read.get("none")), (Some(12), Some("x\n"), None));
        assert_eq!(read["l"].as_array().map(Vec::len), Some(2));
        assert!(line.ends_with(",\"r\":[1],\"l\":[{},{}],\"t\":[\"x\\n\"]}"), "{line}");
    }
}
