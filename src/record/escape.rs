//! Escapes text for display: no character of the result ends a line, moves the cursor or changes
//! the direction of the text.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Writes a text of lychgate's own, which needs no escapes, as a JSON string.
pub(super) fn write_plain(text: &str, out: &mut String) {
    debug_assert!(!text.contains(needs_escape), "{text:?} needs escapes");
    out.push('"');
    out.push_str(text);
    out.push('"');
}

/// Writes a text as a JSON string. In addition to what JSON requires (RFC 8259, section 7), it
/// escapes every character that a terminal or an editor may interpret instead of displaying.
pub(super) fn write_quoted(text: &str, out: &mut String) {
    out.reserve(text.len() + 2);
    out.push('"');
    // No branch per byte, so that the compiler can vectorize the loop.
    if text.bytes().fold(true, |plain, byte| {
        plain & matches!(byte, b' '..=b'~') & (byte != b'"') & (byte != b'\\')
    }) {
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

/// Returns text of an agent or an upstream in a form that is safe to print on a terminal:
/// characters that the terminal would interpret are escaped.
pub fn terminal_safe(text: &str) -> Cow<'_, str> {
    let is_interpreted = |c: char| needs_escape(c) && !matches!(c, '"' | '\\');
    if !text.contains(is_interpreted) {
        return Cow::Borrowed(text);
    }
    let push_escaped = |mut out: String, c: char| {
        if is_interpreted(c) {
            out.extend(c.escape_unicode())
        } else {
            out.push(c)
        }
        out
    };
    Cow::Owned(
        text.chars()
            .fold(String::with_capacity(text.len()), push_escaped),
    )
}

/// Returns JSON in a form that is safe to print on a terminal: characters that the terminal would
/// interpret are escaped in its strings. Line feeds between tokens are kept.
pub fn terminal_safe_json(json: &str) -> String {
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
                    // Bidirectional marks and controls, line separators, invisible joiners and
                    // fillers, tags.
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
        assert_eq!(terminal_safe("a \"ä\" \\ 漢"), "a \"ä\" \\ 漢");
        assert_eq!(
            terminal_safe("\u{1b}[2J\n\u{202e}x\u{9b}"),
            "\\u{1b}[2J\\u{a}\\u{202e}x\\u{9b}"
        );
    }

    #[test]
    fn a_quoted_text_reads_back_and_stays_on_its_line() {
        let hostile = "a\"\\\n\r\t\u{0}\u{1b}[2J\u{7f}\u{9b}\u{2028}\u{2029}\u{202e}\u{200b}\u{e0041}\u{feff} ä 漢 🦀";
        let mut line = String::new();
        write_quoted(hostile, &mut line);
        assert!(
            line.chars()
                .all(|c| !c.is_control() && !needs_escape(c) || matches!(c, '"' | '\\')),
            "{line}"
        );
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), hostile);
    }
}
