//! A text without its blanks, and where its letters stood.

use std::ops::Range;

/// A text without blanks.
pub(super) struct Squeezed {
    pub(super) text: String,
    /// For each byte, where it stood.
    places: Vec<usize>,
}

impl Squeezed {
    /// As written, for encodings, in which case counts; and in lower case, for everything else.
    pub(super) fn both(text: &str) -> [Self; 2] {
        [
            Self::of(text, |c, take| take(c)),
            Self::of(text, |c, take| c.to_lowercase().for_each(take)),
        ]
    }

    fn of(text: &str, write: impl Fn(char, &mut dyn FnMut(char))) -> Self {
        let mut made = Self {
            text: String::with_capacity(text.len()),
            places: Vec::with_capacity(text.len()),
        };
        for (at, c) in text.char_indices().filter(|(_, c)| !c.is_whitespace()) {
            write(c, &mut |c| {
                made.text.push(c);
                made.places.extend(std::iter::repeat_n(at, c.len_utf8()));
            });
        }
        made
    }

    /// Where a part of it stood.
    pub(super) fn locate(&self, span: &Range<usize>) -> Option<Range<usize>> {
        let last = span.end.checked_sub(1)?;
        let start = *self.places.get(span.start)?;
        let end = *self.places.get(last)?;
        // The last character is as long as the text says: ASCII, in all that is looked for but words.
        Some(start..end + 1)
    }
}
