//! Shortens results that are too long to be shown at once: texts are cut, long lists in
//! `structuredContent` end early, and the rest is stored for the agent to read on.

use std::collections::HashMap;
use std::ops::Range;

use crate::detect::Surface;
use crate::message::{Edit, Path, Role, Step, Value, ValueKind, pointer, quote, splice};

use super::caps::{Budget, Rest, address, footer};
use crate::inspect::inbound::Inbound;
use crate::inspect::result_size::{ResultSize, quarter_tokens};
use crate::inspect::surface;

/// Minimum length of a string in `structuredContent` that is cut, in bytes: shorter ones are values
/// that programs compare rather than texts.
const CUTTABLE_BYTES: usize = 200;

/// Maximum number of lists of a result that end early: each is compared with those before it.
const LISTS: usize = 256;

/// A list that ends early: its elements from the first removed one on.
struct Cut<'j> {
    list: Value<'j>,
    at: String,
    /// The range that is removed, including the comma before it.
    span: Range<usize>,
    stays: usize,
}

impl Inbound<'_> {
    /// Cuts the parts that exceed the policy's limits for a result of this tool. The byte counts
    /// are those of the texts of each surface.
    pub(in crate::inspect) fn shorten(
        &self,
        tool: Option<&str>,
        (content_bytes, structured_bytes): (usize, usize),
        edits: &mut Vec<Edit>,
        first_edit: usize,
        delivery: &mut ResultSize,
    ) {
        let cap = self.policy.caps.cap(tool);
        let mut note = None;
        for (counts, total) in [
            (Surface::Content, content_bytes),
            (Surface::Structured, structured_bytes),
        ] {
            let before = delivery.cut_bytes;
            if total > cap.all.min(cap.block) {
                self.cut(
                    counts,
                    Budget::new(cap, total, self.paging, self.audit),
                    edits,
                    first_edit,
                    delivery,
                );
            }
            if counts == Surface::Structured {
                note = self.end_lists(
                    cap.all + delivery.cut_bytes - before,
                    edits,
                    first_edit,
                    delivery,
                );
            }
        }
        self.tell_of_rests(note.as_deref(), edits, delivery);
    }

    /// Ends the longest lists of `structuredContent` early, until it is no longer than `most` bytes
    /// or no list is left. Returns the line that reports it.
    fn end_lists(
        &self,
        most: usize,
        edits: &mut Vec<Edit>,
        first_edit: usize,
        delivery: &mut ResultSize,
    ) -> Option<String> {
        let body = self.message.body(self.envelope)?;
        // Without blocks there is no place to report it.
        let structured = body
            .get("structuredContent")
            .filter(|structured| structured.raw().len() > most)?;
        body.get("content")
            .filter(|content| content.kind() == ValueKind::Array)?;
        let cuts = cuts(structured, most);
        let mut text = String::new();
        let mut gone = 0;
        for Cut {
            list,
            at,
            span,
            stays,
        } in &cuts
        {
            let within = |edit: &Edit| span.start <= edit.span.start && edit.span.end <= span.end;
            let own = edits.split_off(first_edit.min(edits.len()));
            let (inside, outside): (Vec<Edit>, Vec<Edit>) = own.into_iter().partition(within);
            edits.extend(outside);
            let moved = inside.into_iter().map(|edit| Edit {
                span: edit.span.start - span.start..edit.span.end - span.start,
                ..edit
            });
            // The removed elements are stored as the agent would have received them.
            let raw = self.message.bytes().slice(span.clone());
            let moved: Vec<Edit> = moved.collect();
            let left = if moved.is_empty() {
                raw
            } else {
                splice(&raw, moved).unwrap_or_default()
            };
            let left = String::from_utf8_lossy(&left);
            let left = left.trim_start_matches([',', ' ', '\n', '\r', '\t']);
            let total = list.elements().count();
            let lines = if text.is_empty() { "" } else { "\n\n" };
            let before = format!(
                "{lines}{} from {stays} on, of {total}:\n[",
                self.pointer_to(at)
            );
            // Written without an intermediate copy: a list can be as long as its message.
            text.reserve_exact(before.len() + left.len() + 1);
            text.push_str(&before);
            text.push_str(left);
            text.push(']');
            gone += span.len();
            edits.push(Edit::json(span.clone(), String::new()));
        }
        if cuts.is_empty() {
            return None;
        }
        delivery.cut_bytes += gone;
        delivery.hit.push("result_text_bytes");
        let before_bytes = structured.raw().len() - gone;
        let total = structured.raw().len();
        let kept = self.paging.filter(|paging| text.len() <= paging.most_bytes);
        let at = kept.map(|paging| {
            let id = format!("{}-{}", paging.id(), delivery.rests.len() + 1);
            let at = address(&id, 2);
            delivery.rests.push(Rest {
                id,
                text,
                page_bytes: most.max(1),
                before_bytes,
                wrapped: None,
            });
            at
        });
        if self.paging.is_some() && at.is_none() {
            delivery.hit.push("kept_result_bytes");
        }
        let lists: Vec<String> = cuts
            .iter()
            .map(|cut| format!("`{}` after {}", self.pointer_to(&cut.at), cut.stays))
            .collect();
        let more = footer(before_bytes, total, at.as_deref());
        Some(format!(
            "[lychgate: lists in structuredContent end early: {}]{more}",
            lists.join(", ")
        ))
    }

    fn pointer_to(&self, at: &str) -> String {
        if self.message.is_batch() {
            format!("/{}{at}", self.item)
        } else {
            at.to_owned()
        }
    }

    /// Cuts the texts of one surface to a budget.
    fn cut(
        &self,
        counts: Surface,
        mut budget: Budget<'_>,
        edits: &mut Vec<Edit>,
        first_edit: usize,
        delivery: &mut ResultSize,
    ) {
        // In the order of the text, one after the other: see `blocks::settle`.
        let gone: Vec<_> = edits
            .iter()
            .skip(first_edit)
            .filter(|edit| edit.is_json)
            .map(|edit| edit.span.clone())
            .collect();
        let known = edits
            .iter()
            .enumerate()
            .skip(first_edit)
            .map(|(index, edit)| (edit.span.start, index));
        let known: HashMap<usize, usize> = known.collect();
        let mut cut_bytes = 0;
        let mut number = delivery.rests.len();
        self.message.value(self.envelope).walk(|path, value, role| {
            let Some(string) = value.str() else { return };
            if counted(surface::inbound(self.envelope, None, path), path, role) != Some(counts) {
                return;
            }
            let span = value.span();
            let span = span.start + 1..span.end.saturating_sub(1);
            if gone
                .get(gone.partition_point(|block| block.end <= span.start))
                .is_some_and(|block| block.start <= span.start)
            {
                return;
            }
            let edit = known
                .get(&span.start)
                .and_then(|index| edits.get_mut(*index));
            let text = edit.as_ref().map_or(&*string, |edit| &edit.with);
            if counts == Surface::Structured && text.len() < CUTTABLE_BYTES {
                return;
            }
            let label = match counts {
                Surface::Structured if budget.is_spent() => {
                    format!("\n\n{}:\n", self.pointer(path))
                }
                _ => "\n\n".to_owned(),
            };
            if let Some((with, gone)) = budget.take(text, &mut number, &label) {
                cut_bytes += gone;
                delivery.quarter_tokens =
                    delivery.quarter_tokens.saturating_sub(quarter_tokens(text))
                        + quarter_tokens(&with);
                match edit {
                    Some(edit) => edit.with = with,
                    None => edits.push(Edit::text(span, with)),
                }
            }
        });
        if cut_bytes > 0 {
            delivery.hit.push(if budget.is_spent() {
                "result_text_bytes"
            } else {
                "result_block_bytes"
            });
        }
        if budget.unkept {
            delivery.hit.push("kept_result_bytes");
        }
        delivery.cut_bytes += cut_bytes;
        delivery.rests.append(&mut budget.rests);
    }

    /// Adds blocks that report what was left out and, for clients that support them, links to what
    /// is stored.
    fn tell_of_rests(&self, note: Option<&str>, edits: &mut Vec<Edit>, delivery: &ResultSize) {
        let content = self
            .message
            .body(self.envelope)
            .and_then(|body| body.get("content"));
        let Some(content) = content.filter(|content| content.kind() == ValueKind::Array) else {
            return;
        };
        let mut blocks: Vec<String> = note
            .into_iter()
            .map(|note| format!(r#"{{"type":"text","text":{}}}"#, quote(note)))
            .collect();
        let rests = if self.paging.is_some_and(|paging| paging.links) {
            &delivery.rests[..]
        } else {
            &[]
        };
        blocks.extend(rests.iter().enumerate().map(|(n, rest)| {
            format!(
                r#"{{"type":"resource_link","uri":"{}","name":"rest-{}","title":"The rest of this answer","mimeType":"text/plain","size":{}}}"#,
                address(&rest.id, 2),
                n + 1,
                rest.text.len()
            )
        }));
        if blocks.is_empty() {
            return;
        }
        let comma = if content.elements().next().is_some() {
            ","
        } else {
            ""
        };
        let end = content.span().end.saturating_sub(1);
        edits.push(Edit::json(end..end, format!("{comma}{}", blocks.join(","))));
    }
}

/// Returns which lists of a value end where, so that the value is no longer than `most` bytes: the
/// longest first, none within another.
fn cuts(structured: Value<'_>, most: usize) -> Vec<Cut<'_>> {
    let mut lists: Vec<Value<'_>> = Vec::new();
    structured.walk(|_, value, _| {
        if value.kind() == ValueKind::Array && value.elements().nth(1).is_some() {
            lists.push(value);
        }
    });
    lists.sort_by_key(|list| std::cmp::Reverse(list.raw().len()));
    let (mut over, mut out) = (
        structured.raw().len().saturating_sub(most),
        Vec::<Cut<'_>>::new(),
    );
    for list in lists {
        let around = |cut: &Cut<'_>| {
            cut.list.span().start <= list.span().start && list.span().end <= cut.list.span().end
        };
        if over == 0 || out.len() >= LISTS {
            break;
        }
        if out.iter().any(around) {
            continue;
        }
        let end = list.elements().last().map_or(0, |last| last.span().end);
        // The first element is kept: it shows what the list contains.
        let mut stays = 0;
        let mut start = end;
        for element in list.elements() {
            let element_end = element.span().end;
            if stays > 0 && end.saturating_sub(element_end) < over {
                break;
            }
            (stays, start) = (stays + 1, element_end);
        }
        if start < end {
            over = over.saturating_sub(end - start);
            out.push(Cut {
                list,
                at: String::new(),
                span: start..end,
                stays,
            });
        }
    }
    let by_start: HashMap<usize, usize> = out
        .iter()
        .enumerate()
        .map(|(n, cut)| (cut.list.span().start, n))
        .collect();
    structured.walk(|path, value, _| {
        let is_list = value.kind() == ValueKind::Array;
        let cut = by_start
            .get(&value.span().start)
            .filter(|_| is_list)
            .and_then(|n| out.get_mut(*n));
        if let Some(cut) = cut {
            cut.at = format!("/result/structuredContent{}", pointer(path));
        }
    });
    out
}

/// Returns which budget a string of a tool's result counts towards, if any.
pub(in crate::inspect) fn counted(
    surface: Surface,
    path: &Path<'_>,
    role: Role,
) -> Option<Surface> {
    let is_text = || matches!(path.last(), Some(Step::Key(key)) if key == "text");
    match surface {
        Surface::Content if role == Role::Value && is_text() => Some(Surface::Content),
        Surface::Structured if role == Role::Value => Some(Surface::Structured),
        _ => None,
    }
}
