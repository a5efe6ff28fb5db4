//! A text without its white space, with the original position of each byte.

use std::ops::Range;

/// A text without white space.
pub(super) struct CompactText {
    pub(super) text: String,
    /// The original position of each byte.
    places: Vec<usize>,
}

impl CompactText {
    /// Returns the text as written, for encodings, which are case-sensitive; and in lower case, for
    /// everything else.
    pub(super) fn case_variants(text: &str) -> [Self; 2] {
        [
            Self::new(text, |c, take| take(c)),
            Self::new(text, |c, take| c.to_lowercase().for_each(take)),
        ]
    }

    fn new(text: &str, write: impl Fn(char, &mut dyn FnMut(char))) -> Self {
        let mut compact = Self {
            text: String::with_capacity(text.len()),
            places: Vec::with_capacity(text.len()),
        };
        for (at, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
            write(c, &mut |c| {
                compact.text.push(c);
                compact.places.extend(std::iter::repeat_n(at, c.len_utf8()));
            });
        }
        compact
    }

    /// Returns the original position of a part of the text.
    pub(super) fn locate(&self, span: &Range<usize>) -> Option<Range<usize>> {
        let last = span.end.checked_sub(1)?;
        let start = *self.places.get(span.start)?;
        let end = *self.places.get(last)?;
        // Counts the last character as one byte: it is ASCII in everything that is searched for,
        // except words.
        Some(start..end + 1)
    }
}
