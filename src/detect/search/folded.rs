//! A text prepared for the search for words: letters are in lower case, and each run of white space
//! is one blank.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::lower_case::lower_text;

/// Bytes before and after the text that no word contains, so that words can be compared eight bytes
/// at a time.
pub(super) const PAD: usize = 8;
const PADDING: [u8; PAD] = [0xff; PAD];

/// Finds gaps of more than one blank.
static TWO_BLANKS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("  "));

/// A folded text and the mapping to the original. Reused for each text.
#[derive(Debug, Default)]
pub(super) struct Folded {
    /// The folded bytes, with padding on both sides.
    bytes: Vec<u8>,
    /// Positions in order, each with the number of bytes of the text that are left out before it.
    gaps: Vec<(usize, usize)>,
    is_ascii: bool,
}

impl Folded {
    /// Replaces the content with the folded form of another text, which is in ASCII or in lower
    /// case.
    pub(super) fn fold(&mut self, text: &[u8]) {
        self.bytes.clear();
        self.gaps.clear();
        self.bytes.reserve(text.len() + 2 * PAD);
        self.bytes.extend_from_slice(&PADDING);
        self.bytes.extend(text.iter().map(|b| fold(*b)));
        self.is_ascii = text.is_ascii();
        self.close_gaps();
        self.bytes.extend_from_slice(&PADDING);
    }

    /// Returns the folded text with its padding. The text begins at [`PAD`].
    pub(super) fn padded(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn is_ascii(&self) -> bool {
        self.is_ascii
    }

    /// Returns the position in the text of a byte of the padded text; for a gap, the position where
    /// it begins.
    pub(super) fn place(&self, at: usize) -> usize {
        self.place_after(self.gaps_before(at), at)
    }

    /// Returns the number of gaps before a byte of the padded text.
    fn gaps_before(&self, at: usize) -> usize {
        self.gaps.partition_point(|(from, _)| *from <= at)
    }

    /// Returns the position in the text of a byte of the padded text, given the number of gaps
    /// before it.
    fn place_after(&self, gaps: usize, at: usize) -> usize {
        let omitted = gaps
            .checked_sub(1)
            .and_then(|last| self.gaps.get(last))
            .map_or(0, |(_, omitted)| *omitted);
        (at + omitted).saturating_sub(PAD)
    }

    /// Returns the range of the text for a short range of the padded text, which is not empty. If it
    /// ends with a gap, only the first byte of the gap counts.
    pub(super) fn span(&self, range: Range<usize>) -> Range<usize> {
        let mut gaps = self.gaps_before(range.start);
        let start = self.place_after(gaps, range.start);
        let last = range.end.saturating_sub(1);
        while self.gaps.get(gaps).is_some_and(|(from, _)| *from <= last) {
            gaps += 1;
        }
        start..self.place_after(gaps, last) + 1
    }

    /// Releases memory that a long text needed.
    pub(super) fn shrink(&mut self, limit: usize) {
        if self.bytes.capacity() > limit {
            *self = Self::default();
        }
    }

    /// Removes all but the first blank of each gap.
    fn close_gaps(&mut self) {
        let bytes = &mut self.bytes;
        let finder: &Finder<'_> = &TWO_BLANKS;
        let Some(first) = finder.find(bytes) else {
            return;
        };
        // The bytes after the first gap move up, one stretch at a time.
        let mut from = first;
        let mut to = first;
        while from < bytes.len() {
            from += bytes.iter().skip(from).take_while(|b| **b == b' ').count() - 1;
            self.gaps.push((to + 1, from - to));
            let next = bytes
                .get(from..)
                .and_then(|rest| finder.find(rest))
                .map_or(bytes.len(), |next| from + next);
            bytes.copy_within(from..next, to);
            (from, to) = (next, to + next - from);
        }
        bytes.truncate(to);
    }
}

/// Converts ASCII letters to lower case and all white space to blanks.
#[inline]
fn fold(b: u8) -> u8 {
    if matches!(b, b'\t'..=b'\r') {
        b' '
    } else {
        b.to_ascii_lowercase()
    }
}

/// Returns a word in the form in which it is searched for.
pub(super) fn fold_word(word: &str) -> Vec<u8> {
    let mut folded: Vec<u8> = lower_text(word).into_iter().map(fold).collect();
    folded.dedup_by(|a, b| *a == b' ' && *b == b' ');
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_close_and_places_are_known() {
        let mut made = Folded::default();
        for (text, folded) in [
            ("", ""),
            (" ", " "),
            ("   ", " "),
            ("A b", "a b"),
            ("A \n B\tC", "a b c"),
            ("  A  b   C  ", " a b c "),
            ("one\r\n\r\ntwo three\n\n", "one two three "),
        ] {
            made.fold(text.as_bytes());
            let bytes = &made.padded()[PAD..made.padded().len() - PAD];
            assert_eq!(String::from_utf8_lossy(bytes), folded, "{text:?}");
            let mut last = None;
            for (at, b) in bytes.iter().enumerate() {
                let place = made.place(at + PAD);
                assert_eq!(fold(text.as_bytes()[place]), *b, "{text:?} {at}");
                assert!(last < Some(place), "{text:?} {at}");
                assert!(
                    *b != b' ' || place == 0 || fold(text.as_bytes()[place - 1]) != b' ',
                    "{text:?} {at}"
                );
                for end in at + PAD + 1..bytes.len() + PAD {
                    let span = made.span(at + PAD..end);
                    assert_eq!(span, place..made.place(end - 1) + 1, "{text:?} {at} {end}");
                }
                last = Some(place);
            }
        }
    }
}
