//! From an approval request to the decision about its call.

use std::sync::Arc;
use std::time::Duration;

use crate::inspect::Question;
use crate::message::{Envelope, Json, Message, MessageKind, ReadLimits};
use crate::protocol::{AuditId, CallError, Context, Era, answer};
use crate::record::Approval;
use crate::rules::RuleId;

use super::elicit::{ElicitationSupport, ID_PREFIX, INPUT_KEY, form, offered};
use super::{
    Answer, ApprovalRequest, Approvals, PendingQuestion, RestoredRequest, Settlement, notify,
};

/// Methods that may be answered with `input_required` (2026-07-28, MRTR).
const MAY_ASK_BACK: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// Interval of progress notifications to a client whose call is waiting.
pub(crate) const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

const DENIED: &str =
    "The approval request was denied. Do not try another way: ask your user what to do instead.";
const EXPIRED: &str =
    "The approval request expired without an answer. Ask your user before you try again.";
const NOBODY: &str = "It requires approval, and no approver is available. Ask your user to do it.";
const STILL_OPEN: &str = "It is waiting for approval. Tell your user, then repeat exactly the same call: it succeeds \
                    once approved.";
const TOO_MANY_REFUSALS: &str =
    "It was denied too often recently; no new approval request was made.";

/// How the agent can ask its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskMethod {
    /// By a request that the gate sends to the client (until 2025-11-25).
    Elicit,
    /// By an `input_required` result, after which the client repeats the call (2026-07-28).
    Input,
    /// The agent cannot ask its user.
    None,
}

/// The immediate outcome of an approval request.
pub(crate) enum AskOutcome {
    /// The call proceeds, by an approval given now or earlier.
    Go(Box<ApprovalRequest>),
    /// The call is refused for this reason.
    Refused(answer::RefusalReason),
    /// The agent receives this response, asks its user and repeats the call.
    Input(String),
    Wait(Box<OpenQuestion>),
}

pub(crate) struct OpenQuestion {
    pub(crate) ticket: PendingQuestion,
    pub(crate) matter: ApprovalRequest,
    pub(crate) audit: AuditId,
}

/// The outcome of an open request.
pub(crate) enum WaitOutcome {
    /// The call proceeds.
    Go,
    /// The call is refused for this reason.
    Refused(answer::RefusalReason),
    /// The request is still open, and the caller has stopped waiting.
    Open(answer::RefusalReason),
    /// The agent has cancelled the call.
    Cancelled,
}

impl Approvals {
    /// Consumes messages that are for the gate itself: responses to its own requests, known or not.
    /// They are not forwarded.
    ///
    /// # Errors
    /// A response for the gate is in a batch with other messages.
    pub(crate) fn take(&self, message: &Message, context: &Context) -> Result<bool, CallError> {
        if let Some(envelope) = message
            .single()
            .filter(|envelope| envelope.method() == Some("notifications/cancelled"))
            && let Some(id) = message
                .body(envelope)
                .and_then(|params| params.get("requestId"))
        {
            // Only a call that is still waiting is cancelled here, since the server has never
            // received it; other cancellations concern only the server.
            self.cancelled(context, id.raw());
        }
        let own = |envelope: &&Envelope| {
            envelope.is_answer() && message.id(envelope).is_some_and(|id| wire(id).is_some())
        };
        let answers: Vec<&Envelope> = message.envelopes().iter().filter(own).collect();
        if answers.is_empty() {
            return Ok(false);
        }
        if answers.len() < message.envelopes().len() {
            return Err(CallError::NoBatches);
        }
        for envelope in answers {
            let result = message
                .body(envelope)
                .filter(|_| envelope.kind == MessageKind::Result);
            if let Some(wire) = message.id(envelope).and_then(wire) {
                self.take_response(&wire, context, result);
            }
        }
        Ok(true)
    }

    /// Returns whether a modern request can be answered with `input_required`.
    pub(crate) fn takes_input(message: &Message) -> bool {
        message
            .single()
            .and_then(|envelope| envelope.method())
            .is_some_and(|method| MAY_ASK_BACK.contains(&method))
    }

    /// Requests approval for a call, unless it was already given.
    ///
    /// # Errors
    /// There are too many open requests, or the audit log cannot be written.
    pub(crate) fn ask(
        self: &Arc<Self>,
        question: &Question,
        audit: AuditId,
        (context, message): (&Context, &Message),
        way: AskMethod,
        restored: Option<&RestoredRequest>,
    ) -> Result<AskOutcome, CallError> {
        let Some(envelope) = message.single() else {
            return Err(CallError::NoBatches);
        };
        let mut matter = ApprovalRequest::new(question, context, message, envelope);
        if self.granted(&matter, audit)? {
            return Ok(AskOutcome::Go(Box::new(matter)));
        }
        let rule = matter.rules.first().map(RuleId::as_str).unwrap_or_default();
        if self.refusal_loop.is_exhausted(context, &matter.tool, rule) {
            return Ok(AskOutcome::Refused(self.refusal(
                &matter,
                audit,
                TOO_MANY_REFUSALS,
            )));
        }
        if way == AskMethod::None && !self.has_console() {
            self.told_of(Approval {
                outcome: "nobody",
                audit: Some(audit),
                ..matter.event("")
            });
            return Ok(AskOutcome::Refused(self.refusal(&matter, audit, NOBODY)));
        }
        let resumed = restored
            .filter(|restored| restored.digest == matter.digest)
            .and_then(|restored| {
                let ticket = self.resume(&restored.id, &matter)?;
                self.take_response(
                    ticket.wire(),
                    context,
                    restored.answer.as_ref().map(|answer| answer.root()),
                );
                Some(ticket)
            });
        let ticket = match resumed {
            Some(ticket) => ticket,
            None => {
                if self.notifier.is_some() {
                    matter.masked = notify::masked(message, envelope, &question.private);
                }
                self.open(matter.clone(), audit)?
            }
        };
        let mut asked = Box::new(OpenQuestion {
            ticket,
            matter,
            audit,
        });
        // The answer may already be there: it came with the call, or while no call was waiting.
        match asked.ticket.now() {
            Settlement::Open => {}
            waited => {
                return Ok(match self.settle(waited, &asked.matter, audit) {
                    WaitOutcome::Go => AskOutcome::Go(Box::new(asked.matter.clone())),
                    WaitOutcome::Refused(reason) | WaitOutcome::Open(reason) => {
                        AskOutcome::Refused(reason)
                    }
                    WaitOutcome::Cancelled => {
                        AskOutcome::Refused(self.refusal(&asked.matter, audit, EXPIRED))
                    }
                });
            }
        }
        if way != AskMethod::Input {
            return Ok(AskOutcome::Wait(asked));
        }
        let Some(state) = self.sealed(&asked.ticket, &asked.matter, context, message) else {
            return Ok(AskOutcome::Wait(asked));
        };
        let id = message.id(envelope).unwrap_or("null");
        let asks = format!(
            r#"{{"{INPUT_KEY}":{{"method":"elicitation/create","params":{}}}}}"#,
            form(&asked.matter)
        );
        Ok(AskOutcome::Input(answer::wants_input(id, &asks, &state)))
    }

    /// Returns the outcome that follows from an answer, or from the lack of one.
    pub(crate) fn settle(
        &self,
        waited: Settlement,
        matter: &ApprovalRequest,
        audit: AuditId,
    ) -> WaitOutcome {
        match waited {
            Settlement::Answered(Answer {
                yes: Some(scope), ..
            }) => {
                self.remember(matter, scope);
                WaitOutcome::Go
            }
            Settlement::Answered(Answer { yes: None, .. }) => {
                WaitOutcome::Refused(self.refusal(matter, audit, DENIED))
            }
            Settlement::Expired => WaitOutcome::Refused(self.refusal(matter, audit, EXPIRED)),
            Settlement::Cancelled => WaitOutcome::Cancelled,
            Settlement::Open => WaitOutcome::Open(reason(matter, audit, STILL_OPEN)),
        }
    }

    fn refusal(
        &self,
        matter: &ApprovalRequest,
        audit: AuditId,
        next: &str,
    ) -> answer::RefusalReason {
        let mut reason = reason(matter, audit, next);
        self.refusal_loop.note_refusal(
            &matter.context,
            &matter.tool,
            None,
            &mut reason,
            &self.recorder,
        );
        reason
    }
}

impl OpenQuestion {
    /// Waits for an answer and returns the outcome.
    pub(crate) async fn settle(&mut self, approvals: &Approvals, most: Duration) -> WaitOutcome {
        let waited = self.ticket.wait(most).await;
        match approvals.settle(waited, &self.matter, self.audit) {
            WaitOutcome::Open(reason) => {
                let text = format!("{} Approval request: `{}`.", reason.text, self.ticket.id());
                WaitOutcome::Open(answer::RefusalReason { text, ..reason })
            }
            settled => settled,
        }
    }

    /// Returns the request that the gate sends to an agent until 2025-11-25.
    pub(crate) fn question(&self) -> String {
        let wire = self.ticket.wire();
        let form = form(&self.matter);
        format!(
            r#"{{"jsonrpc":"2.0","id":"{wire}","method":"elicitation/create","params":{form}}}"#
        )
    }
}

fn reason(matter: &ApprovalRequest, audit: AuditId, next: &str) -> answer::RefusalReason {
    let rule = matter
        .rules
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    let ApprovalRequest { title, why, .. } = matter;
    let text =
        format!("Not sent by lychgate: {title}. {why} {next} (rule `{rule}`, audit {audit})");
    answer::RefusalReason { text, rule, audit }
}

/// Returns the elicitation modes that the sender of a request declares.
pub(crate) fn asks(message: &Message, era: Era) -> ElicitationSupport {
    message
        .single()
        .map(|envelope| offered(message, envelope, era))
        .unwrap_or_default()
}

/// Returns a progress notification that keeps a client from timing out a waiting call, if the
/// client requested progress.
pub(crate) fn still(message: &Message, times: u32) -> Option<String> {
    let token = message
        .body(message.single()?)?
        .at(&["_meta", "progressToken"])?;
    // So small that any progress the server reports later is greater.
    let progress = f64::from(times) * 1e-6;
    Some(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":{progress:.6},"message":"waiting for approval"}}}}"#,
        token.raw()
    ))
}

/// Extracts the gate's own id from an id as written; `None` if the id is a server's.
fn wire(id: &str) -> Option<String> {
    let json = Json::parse(id.to_owned().into(), &ReadLimits::default()).ok()?;
    json.root()
        .str()
        .filter(|id| id.starts_with(ID_PREFIX))
        .map(|id| id.into_owned())
}
