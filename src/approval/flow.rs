//! From an approval request to the decision about its call.

use std::sync::Arc;
use std::time::Duration;

use crate::inspect::Question;
use crate::message::{Envelope, Json, Message, MessageKind, ReadLimits};
use crate::protocol::{AuditId, CallError, Context, Era, answer};
use crate::record::Approval;
use crate::rules::RuleId;

use super::elicit::{ElicitationSupport, ID_PREFIX, INPUT_KEY, elicitation_support, form};
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
    pub(crate) pending: PendingQuestion,
    pub(crate) request: ApprovalRequest,
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
            self.cancel(context, id.raw());
        }
        let is_own = |envelope: &&Envelope| {
            envelope.is_answer()
                && message
                    .id(envelope)
                    .is_some_and(|id| own_request_id(id).is_some())
        };
        let answers: Vec<&Envelope> = message.envelopes().iter().filter(is_own).collect();
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
            if let Some(elicitation_id) = message.id(envelope).and_then(own_request_id) {
                self.take_response(&elicitation_id, context, result);
            }
        }
        Ok(true)
    }

    /// Returns whether a modern request can be answered with `input_required`.
    pub(crate) fn accepts_input(message: &Message) -> bool {
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
        context: &Context,
        message: &Message,
        ask_method: AskMethod,
        restored: Option<&RestoredRequest>,
    ) -> Result<AskOutcome, CallError> {
        let Some(envelope) = message.single() else {
            return Err(CallError::NoBatches);
        };
        let mut request = ApprovalRequest::new(question, context, message, envelope);
        if self.is_covered(&request, audit)? {
            return Ok(AskOutcome::Go(Box::new(request)));
        }
        let rule = request
            .rules
            .first()
            .map(RuleId::as_str)
            .unwrap_or_default();
        if self.refusal_loop.is_exhausted(context, &request.tool, rule) {
            return Ok(AskOutcome::Refused(self.refusal(
                &request,
                audit,
                TOO_MANY_REFUSALS,
            )));
        }
        if ask_method == AskMethod::None && !self.has_console() {
            self.record_or_log(Approval {
                outcome: "nobody",
                audit: Some(audit),
                ..request.event("")
            });
            return Ok(AskOutcome::Refused(self.refusal(&request, audit, NOBODY)));
        }
        let resumed = restored
            .filter(|restored| restored.digest == request.digest)
            .and_then(|restored| {
                let pending = self.resume(&restored.id, &request)?;
                self.take_response(
                    pending.elicitation_id(),
                    context,
                    restored.answer.as_ref().map(|answer| answer.root()),
                );
                Some(pending)
            });
        let pending = match resumed {
            Some(ticket) => ticket,
            None => {
                if self.notifier.is_some() {
                    request.masked_arguments =
                        notify::masked_arguments(message, envelope, &question.private);
                }
                self.open(request.clone(), audit)?
            }
        };
        let mut open_question = Box::new(OpenQuestion {
            pending,
            request,
            audit,
        });
        // The answer may already be there: it came with the call, or while no call was waiting.
        match open_question.pending.current() {
            Settlement::Open => {}
            settlement => {
                return Ok(
                    match self.settle(settlement, &open_question.request, audit) {
                        WaitOutcome::Go => AskOutcome::Go(Box::new(open_question.request.clone())),
                        WaitOutcome::Refused(reason) | WaitOutcome::Open(reason) => {
                            AskOutcome::Refused(reason)
                        }
                        WaitOutcome::Cancelled => AskOutcome::Refused(self.refusal(
                            &open_question.request,
                            audit,
                            EXPIRED,
                        )),
                    },
                );
            }
        }
        if ask_method != AskMethod::Input {
            return Ok(AskOutcome::Wait(open_question));
        }
        let Some(state) = self.seal_state(
            &open_question.pending,
            &open_question.request,
            context,
            message,
        ) else {
            return Ok(AskOutcome::Wait(open_question));
        };
        let id = message.id(envelope).unwrap_or("null");
        let input_requests = format!(
            r#"{{"{INPUT_KEY}":{{"method":"elicitation/create","params":{}}}}}"#,
            form(&open_question.request)
        );
        Ok(AskOutcome::Input(answer::input_required(
            id,
            &input_requests,
            &state,
        )))
    }

    /// Returns the outcome that follows from an answer, or from the lack of one.
    pub(crate) fn settle(
        &self,
        settlement: Settlement,
        request: &ApprovalRequest,
        audit: AuditId,
    ) -> WaitOutcome {
        match settlement {
            Settlement::Answered(Answer {
                scope: Some(scope), ..
            }) => {
                self.remember(request, scope);
                WaitOutcome::Go
            }
            Settlement::Answered(Answer { scope: None, .. }) => {
                WaitOutcome::Refused(self.refusal(request, audit, DENIED))
            }
            Settlement::Expired => WaitOutcome::Refused(self.refusal(request, audit, EXPIRED)),
            Settlement::Cancelled => WaitOutcome::Cancelled,
            Settlement::Open => WaitOutcome::Open(reason(request, audit, STILL_OPEN)),
        }
    }

    fn refusal(
        &self,
        request: &ApprovalRequest,
        audit: AuditId,
        advice: &str,
    ) -> answer::RefusalReason {
        let mut reason = reason(request, audit, advice);
        self.refusal_loop.note_refusal(
            &request.context,
            &request.tool,
            None,
            &mut reason,
            &self.recorder,
        );
        reason
    }
}

impl OpenQuestion {
    /// Waits for an answer and returns the outcome.
    pub(crate) async fn settle(
        &mut self,
        approvals: &Approvals,
        max_wait: Duration,
    ) -> WaitOutcome {
        let settlement = self.pending.wait(max_wait).await;
        match approvals.settle(settlement, &self.request, self.audit) {
            WaitOutcome::Open(reason) => {
                let text = format!("{} Approval request: `{}`.", reason.text, self.pending.id());
                WaitOutcome::Open(answer::RefusalReason { text, ..reason })
            }
            outcome => outcome,
        }
    }

    /// Returns the request that the gate sends to an agent until 2025-11-25.
    pub(crate) fn question(&self) -> String {
        let elicitation_id = self.pending.elicitation_id();
        let form = form(&self.request);
        format!(
            r#"{{"jsonrpc":"2.0","id":"{elicitation_id}","method":"elicitation/create","params":{form}}}"#
        )
    }
}

fn reason(request: &ApprovalRequest, audit: AuditId, advice: &str) -> answer::RefusalReason {
    let rule = request
        .rules
        .first()
        .map(ToString::to_string)
        .unwrap_or_default();
    let ApprovalRequest { title, why, .. } = request;
    let text =
        format!("Not sent by lychgate: {title}. {why} {advice} (rule `{rule}`, audit {audit})");
    answer::RefusalReason { text, rule, audit }
}

/// Returns the elicitation modes that the sender of a request declares.
pub(crate) fn declared_modes(message: &Message, era: Era) -> ElicitationSupport {
    message
        .single()
        .map(|envelope| elicitation_support(message, envelope, era))
        .unwrap_or_default()
}

/// Returns a progress notification that keeps a client from timing out a waiting call, if the
/// client requested progress.
pub(crate) fn progress_notification(message: &Message, times: u32) -> Option<String> {
    let token = message.single_body()?.at(&["_meta", "progressToken"])?;
    // So small that any progress the server reports later is greater.
    let progress = f64::from(times) * 1e-6;
    Some(format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":{progress:.6},"message":"waiting for approval"}}}}"#,
        token.raw()
    ))
}

/// Extracts the gate's own id from an id as written; `None` if the id is a server's.
fn own_request_id(id: &str) -> Option<String> {
    let json = Json::parse(id.to_owned().into(), &ReadLimits::default()).ok()?;
    json.root()
        .str()
        .filter(|id| id.starts_with(ID_PREFIX))
        .map(|id| id.into_owned())
}
