//! A text in which letters of either case are one, and white space, however much, is a blank.

use memchr::memmem;

/// Bytes that no word holds, after the text: every byte of it has others after it.
const PAD: [u8; 3] = [0xff; 3];

/// Such a text, and where its bytes come from.
pub(super) struct Folded {
    /// With padding.
    bytes: Vec<u8>,
    /// From which byte on how many bytes of the text have been left out, in order.
    left_out: Vec<(usize, usize)>,
}

impl Folded {
    pub(super) fn new(text: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(text.len() + PAD.len());
        bytes.extend(text.iter().map(|b| fold(*b)));
        let left_out = close_gaps(&mut bytes);
        bytes.extend_from_slice(&PAD);
        Self { bytes, left_out }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.split_last_chunk::<{ PAD.len() }>().map_or(&[], |(bytes, _)| bytes)
    }

    /// The same with three bytes after it that no word holds.
    pub(super) fn padded(&self) -> &[u8] {
        &self.bytes
    }

    /// Where in the text a byte stands; of a gap, where it begins.
    pub(super) fn place(&self, at: usize) -> usize {
        let before = self.left_out.partition_point(|(from, _)| *from <= at);
        at + before.checked_sub(1).and_then(|last| self.left_out.get(last)).map_or(0, |(_, left_out)| *left_out)
    }

    /// Where in the text what ends before byte `at` ends; of a gap the first byte counts.
    pub(super) fn end(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |last| self.place(last) + 1)
    }
}

/// Leaves out all but the first blank of each gap; tells from which byte on how many have been.
fn close_gaps(bytes: &mut Vec<u8>) -> Vec<(usize, usize)> {
    let finder = memmem::Finder::new(b"  ");
    let mut left_out = Vec::new();
    let Some(first) = finder.find(bytes) else { return left_out };
    // What comes after the first gap moves up, a stretch at a time.
    let (mut from, mut to) = (first, first);
    while from < bytes.len() {
        from += bytes.iter().skip(from).take_while(|b| **b == b' ').count() - 1;
        left_out.push((to + 1, from - to));
        let next = bytes.get(from..).and_then(|rest| finder.find(rest)).map_or(bytes.len(), |next| from + next);
        bytes.copy_within(from..next, to);
        (from, to) = (next, to + next - from);
    }
    bytes.truncate(to);
    left_out
}

/// Letters of either case are one, and so is all white space.
#[inline]
pub(super) fn fold(b: u8) -> u8 {
    if matches!(b, b'\t'..=b'\r') { b' ' } else { b.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_close_and_places_are_known() {
        for (text, folded) in [
            ("", ""),
            (" ", " "),
            ("   ", " "),
            ("A b", "a b"),
            ("A \n B\tC", "a b c"),
            ("  A  b   C  ", " a b c "),
            ("one\r\n\r\ntwo three\n\n", "one two three "),
        ] {
            let made = Folded::new(text.as_bytes());
            assert_eq!(String::from_utf8_lossy(made.bytes()), folded, "{text:?}");
            let mut last = None;
            for (at, b) in made.bytes().iter().enumerate() {
                let place = made.place(at);
                assert_eq!(fold(text.as_bytes()[place]), *b, "{text:?} {at}");
                assert!(last < Some(place), "{text:?} {at}");
                assert!(*b != b' ' || place == 0 || fold(text.as_bytes()[place - 1]) != b' ', "{text:?} {at}");
                assert_eq!(made.end(at + 1), place + 1);
                last = Some(place);
            }
        }
    }
}
