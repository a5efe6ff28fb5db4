//! Approval requests for calls: the questions, the approvers and the answers. Opening a request
//! does not send the call: the holder of its `PendingQuestion` decides what happens to it.

mod api;
mod approval_request;
mod digest;
mod elicit;
mod flow;
mod grants;
mod notify;
mod pending;
mod refusal_loop;
mod render;
mod request_state;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::config::{ApprovalConfig, Config, Limits, Scope};
use crate::document::Fault;
use crate::message::{Message, ReadLimits, Value, same_id};
use crate::protocol::{AuditId, CallError, Context};
use crate::record::{Approval, Event, Recorder};
use refusal_loop::RefusalLoop;

pub use api::{ApprovalApi, DecisionError};
pub(crate) use approval_request::ApprovalRequest;
pub(crate) use digest::CallDigest;
pub(crate) use flow::{
    AskMethod, AskOutcome, OpenQuestion, PROGRESS_INTERVAL, WaitOutcome, declared_modes,
    progress_notification,
};
pub(crate) use notify::Notifier;
pub(crate) use pending::{PendingQuestion, Settlement};
pub(crate) use request_state::RestoredRequest;

pub(crate) use elicit::ElicitationSupport;
use elicit::{ElicitResponse, ID_PREFIX, read_response};
use grants::Grants;
use request_state::StateKey;

/// Minimum time that an agent's user has for the server's own questions about a call that was
/// approved.
const ROUND: Duration = Duration::from_secs(600);

/// All approval requests of the gate.
pub(crate) struct Approvals {
    pending: Mutex<HashMap<String, Entry>>,
    grants: Grants,
    state_key: StateKey,
    recorder: Arc<Recorder>,
    notifier: Option<Notifier>,
    /// Recent refusals: while an agent is in a refusal loop, approvers are not asked for a while.
    pub(crate) refusal_loop: RefusalLoop,
    /// Whether approvers can answer through the admin port.
    console: AtomicBool,
    deadline: Duration,
    wait: Duration,
    max_pending: usize,
    max_pending_bytes: usize,
    read_limits: ReadLimits,
}

enum_with_names! {
    /// The channel by which an answer arrived.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum AnsweredBy {
        /// The agent asked its user by elicitation, in either era.
        Elicitation = "elicitation",
        /// The admin port.
        Console = "console",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The scope of the approval; `None` is a denial.
    pub(crate) scope: Option<Scope>,
    pub(crate) channel: AnsweredBy,
    /// The name that the approver gave, if any.
    pub(crate) approver: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Open,
    Answered(Answer),
    Cancelled,
}

struct Entry {
    request: ApprovalRequest,
    since: Instant,
    opened_at: SystemTime,
    deadline: Instant,
    /// The id with which the agent is asked: unlike the request's name, it cannot be guessed.
    elicitation_id: String,
    /// Whether a call is currently waiting for the answer.
    is_awaited: bool,
    state: watch::Sender<State>,
}

impl Approvals {
    /// Creates a store without open requests; its only grants are those of the file.
    ///
    /// # Errors
    /// The file of grants cannot be read.
    pub(crate) fn new(
        config: &ApprovalConfig,
        limits: &Limits,
        recorder: Arc<Recorder>,
        one_session: bool,
    ) -> io::Result<Self> {
        let forever = Duration::from_secs(365 * 86_400);
        let lifetimes = if one_session {
            (forever, forever)
        } else {
            (limits.session_idle, config.session)
        };
        Ok(Self {
            pending: Mutex::default(),
            grants: Grants::new(config.file.clone(), lifetimes)?,
            state_key: StateKey::new(),
            recorder,
            notifier: None,
            refusal_loop: RefusalLoop::new(limits),
            console: AtomicBool::new(false),
            deadline: config.deadline,
            wait: config.wait.min(config.deadline),
            max_pending: limits.pending_approvals,
            max_pending_bytes: limits.pending_approval_bytes,
            read_limits: limits.read.clone(),
        })
    }

    /// Sets the notifier for new requests.
    #[must_use]
    pub(crate) fn with_notifier(self, notifier: Option<Notifier>) -> Self {
        Self { notifier, ..self }
    }

    /// Returns whether approvers can answer through the admin port.
    pub(crate) fn has_console(&self) -> bool {
        self.console.load(Ordering::Relaxed)
    }

    /// Returns how long a call waits if its agent cannot ask its user itself.
    pub(crate) fn wait(&self) -> Duration {
        self.wait
    }

    /// Returns whether an earlier approval covers the call.
    ///
    /// # Errors
    /// An earlier approval covers it, but the audit log cannot be written.
    pub(crate) fn is_covered(
        &self,
        request: &ApprovalRequest,
        audit_id: AuditId,
    ) -> Result<bool, CallError> {
        let Some(scope) = self.grants.covering_scope(request) else {
            return Ok(false);
        };
        let event = Approval {
            outcome: "approved",
            way: "earlier",
            scope: Some(scope.name()),
            ..request.event("")
        };
        self.record(Approval {
            audit: Some(audit_id),
            ..event
        })
        .map_err(CallError::Audit)?;
        Ok(true)
    }

    /// Opens an approval request, or returns the one that the same call left open.
    ///
    /// # Errors
    /// There are too many open requests, or the audit log cannot be written.
    pub(crate) fn open(
        self: &Arc<Self>,
        request: ApprovalRequest,
        audit_id: AuditId,
    ) -> Result<PendingQuestion, CallError> {
        let now = Instant::now();
        let mut pending = self.entries(now);
        if let Some((id, entry)) = pending
            .iter_mut()
            .find(|(_, entry)| !entry.is_awaited && entry.request.is_same_call(&request))
        {
            entry.is_awaited = true;
            entry.request.request_id = request.request_id;
            return Ok(self.pending_question(id, entry));
        }
        let of_agent = |entry: &&Entry| entry.request.context.holder() == request.context.holder();
        if pending.values().filter(of_agent).count() >= self.max_pending {
            return Err(CallError::Limit("pending_approvals"));
        }
        let bytes: usize = pending.values().map(|entry| entry.request.bytes).sum();
        if bytes.saturating_add(request.bytes) > self.max_pending_bytes {
            return Err(CallError::Limit("pending_approval_bytes"));
        }
        let id = std::iter::repeat_with(make_id)
            .find(|id| !pending.contains_key(id))
            .unwrap_or_default();
        self.record(Approval {
            outcome: "asked",
            audit: Some(audit_id),
            ..request.event(&id)
        })
        .map_err(CallError::Audit)?;
        let entry = Entry {
            request,
            since: now,
            opened_at: SystemTime::now(),
            deadline: now + self.deadline,
            elicitation_id: format!("{ID_PREFIX}{}", uuid::Uuid::new_v4().simple()),
            is_awaited: true,
            state: watch::Sender::new(State::Open),
        };
        if let Some(notifier) = &self.notifier {
            notifier.queue_notification(&id, &entry.request, self.deadline);
        }
        let ticket = self.pending_question(&id, &entry);
        pending.insert(id, entry);
        Ok(ticket)
    }

    fn pending_question(self: &Arc<Self>, id: &str, entry: &Entry) -> PendingQuestion {
        let (id, elicitation_id) = (id.to_owned(), entry.elicitation_id.clone());
        PendingQuestion {
            approvals: self.clone(),
            id,
            elicitation_id,
            deadline: entry.deadline,
            state: entry.state.subscribe(),
        }
    }

    /// Resumes a request whose answer arrives with the retried call.
    pub(crate) fn resume(
        self: &Arc<Self>,
        id: &str,
        request: &ApprovalRequest,
    ) -> Option<PendingQuestion> {
        let mut pending = self.entries(Instant::now());
        let entry = pending
            .get_mut(id)
            .filter(|entry| !entry.is_awaited && entry.request.is_same_call(request))?;
        entry.is_awaited = true;
        Some(self.pending_question(id, entry))
    }

    /// Processes the agent's response to the question that was sent as `elicitation_id`. If the
    /// client reports that it cannot ask its user, the request stays open for other approvers.
    pub(crate) fn take_response(
        &self,
        elicitation_id: &str,
        context: &Context,
        result: Option<Value<'_>>,
    ) {
        let matching = {
            let pending = self.entries(Instant::now());
            let matches = |entry: &Entry| {
                entry.elicitation_id == elicitation_id && entry.request.belongs_to(context)
            };
            pending
                .iter()
                .find(|(_, entry)| matches(entry))
                .map(|(id, entry)| (id.clone(), entry.request.scopes.clone()))
        };
        let Some((id, scopes)) = matching else { return };
        let decision = match read_response(result, &scopes) {
            ElicitResponse::Approved(scope) => Some(scope),
            ElicitResponse::Denied => None,
            ElicitResponse::Unavailable => return,
        };
        if let Err(why) = self.answer(&id, decision, AnsweredBy::Elicitation, None) {
            tracing::debug!(?why, "invalid elicitation response from the agent");
        }
    }

    /// Answers a request; only the first answer counts.
    fn answer(
        &self,
        id: &str,
        decision: Option<Scope>,
        channel: AnsweredBy,
        approver: Option<String>,
    ) -> Result<(), DecisionError> {
        let now = Instant::now();
        let mut pending = self.entries(now);
        let entry = pending
            .get_mut(id)
            .filter(|entry| entry.deadline > now)
            .ok_or(DecisionError::Unknown)?;
        if *entry.state.borrow() != State::Open {
            return Err(DecisionError::AlreadyAnswered);
        }
        if decision.is_some_and(|scope| !entry.request.scopes.contains(&scope)) {
            return Err(DecisionError::Scope(entry.request.scopes.clone()));
        }
        let event = Approval {
            outcome: if decision.is_some() {
                "approved"
            } else {
                "denied"
            },
            way: channel.name(),
            scope: decision.map(Scope::name),
            approver: approver.as_deref(),
            duration: Some(now.saturating_duration_since(entry.since)),
            ..entry.request.event(id)
        };
        self.record(event).map_err(|_| DecisionError::NotRecorded)?;
        entry.state.send_replace(State::Answered(Answer {
            scope: decision,
            channel,
            approver,
        }));
        // If no call is waiting now, the agent has the full deadline again to come back for the
        // answer.
        entry.deadline = entry.deadline.max(now + self.deadline);
        Ok(())
    }

    /// Cancels a request that the agent has withdrawn: it is not sent, whatever the answer.
    pub(crate) fn cancel(&self, context: &Context, request: &str) {
        let mut pending = self.entries(Instant::now());
        pending.retain(|id, entry| {
            let is_cancelled = entry.is_awaited
                && entry.request.belongs_to(context)
                && same_id(&entry.request.request_id, request);
            if is_cancelled {
                self.record_or_log(Approval {
                    outcome: "cancelled",
                    ..entry.request.event(id)
                });
                entry.state.send_replace(State::Cancelled);
            }
            !is_cancelled
        });
    }

    /// Returns the state that is sent with a question as `requestState`.
    pub(crate) fn seal_state(
        &self,
        question: &PendingQuestion,
        request: &ApprovalRequest,
        context: &Context,
        message: &Message,
    ) -> Option<String> {
        self.state_key.seal(
            &question.id,
            &request.digest,
            context,
            message,
            message.single()?,
        )
    }

    /// Returns the state that is sent with a request to log in: it contains only what the call
    /// carried.
    pub(crate) fn seal_login_state(&self, context: &Context, message: &Message) -> Option<String> {
        let envelope = message.single()?;
        self.state_key.seal(
            "login",
            &CallDigest::new(context, message, envelope),
            context,
            message,
            envelope,
        )
    }

    /// Returns a retried request without the gate's parts; `None` if it has none.
    ///
    /// # Errors
    /// It has parts of the gate that are invalid.
    pub(crate) fn restore(
        &self,
        context: &Context,
        message: &Message,
    ) -> Result<Option<RestoredRequest>, CallError> {
        self.state_key.open(context, message, &self.read_limits)
    }

    /// Stores the approval for its scope.
    pub(crate) fn remember(&self, request: &ApprovalRequest, scope: Scope) {
        if let Err(error) = self.grants.add(request, scope) {
            tracing::error!(%error, "cannot store a permanent approval; it is valid until the gateway stops");
        }
    }

    /// Handles an approved call that the server answers with questions of its own (2026-07-28,
    /// MRTR): when the call is repeated with the answers, it is still the same call and needs no
    /// second approval.
    pub(crate) fn allow_next_round(&self, request: &ApprovalRequest, message: &Message) {
        let Some(result) = message.single().and_then(|envelope| message.body(envelope)) else {
            return;
        };
        if result
            .get("resultType")
            .and_then(|kind| kind.str())
            .as_deref()
            == Some("input_required")
        {
            self.grants
                .next_round(request, Instant::now() + self.deadline.max(ROUND));
        }
    }

    /// Removes expired requests and records them.
    pub(crate) fn sweep(&self) {
        drop(self.entries(Instant::now()));
    }

    /// Returns the open requests after removing those that have expired.
    fn entries(&self, now: Instant) -> MutexGuard<'_, HashMap<String, Entry>> {
        let mut pending = self.pending.lock();
        pending.retain(|id, entry| {
            let is_expired = !entry.is_awaited && entry.deadline <= now;
            if is_expired {
                self.record_expiry(id, entry, now);
            }
            !is_expired
        });
        pending
    }

    fn record_expiry(&self, id: &str, entry: &Entry, now: Instant) {
        let outcome = if *entry.state.borrow() == State::Open {
            "expired"
        } else {
            "unused"
        };
        let took = Some(now.saturating_duration_since(entry.since));
        self.record_or_log(Approval {
            outcome,
            duration: took,
            ..entry.request.event(id)
        });
    }

    fn record(&self, approval: Approval<'_>) -> io::Result<()> {
        self.recorder.record(Event::Approval(&approval))
    }

    fn record_or_log(&self, approval: Approval<'_>) {
        if let Err(error) = self.record(approval) {
            tracing::error!(%error, "cannot write the audit log");
        }
    }
}

/// Returns the notifier for new requests, if the config names a command or a webhook.
///
/// # Errors
/// The faults of the config that make it unusable.
pub(crate) fn notifier(
    config: &Config,
    recorder: &Recorder,
) -> Result<Option<Notifier>, Vec<Fault>> {
    Notifier::start(&config.notify, recorder)
        .map_err(|error| vec![Fault::of_file("approval", error, None)])
}

/// Returns an id that is short enough to type: it names a request and is not a secret.
fn make_id() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    id.get(..8).unwrap_or(&id).to_owned()
}
