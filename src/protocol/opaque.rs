//! Strings that are only passed through: names, identifiers and other values that a reader
//! compares, resolves or echoes. Changing one breaks the exchange, so a verdict that would change
//! it refuses the message instead.

use crate::message::{Path, Role, Step};

/// Members that contain no prose, wherever MCP uses them (2024-11-05 to 2026-07-28, `schema.ts`).
const MEMBERS: [&str; 36] = [
    "$anchor",
    "$id",
    "$ref",
    "$schema",
    "blob",
    "const",
    "cursor",
    "default",
    "elicitationId",
    "enum",
    "examples",
    "format",
    "id",
    "jsonrpc",
    "lastModified",
    "level",
    "logger",
    "method",
    "mimeType",
    "mode",
    "name",
    "nextCursor",
    "pattern",
    "progressToken",
    "protocolVersion",
    "requestState",
    "required",
    "resultType",
    "role",
    "stopReason",
    "taskId",
    "type",
    "uri",
    "uriTemplate",
    "url",
    "websiteUrl",
];

/// The one member of `_meta` that is meant for a model (2025-11-25, tasks).
const META_FOR_MODEL: &str = "io.modelcontextprotocol/model-immediate-response";

/// Reports whether the string at `path` (relative to the message's object) must not be edited.
///
/// In `structuredContent`, in the data of errors and in log notifications, the members are the
/// server's own, whatever their names; only keys are opaque there.
pub fn is_opaque(path: &Path<'_>, role: Role) -> bool {
    if role == Role::Key {
        return true;
    }
    let mut names = path.iter().filter_map(|step| match step {
        Step::Key(key) => Some(&**key),
        Step::Index(_) => None,
    });
    let (Some(first), second) = (names.next(), names.next()) else {
        return true;
    };
    if path.len() == 1 {
        return true;
    }
    if matches!(
        (first, second),
        ("result", Some("structuredContent")) | ("error" | "params", Some("data"))
    ) {
        return false;
    }
    let keys = || {
        path.iter().filter_map(|step| match step {
            Step::Key(key) => Some(&**key),
            Step::Index(_) => None,
        })
    };
    if let Some(meta) = keys().position(|key| key == "_meta") {
        return keys().nth(meta + 1) != Some(META_FOR_MODEL);
    }
    // The innermost names decide: `default` may contain a list or an object of values.
    let is_member = |key: &str| MEMBERS.binary_search(&key).is_ok();
    let last = keys().next_back().unwrap_or_default();
    let in_block_data = last == "data" && keys().any(|key| key == "content");
    // A property of a schema may be called `name`; its description remains prose.
    is_member(last)
        || in_block_data
        || keys()
            .skip(1)
            .any(|key| matches!(key, "default" | "enum" | "examples" | "required"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::{Message, ReadLimits, pointer};

    #[test]
    fn the_list_is_sorted() {
        assert!(MEMBERS.is_sorted());
    }

    #[test]
    fn what_may_be_edited() {
        let text = r#"{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"prose"},
            {"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource_link","uri":"u","name":"n","title":"prose"}],
            "structuredContent":{"name":"prose","data":"prose"},"_meta":{"a":"b","io.modelcontextprotocol/model-immediate-response":"prose"},
            "nextCursor":"c","tools":[{"name":"t","description":"prose","inputSchema":{"type":"object","properties":
            {"name":{"type":"string","description":"prose","default":"d","enum":["e"]}},"required":["name"]}}]}}"#;
        let message =
            Message::parse(Bytes::from_static(text.as_bytes()), &ReadLimits::default()).unwrap();
        message.root().strings(|path, found| {
            let free = found.role == Role::Value && found.value == "prose";
            assert_eq!(is_opaque(path, found.role), !free, "{}", pointer(path));
        });
    }
}
