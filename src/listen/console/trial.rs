//! Tries a text against the rules in force: it is judged as it would be in a message, and neither
//! recorded nor stored.

use std::sync::Arc;
use std::time::Instant;

use http::{Response, StatusCode};
use serde::Serialize;

use super::page::{json, refuse};
use crate::inspect::{Finding, InspectContext, Inspection, Policy, Verdict};
use crate::listen::Body;
use crate::message::{Direction, Json, Message, ReadLimits, quote, splice};
use crate::protocol::{AgentName, AuditId, CallTarget, Caller, Context, Era, OpenRequest};
use crate::proxy::Gate;
use crate::review::explain::{Step, readings};

/// Maximum length of a request body, in bytes: a text is longer in JSON.
pub(super) const BODY_BYTES: usize = 512 << 10;
/// Maximum length of a text that is tried, in bytes.
const TEXT_BYTES: usize = 64 << 10;

#[derive(Serialize)]
struct TrialResult {
    verdict: &'static str,
    mode: &'static str,
    policy: String,
    micros: f64,
    findings: Vec<TrialFinding>,
    /// What the receiver would get, if it differs from the text that was tried.
    becomes: Option<String>,
    refusal: Option<String>,
    strings: usize,
    uninspected: Vec<String>,
}

#[derive(Serialize)]
struct TrialFinding {
    rule: String,
    title: String,
    severity: &'static str,
    action: &'static str,
    surface: &'static str,
    at: String,
    reading: &'static str,
    length: usize,
    /// The forms of the text, from the original to the one with the finding, with the match marked.
    steps: Vec<Step>,
}

/// Judges the content of a request: `text`, at the given place.
pub(super) async fn try_rules(gate: &Gate, request: &Json) -> Response<Body> {
    let member = |key: &str| request.root().get_str(key).unwrap_or_default().into_owned();
    let text = member("text");
    if text.len() > TEXT_BYTES {
        return refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the text is limited to 64 KiB",
        );
    }
    let Some(upstream) = gate.find_upstream(&member("upstream")) else {
        return refuse(StatusCode::BAD_REQUEST, "no such upstream");
    };
    let Some(policy) = gate.policies().get(&upstream).cloned() else {
        return refuse(StatusCode::BAD_REQUEST, "the upstream has no policy");
    };
    let tool = quote(&member("tool"));
    let argument = quote(&member("argument"));
    let quoted = quote(&text);
    let (direction, method, at, message) = match member("place").as_str() {
        "argument" => {
            let params = format!(r#"{{"name":{tool},"arguments":{{{argument}:{quoted}}}}}"#);
            let call =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            (Direction::Outbound, "tools/call", "/params/arguments", call)
        }
        "result" => {
            let answer = format!(
                r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":{quoted}}}]}}}}"#
            );
            (Direction::Inbound, "tools/call", "/result/content", answer)
        }
        "description" => {
            let tools = format!(
                r#"[{{"name":{tool},"description":{quoted},"inputSchema":{{"type":"object"}}}}]"#
            );
            let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":{tools}}}}}"#);
            (
                Direction::Inbound,
                "tools/list",
                "/result/tools/0/description",
                answer,
            )
        }
        _ => {
            return refuse(
                StatusCode::BAD_REQUEST,
                "`place` is `argument`, `result` or `description`",
            );
        }
    };
    let open_request = OpenRequest {
        id: "1".into(),
        method: method.into(),
        tool: Some(member("tool").into()),
        continues: false,
        target: CallTarget::Other,
    };
    let agent = AgentName("console".into());
    let caller = Caller::default();
    let context = Context {
        requests: [open_request].into(),
        caller,
        ..Context::new(agent, upstream, Era::Modern)
    };
    let limits = ReadLimits::of_bytes(message.len());
    let message = match Message::parse(message.into(), &limits) {
        Ok(message) => message,
        Err(error) => {
            return refuse(
                StatusCode::BAD_REQUEST,
                &format!("it is not a valid message: {error}"),
            );
        }
    };
    let judging = tokio::task::spawn_blocking(move || {
        judge(&policy, direction, at, &text, &message, &context)
    });
    match judging.await {
        Ok(trial) => json(StatusCode::OK, &trial),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "inspection failed"),
    }
}

fn judge(
    policy: &Arc<Policy>,
    direction: Direction,
    place: &str,
    text: &str,
    message: &Message,
    context: &Context,
) -> TrialResult {
    let started = Instant::now();
    let inspect_context = InspectContext {
        trace: true,
        ..InspectContext::default()
    };
    let inspection = policy.inspect(
        direction,
        message,
        context,
        AuditId::generate(),
        &inspect_context,
    );
    let micros = (started.elapsed().as_nanos() as f64 / 100.0).round() / 10.0;
    let steps = readings(place, text, policy.rules(direction), &inspection.findings);
    TrialResult {
        verdict: inspection.verdict.name(),
        mode: policy.mode.name(),
        policy: policy.name.to_string(),
        micros,
        findings: inspection
            .findings
            .iter()
            .zip(steps)
            .map(|(finding, steps)| trial_finding(finding, steps))
            .collect(),
        becomes: rewritten_text(message, &inspection),
        refusal: match &inspection.verdict {
            Verdict::Block(refusals) => refusals
                .first()
                .map(|refusal| format!("{}. {}", refusal.title, refusal.why)),
            Verdict::Ask(questions) => questions
                .first()
                .map(|question| format!("{}. {}", question.title, question.why)),
            Verdict::Pass | Verdict::Rewrite(_) => None,
        },
        strings: inspection.coverage.strings,
        uninspected: inspection
            .coverage
            .uninspected
            .iter()
            .map(|part| part.reason.name().to_owned())
            .collect(),
    }
}

fn trial_finding(finding: &Finding, steps: Vec<Step>) -> TrialFinding {
    TrialFinding {
        rule: finding.rule.to_string(),
        title: finding.title.clone(),
        severity: finding.severity.name(),
        action: finding.action.name(),
        surface: finding.surface.name(),
        at: finding.at.clone(),
        reading: finding.reading,
        length: finding.evidence.length,
        steps,
    }
}

/// Returns the text that replaces the one that was tried.
fn rewritten_text(message: &Message, inspection: &Inspection) -> Option<String> {
    let Verdict::Rewrite(edits) = &inspection.verdict else {
        return None;
    };
    let edited = splice(message.bytes(), edits.clone())?;
    let limits = ReadLimits::of_bytes(edited.len());
    let json = Json::parse(edited, &limits).ok()?;
    let result = json.root().get("result")?;
    let text = |list: &str, key: &str| {
        result
            .get(list)?
            .elements()
            .next()?
            .get_str(key)
            .map(|text| text.into_owned())
    };
    text("content", "text")
        .or_else(|| text("tools", "description"))
        .or_else(|| Some(result.raw().to_owned()))
}
