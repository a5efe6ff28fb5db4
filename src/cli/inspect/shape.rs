//! The accepted forms of a line of `lychgate inspect --jsonl`, and the message that each becomes.

use bytes::Bytes;

use crate::message::{Direction, Value, ValueKind};
use crate::text::escape_invisible;

/// The accepted forms of a line.
const SHAPES: &str = "a line is a JSON-RPC message (`jsonrpc`), a call (`tool_name` and the object `arguments`) or a text (`text`), \
                      which may name the call that returned it (`tool_name`, `arguments`)";

/// The accepted members of a call's parameters.
const CALL_PARAMS: [&str; 6] = [
    "name",
    "arguments",
    "_meta",
    "task",
    "inputResponses",
    "requestState",
];

/// Converts a line to a message, and returns the path of the text in it if the line is a text. A
/// line of an unknown form is rejected: judged as if it were empty, it would pass.
pub(super) fn build_message(
    root: Value<'_>,
    line: Bytes,
    direction: Direction,
) -> Result<(Bytes, &'static [&'static str]), String> {
    if root.get("jsonrpc").is_some() {
        check_message(root, direction)?;
        return Ok((line, &[]));
    }
    let raw = |key: &str| root.get(key).map(|value| value.raw());
    if direction == Direction::Outbound
        && let Some(call) = build_call(root)?
    {
        return Ok((call, &[]));
    }
    if root.get("tool_name").is_some() && root.get("text").is_none() {
        return Err("a line with `tool_name` and no `text` is a call, which only agents send: use `--direction outbound`".into());
    }
    let text = root
        .get("text")
        .ok_or_else(|| format!("unknown shape: {SHAPES}"))?;
    if direction == Direction::Outbound {
        let hint = "use `--direction inbound`, or write agents' messages as calls";
        return Err(format!("a line with `text` is a tool's result: {hint}"));
    }
    if text.str().is_none() {
        return Err(format!("`text` is not a string: {SHAPES}"));
    }
    let text = text.raw();
    let (result, at): (String, &[&str]) = if raw("format") == Some(r#""tool_description""#) {
        (
            format!(
                r#"{{"tools":[{{"name":"tool","description":{text},"inputSchema":{{"type":"object"}}}}]}}"#
            ),
            &["tools", "description"],
        )
    } else {
        (
            format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#),
            &["content", "text"],
        )
    };
    Ok((
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#).into(),
        at,
    ))
}

/// Returns the call that returned the text of a line, if the line names one (`tool_name`,
/// `arguments`): it determines which texts are rendered, and how long they may be.
pub(super) fn call_of_text(root: Value<'_>) -> Result<Option<Bytes>, String> {
    if root.get("jsonrpc").is_some() || root.get("text").is_none() {
        return Ok(None);
    }
    let call = build_call(root)?;
    if call.is_some()
        && root
            .get("format")
            .is_some_and(|format| format.raw() == r#""tool_description""#)
    {
        return Err(
            "a tool description is not returned by a call: remove `tool_name` or `format`".into(),
        );
    }
    Ok(call)
}

/// Converts a line's `tool_name` and `arguments` to a message; `None` without `tool_name`.
fn build_call(root: Value<'_>) -> Result<Option<Bytes>, String> {
    let Some(tool) = root.get("tool_name") else {
        return Ok(None);
    };
    if tool.str().is_none() {
        return Err(format!("`tool_name` is not a string: {SHAPES}"));
    }
    let arguments = root
        .get("arguments")
        .filter(|arguments| arguments.kind() == ValueKind::Object);
    let arguments =
        arguments.ok_or_else(|| format!("`arguments` is missing or not an object: {SHAPES}"))?;
    let tool = tool.raw();
    let arguments = arguments.raw();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{tool},"arguments":{arguments}}}}}"#
    );
    Ok(Some(call.into()))
}

/// The methods of MCP in all revisions from 2024-11-05 to 2026-07-28, except notifications.
const METHODS: [&str; 23] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/cancel",
    "tasks/update",
];

/// Reports whether a method looks like one of MCP but does not exist: `tools/run`, `initialise`.
/// Methods of extensions (`skills/list`, `x-vendor/query`) pass a gate, so they are judged.
fn is_unknown_method(method: &str) -> bool {
    let area = |method: &'static str| method.split_once('/').map(|(area, _)| area);
    let is_mcp_area = method
        .split_once('/')
        .is_none_or(|(own, _)| METHODS.into_iter().filter_map(area).any(|area| area == own));
    is_mcp_area && !METHODS.contains(&method)
}

/// Members of results that only servers send. An agent responds to a server's request with `role`
/// and `model` (sampling), `action` (elicitation), `roots` or nothing.
const SERVER_RESULTS: [&str; 9] = [
    "structuredContent",
    "isError",
    "contents",
    "tools",
    "prompts",
    "resources",
    "resourceTemplates",
    "messages",
    "serverInfo",
];

/// Rejects a method that MCP does not have, a result of a server among the messages of agents, a
/// call with invalid parameters, and a call from a server.
fn check_message(root: Value<'_>, direction: Direction) -> Result<(), String> {
    let Some(method) = root.get("method") else {
        return match root.get("result") {
            Some(result) if direction == Direction::Outbound && is_server_result(result) => {
                Err("this `result` is a server's answer: use `--direction inbound`".into())
            }
            _ => Ok(()),
        };
    };
    let method = method.str().ok_or("`method` is not a string")?;
    if is_unknown_method(&method) {
        return Err(format!(
            "MCP has no method `{}`; tool calls use `tools/call`",
            escape_invisible(&method)
        ));
    }
    if method != "tools/call" {
        return Ok(());
    }
    if direction == Direction::Inbound {
        return Err("a `tools/call` is sent by agents: use `--direction outbound`".into());
    }
    let params = root
        .get("params")
        .filter(|params| params.get("name").is_some_and(|name| name.str().is_some()));
    let params = params.ok_or("a `tools/call` needs `params` with the string `name`")?;
    if params
        .get("arguments")
        .is_some_and(|arguments| arguments.kind() != ValueKind::Object)
    {
        return Err("`params.arguments` of a `tools/call` is not an object".into());
    }
    match params
        .members()
        .find(|(key, _)| !CALL_PARAMS.contains(&&**key))
    {
        Some((key, _)) => Err(format!(
            "unknown `params.{}`: a `tools/call` has `name` and `arguments`",
            escape_invisible(&key)
        )),
        None => Ok(()),
    }
}

/// Reports whether a result is one that only servers send. A sampling result may contain `content`
/// as well.
fn is_server_result(result: Value<'_>) -> bool {
    let is_content = result
        .get("content")
        .is_some_and(|content| content.kind() == ValueKind::Array);
    let is_sampled = result.get("role").is_some() && result.get("model").is_some();
    is_content && !is_sampled
        || SERVER_RESULTS
            .iter()
            .any(|member| result.get(member).is_some())
}
