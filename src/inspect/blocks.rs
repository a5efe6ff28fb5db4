//! Blocks: parts of a result that can be removed whole without changing the rest.

use std::collections::BTreeSet;

use crate::message::{Edit, Path, Step, Value, quote};

use super::surface::key_at;
use super::tools::overlay::Patch;

/// Members of results that contain lists of definitions.
const LISTS: [&str; 4] = ["tools", "prompts", "resources", "resourceTemplates"];

/// Returns the depth, in the message's object, of the block that contains the value at `path`: a
/// content block of a tool's result or of a prompt's message (2025-11-25, `ContentBlock`), or one
/// of the `contents` of a resource. `None` if there is no block.
pub(super) fn block_depth(path: &Path<'_>) -> Option<usize> {
    let name = |at: usize| key_at(path, at);
    let is_index = |at: usize| matches!(path.get(at), Some(Step::Index(_)));
    let depth = match (name(0), name(1)) {
        ("result", "content") if is_index(2) => 3,
        // A resource is identified by its URI, which is kept.
        ("result", "contents") if is_index(2) && name(3) != "uri" => 3,
        ("result", "messages") if is_index(2) && name(3) == "content" => {
            4 + usize::from(is_index(4))
        }
        _ => return None,
    };
    (path.len() > depth).then_some(depth)
}

/// Returns the depth, in the message's object, of the entry of a list of definitions that contains
/// the value at `path`.
pub(super) fn entry_depth(path: &Path<'_>) -> Option<usize> {
    let in_list = matches!(path.get(1), Some(Step::Key(key)) if LISTS.contains(&&**key));
    let is_entry = matches!((path.first(), path.get(2)), (Some(Step::Key(first)), Some(Step::Index(_))) if first == "result");
    (in_list && is_entry && path.len() > 3).then_some(3)
}

/// Returns the edits that remove the entries of a result's lists that begin at `starts`.
pub(super) fn remove_entries(result: Option<Value<'_>>, starts: &BTreeSet<usize>) -> Vec<Edit> {
    let mut patch = Patch::default();
    for list in LISTS
        .iter()
        .filter_map(|list| result?.get(list))
        .filter(|_| !starts.is_empty())
    {
        let spans: Vec<_> = list
            .elements()
            .map(|entry| (entry.span(), starts.contains(&entry.span().start)))
            .collect();
        patch.leave_out(&spans);
    }
    patch.into_edits()
}

/// Returns the edit that replaces a block with a notice.
pub(super) fn replace_block(block: Value<'_>, path: &Path<'_>, notice: &str) -> Edit {
    let text = quote(notice.trim_end());
    let json = if matches!(path.get(1), Some(Step::Key(key)) if key == "contents") {
        let uri = block
            .get("uri")
            .filter(|uri| uri.str().is_some())
            .map_or(r#""""#, |uri| uri.raw());
        format!(r#"{{"uri":{uri},"mimeType":"text/plain","text":{text}}}"#)
    } else {
        format!(r#"{{"type":"text","text":{text}}}"#)
    };
    Edit::json(block.span(), json)
}

/// Drops the edits within blocks that are removed whole, and all but the first edit of a block.
pub(super) fn drop_nested_edits(edits: &mut Vec<Edit>, first: usize) {
    let mut new_edits = edits.split_off(first.min(edits.len()));
    new_edits.sort_by_key(|edit| (edit.span.start, std::cmp::Reverse(edit.span.end)));
    let mut block_end = 0;
    new_edits.retain(|edit| {
        let inside = edit.span.start < block_end;
        if edit.is_json && !inside {
            block_end = edit.span.end;
        }
        !inside
    });
    edits.append(&mut new_edits);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::{Json, ReadLimits, splice};

    #[test]
    fn blocks_are_told_by_their_place() {
        let text = r#"{"result":{"content":[{"text":"in"},{"resource":{"uri":"in"}}],"contents":[{"uri":"out","text":"in"}],
            "messages":[{"role":"out","content":{"text":"in"}},{"content":[{"text":"in"}]}],"structuredContent":{"content":["out"]}}}"#;
        let json =
            Json::parse(Bytes::from_static(text.as_bytes()), &ReadLimits::default()).unwrap();
        json.root().walk(|path, value, role| {
            if role == crate::message::Role::Value
                && let Some(value_text) = value.str()
            {
                assert_eq!(block_depth(path).is_some(), value_text == "in", "{path:?}");
            }
        });
    }

    #[test]
    fn a_block_goes_with_the_edits_in_it() {
        let bytes = Bytes::from_static(b"[{\"a\":\"b\"},\"c\"]");
        let json = Json::parse(bytes.clone(), &ReadLimits::default()).unwrap();
        let block = json.root().elements().next().unwrap();
        let mut edits = vec![
            Edit::text(7..8, "x"),
            replace_block(block, &[], "gone\n"),
            replace_block(block, &[], "twice"),
            Edit::text(12..13, "d"),
        ];
        drop_nested_edits(&mut edits, 0);
        assert_eq!(
            &splice(&bytes, edits).unwrap()[..],
            br#"[{"type":"text","text":"gone"},"d"]"#
        );
    }
}
