//! Recorded messages, rebuilt so that they can be judged again.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::inspect::{InspectContext, Inspection, Mode, Policy, TextVerdict};
use crate::message::{Direction, Message, ReadLimits, Value, ValueKind, quote};
use crate::protocol::{AgentName, AuditId, CallTarget, Context, Era, OpenRequest, UpstreamName};
use crate::record::entry::member;

use super::Entry;

/// The markers of the audit log: what a masked text contains, and how a truncated one ends.
const MASKED: &str = "[redacted";
const CUT: &str = "… (";

/// The policies that judge the messages of each upstream.
#[derive(Clone, Debug, Default)]
pub struct PolicySet {
    /// The policies by upstream name.
    pub by_upstream: HashMap<UpstreamName, Arc<Policy>>,
    /// The policy for upstreams that are not in the config: those of `lychgate wrap`.
    pub fallback: Option<Arc<Policy>>,
}

impl PolicySet {
    /// Returns the policy for an upstream.
    pub fn policy(&self, upstream: &str) -> Option<Arc<Policy>> {
        let fallback = || {
            self.fallback
                .as_ref()
                .map(|policy| Arc::new(policy.at(upstream)))
        };
        self.by_upstream
            .get(&UpstreamName(upstream.into()))
            .cloned()
            .or_else(fallback)
    }
}

/// Why a recorded message cannot be judged again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limitation {
    /// A part of the message is masked: a secret or a possible secret.
    Masked,
    /// A part of the message was truncated in the log.
    Cut,
    /// The log does not contain responses, and this one is not stored as evidence.
    NotKept,
    /// The line no longer contains a readable message.
    NoMessage,
    /// The config has no policy for the upstream.
    NoPolicy,
}

impl Limitation {
    pub fn words(self) -> &'static str {
        match self {
            Self::Masked => "the log masks a secret or a possible secret",
            Self::Cut => "the log has truncated a long text",
            Self::NotKept => {
                "no evidence stored (the log does not contain results: `evidence = \"sealed\"` stores them)"
            }
            Self::NoMessage => "the line does not contain a readable message",
            Self::NoPolicy => "the config has no policy for the upstream of this line",
        }
    }
}

/// A recorded message, as far as it is available.
pub(super) struct RecordedMessage {
    body: RecordedBody,
    pub(super) direction: Direction,
    context: Context,
    /// Whether the message is complete; otherwise it is what the audit log shows.
    pub(super) is_complete: bool,
    /// Why the message differs from the original.
    pub(super) limitation: Option<Limitation>,
}

enum RecordedBody {
    Message(Message),
    Text(String),
}

/// The result of judging a message again.
pub(super) struct NewJudgement {
    pub(super) verdict: &'static str,
    pub(super) inspection: Inspection,
}

impl RecordedMessage {
    /// Builds the message from the stored evidence, or else from its line.
    pub(super) fn from_entry(
        entry: &Entry,
        stored_message: Option<&Bytes>,
    ) -> Result<Self, Limitation> {
        let direction = entry.direction().ok_or(Limitation::NoMessage)?;
        let kind = entry.get(member::kind).unwrap_or_default();
        let (body, limitation) = match stored_message {
            Some(bytes) if kind == "text" => (
                RecordedBody::Text(String::from_utf8_lossy(bytes).into_owned()),
                None,
            ),
            Some(bytes) => (
                RecordedBody::Message(item(entry, bytes).ok_or(Limitation::NoMessage)?),
                None,
            ),
            None if direction == Direction::Inbound => return Err(Limitation::NotKept),
            None => (
                RecordedBody::Message(message_of_line(entry, &kind).ok_or(Limitation::NoMessage)?),
                find_limitation(entry),
            ),
        };
        let request = match &body {
            RecordedBody::Message(message) => open_request(entry, message),
            RecordedBody::Text(_) => None,
        };
        let context = Context {
            requests: request.into_iter().collect(),
            ..Context::new(
                AgentName(entry.get(member::agent).unwrap_or_default().as_ref().into()),
                UpstreamName(
                    entry
                        .get(member::upstream)
                        .unwrap_or_default()
                        .as_ref()
                        .into(),
                ),
                if entry.get(member::era).as_deref() == Some(Era::Modern.name()) {
                    Era::Modern
                } else {
                    Era::Legacy
                },
            )
        };
        Ok(Self {
            body,
            direction,
            context,
            is_complete: stored_message.is_some(),
            limitation,
        })
    }

    /// Judges the message. With `trace`, findings contain their texts.
    pub(super) fn judge(&self, policy: &Policy, trace: bool) -> NewJudgement {
        let audit = AuditId::generate();
        let inspect_context = InspectContext {
            trace,
            ..InspectContext::default()
        };
        match &self.body {
            RecordedBody::Message(message) => {
                let inspection = policy.inspect(
                    self.direction,
                    message,
                    &self.context,
                    audit,
                    &inspect_context,
                );
                NewJudgement {
                    verdict: inspection.verdict.name(),
                    inspection,
                }
            }
            RecordedBody::Text(text) => {
                let text_inspection = policy.inspect_text(text, audit, &inspect_context);
                let verdict = match &text_inspection.verdict {
                    TextVerdict::Pass => "pass",
                    TextVerdict::Rewrite(_) => "rewrite",
                    TextVerdict::Block(_) => "block",
                };
                NewJudgement {
                    verdict,
                    inspection: Inspection {
                        findings: text_inspection.findings,
                        ..Inspection::default()
                    },
                }
            }
        }
    }

    /// Returns the text at a JSON pointer into the message.
    pub(super) fn text_at(&self, pointer: &str) -> Option<String> {
        let message = match &self.body {
            RecordedBody::Message(message) => message,
            RecordedBody::Text(text) => return Some(text.clone()),
        };
        let step = |value: Value<'_>, step: &str| {
            step.parse()
                .ok()
                .and_then(|n| value.elements().nth(n))
                .map(|v| v.span())
        };
        let mut value = message.root();
        for name in pointer.split('/').skip(1) {
            value = match value.kind() {
                ValueKind::Array => {
                    let span = step(value, name)?;
                    value.elements().find(|one| one.span() == span)?
                }
                _ => value.get(&name.replace("~1", "/").replace("~0", "~"))?,
            };
        }
        value.str().map(std::borrow::Cow::into_owned)
    }
}

/// Returns the recorded verdict of the rules: for a policy in observe mode, the one that would have
/// applied.
pub(super) fn recorded_rules_verdict(entry: &Entry) -> String {
    let is_observed = entry.get(member::mode).as_deref() == Some(Mode::Observe.name());
    let verdict = if is_observed {
        entry.get(member::would)
    } else {
        entry.get(member::verdict)
    };
    verdict.unwrap_or_default().into_owned()
}

/// Returns the message of the line from a stored body, which may be a batch.
fn item(entry: &Entry, body: &Bytes) -> Option<Message> {
    let message = Message::parse(body.clone(), &ReadLimits::of_bytes(usize::MAX)).ok()?;
    if !message.is_batch() {
        return Some(message);
    }
    let index = usize::try_from(entry.get(member::item)?).ok()?;
    let envelope = message.envelopes().get(index)?;
    Message::parse(
        Bytes::copy_from_slice(message.value(envelope).raw().as_bytes()),
        &ReadLimits::of_bytes(usize::MAX),
    )
    .ok()
}

/// Builds the message as its line shows it.
fn message_of_line(entry: &Entry, kind: &str) -> Option<Message> {
    let content = entry.arguments().map_or("{}", |shown| shown.raw());
    let method = entry.get(member::method);
    let text = match (kind, method.as_deref()) {
        ("request", Some("tools/call")) => {
            let name = quote(&entry.get(member::tool)?);
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":{name},"arguments":{content}}}}}"#
            )
        }
        ("request", Some(method)) => format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":{},"params":{content}}}"#,
            quote(method)
        ),
        ("notification", Some(method)) => format!(
            r#"{{"jsonrpc":"2.0","method":{},"params":{content}}}"#,
            quote(method)
        ),
        ("result", _) => format!(r#"{{"jsonrpc":"2.0","id":1,"result":{content}}}"#),
        ("error", _) => format!(r#"{{"jsonrpc":"2.0","id":1,"error":{content}}}"#),
        _ => return None,
    };
    Message::parse(text.into(), &ReadLimits::of_bytes(usize::MAX)).ok()
}

/// Returns why the message in the line is incomplete, if it is.
fn find_limitation(entry: &Entry) -> Option<Limitation> {
    if entry.get(member::sent_left_out).is_some() {
        return Some(Limitation::Cut);
    }
    let mut limitation = None;
    for value in [entry.arguments(), entry.root().get(member::tool::NAME)]
        .into_iter()
        .flatten()
    {
        value.strings(|_, string| {
            if string.value.contains(MASKED) {
                limitation = Some(Limitation::Masked);
            } else if string.value.contains(CUT) {
                limitation = limitation.or(Some(Limitation::Cut));
            }
        });
    }
    limitation
}

/// Returns the request that a response answers.
fn open_request(entry: &Entry, message: &Message) -> Option<OpenRequest> {
    let envelope = message.answers().next()?;
    let tool = entry
        .get(member::tool)
        .or_else(|| entry.get(member::prompt))
        .or_else(|| entry.get(member::resource));
    Some(OpenRequest {
        id: message.id(envelope)?.into(),
        method: entry.get(member::method)?.as_ref().into(),
        tool: tool.map(|tool| tool.as_ref().into()),
        continues: false,
        target: CallTarget::Other,
    })
}
