//! Ranges of a text in which regexes are searched for.

use std::ops::Range;

/// Ranges of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows(Vec<Range<usize>>);

impl Windows {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a range. Merges it with the preceding ones it overlaps, which keeps the list short if
    /// ranges are added roughly in order.
    pub(super) fn add(&mut self, mut window: Range<usize>) {
        while let Some(last) = self.0.pop_if(|last| last.end >= window.start) {
            window = window.start.min(last.start)..window.end.max(last.end);
        }
        self.0.push(window);
    }

    /// Adds the ranges of another list, which may be before or between these.
    pub(super) fn join(&mut self, mut other: Self) {
        if self.0.is_empty() {
            *self = other;
        } else {
            self.0.append(&mut other.0);
        }
    }

    /// Returns the ranges sorted and merged, so that none touches another.
    pub(super) fn merged(mut self) -> Vec<Range<usize>> {
        self.0.sort_unstable_by_key(|window| window.start);
        let mut merged = Self::default();
        self.0.into_iter().for_each(|window| merged.add(window));
        merged.0
    }
}

/// Returns a range extended by `by` bytes on each side, within a text that ends at `end`.
pub(super) fn widen(range: Range<usize>, by: usize, end: usize) -> Range<usize> {
    range.start.saturating_sub(by)..range.end.saturating_add(by).min(end)
}

/// Returns the smallest range of whole characters that contains `range`.
pub(super) fn whole_characters(text: &str, range: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)
}
