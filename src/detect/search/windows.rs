//! Ranges of a text in which regexes are searched for.

use std::ops::Range;

/// Ranges of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows(Vec<Range<usize>>);

impl Windows {
    /// Adds a range; keeps the list short as long as they come more or less in order.
    pub(super) fn add(&mut self, mut window: Range<usize>) {
        while let Some(last) = self.0.pop_if(|last| last.end >= window.start) {
            window = window.start.min(last.start)..window.end.max(last.end);
        }
        self.0.push(window);
    }

    /// Adds those of another list, which may be before or among these.
    pub(super) fn join(&mut self, mut other: Self) {
        if self.0.is_empty() {
            *self = other;
        } else {
            self.0.append(&mut other.0);
        }
    }

    /// In order, and none that touches another.
    pub(super) fn merged(mut self) -> Vec<Range<usize>> {
        self.0.sort_unstable_by_key(|window| window.start);
        let mut merged = Self::default();
        self.0.into_iter().for_each(|window| merged.add(window));
        merged.0
    }
}

/// A range with so many bytes more on each side, within a text that ends at `end`.
pub(super) fn widen(range: Range<usize>, by: usize, end: usize) -> Range<usize> {
    range.start.saturating_sub(by)..range.end.saturating_add(by).min(end)
}

/// The smallest range of whole characters that holds `range`.
pub(super) fn whole_characters(text: &str, range: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)
}
