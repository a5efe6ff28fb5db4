//! Where the parts of a reading come from in the text.

use std::ops::Range;

/// The parts of a reading that were taken from a text, in the order of the reading.
#[derive(Debug, Default)]
pub(super) struct Origins {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    /// The range in the reading.
    in_reading: Range<usize>,
    /// The range in the text.
    in_text: Range<usize>,
}

impl Origins {
    /// Adds the next part: its range in the reading, and in the text.
    pub(super) fn add(&mut self, in_reading: Range<usize>, in_text: Range<usize>) {
        if in_reading.start < in_reading.end {
            self.parts.push(Part {
                in_reading,
                in_text,
            });
        }
    }

    /// Returns the range of the text for a range of the reading, including anything left out
    /// between its parts.
    pub(super) fn cover(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let parts = self.touched_parts(range);
        let (first, last) = parts.first().zip(parts.last())?;
        let start = if first.is_verbatim() {
            first.in_text.start + range.start.saturating_sub(first.in_reading.start)
        } else {
            first.in_text.start
        };
        let end = if last.is_verbatim() {
            last.in_text.end - last.in_reading.end.saturating_sub(range.end)
        } else {
            last.in_text.end
        };
        (start < end).then_some(start..end)
    }

    /// Returns the whole parts of the text that a range of the reading touches.
    pub(super) fn parts(&self, range: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
        self.touched_parts(range)
            .iter()
            .map(|part| part.in_text.clone())
    }

    /// Returns the parts of the text, in the order of the reading.
    pub(super) fn all(&self) -> impl Iterator<Item = Range<usize>> {
        self.parts.iter().map(|part| part.in_text.clone())
    }

    fn touched_parts(&self, range: &Range<usize>) -> &[Part] {
        let first = self
            .parts
            .partition_point(|part| part.in_reading.end <= range.start);
        let after = self
            .parts
            .partition_point(|part| part.in_reading.start < range.end);
        self.parts.get(first..after).unwrap_or_default()
    }
}

impl Part {
    /// Reports whether the part is read as written, byte for byte.
    fn is_verbatim(&self) -> bool {
        self.in_reading.len() == self.in_text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_a_reading_is_located_in_its_text() {
        // `ig<b>no</b>re &amp; x` read as `ignore & x`
        let mut origins = Origins::default();
        origins.add(0..2, 0..2);
        origins.add(2..4, 5..7);
        origins.add(4..10, 11..21);
        assert_eq!(origins.cover(&(1..4)), Some(1..7));
        assert_eq!(
            origins.cover(&(0..5)),
            Some(0..21),
            "a part with entities is taken whole"
        );
        assert_eq!(origins.parts(&(3..5)).collect::<Vec<_>>(), [5..7, 11..21]);
        assert_eq!(origins.cover(&(10..12)), None);
    }
}
