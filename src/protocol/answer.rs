//! Answers to refused or failed calls: the only module that turns either into HTTP and JSON-RPC.

use http::{HeaderMap, HeaderValue, StatusCode};

use super::{
    AuditId, BYTES_IN_FLIGHT, BYTES_IN_FLIGHT_PER_AGENT, CallError, Context, Era, Frame, Frames,
    Framing, ItemKind, ProcessFaultKind, Reply, header,
};
use crate::message::{Envelope, Message, MessageKind, quote};

/// The JSON-RPC error code of a refusal: outside −32768…−32000, the range that JSON-RPC and MCP
/// reserve.
pub const REFUSED: i32 = 1403;

/// Why a message is not passed on, in words for the reader of the answer. Never contains the
/// payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalReason {
    /// One or two sentences.
    pub text: String,
    /// The id of the rule, for programs.
    pub rule: String,
    /// The id of the line in the audit log.
    pub audit: AuditId,
}

/// Returns the substitute for a request's answer: for a tool call a tool result with `isError`,
/// since models read those and may not read protocol errors (2025-11-25 and 2026-07-28,
/// `server/tools`, Error Handling); otherwise an error.
pub fn refusal_answer(id: &str, method: Option<&str>, era: Era, reason: &RefusalReason) -> String {
    let RefusalReason { text, rule, audit } = reason;
    let meta = format!(
        r#"{{"lychgate/rule":{},"lychgate/audit":"{audit}"}}"#,
        quote(rule)
    );
    if method == Some("tools/call") {
        let kind = if era == Era::Modern {
            r#""resultType":"complete","#
        } else {
            ""
        };
        let text = quote(text);
        return format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{{kind}"content":[{{"type":"text","text":{text}}}],"isError":true,"_meta":{meta}}}}}"#
        );
    }
    error(Some(id), REFUSED, text, Some(&meta))
}

/// Returns the result that makes the agent ask its user and then repeat the call (2026-07-28,
/// MRTR). `asks` is JSON.
pub fn input_required(id: &str, asks: &str, state: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{asks},"requestState":{}}}}}"#,
        quote(state)
    )
}

/// Answers a message that requests something its caller may not use, in the same way as a server
/// that does not have it (2025-11-25, `server/tools`, `server/prompts`, `server/resources`, Error
/// Handling): `unknown` lists those items, each with the name that it requests. Returns `None` if
/// no answer is expected.
pub fn answer_unknown(
    context: &Context,
    message: &Message,
    unknown: &[(usize, ItemKind, &str)],
) -> Option<String> {
    let requests = message
        .envelopes()
        .iter()
        .enumerate()
        .filter(|(_, envelope)| envelope.is_request());
    let answers: Vec<String> = requests
        .filter_map(|(item, envelope)| {
            let id = message.id(envelope)?;
            Some(match unknown.iter().find(|(of, ..)| *of == item) {
                Some((_, ItemKind::Tool, name)) => {
                    error(Some(id), -32602, &format!("Unknown tool: {name}"), None)
                }
                Some((_, ItemKind::Prompt, name)) => {
                    error(Some(id), -32602, &format!("Unknown prompt: {name}"), None)
                }
                Some((_, ItemKind::Resource, uri)) => {
                    // 2026-07-28 no longer has a code of its own for this.
                    let code = if context.era == Era::Modern {
                        -32602
                    } else {
                        -32002
                    };
                    error(
                        Some(id),
                        code,
                        "Resource not found",
                        Some(&format!(r#"{{"uri":{}}}"#, quote(uri))),
                    )
                }
                None => error(
                    Some(id),
                    -32600,
                    "Not sent: another message of the same batch failed. Send it on its own.",
                    None,
                ),
            })
        })
        .collect();
    join_answers(message, &answers)
}

/// Returns the body with the answers to a message: a batch for a batch; `None` without answers.
fn join_answers(message: &Message, answers: &[String]) -> Option<String> {
    match answers {
        [] => None,
        [answer] if !message.is_batch() => Some(answer.clone()),
        answers => Some(format!("[{}]", answers.join(","))),
    }
}

/// Returns a JSON-RPC error. `data` is JSON.
pub fn error(id: Option<&str>, code: i32, text: &str, data: Option<&str>) -> String {
    let data = data
        .map(|data| format!(r#","data":{data}"#))
        .unwrap_or_default();
    let id = id.unwrap_or("null");
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{}{data}}}}}"#,
        quote(text)
    )
}

/// Answers a message that was not forwarded. `reasons` has one entry for each item; an item without
/// a reason was dropped because another item of its batch was refused.
pub fn refuse(context: &Context, message: &Message, reasons: &[Option<RefusalReason>]) -> Reply {
    refusals(context, message, reasons).map_or_else(
        || empty_reply(StatusCode::ACCEPTED),
        |text| body_reply(StatusCode::OK, text),
    )
}

/// Like [`refuse`], for transports without HTTP: `None` if no answer is expected.
pub fn refusals(
    context: &Context,
    message: &Message,
    reasons: &[Option<RefusalReason>],
) -> Option<String> {
    let first_reason = reasons.iter().flatten().next();
    let answers: Vec<String> = message
        .envelopes()
        .iter()
        .enumerate()
        .filter(|(_, envelope)| envelope.is_request())
        .filter_map(|(item, envelope)| {
            let id = message.id(envelope)?;
            match reasons.get(item).and_then(Option::as_ref) {
                Some(reason) => Some(refusal_answer(id, envelope.method(), context.era, reason)),
                None => first_reason.map(|other| {
                    let text = "Not sent: another message of the same batch was refused. Send it on its own.".to_owned();
                    refusal_answer(id, envelope.method(), context.era, &RefusalReason { text, ..other.clone() })
                }),
            }
        })
        .collect();
    join_answers(message, &answers)
}

/// Returns the replacement that the agent gets for a message from the server that is not passed on:
/// an answer in place of an answer; `None` for a notification or a request, which are dropped.
pub fn withheld_answer(
    context: &Context,
    message: &Message,
    envelope: &Envelope,
    reason: &RefusalReason,
) -> Option<String> {
    match envelope.kind {
        MessageKind::Result | MessageKind::Error => {
            let id = message.id(envelope);
            let method = id
                .and_then(|id| context.open_request(id))
                .map(|request| &*request.method);
            match id {
                Some(id) => Some(refusal_answer(id, method, context.era, reason)),
                None => Some(error(None, REFUSED, &reason.text, None)),
            }
        }
        MessageKind::Request { .. } | MessageKind::Notification { .. } => None,
    }
}

/// Answers a call that failed. `message` is the agent's message, if it could be parsed.
pub fn failure_reply(
    error: &CallError,
    context: Option<&Context>,
    message: Option<&Message>,
) -> Reply {
    let (status, code) = status(error);
    let answers = message.map_or_else(Vec::new, |message| unsent_answers(error, context, message));
    let mut reply = match (answers.as_slice(), message.is_some_and(Message::is_batch)) {
        ([answer], false) => {
            let is_tool_call = message
                .and_then(Message::single)
                .is_some_and(|envelope| envelope.method() == Some("tools/call"));
            body_reply(
                if is_tool_call && error.is_for_model() {
                    StatusCode::OK
                } else {
                    status
                },
                answer.clone(),
            )
        }
        ([_, ..], _) => body_reply(status, format!("[{}]", answers.join(","))),
        ([], _) if matches!(error, CallError::UnknownSession | CallError::NotOffered) => {
            empty_reply(status)
        }
        ([], _) => body_reply(
            status,
            self::error(None, code, &sentence(error, context), None),
        ),
    };
    if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
        let wait = if let CallError::TooFast { wait, .. } = error {
            whole_seconds(*wait)
        } else {
            1
        };
        reply
            .headers
            .insert(http::header::RETRY_AFTER, HeaderValue::from(wait));
    }
    reply
}

/// Returns an answer to each request of a message that was not sent: a tool result if the model
/// should see the failure, otherwise an error.
pub fn unsent_answers(
    failure: &CallError,
    context: Option<&Context>,
    message: &Message,
) -> Vec<String> {
    let code = status(failure).1;
    let text = sentence(failure, context);
    let requests = message.requests();
    let answer = |envelope: &Envelope| {
        let id = message.id(envelope)?;
        // The model can act on it or pass it on to its user; a protocol error may never reach
        // either.
        let as_tool_result = failure.is_for_model() && envelope.method() == Some("tools/call");
        let era = context.map_or(Era::Legacy, |context| context.era);
        Some(if as_tool_result {
            tool_error(id, era, &text)
        } else {
            error(Some(id), code, &text, None)
        })
    };
    requests.filter_map(answer).collect()
}

/// Returns a duration in whole seconds, rounded up.
fn whole_seconds(wait: std::time::Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// Returns the error in place of an answer that did not arrive, for transports without HTTP.
pub fn missing_answer_error(id: Option<&str>, failure: &CallError, context: &Context) -> String {
    error(
        id,
        status(failure).1,
        &sentence(failure, Some(context)),
        None,
    )
}

/// Returns the HTTP status of a server's answer that arrived over a transport without one
/// (2026-07-28, Streamable HTTP, Error Handling): 404 if the method is unknown, 400 if the request
/// itself is at fault. `has_meta` is the result of [`super::headers::has_meta`] for the request.
pub fn status_of(message: &Message, has_meta: bool) -> StatusCode {
    let error = message
        .single()
        .filter(|envelope| envelope.kind == MessageKind::Error);
    match error
        .and_then(|error| message.body(error)?.get("code"))
        .map(|code| code.raw())
    {
        Some("-32601") => StatusCode::NOT_FOUND,
        Some("-32020" | "-32021" | "-32022") => StatusCode::BAD_REQUEST,
        Some("-32602") if !has_meta => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn tool_error(id: &str, era: Era, text: &str) -> String {
    let kind = if era == Era::Modern {
        r#""resultType":"complete","#
    } else {
        ""
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{{kind}"content":[{{"type":"text","text":{}}}],"isError":true}}}}"#,
        quote(text)
    )
}

fn status(error: &CallError) -> (StatusCode, i32) {
    match error {
        CallError::BadMessage(crate::message::ParseError::TooLarge { .. }) => {
            (StatusCode::PAYLOAD_TOO_LARGE, -32600)
        }
        CallError::BadMessage(error) => (StatusCode::BAD_REQUEST, error.code()),
        CallError::HeaderMismatch(_) => (StatusCode::BAD_REQUEST, -32020),
        CallError::BadMeta(_) | CallError::BadApproval => (StatusCode::BAD_REQUEST, -32602),
        CallError::NoBatches | CallError::Withdrawn => (StatusCode::BAD_REQUEST, -32600),
        CallError::MediaType(_) => (StatusCode::UNSUPPORTED_MEDIA_TYPE, -32600),
        CallError::BrokenOff(_) => (StatusCode::BAD_REQUEST, -32700),
        CallError::Limit(BYTES_IN_FLIGHT) => (StatusCode::SERVICE_UNAVAILABLE, -32603),
        CallError::Limit("request_read_seconds") => (StatusCode::REQUEST_TIMEOUT, -32603),
        CallError::UnknownSession => (StatusCode::NOT_FOUND, -32600),
        CallError::NotOffered => (StatusCode::METHOD_NOT_ALLOWED, -32600),
        CallError::Limit(_) | CallError::TooFast { .. } | CallError::BudgetSpent { .. } => {
            (StatusCode::TOO_MANY_REQUESTS, -32603)
        }
        CallError::TooLong { .. } => (StatusCode::PAYLOAD_TOO_LARGE, -32602),
        CallError::Connect(_)
        | CallError::NotStarted(_)
        | CallError::NotMcp(_)
        | CallError::BadReply(_)
        | CallError::AuthRequired => (StatusCode::BAD_GATEWAY, -32603),
        CallError::Process(fault) => match fault.kind {
            ProcessFaultKind::Ended => (StatusCode::BAD_GATEWAY, -32603),
            ProcessFaultKind::SessionEnded => (StatusCode::NOT_FOUND, -32600),
            ProcessFaultKind::NoAnswer => (StatusCode::GATEWAY_TIMEOUT, -32603),
        },
        // The agent's client shows its user the text of an answer, but for a failed request often
        // only the status.
        CallError::LoginRequired { .. } | CallError::NoToken(_) => (StatusCode::OK, -32603),
        CallError::Silent(_) => (StatusCode::GATEWAY_TIMEOUT, -32603),
        CallError::Audit(_) | CallError::Draining => (StatusCode::SERVICE_UNAVAILABLE, -32603),
    }
}

/// Describes what went wrong and what to do next.
fn sentence(error: &CallError, context: Option<&Context>) -> String {
    let upstream = context.map_or_else(
        || "the server".to_owned(),
        |context| format!("the server `{}`", context.upstream),
    );
    let next = match error {
        CallError::BadMessage(_) | CallError::NoBatches | CallError::MediaType(_) | CallError::BrokenOff(_) => {
            "Send one JSON-RPC 2.0 message in UTF-8.".to_owned()
        }
        CallError::HeaderMismatch(_) | CallError::BadMeta(_) => "Make the headers match the body.".to_owned(),
        CallError::BadApproval => "Send the call again without `requestState` and `inputResponses`.".to_owned(),
        CallError::Withdrawn => "Nothing was sent.".to_owned(),
        CallError::UnknownSession => "Start again with `initialize`.".to_owned(),
        CallError::NotOffered => return "Method not allowed.".to_owned(),
        CallError::Limit("concurrent_calls") => "Wait for an earlier call of this tool to end, then send it again.".to_owned(),
        CallError::Limit(BYTES_IN_FLIGHT | BYTES_IN_FLIGHT_PER_AGENT) => {
            "Too much data is in flight. Wait for earlier calls to end, then try again.".to_owned()
        }
        CallError::Limit(_) | CallError::Draining => "Try again in a moment.".to_owned(),
        CallError::TooFast { wait, .. } => format!("Nothing was sent. Wait {} s, then send the call again.", whole_seconds(*wait)),
        CallError::BudgetSpent { .. } => {
            "Nothing was sent; no further calls of this session will be. Tell your user what remains to be done.".to_owned()
        }
        CallError::TooLong { .. } => "Nothing was sent. Send less at a time.".to_owned(),
        CallError::Connect(_) | CallError::Silent(_) => {
            format!("Try again later, or ask the gateway's operator to check {upstream}.")
        }
        CallError::Process(fault) => {
            let output = match (fault.output.is_empty(), fault.inspected) {
                (true, _) => String::new(),
                (false, true) => format!("It printed: {}. ", fault.output),
                (false, false) => "The gateway's log has its last output. ".to_owned(),
            };
            match fault.kind {
                ProcessFaultKind::SessionEnded => format!("{output}Start a new session with `initialize`."),
                _ => format!("{output}Try again later, or ask the gateway's operator to check {upstream}."),
            }
        }
        CallError::NotStarted(_) => format!("Ask the gateway's operator to correct `command` of {upstream}."),
        CallError::NotMcp(_) | CallError::BadReply(_) => {
            format!("The gateway withheld it: ask its operator to look at {upstream}.")
        }
        CallError::AuthRequired => format!("Ask the gateway's operator to log in to {upstream}."),
        CallError::LoginRequired { link: Some(link) } => {
            format!("Nothing was sent. Ask your user to open {link} and to log in to {upstream}, then make the call again.")
        }
        CallError::LoginRequired { link: None } => {
            format!("Nothing was sent. Ask the gateway's operator to log in to {upstream} with `lychgate login`.")
        }
        CallError::NoToken(_) => format!("Nothing was sent. Ask the gateway's operator to check {upstream}."),
        CallError::Audit(_) => "The gateway forwards nothing until its operator has fixed this.".to_owned(),
    };
    let mut text = error.to_string();
    if let Some(first) = text.get(..1).map(str::to_uppercase) {
        text.replace_range(..1, &first);
    }
    format!("{text}. {next}")
}

/// Returns a reply with a JSON body.
pub fn body_reply(status: StatusCode, json: String) -> Reply {
    let frames = Frames::one(Frame::inspected(json));
    Reply {
        status,
        headers: HeaderMap::new(),
        framing: Framing::Body,
        frames,
    }
}

/// Returns a reply without a body.
pub fn empty_reply(status: StatusCode) -> Reply {
    let mut headers = HeaderMap::new();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(http::header::ALLOW, HeaderValue::from_static("POST"));
    }
    Reply {
        status,
        headers,
        framing: Framing::Empty,
        frames: Frames::empty(),
    }
}

/// Returns the session that a reply opens, if it names one.
pub fn opened_session(reply: &Reply) -> Option<super::SessionId> {
    reply
        .headers
        .get(header::SESSION)
        .and_then(|value| value.to_str().ok())
        .and_then(super::SessionId::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ReadLimits;
    use crate::protocol::{AgentName, UpstreamName};
    use futures_util::StreamExt;

    fn context(era: Era) -> Context {
        Context::new(AgentName("a".into()), UpstreamName("files".into()), era)
    }

    fn message(text: &str) -> Message {
        Message::parse(text.to_owned().into(), &ReadLimits::default()).unwrap()
    }

    async fn text(mut reply: Reply) -> String {
        match reply.frames.next().await {
            Some(Ok(frame)) => String::from_utf8(frame.text().unwrap().to_vec()).unwrap(),
            _ => String::new(),
        }
    }

    fn reason() -> RefusalReason {
        RefusalReason {
            text: "Blocked: \"no\".".into(),
            rule: "r".into(),
            audit: AuditId(uuid::Uuid::nil()),
        }
    }

    #[tokio::test]
    async fn a_refused_tool_call_is_a_result_in_the_callers_era() {
        let call =
            message(r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"t"}}"#);
        let reply = refuse(&context(Era::Modern), &call, &[Some(reason())]);
        assert_eq!(reply.status, StatusCode::OK);
        let answer = text(reply).await;
        assert_eq!(
            answer,
            r#"{"jsonrpc":"2.0","id":"x","result":{"resultType":"complete","content":[{"type":"text","text":"Blocked: \"no\"."}],"isError":true,"_meta":{"lychgate/rule":"r","lychgate/audit":"00000000-0000-0000-0000-000000000000"}}}"#
        );
        let answer = text(refuse(&context(Era::Legacy), &call, &[Some(reason())])).await;
        assert!(!answer.contains("resultType"));
    }

    #[tokio::test]
    async fn each_request_of_a_refused_batch_is_answered() {
        let batch = message(
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":2,"method":"tools/call"}]"#,
        );
        let answer = text(refuse(
            &context(Era::Legacy),
            &batch,
            &[None, None, Some(reason())],
        ))
        .await;
        let answers = message(&answer);
        assert_eq!(answers.envelopes().len(), 2);
        assert_contains!(answer, r#""code":1403"#, r#""isError":true"#);
        let note = message(r#"{"jsonrpc":"2.0","method":"n"}"#);
        let reply = refuse(&context(Era::Legacy), &note, &[Some(reason())]);
        assert_eq!(
            (reply.status, reply.framing),
            (StatusCode::ACCEPTED, Framing::Empty)
        );
    }

    #[tokio::test]
    async fn failures_say_whose_fault_and_what_next() {
        let call =
            message(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}"#);
        let context = context(Era::Legacy);
        let cases = [
            (
                CallError::HeaderMismatch("`mcp-name` is missing".into()),
                400,
                "-32020",
            ),
            (
                CallError::Silent(std::time::Duration::from_secs(30)),
                504,
                "-32603",
            ),
            (CallError::AuthRequired, 200, "\"isError\":true"),
            (CallError::Limit("calls_per_agent"), 429, "calls_per_agent"),
            (CallError::UnknownSession, 404, "\"id\":7"),
        ];
        for (error, status, holds) in cases {
            let reply = failure_reply(&error, Some(&context), Some(&call));
            assert_eq!(reply.status.as_u16(), status, "{error}");
            let answer = text(reply).await;
            assert!(answer.contains(holds), "{answer}");
            message(&answer);
        }
        assert_eq!(
            failure_reply(&CallError::UnknownSession, Some(&context), None).framing,
            Framing::Empty
        );
    }

    #[test]
    fn an_error_of_a_transport_without_statuses_gets_that_of_http() {
        for (code, status) in [
            (-32601, 404),
            (-32020, 400),
            (-32021, 400),
            (-32022, 400),
            (-32602, 200),
            (-32603, 200),
            (1, 200),
        ] {
            let error = message(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"m"}}}}"#
            ));
            assert_eq!(status_of(&error, true), status, "{code}");
        }
        assert_eq!(
            status_of(
                &message(r#"{"jsonrpc":"2.0","id":1,"result":{"code":-32601}}"#),
                true
            ),
            200
        );
        // An unknown resource has the same code as an incomplete `_meta`.
        let error = message(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}"#);
        assert_eq!(status_of(&error, false), 400);
    }
}
