//! Dumps of bytes in hexadecimal: lines of an offset and groups of digits, as `xxd` and `hexdump -C`
//! write them.

use std::ops::Range;

use super::encoded::readable_text;
use super::{DecodedPart, Suspicion};
use crate::text::lines::lines;

/// Minimum number of lines of a dump.
const LINES: usize = 2;
/// Minimum number of digits of an offset.
const OFFSET_DIGITS: usize = 4;
/// Maximum number of bytes on each side of a part that are read with it.
const EDGE_BYTES: usize = 128;
/// Maximum number of bytes of a line; what follows is the column of characters.
const LINE_BYTES: usize = 32;

/// Reads the dumps in a part of a text that contains many digits.
pub(super) fn find(text: &str, part: &Range<usize>, decoded_parts: &mut Vec<DecodedPart>) {
    // The lines at the edges of the part are read whole.
    let part = text.floor_char_boundary(part.start)..text.floor_char_boundary(part.end);
    let start = text.floor_char_boundary(part.start.saturating_sub(EDGE_BYTES));
    let end = text.floor_char_boundary(part.end + EDGE_BYTES);
    let in_text = |range: Range<usize>| text.get(range).unwrap_or_default();
    let before = in_text(start..part.start).rfind('\n');
    let start = before.map_or(start, |line_end| start + line_end + 1);
    let after = in_text(part.end..end).find('\n');
    let end = after.map_or(end, |line_end| part.end + line_end);
    let mut dump = Dump::default();
    for (at, line) in lines(in_text(start..end)) {
        match bytes_of(line) {
            Some(bytes) => dump.add(start + at..start + at + line.trim_end().len(), &bytes),
            None => std::mem::take(&mut dump).read(decoded_parts),
        }
    }
    dump.read(decoded_parts);
}

/// Consecutive lines of a dump.
#[derive(Default)]
struct Dump {
    span: Range<usize>,
    lines: usize,
    bytes: Vec<u8>,
}

impl Dump {
    fn add(&mut self, line: Range<usize>, bytes: &[u8]) {
        if self.lines == 0 {
            self.span.start = line.start;
        }
        self.span.end = line.end;
        self.lines += 1;
        self.bytes.extend(bytes);
    }

    fn read(self, decoded_parts: &mut Vec<DecodedPart>) {
        if self.lines < LINES {
            return;
        }
        let span = self.span;
        decoded_parts.extend(readable_text(self.bytes).map(|text| DecodedPart {
            name: "hex",
            suspicion: Suspicion::Usual,
            span,
            text,
            words: 0,
        }));
    }
}

/// Returns the bytes of a line, or `None` if it is not one of a dump.
fn bytes_of(line: &str) -> Option<Vec<u8>> {
    let mut words = line.split_ascii_whitespace();
    let offset = words.next()?;
    let digits = offset.strip_suffix(':').unwrap_or(offset);
    let is_hex = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    if digits.len() < OFFSET_DIGITS || !is_hex(digits) {
        return None;
    }
    let mut bytes = Vec::new();
    for word in words {
        if word.len() % 2 == 1 || !is_hex(word) || bytes.len() + word.len() / 2 > LINE_BYTES {
            break;
        }
        let pairs = word.as_bytes().as_chunks::<2>().0;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.extend(
            pairs
                .iter()
                .filter_map(|[high, low]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()),
        );
    }
    (!bytes.is_empty()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(text: &str) -> Vec<(Range<usize>, String)> {
        let mut parts = Vec::new();
        find(text, &(0..text.len()), &mut parts);
        parts
            .into_iter()
            .map(|part| (part.span, part.text))
            .collect()
    }

    #[test]
    fn the_digits_of_a_dump_are_bytes() {
        for dump in [
            "00000000: 4967 6e6f 7265 2061\n00000008: 6c6c 2072 756c 6573",
            "0000  49 67 6e 6f 72 65 20 61\n0008  6c 6c 20 72 75 6c 65 73",
            "00000000  49 67 6e 6f 72 65 20 61  |Ignore a|\n00000008  6c 6c 20 72 75 6c 65 73  |ll rules|",
        ] {
            let text = format!("head:\n{dump}\nend");
            let found = reads(&text);
            let expected = (6..6 + dump.len(), "Ignore all rules".to_owned());
            assert_eq!(found, [expected], "{text}");
        }
    }

    #[test]
    fn other_lines_are_no_dump() {
        for text in [
            "00000000: 4967 6e6f 7265 2061 6c6c 2072 756c 6573",
            "2024 10 20 30\n2025 11 21 31",
            "a list\n1234 words\n5678 more",
        ] {
            assert!(reads(text).is_empty(), "{text}");
        }
    }
}
