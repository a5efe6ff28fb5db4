//! A text that is assembled from parts of another, with a mapping back to their positions.

use std::ops::Range;

/// A text, and the origin of each of its copied bytes.
#[derive(Debug, Default)]
pub(super) struct MappedText {
    pub(super) text: String,
    pub(super) map: SourceMap,
}

/// For each copied stretch of a text, its start in the text and in its source, in the order of the
/// text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::text) struct SourceMap {
    stretches: Vec<Stretch>,
    /// Positions in the text between unrelated parts.
    seams: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stretch {
    text_start: usize,
    source_start: usize,
    bytes: usize,
}

impl MappedText {
    /// Appends `range` of `source`.
    pub(super) fn copy(&mut self, source: &str, range: Range<usize>) {
        let Some(part) = source.get(range.clone()).filter(|part| !part.is_empty()) else {
            return;
        };
        let text_start = self.text.len();
        self.text.push_str(part);
        match self.map.stretches.last_mut() {
            Some(last)
                if last.text_start + last.bytes == text_start
                    && last.source_start + last.bytes == range.start =>
            {
                last.bytes += part.len()
            }
            _ => self.map.stretches.push(Stretch {
                text_start,
                source_start: range.start,
                bytes: part.len(),
            }),
        }
    }

    /// Appends text that is not in the source.
    pub(super) fn insert(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a part of another text that was copied from the same source. No match extends across
    /// the seam.
    pub(super) fn append(&mut self, other: &Self, part: Range<usize>) {
        let Some(text) = other.text.get(part.clone()) else {
            return;
        };
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
            self.map.seams.push(self.text.len());
        }
        let base = self.text.len();
        self.text.push_str(text);
        let first = other
            .map
            .stretches
            .partition_point(|stretch| stretch.text_start + stretch.bytes <= part.start);
        for stretch in other
            .map
            .stretches
            .iter()
            .skip(first)
            .take_while(|stretch| stretch.text_start < part.end)
        {
            let start = stretch.text_start.max(part.start);
            let end = (stretch.text_start + stretch.bytes).min(part.end);
            let source_start = stretch.source_start + (start - stretch.text_start);
            self.map.stretches.push(Stretch {
                text_start: base + (start - part.start),
                source_start,
                bytes: end - start,
            });
        }
    }
}

impl SourceMap {
    /// Returns the range of the source for a range of the text. `None` if it is within one stretch,
    /// which other readings contain as well, or extends across a seam.
    pub(in crate::text) fn locate(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let (first, last) = self.end_stretches(range)?;
        let seam = self.seams.partition_point(|seam| *seam <= range.start);
        let is_joined = self.seams.get(seam).is_none_or(|seam| *seam >= range.end);
        (first.text_start < last.text_start && is_joined)
            .then(|| Self::source_range(first, last, range))
    }

    /// Returns the range of the source for a range of the text, including everything left out of
    /// it.
    pub(in crate::text) fn cover(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let (first, last) = self.end_stretches(range)?;
        Some(Self::source_range(first, last, range))
    }

    /// Returns the first and the last stretch of a range.
    fn end_stretches(&self, range: &Range<usize>) -> Option<(&Stretch, &Stretch)> {
        let first = self
            .stretches
            .partition_point(|stretch| stretch.text_start + stretch.bytes <= range.start);
        let after = self
            .stretches
            .partition_point(|stretch| stretch.text_start < range.end);
        let stretches = self.stretches.get(first..after)?;
        stretches.first().zip(stretches.last())
    }

    fn source_range(first: &Stretch, last: &Stretch, range: &Range<usize>) -> Range<usize> {
        let start = first.source_start + range.start.saturating_sub(first.text_start);
        let end = last.source_start + (range.end - last.text_start).min(last.bytes);
        start.min(end)..end.max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_located_only_where_something_was_left_out() {
        let source = "one **two** three";
        let mut made = MappedText::default();
        made.copy(source, 0..3);
        made.insert(" ");
        made.copy(source, 6..9);
        made.copy(source, 9..9);
        made.insert(" ");
        made.copy(source, 12..17);
        assert_eq!(made.text, "one two three");
        assert_eq!(made.map.locate(&(0..3)), None);
        assert_eq!(made.map.locate(&(0..7)), Some(0..9));
        assert_eq!(made.map.locate(&(5..13)), Some(7..17));
        let mut all = MappedText::default();
        all.append(&made, 4..13);
        all.append(&made, 0..7);
        assert_eq!(all.text, "two three\n\none two");
        assert_eq!(all.map.locate(&(0..9)), Some(6..17));
        assert_eq!(all.map.locate(&(11..18)), Some(0..9));
        assert_eq!(all.map.locate(&(4..14)), None);
    }
}
