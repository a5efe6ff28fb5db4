//! Which part of a message a string belongs to.

use crate::detect::Surface;
use crate::message::{Envelope, MessageKind, Path, Step};
use crate::protocol::Asked;

/// The surface of an inbound string. `path` starts at the message's object; `asked` is the request it answers.
pub(super) fn inbound(envelope: &Envelope, asked: Option<&Asked>, path: &Path<'_>) -> Surface {
    match &envelope.kind {
        MessageKind::Request { .. } => Surface::Question,
        MessageKind::Notification { .. } => Surface::Notification,
        MessageKind::Error => Surface::Error,
        MessageKind::Result => result(asked, path),
    }
}

/// Results say by their own shape what they are; the request they answer decides where they do not.
fn result(asked: Option<&Asked>, path: &Path<'_>) -> Surface {
    // A task's result is a result within a result.
    let name = |at: usize| match path.get(at) {
        Some(Step::Key(key)) => &**key,
        _ => "",
    };
    let first = if name(1) == "result" { name(2) } else { name(1) };
    match first {
        "structuredContent" => Surface::Structured,
        "tools" | "prompts" | "resources" | "resourceTemplates" => Surface::Definition,
        "instructions" | "serverInfo" | "capabilities" => Surface::Instructions,
        "messages" => Surface::Prompt,
        "contents" => Surface::Resource,
        "inputRequests" => Surface::Question,
        "content" | "completion" => Surface::Content,
        "_meta" if name(2) == "io.modelcontextprotocol/serverInfo" => Surface::Instructions,
        _ => match asked.map(|asked| &*asked.method) {
            Some("tools/call" | "tasks/result" | "tasks/get" | "completion/complete") => Surface::Content,
            Some("prompts/get") => Surface::Prompt,
            Some("resources/read") => Surface::Resource,
            Some("tools/list" | "prompts/list" | "resources/list" | "resources/templates/list") => Surface::Definition,
            Some("initialize" | "server/discover") => Surface::Instructions,
            _ => Surface::Other,
        },
    }
}

/// Whether a model may read the string at `path` as going on from the one before: text of results, and what is told while one
/// is awaited.
pub(super) fn reads_on(surface: Surface, path: &Path<'_>) -> bool {
    let names = |at: usize, of: &[&str]| matches!(path.get(at), Some(Step::Key(key)) if of.contains(&&**key));
    match surface {
        Surface::Content | Surface::Prompt => names(path.len().wrapping_sub(1), &["text"]),
        Surface::Notification => names(1, &["data", "message", "statusMessage"]),
        _ => false,
    }
}

/// Whether the size caps of tool results hold for the answer to this request.
pub(super) fn is_tool_result(asked: Option<&Asked>) -> bool {
    asked.is_none_or(|asked| matches!(&*asked.method, "tools/call" | "tasks/result" | "tasks/get"))
}

/// The surface of an outbound string outside the arguments of a tool call.
pub(super) fn outbound(envelope: &Envelope, path: &Path<'_>) -> Surface {
    let answers = matches!(path.get(1), Some(Step::Key(key)) if key == "inputResponses");
    if envelope.is_answer() || answers { Surface::Answer } else { Surface::Params }
}
