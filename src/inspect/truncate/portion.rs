//! Determines where a long text may be cut: never within a character, a JSON value or a row of a
//! table, unless that alone is too long.

use bytes::Bytes;
use unicode_normalization::char::is_combining_mark;

use crate::message::{Json, ReadLimits, Role, ValueKind};

/// Maximum number of characters that are treated as one when cutting.
const CLUSTER: usize = 64;
/// Number of lines by which a table with separated fields is recognized.
const HEAD_LINES: usize = 3;

/// A text, and the positions at which it may be cut.
pub struct Portions<'t> {
    text: &'t str,
    /// Ends of values, including the separator before the next, with their depth; sorted. Empty if
    /// the text is not JSON.
    values: Vec<(usize, usize)>,
    /// Whether the text is a table of quoted fields.
    quoted: bool,
}

impl<'t> Portions<'t> {
    /// Analyzes a text.
    pub fn new(text: &'t str) -> Self {
        let values = value_ends(text);
        Self {
            quoted: values.is_empty() && is_separated(text),
            values,
            text,
        }
    }

    /// Returns the end of a portion that begins at `from`: at most `most` bytes further on, and
    /// beyond `from` if `most` is at least the length of a character.
    pub fn end(&self, from: usize, most: usize) -> usize {
        let limit = from.saturating_add(most);
        if limit >= self.text.len() {
            return self.text.len();
        }
        let half = from + most / 2;
        if !self.values.is_empty() {
            return self
                .value_end(from, half, limit)
                .unwrap_or_else(|| self.within_value(from, limit));
        }
        let part = self
            .text
            .get(from..self.text.floor_char_boundary(limit))
            .unwrap_or_default();
        let row = if self.quoted { rows_end(part) } else { None };
        let line = row
            .or_else(|| part.rfind('\n').map(|at| at + 1))
            .map(|at| from + at);
        let in_table = self.quoted || self.last_line(from, line).starts_with(['|', '\u{feff}']);
        match line {
            Some(line) if in_table || line > half => line,
            _ => self.word_end(from, limit),
        }
    }

    /// Returns the end of the outermost value that ends in the second half of the portion, else of
    /// any value.
    fn value_end(&self, from: usize, half: usize, limit: usize) -> Option<usize> {
        let within = |low: usize| {
            let start = self.values.partition_point(|(end, _)| *end <= low);
            let stop = self.values.partition_point(|(end, _)| *end <= limit);
            self.values.get(start..stop).unwrap_or_default()
        };
        let outermost = within(half)
            .iter()
            .min_by_key(|(end, depth)| (*depth, std::cmp::Reverse(*end)));
        outermost
            .or_else(|| within(from).last())
            .map(|(end, _)| *end)
    }

    /// Returns the end of a portion of a value that alone is too long: between characters of it,
    /// and not within an escape.
    fn within_value(&self, from: usize, limit: usize) -> usize {
        let end = self.word_end(from, limit);
        let part = self.text.get(from..end).unwrap_or_default();
        let mut at = 0;
        while let Some(next) = part.get(at..).and_then(|rest| rest.find('\\')) {
            let start = at + next;
            let escape = self.text.get(from + start + 1..).unwrap_or_default();
            // A pair of `\u` escapes is one character.
            let length = match escape.as_bytes() {
                [
                    b'u',
                    b'd' | b'D',
                    b'8' | b'9' | b'a' | b'b' | b'A' | b'B',
                    ..,
                ] => 12,
                [b'u', ..] => 6,
                _ => 2,
            };
            if start + length > part.len() {
                return if start > 0 {
                    from + start
                } else {
                    from + length
                };
            }
            at = start + length;
        }
        end
    }

    /// Returns an end after whitespace, else between characters.
    fn word_end(&self, from: usize, limit: usize) -> usize {
        let limit = self.text.floor_char_boundary(limit);
        let part = self.text.get(from..limit).unwrap_or_default();
        let low = part.len() / 2;
        let blank = part
            .char_indices()
            .rev()
            .take_while(|(at, _)| *at >= low)
            .find(|(_, c)| c.is_whitespace());
        if let Some((at, c)) = blank {
            return from + at + c.len_utf8();
        }
        let mut end = limit;
        for _ in 0..CLUSTER {
            let before = self
                .text
                .get(..end)
                .and_then(|text| text.chars().next_back());
            let after = self.text.get(end..).and_then(|text| text.chars().next());
            let (Some(before), Some(after)) = (before, after) else {
                break;
            };
            if !joins(before, after) || end - before.len_utf8() <= from {
                break;
            }
            end -= before.len_utf8();
        }
        end
    }

    /// Returns the line in which a portion would end.
    fn last_line(&self, from: usize, line: Option<usize>) -> &str {
        self.text
            .get(line.unwrap_or(from)..)
            .unwrap_or_default()
            .trim_start_matches([' ', '\t'])
    }
}

/// Returns whether two characters are read as one.
fn joins(before: char, after: char) -> bool {
    let modifies = |c: char| matches!(c, '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}');
    let region = |c: char| ('\u{1f1e6}'..='\u{1f1ff}').contains(&c);
    is_combining_mark(after)
        || modifies(after)
        || before == '\u{200d}'
        || (region(before) && region(after))
        || (before == '\r' && after == '\n')
}

/// Returns the ends of all values of a JSON text, with the depth of each. Empty if the text is not
/// JSON, or a lone scalar.
fn value_ends(text: &str) -> Vec<(usize, usize)> {
    let mut ends = Vec::new();
    if !text.trim_start().starts_with(['{', '[']) {
        return ends;
    }
    let limits = ReadLimits {
        message_bytes: text.len(),
        strings_per_message: usize::MAX,
        ..ReadLimits::default()
    };
    let Ok(json) = Json::parse(Bytes::copy_from_slice(text.as_bytes()), &limits) else {
        return ends;
    };
    json.root().walk(|path, value, role| {
        if role == Role::Value
            && !(path.is_empty() && matches!(value.kind(), ValueKind::Object | ValueKind::Array))
        {
            let end = value.span().end;
            let rest = text.get(end..).unwrap_or_default();
            let blank_length = |text: &str| text.len() - text.trim_start().len();
            let comma = rest
                .trim_start()
                .strip_prefix(',')
                .map(|after| blank_length(rest) + 1 + blank_length(after));
            ends.push((end + comma.unwrap_or(0), path.len()));
        }
    });
    ends.sort_unstable();
    ends
}

/// Returns whether a text is a table whose fields are separated by commas, semicolons or tabs, with
/// some of them quoted.
fn is_separated(text: &str) -> bool {
    if !text.contains('"') {
        return false;
    }
    [b',', b';', b'\t'].into_iter().any(|separator| {
        let mut rest = text;
        let mut fields = None;
        for _ in 0..HEAD_LINES {
            let end = row_length(rest);
            let line = rest.get(..end).unwrap_or_default();
            let mut quoted = false;
            let count = line.bytes().filter(|byte| {
                quoted ^= *byte == b'"';
                *byte == separator && !quoted
            });
            let count = count.count();
            if count == 0 || fields.is_some_and(|fields| fields != count) {
                return false;
            }
            fields = Some(count);
            rest = rest.get(end..).unwrap_or_default();
            if rest.trim().is_empty() {
                break;
            }
        }
        true
    })
}

/// Returns the length of a table's first row, its line end included.
fn row_length(text: &str) -> usize {
    let mut quoted = false;
    let end = text.bytes().position(|byte| {
        quoted ^= byte == b'"';
        byte == b'\n' && !quoted
    });
    end.map_or(text.len(), |at| at + 1)
}

/// Returns the end of the last complete row.
fn rows_end(text: &str) -> Option<usize> {
    let mut quoted = false;
    let mut end = None;
    for (at, byte) in text.bytes().enumerate() {
        quoted ^= byte == b'"';
        if byte == b'\n' && !quoted {
            end = Some(at + 1);
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, most: usize) -> Vec<&str> {
        let portions = Portions::new(text);
        let mut from = 0;
        let mut out = Vec::new();
        while from < text.len() {
            let end = portions.end(from, most);
            assert!(end > from && end - from <= most, "{from}..{end} of {most}");
            out.push(&text[from..end]);
            from = end;
        }
        assert_eq!(out.concat(), text);
        out
    }

    #[test]
    fn prose_is_cut_after_a_line_or_a_word() {
        assert_eq!(cut("one two three four", 9), ["one two ", "three ", "four"]);
        assert_eq!(
            cut("first line\nsecond line\n", 17),
            ["first line\n", "second line\n"]
        );
        assert_eq!(cut("ééé", 5), ["éé", "é"]);
        assert_eq!(cut("abe\u{301}f", 4), ["ab", "e\u{301}f"]);
        let family = "👩\u{200d}👩\u{200d}👧";
        assert_eq!(
            cut(&format!("ab{family}"), family.len() + 1),
            ["ab", family]
        );
    }

    #[test]
    fn rows_stay_whole() {
        let table = "| a | b |\n|---|---|\n| one and more | two |\n| three | four and more |\n";
        for part in cut(table, 32) {
            assert!(part.ends_with("|\n"), "{part:?}");
        }
        let csv = "name,note\nann,\"two\nlines, quoted\"\nbob,\"\"\"x\"\"\nand y\"\ncid,z\n";
        assert_eq!(
            cut(csv, 36),
            [
                "name,note\nann,\"two\nlines, quoted\"\n",
                "bob,\"\"\"x\"\"\nand y\"\ncid,z\n"
            ]
        );
    }

    #[test]
    fn json_is_cut_between_values() {
        let rows: String = (0..20)
            .map(|n| format!(r#"{{"id":{n},"name":"row, \"{n}\"","tags":["a","b"]}}"#))
            .collect::<Vec<_>>()
            .join(", ");
        let text = format!("[{rows}]");
        for part in cut(&text, 200) {
            assert!(part.ends_with("}, ") || part.ends_with("}]"), "{part}");
        }
        let deep = r#"{"list":[11,22,33,44,55,66],"end":"word"}"#;
        for part in cut(deep, 14) {
            assert!(
                !part.starts_with(|c: char| c.is_alphanumeric())
                    || part.starts_with("22")
                    || part.starts_with("33"),
                "{part}"
            );
        }
        // A value that alone is too long is cut between its characters.
        for part in cut(r#"["aaaa\u00e9\ud83d\ude00bbbb\\\\cccc"]"#, 14) {
            let escapes = part.matches('\\').count();
            assert!(
                part.ends_with('\\') == part.ends_with("\\\\") && escapes != 1
                    || part.contains("\\u00e9"),
                "{part}"
            );
        }
    }

    #[test]
    fn any_text_is_cut_in_linear_time() {
        let started = std::time::Instant::now();
        for text in [
            "[".repeat(60) + &"\"a\",".repeat(200_000),
            "\"".repeat(800_000),
            "\u{301}".repeat(400_000),
            ",\"\n".repeat(200_000),
        ] {
            cut(&text, 10_000);
        }
        assert!(started.elapsed().as_secs() < 20);
    }
}
