//! Shortens results that are too long to be shown at once: texts are cut, long lists in
//! `structuredContent` end early, and the rest is stored for the agent to read on.

use std::collections::HashMap;
use std::ops::Range;

use crate::detect::Surface;
use crate::message::{Edit, Path, Role, Step, Value, ValueKind, pointer, quote, splice};

use super::caps::{Budget, Remainder, footer, page_uri};
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
    kept_count: usize,
}

impl Inbound<'_> {
    /// Cuts the parts that exceed the policy's limits for a result of this tool. The byte counts
    /// are those of the texts of each surface.
    pub(in crate::inspect) fn shorten(
        &self,
        tool: Option<&str>,
        content_bytes: usize,
        structured_bytes: usize,
        edits: &mut Vec<Edit>,
        first_edit: usize,
        result_size: &mut ResultSize,
    ) {
        let cap = self.policy.caps.cap(tool);
        let mut note = None;
        for (surface, total) in [
            (Surface::Content, content_bytes),
            (Surface::Structured, structured_bytes),
        ] {
            let cut_before = result_size.cut_bytes;
            if total > cap.total_bytes.min(cap.block_bytes) {
                self.cut(
                    surface,
                    Budget::new(cap, total, self.paging, self.audit),
                    edits,
                    first_edit,
                    result_size,
                );
            }
            if surface == Surface::Structured {
                note = self.end_lists(
                    cap.total_bytes + result_size.cut_bytes - cut_before,
                    edits,
                    first_edit,
                    result_size,
                );
            }
        }
        self.add_remainder_links(note.as_deref(), edits, result_size);
    }

    /// Ends the longest lists of `structuredContent` early, until it is no longer than `most` bytes
    /// or no list is left. Returns the line that reports it.
    fn end_lists(
        &self,
        most: usize,
        edits: &mut Vec<Edit>,
        first_edit: usize,
        result_size: &mut ResultSize,
    ) -> Option<String> {
        let body = self.message.body(self.envelope)?;
        // Without blocks there is no place to report it.
        let structured = body
            .get("structuredContent")
            .filter(|structured| structured.raw().len() > most)?;
        body.get("content")
            .filter(|content| content.kind() == ValueKind::Array)?;
        let cuts = list_cuts(structured, most);
        let mut text = String::new();
        let mut removed_bytes = 0;
        for Cut {
            list,
            at,
            span,
            kept_count: stays,
        } in &cuts
        {
            let is_inside =
                |edit: &Edit| span.start <= edit.span.start && edit.span.end <= span.end;
            let new_edits = edits.split_off(first_edit.min(edits.len()));
            let (inside, outside): (Vec<Edit>, Vec<Edit>) =
                new_edits.into_iter().partition(is_inside);
            edits.extend(outside);
            let shifted = inside.into_iter().map(|edit| Edit {
                span: edit.span.start - span.start..edit.span.end - span.start,
                ..edit
            });
            // The removed elements are stored as the agent would have received them.
            let raw = self.message.bytes().slice(span.clone());
            let shifted: Vec<Edit> = shifted.collect();
            let rest = if shifted.is_empty() {
                raw
            } else {
                splice(&raw, shifted).unwrap_or_default()
            };
            let rest = String::from_utf8_lossy(&rest);
            let rest = rest.trim_start_matches([',', ' ', '\n', '\r', '\t']);
            let total = list.elements().count();
            let lines = if text.is_empty() { "" } else { "\n\n" };
            let heading = format!(
                "{lines}{} from {stays} on, of {total}:\n[",
                self.pointer_to(at)
            );
            // Written without an intermediate copy: a list can be as long as its message.
            text.reserve_exact(heading.len() + rest.len() + 1);
            text.push_str(&heading);
            text.push_str(rest);
            text.push(']');
            removed_bytes += span.len();
            edits.push(Edit::json(span.clone(), String::new()));
        }
        if cuts.is_empty() {
            return None;
        }
        result_size.cut_bytes += removed_bytes;
        result_size.exceeded_limits.push("result_text_bytes");
        let before_bytes = structured.raw().len() - removed_bytes;
        let total = structured.raw().len();
        let store = self.paging.filter(|paging| text.len() <= paging.most_bytes);
        let at = store.map(|paging| {
            let id = format!("{}-{}", paging.id(), result_size.remainders.len() + 1);
            let at = page_uri(&id, 2);
            result_size.remainders.push(Remainder {
                id,
                text,
                page_bytes: most.max(1),
                before_bytes,
                marker_id: None,
            });
            at
        });
        if self.paging.is_some() && at.is_none() {
            result_size.exceeded_limits.push("kept_result_bytes");
        }
        let lists: Vec<String> = cuts
            .iter()
            .map(|cut| format!("`{}` after {}", self.pointer_to(&cut.at), cut.kept_count))
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
        surface: Surface,
        mut budget: Budget<'_>,
        edits: &mut Vec<Edit>,
        first_edit: usize,
        result_size: &mut ResultSize,
    ) {
        // In the order of the text, one after the other: see `blocks::settle`.
        let removed_spans: Vec<_> = edits
            .iter()
            .skip(first_edit)
            .filter(|edit| edit.is_json)
            .map(|edit| edit.span.clone())
            .collect();
        let edit_indices = edits
            .iter()
            .enumerate()
            .skip(first_edit)
            .map(|(index, edit)| (edit.span.start, index));
        let edit_indices: HashMap<usize, usize> = edit_indices.collect();
        let mut cut_bytes = 0;
        let mut number = result_size.remainders.len();
        self.message.value(self.envelope).walk(|path, value, role| {
            let Some(string) = value.str() else { return };
            if counted_surface(
                surface::inbound_surface(self.envelope, None, path),
                path,
                role,
            ) != Some(surface)
            {
                return;
            }
            let span = value.span();
            let span = span.start + 1..span.end.saturating_sub(1);
            if removed_spans
                .get(removed_spans.partition_point(|block| block.end <= span.start))
                .is_some_and(|block| block.start <= span.start)
            {
                return;
            }
            let edit = edit_indices
                .get(&span.start)
                .and_then(|index| edits.get_mut(*index));
            let text = edit.as_ref().map_or(&*string, |edit| &edit.replacement);
            if surface == Surface::Structured && text.len() < CUTTABLE_BYTES {
                return;
            }
            let label = match surface {
                Surface::Structured if budget.is_spent() => {
                    format!("\n\n{}:\n", self.pointer(path))
                }
                _ => "\n\n".to_owned(),
            };
            if let Some((replacement, removed_bytes)) = budget.take(text, &mut number, &label) {
                cut_bytes += removed_bytes;
                result_size.quarter_tokens = result_size
                    .quarter_tokens
                    .saturating_sub(quarter_tokens(text))
                    + quarter_tokens(&replacement);
                match edit {
                    Some(edit) => edit.replacement = replacement,
                    None => edits.push(Edit::text(span, replacement)),
                }
            }
        });
        if cut_bytes > 0 {
            result_size.exceeded_limits.push(if budget.is_spent() {
                "result_text_bytes"
            } else {
                "result_block_bytes"
            });
        }
        if budget.is_too_long {
            result_size.exceeded_limits.push("kept_result_bytes");
        }
        result_size.cut_bytes += cut_bytes;
        result_size.remainders.append(&mut budget.remainders);
    }

    /// Adds blocks that report what was left out and, for clients that support them, links to what
    /// is stored.
    fn add_remainder_links(
        &self,
        note: Option<&str>,
        edits: &mut Vec<Edit>,
        result_size: &ResultSize,
    ) {
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
        let remainders = if self.paging.is_some_and(|paging| paging.links) {
            &result_size.remainders[..]
        } else {
            &[]
        };
        blocks.extend(remainders.iter().enumerate().map(|(n, rest)| {
            format!(
                r#"{{"type":"resource_link","uri":"{}","name":"rest-{}","title":"The rest of this answer","mimeType":"text/plain","size":{}}}"#,
                page_uri(&rest.id, 2),
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
fn list_cuts(structured: Value<'_>, most: usize) -> Vec<Cut<'_>> {
    let mut lists: Vec<Value<'_>> = Vec::new();
    structured.walk(|_, value, _| {
        if value.kind() == ValueKind::Array && value.elements().nth(1).is_some() {
            lists.push(value);
        }
    });
    lists.sort_by_key(|list| std::cmp::Reverse(list.raw().len()));
    let (mut excess, mut out) = (
        structured.raw().len().saturating_sub(most),
        Vec::<Cut<'_>>::new(),
    );
    for list in lists {
        let contains = |cut: &Cut<'_>| {
            cut.list.span().start <= list.span().start && list.span().end <= cut.list.span().end
        };
        if excess == 0 || out.len() >= LISTS {
            break;
        }
        if out.iter().any(contains) {
            continue;
        }
        let end = list.elements().last().map_or(0, |last| last.span().end);
        // The first element is kept: it shows what the list contains.
        let mut kept_count = 0;
        let mut start = end;
        for element in list.elements() {
            let element_end = element.span().end;
            if kept_count > 0 && end.saturating_sub(element_end) < excess {
                break;
            }
            (kept_count, start) = (kept_count + 1, element_end);
        }
        if start < end {
            excess = excess.saturating_sub(end - start);
            out.push(Cut {
                list,
                at: String::new(),
                span: start..end,
                kept_count,
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
pub(in crate::inspect) fn counted_surface(
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
