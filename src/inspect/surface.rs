//! The part of a message that a string belongs to.

use crate::detect::Surface;
use crate::message::{Envelope, MessageKind, Path, Role, Step};
use crate::protocol::OpenRequest;

/// Returns the surface of an inbound string. `path` starts at the message's object; `request` is
/// the request that the message answers.
pub(super) fn inbound_surface(
    envelope: &Envelope,
    request: Option<&OpenRequest>,
    path: &Path<'_>,
) -> Surface {
    match &envelope.kind {
        MessageKind::Request { .. } => Surface::Question,
        MessageKind::Notification { .. } => Surface::Notification,
        MessageKind::Error => Surface::Error,
        MessageKind::Result => result_surface(request, path),
    }
}

/// Returns the key at this position of a path; empty for an index, or beyond its end.
pub(super) fn key_at<'p>(path: &'p Path<'_>, at: usize) -> &'p str {
    match path.get(at) {
        Some(Step::Key(key)) => key,
        _ => "",
    }
}

/// Returns the surface of a string in a result. The result's own structure determines it; if it
/// does not, the request that the result answers does.
fn result_surface(request: Option<&OpenRequest>, path: &Path<'_>) -> Surface {
    // The result of a task is a result within a result.
    let name = |at: usize| key_at(path, at);
    let first = if name(1) == "result" {
        name(2)
    } else {
        name(1)
    };
    match first {
        "structuredContent" => Surface::Structured,
        "tools" | "prompts" | "resources" | "resourceTemplates" => Surface::Definition,
        "instructions" | "serverInfo" | "capabilities" => Surface::Instructions,
        "messages" => Surface::Prompt,
        "contents" => Surface::Resource,
        "inputRequests" => Surface::Question,
        "content" | "completion" => Surface::Content,
        "_meta" if name(2) == "io.modelcontextprotocol/serverInfo" => Surface::Instructions,
        _ => match request.map(|asked| &*asked.method) {
            Some("tools/call" | "tasks/result" | "tasks/get" | "completion/complete") => {
                Surface::Content
            }
            Some("prompts/get") => Surface::Prompt,
            Some("resources/read") => Surface::Resource,
            Some("tools/list" | "prompts/list" | "resources/list" | "resources/templates/list") => {
                Surface::Definition
            }
            Some("initialize" | "server/discover") => Surface::Instructions,
            _ => Surface::Other,
        },
    }
}

/// Returns whether a string is a fixed part of an envelope or of a block of text (JSON-RPC 2.0,
/// sections 4 and 5; MCP 2025-11-25, `TextContent`): its place and its spelling leave nothing to
/// inspect, so it is compared and no detector reads it.
pub(super) fn is_fixed(path: &Path<'_>, role: Role, text: &str) -> bool {
    let name = |at: usize| key_at(path, at);
    let is_in_block = || {
        name(0) == "result" && name(1) == "content" && matches!(path.get(2), Some(Step::Index(_)))
    };
    match (path.len(), role) {
        (1, Role::Key) => matches!(
            text,
            "jsonrpc" | "id" | "method" | "params" | "result" | "error"
        ),
        (1, Role::Value) => name(0) == "jsonrpc" && text == "2.0",
        (2, Role::Key) => match name(0) {
            "params" => matches!(text, "name" | "arguments"),
            "result" => matches!(text, "content" | "isError" | "structuredContent"),
            _ => false,
        },
        (4, Role::Key) => matches!(text, "type" | "text") && is_in_block(),
        (4, Role::Value) => text == "text" && name(3) == "type" && is_in_block(),
        _ => false,
    }
}

/// Returns whether a model may read the string at `path` as a continuation of the one before: text
/// of results, and messages that arrive while a result is pending.
pub(super) fn reads_on(surface: Surface, path: &Path<'_>) -> bool {
    let names = |at: usize, of: &[&str]| matches!(path.get(at), Some(Step::Key(key)) if of.contains(&&**key));
    match surface {
        Surface::Content | Surface::Prompt => names(path.len().wrapping_sub(1), &["text"]),
        Surface::Notification => names(1, &["data", "message", "statusMessage"]),
        _ => false,
    }
}

/// Returns whether the size caps of tool results apply to the response to this request.
pub(super) fn is_tool_result(request: Option<&OpenRequest>) -> bool {
    request
        .is_none_or(|asked| matches!(&*asked.method, "tools/call" | "tasks/result" | "tasks/get"))
}

/// Returns the surface of an outbound string outside the arguments of a tool call.
pub(super) fn outbound_surface(envelope: &Envelope, path: &Path<'_>) -> Surface {
    let is_input_response = matches!(path.get(1), Some(Step::Key(key)) if key == "inputResponses");
    if envelope.is_answer() || is_input_response {
        Surface::Answer
    } else {
        Surface::Params
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::{Json, ReadLimits};

    #[test]
    fn fixed_strings_are_known_by_place_and_spelling() {
        let fixed = |text: &'static str| {
            let json =
                Json::parse(Bytes::from_static(text.as_bytes()), &ReadLimits::default()).unwrap();
            let mut left = Vec::new();
            json.root().strings(|path, found| {
                if !is_fixed(path, found.role, &found.value) {
                    left.push(found.value.into_owned());
                }
            });
            left
        };
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":"a","arguments":{"name":"text","type":"text"}}}"#;
        assert_eq!(fixed(call), ["ping", "a", "name", "text", "type", "text"]);
        let result = r#"{"jsonrpc":"2.0","id":"b","result":{"content":[{"type":"text","text":"text"},{"type":"image"}],"x":{"type":"text"}}}"#;
        assert_eq!(fixed(result), ["b", "text", "image", "x", "type", "text"]);
        assert_eq!(
            fixed(r#"{"jsonrpc":"2.1","result":{"name":"jsonrpc"},"Id":2}"#),
            ["2.1", "name", "jsonrpc", "Id"]
        );
    }
}
