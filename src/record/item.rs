//! One judged message: what the audit log and the counters both need to know of it.

use std::borrow::Cow;

use crate::inspect::{Finding, Inspection, Mode, Verdict};
use crate::message::{Direction, Envelope, Message, MessageKind, Value};
use crate::protocol::Context;
use crate::rules::RuleId;

/// One message of a body, with what was found in it.
pub(super) struct Item<'a> {
    /// Which message of the body, from 0.
    pub(super) index: usize,
    /// `request`, `notification`, `result` or `error`.
    pub(super) kind: &'static str,
    /// Its method, or that of the request it answers.
    pub(super) method: Option<&'a str>,
    /// The tool it calls, or whose answer it is.
    pub(super) tool: Option<Cow<'a, str>>,
    /// The message's id, as written.
    pub(super) id: Option<&'a str>,
    /// All of it.
    pub(super) value: Value<'a>,
    /// Its `params`, `result` or `error`.
    pub(super) body: Option<Value<'a>>,
    /// Whether it answers a request.
    pub(super) is_answer: bool,
    /// What the rules want done with it.
    pub(super) wanted: &'static str,
    /// The rule that refuses it, if one does.
    pub(super) refused_by: Option<&'a RuleId>,
    /// What was found in it.
    pub(super) findings: Vec<&'a Finding>,
}

/// The messages of a judged body.
pub(super) fn items<'a>(message: &'a Message, context: &'a Context, inspection: &'a Inspection) -> Vec<Item<'a>> {
    message.envelopes().iter().enumerate().map(|(index, envelope)| item(index, envelope, message, context, inspection)).collect()
}

fn item<'a>(
    index: usize,
    envelope: &'a Envelope,
    message: &'a Message,
    context: &'a Context,
    inspection: &'a Inspection,
) -> Item<'a> {
    let (id, body, span) = (message.id(envelope), message.body(envelope), message.span(envelope));
    let asked = if envelope.is_answer() { id.and_then(|id| context.asked(id)) } else { None };
    let method = envelope.method().or(asked.map(|asked| &*asked.method));
    let tool = match (method, asked) {
        (Some("tools/call"), Some(asked)) => asked.tool.as_deref().map(Cow::Borrowed),
        (Some("tools/call"), None) => body.and_then(|body| body.get("name")).and_then(|name| name.str()),
        _ => None,
    };
    let refused_by = match &inspection.verdict {
        Verdict::Block(refusals) => refusals.iter().find(|refusal| refusal.item == index).map(|refusal| &refusal.rule),
        _ => None,
    };
    let is_edited = match &inspection.verdict {
        Verdict::Rewrite(edits) => edits.iter().any(|edit| span.contains(&edit.span.start)),
        _ => false,
    };
    Item {
        index,
        kind: match envelope.kind {
            MessageKind::Request { .. } => "request",
            MessageKind::Notification { .. } => "notification",
            MessageKind::Result => "result",
            MessageKind::Error => "error",
        },
        method,
        tool,
        id,
        value: message.value(envelope),
        body,
        is_answer: envelope.is_answer(),
        wanted: match (refused_by, is_edited) {
            (Some(_), _) => "block",
            (None, true) => "rewrite",
            (None, false) => "pass",
        },
        refused_by,
        findings: inspection.findings.iter().filter(|finding| finding.item == index).collect(),
    }
}

impl Item<'_> {
    /// What was done with it.
    pub(super) fn done(&self, mode: Mode) -> &'static str {
        match mode {
            Mode::Enforce => self.wanted,
            Mode::Observe => "pass",
        }
    }

    /// The tool that a finding is about: the one called, or the one that a list describes there.
    pub(super) fn tool_of(&self, finding: &Finding) -> Option<Cow<'_, str>> {
        self.tool.clone().or_else(|| {
            let mut steps = finding.at.split('/').skip_while(|step| *step != "tools").skip(1);
            let index: usize = steps.next()?.parse().ok()?;
            self.body?.get("tools")?.elements().nth(index)?.get("name")?.str()
        })
    }

    /// What is shown and digested of it: the arguments of a tool call, or all that an agent sends along.
    pub(super) fn arguments(&self, direction: Direction) -> Option<(Value<'_>, &'static str)> {
        let body = self.body?;
        match (direction, self.kind, self.method) {
            (Direction::Inbound, ..) => None,
            (_, "request", Some("tools/call")) => body.get("arguments").map(|value| (value, "/params/arguments")),
            (_, "result", _) => Some((body, "/result")),
            (_, "error", _) => Some((body, "/error")),
            _ => Some((body, "/params")),
        }
    }
}
