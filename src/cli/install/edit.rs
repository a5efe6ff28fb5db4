//! Edits of a text by position: everything else keeps every byte.

use std::ops::Range;

/// A range of a text and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) span: Range<usize>,
    pub(super) text: String,
}

impl Edit {
    pub(super) fn new(span: Range<usize>, text: impl Into<String>) -> Self {
        Self {
            span,
            text: text.into(),
        }
    }

    /// Returns an edit that inserts a text.
    pub(super) fn insert(at: usize, text: impl Into<String>) -> Self {
        Self::new(at..at, text)
    }
}

/// Applies all edits to a text; `None` if two of them overlap or one is out of range.
pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    edits.sort_by_key(|edit| edit.span.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        out.push_str(text.get(at..edit.span.start)?);
        out.push_str(&edit.text);
        at = edit.span.end.max(edit.span.start);
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_change_their_place_only_and_never_overlap() {
        let edits = vec![
            Edit::new(4..7, "two"),
            Edit::insert(0, ">"),
            Edit::new(8..8, "!"),
        ];
        assert_eq!(apply("one 222 3", edits).as_deref(), Some(">one two !3"));
        assert_eq!(
            apply("abc", vec![Edit::new(0..2, ""), Edit::new(1..3, "")]),
            None
        );
        assert_eq!(apply("abc", vec![Edit::new(2..9, "")]), None);
    }
}
