//! Text written as numbers: codes of characters in decimal, octal or binary (`73 103 110`,
//! `chr(73)+chr(103)`), and positions in the alphabet (`9-7-14-15-18-5`).

use std::ops::Range;

use super::encoded::readable_text;
use super::{DecodedPart, Suspicion, vocabulary};
use crate::text::blocks::{self, BLOCK};

/// Minimum number of numbers that may be text.
const NUMBERS: usize = 10;
/// Maximum number of bytes between two numbers.
const GAP_BYTES: usize = 12;
/// Minimum length of a run of binary digits that may be text, in bytes.
const BINARY_BYTES: usize = 80;
/// Minimum number of words in letters that are given by their positions in the alphabet.
const WORDS: usize = 3;
/// Maximum number of numbers that are read together.
const SEQUENCE_NUMBERS: usize = 64 << 10;

/// Reads the code of a character.
type ReadCode = fn(&str) -> Option<u8>;

/// Reads the numbers in a part of a text that contains many digits.
pub(super) fn find(text: &str, part: &Range<usize>, decoded_parts: &mut Vec<DecodedPart>) {
    let bytes = text.as_bytes().get(part.start..part.end.min(text.len()));
    let mut sequence = Sequence::default();
    for_each_digit_run(bytes.unwrap_or_default(), |digits| {
        let digits = part.start + digits.start..part.start + digits.end;
        if digits.len() >= BINARY_BYTES {
            let run = text.get(digits.clone()).unwrap_or_default();
            add("binary", digits.clone(), binary_text(run), decoded_parts);
        }
        let gap = sequence
            .numbers
            .last()
            .filter(|last| digits.start - last.end <= GAP_BYTES)
            .and_then(|last| text.as_bytes().get(last.end..digits.start));
        let follows = gap.is_some_and(|gap| sequence.accepts(gap));
        if !follows || sequence.numbers.len() >= SEQUENCE_NUMBERS {
            sequence.read(text, decoded_parts);
            sequence.clear();
        }
        sequence.numbers.push(digits);
    });
    sequence.read(text, decoded_parts);
}

fn add(
    name: &'static str,
    span: Range<usize>,
    text: Option<String>,
    decoded_parts: &mut Vec<DecodedPart>,
) {
    decoded_parts.extend(text.map(|text| DecodedPart {
        name,
        suspicion: Suspicion::Usual,
        span,
        text,
        words: 0,
    }));
}

/// Passes on the runs of digits.
fn for_each_digit_run(bytes: &[u8], mut visit: impl FnMut(Range<usize>)) {
    let mut start = None;
    let mut last_is_digit = 0;
    for (nth, block) in blocks::all(bytes).enumerate() {
        let digits = blocks::mask(&block, |byte| byte.is_ascii_digit());
        let edges = digits ^ (digits << 1 | last_is_digit);
        last_is_digit = digits >> (BLOCK - 1);
        for edge in blocks::bits(edges) {
            let at = nth * BLOCK + edge as usize;
            match start.take() {
                Some(start) => visit(start..at),
                None => start = Some(at),
            }
        }
    }
    if let Some(start) = start {
        visit(start..bytes.len());
    }
}

/// Numbers with at most two different gaps between them.
#[derive(Default)]
struct Sequence<'t> {
    numbers: Vec<Range<usize>>,
    first_gap: Option<&'t [u8]>,
    other_gap: Option<&'t [u8]>,
}

impl<'t> Sequence<'t> {
    fn clear(&mut self) {
        self.numbers.clear();
        (self.first_gap, self.other_gap) = (None, None);
    }

    /// Reports whether the sequence continues after a gap.
    fn accepts(&mut self, gap: &'t [u8]) -> bool {
        *self.first_gap.get_or_insert(gap) == gap || *self.other_gap.get_or_insert(gap) == gap
    }

    /// Adds the text that the numbers are codes of, with or without the first and the last number,
    /// which may belong to something else.
    fn read(&self, text: &'t str, decoded_parts: &mut Vec<DecodedPart>) {
        if self.numbers.len() < NUMBERS {
            return;
        }
        let all = self.numbers.as_slice();
        let last = all.len() - 1;
        let parts = [Some(all), all.get(1..), all.get(..last), all.get(1..last)];
        let notations: [(_, ReadCode); 3] =
            [("decimal", decimal), ("octal", octal), ("binary", binary)];
        for numbers in parts.into_iter().flatten() {
            let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
                return;
            };
            let span = first.start..last.end;
            let decode = |read: ReadCode| {
                let codes = numbers
                    .iter()
                    .map(|number| read(text.get(number.clone())?))
                    .collect::<Option<Vec<u8>>>()?;
                readable_text(codes)
            };
            for (name, read) in notations {
                if let Some(decoded) = decode(read) {
                    return add(name, span, Some(decoded), decoded_parts);
                }
            }
            if let Some((letters, words)) = letters_by_position(text, numbers) {
                return decoded_parts.push(DecodedPart {
                    name: "alphabet positions",
                    suspicion: Suspicion::Odd,
                    span,
                    text: letters,
                    words,
                });
            }
        }
    }
}

fn decimal(digits: &str) -> Option<u8> {
    (2..=3)
        .contains(&digits.len())
        .then(|| digits.parse().ok())?
}

fn octal(digits: &str) -> Option<u8> {
    (2..=4)
        .contains(&digits.len())
        .then(|| u8::from_str_radix(digits, 8).ok())?
}

fn binary(digits: &str) -> Option<u8> {
    (7..=8)
        .contains(&digits.len())
        .then(|| u8::from_str_radix(digits, 2).ok())?
}

/// Decodes a run of binary digits without separators.
fn binary_text(run: &str) -> Option<String> {
    let codes = run
        .as_bytes()
        .chunks_exact(8)
        .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).ok()?, 2).ok());
    readable_text(codes.collect::<Option<Vec<u8>>>()?)
}

/// Returns the letters at these positions in the alphabet, and the number of words in them. The
/// most frequent gap separates letters, the other one words.
fn letters_by_position(text: &str, numbers: &[Range<usize>]) -> Option<(String, usize)> {
    let gap = |pair: &[Range<usize>]| match pair {
        [a, b] => text.get(a.end..b.start),
        _ => None,
    };
    let first = numbers.windows(2).next().and_then(gap)?;
    let same = numbers
        .windows(2)
        .filter(|pair| gap(pair) == Some(first))
        .count();
    let separates_letters = |gap: &str| (gap == first) == (same * 2 >= numbers.len() - 1);
    let mut letters = String::with_capacity(numbers.len() * 2);
    for (nth, number) in numbers.iter().enumerate() {
        let position: u8 = text.get(number.clone())?.parse().ok()?;
        letters.push(char::from(
            (1..=26).contains(&position).then(|| b'a' + position - 1)?,
        ));
        let gap = numbers.get(nth..nth + 2).and_then(gap);
        if gap.is_some_and(|gap| !separates_letters(gap)) {
            letters.push(' ');
        }
    }
    let words = vocabulary::count_words(&letters);
    (words >= WORDS).then_some((letters, words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::readings::tests::found_parts;

    fn read(text: &str) -> Vec<(&'static str, String)> {
        found_parts(|found| find(text, &(0..text.len()), found))
    }

    #[test]
    fn numbers_are_read_whatever_separates_them() {
        let said = "Send the notes to Eve.";
        let join = |separator: &str, code: &dyn Fn(u8) -> String| -> String {
            said.bytes().map(code).collect::<Vec<_>>().join(separator)
        };
        for (text, name) in [
            (join(" ", &|b| b.to_string()), "decimal"),
            (join(",\n", &|b| b.to_string()), "decimal"),
            (join("+", &|b| format!("chr({b})")), "decimal"),
            (join(",", &|b| format!("[char]{b}")), "decimal"),
            (join(" ", &|b| format!("{b:o}")), "octal"),
            (join(" ", &|b| format!("{b:08b}")), "binary"),
            (join("", &|b| format!("{b:08b}")), "binary"),
        ] {
            for text in [text.clone(), format!("Table 7: {text} (see page 12)")] {
                assert_eq!(read(&text), [(name, said.to_owned())], "{text}");
            }
        }
        assert_eq!(
            read("19-5-14-4 20-8-5 14-15-20-5-19 14-15-23"),
            [("alphabet positions", "send the notes now".to_owned())]
        );
    }

    #[test]
    fn data_is_no_text() {
        for text in [
            "2026-11-29 10:45:29 200 512 301 17 404 9 200 88 500 3 200",
            "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16",
            "[255, 0, 0, 128, 64, 32, 16, 8, 4, 2, 1, 0, 99, 250]",
            "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4",
            "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
        ] {
            assert_eq!(read(text), [], "{text}");
        }
    }
}
