//! One inspected message, with the information that both the audit log and the metrics use.

use std::borrow::Cow;
use std::cell::OnceCell;

use crate::inspect::{Finding, Inspection, Mode, Uninspected, Verdict};
use crate::message::{Direction, Envelope, Message, MessageKind, Value};
use crate::protocol::Context;
use crate::rules::{Action, RuleId};

use super::entry::member;

/// One message of a body, with its findings.
pub(super) struct Item<'a> {
    /// Index of the message in the body, from 0.
    pub(super) index: usize,
    /// `request`, `notification`, `result` or `error`.
    pub(super) kind: &'static str,
    /// The method of the message, or of the request that it answers.
    pub(super) method: Option<&'a str>,
    /// The object that the message or the request it answers calls, gets or reads: the member that
    /// names it, and its name.
    pub(super) object: Option<(&'static str, Cow<'a, str>)>,
    /// The id of the message, as written.
    pub(super) id: Option<&'a str>,
    pub(super) value: Value<'a>,
    /// The `params`, `result` or `error` of the message.
    pub(super) body: Option<Value<'a>>,
    /// Whether it answers a request.
    pub(super) is_answer: bool,
    /// The verdict of the rules.
    pub(super) verdict: &'static str,
    /// The rule that blocks it or requires approval, if there is one.
    pub(super) refused_by: Option<&'a RuleId>,
    pub(super) findings: Vec<&'a Finding>,
    /// Parts that were not inspected.
    pub(super) uninspected: Vec<&'a Uninspected>,
    /// The names of the tools that it describes, if it lists tools; extracted on first use.
    listed_tools: OnceCell<Vec<Option<Cow<'a, str>>>>,
}

/// Returns the messages of an inspected body. Findings are distributed in one pass, so that a batch
/// of many messages with many findings costs no more than their sum.
pub(super) fn items<'a>(
    message: &'a Message,
    context: &'a Context,
    inspection: &'a Inspection,
) -> Vec<Item<'a>> {
    let envelopes = message.envelopes();
    let mut items: Vec<Item<'a>> = envelopes
        .iter()
        .enumerate()
        .map(|(index, envelope)| item(index, envelope, message, context))
        .collect();
    for finding in &inspection.findings {
        if let Some(item) = items.get_mut(finding.item) {
            item.findings.push(finding);
        }
    }
    for part in &inspection.coverage.uninspected {
        let index = if message.is_batch() {
            part.at.split('/').nth(1).and_then(|step| step.parse().ok())
        } else {
            Some(0)
        };
        if let Some(item) = index.and_then(|index: usize| items.get_mut(index)) {
            item.uninspected.push(part);
        }
    }
    match &inspection.verdict {
        Verdict::Pass => {}
        Verdict::Rewrite(edits) => {
            // Messages are in the order of the text.
            let starts: Vec<usize> = envelopes
                .iter()
                .map(|envelope| message.span(envelope).start)
                .collect();
            for edit in edits {
                let index = starts
                    .partition_point(|start| *start <= edit.span.start)
                    .saturating_sub(1);
                if let Some(item) = items.get_mut(index) {
                    item.verdict = "rewrite";
                }
            }
        }
        Verdict::Ask(questions) => {
            for question in questions {
                if let Some(item) = items.get_mut(question.item) {
                    item.refused_by = Some(question.rule());
                    item.verdict = "ask";
                }
            }
        }
        Verdict::Block(refusals) => {
            for refusal in refusals {
                if let Some(item) = items.get_mut(refusal.item) {
                    item.refused_by.get_or_insert(&refusal.rule);
                }
            }
            for item in &mut items {
                // A blocking verdict has no edits: a message that would have been edited is refused
                // with the others.
                if item
                    .findings
                    .iter()
                    .any(|finding| finding.action > Action::Log)
                {
                    item.refused_by = item
                        .refused_by
                        .or(refusals.first().map(|refusal| &refusal.rule));
                }
                if item.refused_by.is_some() {
                    item.verdict = "block";
                }
            }
        }
    }
    items
}

fn item<'a>(
    index: usize,
    envelope: &'a Envelope,
    message: &'a Message,
    context: &'a Context,
) -> Item<'a> {
    let id = message.id(envelope);
    let body = message.body(envelope);
    let open_request = id
        .filter(|_| envelope.is_answer())
        .and_then(|id| context.open_request(id));
    let method = envelope
        .method()
        .or(open_request.map(|asked| &*asked.method));
    let names = match method {
        Some("tools/call") => Some((member::tool::NAME, "name")),
        Some("prompts/get") => Some((member::prompt::NAME, "name")),
        Some(
            "resources/read"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "notifications/resources/updated",
        ) => Some((member::resource::NAME, "uri")),
        _ => None,
    };
    let object = names.and_then(|(member, key)| {
        let name = match open_request {
            Some(asked) => asked.tool.as_deref().map(Cow::Borrowed),
            None => body.and_then(|body| body.get_str(key)),
        };
        Some((member, name?))
    });
    Item {
        index,
        kind: match envelope.kind {
            MessageKind::Request { .. } => "request",
            MessageKind::Notification { .. } => "notification",
            MessageKind::Result => "result",
            MessageKind::Error => "error",
        },
        method,
        object,
        id,
        value: message.value(envelope),
        body,
        is_answer: envelope.is_answer(),
        verdict: "pass",
        refused_by: None,
        findings: Vec::new(),
        uninspected: Vec::new(),
        listed_tools: OnceCell::new(),
    }
}

impl<'a> Item<'a> {
    fn tool_names(&self) -> Vec<Option<Cow<'a, str>>> {
        let tools = self.body.and_then(|body| body.get("tools"));
        tools
            .into_iter()
            .flat_map(|tools| tools.elements())
            .map(|tool| tool.get_str("name"))
            .collect()
    }

    /// Returns the tool that it calls, or that the answered request called.
    pub(super) fn tool(&self) -> Option<&str> {
        self.object
            .as_ref()
            .filter(|(member, _)| *member == member::tool::NAME)
            .map(|(_, name)| &**name)
    }

    /// Returns what was done with it.
    pub(super) fn outcome(&self, mode: Mode) -> &'static str {
        match mode {
            Mode::Enforce => self.verdict,
            Mode::Observe => "pass",
        }
    }

    /// Returns the tool that a finding concerns: the one called, or the one that a list describes
    /// at that place.
    pub(super) fn finding_tool(&self, finding: &Finding) -> Option<&str> {
        if self.tool().is_some() {
            return self.tool();
        }
        let mut steps = finding
            .at
            .split('/')
            .skip_while(|step| *step != "tools")
            .skip(1);
        let index: usize = steps.next()?.parse().ok()?;
        self.listed_tools
            .get_or_init(|| self.tool_names())
            .get(index)?
            .as_deref()
    }

    /// Returns the part that is shown and hashed: the arguments of a tool call, or everything that
    /// an agent sends along.
    pub(super) fn arguments(&self, direction: Direction) -> Option<(Value<'_>, &'static str)> {
        let body = self.body?;
        match (direction, self.kind, self.method) {
            (Direction::Inbound, ..) => None,
            (_, "request", Some("tools/call")) => body
                .get("arguments")
                .map(|value| (value, "/params/arguments")),
            (_, "result", _) => Some((body, "/result")),
            (_, "error", _) => Some((body, "/error")),
            _ => Some((body, "/params")),
        }
    }
}
