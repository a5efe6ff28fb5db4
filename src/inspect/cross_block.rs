//! Texts that a model reads one after the other, judged as one: a sentence that is split is still
//! one sentence, whether it was split between the blocks of a response or between the messages of a
//! stream.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use crate::detect::Place;
use crate::message::{Edit, Json, ReadLimits, Role, Value, ValueKind};
use crate::text::{cut, is_rejoined};

use super::rewrite::MARK;
use super::string::{CrossBlockMatch, Judge, Site};
use super::wrap::wrap_text;

/// Number of bytes used of the beginning and of the end of each text.
const SEAM_BYTES: usize = 800;
/// Maximum number of bytes of all texts together; later texts are only judged individually.
const JOINED_BYTES: usize = 64 << 10;
/// Maximum number of texts of earlier messages of a stream, and of their bytes.
const MAX_TAIL_TEXTS: usize = 256;
const TAIL_BYTES: usize = 2 * SEAM_BYTES;

/// The last texts that an agent received on a stream, oldest first, which the next text may
/// continue. Limited in size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTail(Vec<Box<str>>);

impl StreamTail {
    /// Adds a text that the agent receives.
    pub(super) fn add(&mut self, text: &str) {
        let tail =
            (text.len().saturating_sub(TAIL_BYTES)..=text.len()).find_map(|at| text.get(at..));
        self.0
            .extend(tail.filter(|tail| !tail.is_empty()).map(Box::from));
        let mut bytes = 0;
        let mut count = 0;
        for text in self.0.iter().rev().take(MAX_TAIL_TEXTS) {
            bytes += text.len();
            if bytes > TAIL_BYTES && count > 0 {
                break;
            }
            count += 1;
        }
        self.0.drain(..self.0.len().saturating_sub(count));
    }

    /// Removes all texts: the next text continues none of them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The texts of one result, in order, after those that were received before it.
#[derive(Default)]
pub(super) struct CrossBlockText {
    parts: Vec<Part>,
    bytes: usize,
}

struct Part {
    text: String,
    /// The location in the message; `None` for text that the agent already has.
    span: Option<Range<usize>>,
}

impl CrossBlockText {
    /// Creates a list that begins with the texts received before.
    pub(super) fn after(tail: &StreamTail) -> Self {
        let parts = tail.0.iter().map(|text| Part {
            text: text.to_string(),
            span: None,
        });
        Self {
            parts: parts.collect(),
            bytes: 0,
        }
    }

    /// Adds the text at `span` of the message.
    pub(super) fn add(&mut self, text: &str, span: Range<usize>) {
        if self.bytes >= JOINED_BYTES {
            return;
        }
        let text = if text.len() <= 2 * SEAM_BYTES {
            text.to_owned()
        } else {
            let tail = (text.len() - SEAM_BYTES..text.len()).find_map(|at| text.get(at..));
            format!("{}\n{}", cut(text, SEAM_BYTES), tail.unwrap_or_default())
        };
        self.bytes += text.len();
        self.parts.push(Part {
            text,
            span: Some(span),
        });
    }

    /// Judges the texts as one. Adds to `edits` the replacements of texts that only together
    /// violate a rule, and returns whether there are any. `bytes` are those of the message.
    pub(super) fn judge(
        &self,
        judge: &mut Judge<'_, '_>,
        place: &Place<'_>,
        site: &Site<'_>,
        edits: &mut Vec<Edit>,
        bytes: &Bytes,
    ) -> bool {
        if self.parts.len() < 2 || self.parts.iter().all(|part| part.span.is_none()) {
            return false;
        }
        // It is unknown whether one word was split or two words meet.
        let meets = |pair: &[Part]| {
            let ends = |text: &str, last: bool| {
                let mut chars = text.chars();
                if last {
                    chars.next_back()
                } else {
                    chars.next()
                }
                .is_some_and(char::is_alphanumeric)
            };
            matches!(pair, [a, b] if ends(&a.text, true) && ends(&b.text, false))
        };
        let words_meet = self.parts.windows(2).any(meets);
        let separators: &[&str] = if words_meet { &["", " "] } else { &[""] };
        separators.iter().any(|separator| {
            let mut text = String::new();
            let mut pieces = Vec::new();
            for part in &self.parts {
                let start = text.len();
                text.push_str(&part.text);
                pieces.push((start..text.len(), part.span.clone()));
                text.push_str(separator);
            }
            judge_pieces(&text, &pieces, judge, place, site, edits, bytes)
        })
    }
}

/// Part of a text, and its location in the message; `None` for text that the agent already has.
type Piece = (Range<usize>, Option<Range<usize>>);

/// Judges `text` for matches that extend across its pieces, and adds the replacements of the
/// affected pieces to `edits`.
fn judge_pieces(
    text: &str,
    pieces: &[Piece],
    judge: &mut Judge<'_, '_>,
    place: &Place<'_>,
    site: &Site<'_>,
    edits: &mut Vec<Edit>,
    bytes: &Bytes,
) -> bool {
    let tail_end = pieces
        .iter()
        .take_while(|(_, at)| at.is_none())
        .last()
        .map_or(0, |(piece, _)| piece.end);
    let is_inside = |span: &Range<usize>| {
        let before = pieces.partition_point(|(piece, _)| piece.start <= span.start);
        let last = before.checked_sub(1).and_then(|last| pieces.get(last));
        span.end <= tail_end || last.is_some_and(|(piece, _)| span.end <= piece.end)
    };
    let Some(CrossBlockMatch {
        span,
        notice,
        wrap_rules: wraps,
    }) = judge.judge_joined(text, &is_inside, place, site)
    else {
        return false;
    };
    let mut notice = Some(notice);
    let edit_indices: BTreeMap<usize, usize> = edits
        .iter()
        .enumerate()
        .map(|(nth, edit)| (edit.span.start, nth))
        .collect();
    for (piece, at) in pieces {
        let Some(at) = at
            .as_ref()
            .filter(|_| !piece.is_empty() && piece.start < span.end && span.start < piece.end)
        else {
            continue;
        };
        let edit = edit_indices
            .get(&at.start)
            .and_then(|nth| edits.get_mut(*nth))
            .filter(|edit| edit.span == *at);
        let replacement = match &wraps {
            Some(rules) => {
                let text = edit
                    .as_ref()
                    .map_or_else(|| whole_text(bytes, at), |edit| edit.replacement.clone());
                wrap_text(&text, rules, judge.audit)
            }
            None => None,
        };
        let replacement = replacement.unwrap_or_else(|| notice.take().unwrap_or_default() + MARK);
        match edit {
            Some(edit) => edit.replacement = replacement,
            None => edits.push(Edit::text(at.clone(), replacement)),
        }
    }
    true
}

/// Judges a JSON value for matches that extend across its strings: words in the items of a list, or
/// down the rows of a table. Adds the replacements of the affected strings to `edits`.
pub(super) fn judge_rows(
    value: Value<'_>,
    judge: &mut Judge<'_, '_>,
    place: &Place<'_>,
    site: &Site<'_>,
    edits: &mut Vec<Edit>,
    bytes: &Bytes,
) -> bool {
    let raw = value.raw();
    if !is_rejoined(raw) {
        return false;
    }
    let base = value.span().start;
    let mut pieces: Vec<Piece> = Vec::new();
    value.walk(|_, value, role| {
        if role == Role::Value && value.kind() == ValueKind::String {
            let inner = value.span().start + 1..value.span().end.saturating_sub(1);
            pieces.push((inner.start - base..inner.end - base, Some(inner)));
        }
    });
    judge_pieces(raw, &pieces, judge, place, site, edits, bytes)
}

/// Returns the whole text of the string that has the given span between its quotes.
fn whole_text(bytes: &Bytes, at: &Range<usize>) -> String {
    let quoted = bytes.slice(at.start.saturating_sub(1)..bytes.len().min(at.end + 1));
    let json = Json::parse(quoted, &ReadLimits::of_bytes(usize::MAX));
    json.ok()
        .and_then(|json| json.root().str().map(|text| text.into_owned()))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_heard_is_bounded_and_the_last_of_it() {
        let mut tail = StreamTail::default();
        (0..1000).for_each(|_| tail.add("x"));
        assert_eq!(tail.0.len(), MAX_TAIL_TEXTS);
        tail.add(&"ä".repeat(TAIL_BYTES));
        assert!(tail.0.len() == 1 && tail.0[0].len() <= TAIL_BYTES && tail.0[0].ends_with('ä'));
        tail.add("and so on");
        assert_eq!(tail.0.last().map(AsRef::as_ref), Some("and so on"));
        assert!(
            tail.0.iter().map(|text| text.len()).sum::<usize>() <= TAIL_BYTES,
            "{}",
            tail.0.len()
        );
        tail.clear();
        assert_eq!(tail, StreamTail::default());
    }
}
