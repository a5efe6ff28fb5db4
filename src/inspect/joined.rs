//! Texts that a model reads one after the other, judged as one: a sentence cut in two is still one.

use std::ops::Range;

use bytes::Bytes;

use crate::detect::Place;
use crate::message::{Edit, Json, ReadLimits};
use crate::text::cut;

use super::rewrite::MARK;
use super::string::{Across, Judge, Site};
use super::wrap::wrapped;

/// Of each text, so much of its beginning and of its end.
const SEAM_BYTES: usize = 800;
/// Of all texts together; what comes after is judged by itself only.
const JOINED_BYTES: usize = 64 << 10;

/// The texts of one result, in order.
#[derive(Default)]
pub(super) struct Joined {
    text: String,
    /// Where each stands in `text`, and where in the message.
    pieces: Vec<(Range<usize>, Range<usize>)>,
}

impl Joined {
    /// Adds a text that stands at `span` of the message.
    pub(super) fn add(&mut self, text: &str, span: Range<usize>) {
        if self.text.len() >= JOINED_BYTES {
            return;
        }
        let start = self.text.len();
        if text.len() <= 2 * SEAM_BYTES {
            self.text.push_str(text);
        } else {
            self.text.push_str(cut(text, SEAM_BYTES));
            self.text.push('\n');
            let tail = (text.len() - SEAM_BYTES..text.len()).find_map(|at| text.get(at..));
            self.text.push_str(tail.unwrap_or_default());
        }
        self.pieces.push((start..self.text.len(), span));
    }

    /// Judges them as one. Adds to `edits` what takes the place of texts that only together say what no rule lets pass.
    /// `bytes` are those of the message.
    pub(super) fn judge(
        &self,
        judge: &mut Judge<'_, '_>,
        place: &Place<'_>,
        site: &Site<'_>,
        edits: &mut Vec<Edit>,
        bytes: &Bytes,
    ) {
        if self.pieces.len() < 2 {
            return;
        }
        let inside =
            |span: &Range<usize>| self.pieces.iter().any(|(piece, _)| piece.start <= span.start && span.end <= piece.end);
        let Some(Across { span, notice, wraps }) = judge.across(&self.text, &inside, place, site) else { return };
        let mut notice = Some(notice);
        for (piece, at) in &self.pieces {
            if piece.is_empty() || piece.start >= span.end || span.start >= piece.end {
                continue;
            }
            let edit = edits.iter_mut().find(|edit| edit.span == *at);
            let with = match &wraps {
                Some(rules) => {
                    let text = edit.as_ref().map_or_else(|| said(bytes, at), |edit| edit.with.clone());
                    wrapped(&text, rules, judge.audit)
                }
                None => None,
            };
            let with = with.unwrap_or_else(|| notice.take().unwrap_or_default() + MARK);
            match edit {
                Some(edit) => edit.with = with,
                None => edits.push(Edit::text(at.clone(), with)),
            }
        }
    }
}

/// All that the string says between whose quotes a span is.
fn said(bytes: &Bytes, at: &Range<usize>) -> String {
    let quoted = bytes.slice(at.start.saturating_sub(1)..bytes.len().min(at.end + 1));
    let json = Json::parse(quoted, &ReadLimits { message_bytes: usize::MAX, ..ReadLimits::default() });
    json.ok().and_then(|json| json.root().str().map(|text| text.into_owned())).unwrap_or_default()
}
