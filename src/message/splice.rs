//! Replaces strings of a message and leaves every other byte unchanged.

use std::ops::Range;

use bytes::Bytes;

/// One replacement: the bytes at `span` (offsets into the message) become `replacement`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The bytes to replace.
    pub span: Range<usize>,
    /// The replacement.
    pub replacement: String,
    /// Whether `span` covers whole values and `with` is JSON. If not, `span` is the range between
    /// the quotes of a string, and `with` is text that is escaped as JSON requires.
    pub is_json: bool,
}

impl Edit {
    /// Replaces text in a string; `span` lies between its quotes.
    pub fn text(span: Range<usize>, replacement: impl Into<String>) -> Self {
        Self {
            span,
            replacement: replacement.into(),
            is_json: false,
        }
    }

    /// Replaces whole values with other JSON.
    pub fn json(span: Range<usize>, replacement: String) -> Self {
        Self {
            span,
            replacement,
            is_json: true,
        }
    }
}

/// Applies edits. Spans must not overlap; one that does, or that is out of range, is a bug in the
/// caller and returns `None`: such a message is not forwarded.
pub fn splice(bytes: &Bytes, mut edits: Vec<Edit>) -> Option<Bytes> {
    if edits.is_empty() {
        return Some(bytes.clone());
    }
    edits.sort_by_key(|edit| edit.span.start);
    let edit_bytes: usize = edits
        .iter()
        .map(|edit| edit.replacement.len() + edit.replacement.len() / 8)
        .sum();
    let mut out = Vec::with_capacity(bytes.len() + edit_bytes);
    let mut at = 0;
    for edit in &edits {
        out.extend_from_slice(bytes.get(at..edit.span.start)?);
        if edit.is_json {
            out.extend_from_slice(edit.replacement.as_bytes());
        } else {
            escape(&edit.replacement, &mut out);
        }
        at = edit.span.end;
    }
    out.extend_from_slice(bytes.get(at..)?);
    Some(out.into())
}

/// Returns a text as a JSON string, quotes included.
pub fn quote(text: &str) -> String {
    let mut out = vec![b'"'];
    escape(text, &mut out);
    out.push(b'"');
    // `escape` writes UTF-8 when it reads UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

/// Escapes a text; runs without characters to escape are copied whole.
fn escape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((plain, tail)) = rest
        .bytes()
        .position(may_begin_escaped)
        .and_then(|at| rest.split_at_checked(at))
    {
        out.extend_from_slice(plain.as_bytes());
        let mut chars = tail.chars();
        match chars.next() {
            Some('"') => out.extend_from_slice(b"\\\""),
            Some('\\') => out.extend_from_slice(b"\\\\"),
            Some('\n') => out.extend_from_slice(b"\\n"),
            Some('\r') => out.extend_from_slice(b"\\r"),
            Some('\t') => out.extend_from_slice(b"\\t"),
            // U+2028 and U+2029 end lines for some parsers of event streams and scripts.
            Some(c) if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                out.extend_from_slice(format!("\\u{:04x}", c as u32).as_bytes())
            }
            Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            None => {}
        }
        rest = chars.as_str();
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Returns whether a byte begins a character that may have to be escaped: beyond ASCII, those that
/// begin U+0080 to U+00BF and U+2000 to U+2FFF do.
fn may_begin_escaped(byte: u8) -> bool {
    matches!(byte, ..b' ' | b'"' | b'\\' | 0x7f | 0xc2 | 0xe2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_byte_stays() {
        let bytes = Bytes::from_static(b" { \"a\" : \"one\", \"b\":\"t\\u0077o\" , \"n\": 1e2 } ");
        let edits = vec![Edit::text(21..29, "2\n\"\u{1}"), Edit::text(10..13, "1")];
        let out = splice(&bytes, edits).unwrap();
        assert_eq!(
            &out[..],
            b" { \"a\" : \"1\", \"b\":\"2\\n\\\"\\u0001\" , \"n\": 1e2 } "
        );
        assert_eq!(
            splice(&bytes, vec![]).unwrap().as_ptr(),
            bytes.as_ptr(),
            "no edit, no copy"
        );
    }

    #[test]
    fn whole_values_are_replaced_as_written() {
        let bytes = Bytes::from_static(b"[{\"a\":1}, 2]");
        assert_eq!(
            &splice(&bytes, vec![Edit::json(1..8, "{\"b\":\"\"}".into())]).unwrap()[..],
            b"[{\"b\":\"\"}, 2]"
        );
    }

    #[test]
    fn only_what_ends_lines_or_strings_is_escaped() {
        for (text, quoted) in [
            ("", "\"\""),
            ("a\"b\\c\n\r\t", "\"a\\\"b\\\\c\\n\\r\\t\""),
            ("\0\u{7f}\u{9f}\u{a0}é", "\"\\u0000\\u007f\\u009f\u{a0}é\""),
            (
                "“x”\u{2028}\u{2029}指令\u{1f600}",
                "\"“x”\\u2028\\u2029指令\u{1f600}\"",
            ),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn overlapping_edits_are_refused() {
        let bytes = Bytes::from_static(b"\"abcdef\"");
        let edit = |span| Edit::text(span, "");
        assert!(splice(&bytes, vec![edit(1..4), edit(3..5)]).is_none());
        assert!(splice(&bytes, vec![edit(1..40)]).is_none());
    }
}
