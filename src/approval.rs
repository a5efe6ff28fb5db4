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
    AskMethod, AskOutcome, OpenQuestion, PROGRESS_INTERVAL, WaitOutcome, asks, still,
};
pub(crate) use grants::private;
pub(crate) use notify::Notifier;
pub(crate) use pending::{PendingQuestion, Settlement};
pub(crate) use request_state::RestoredRequest;

pub(crate) use elicit::ElicitationSupport;
use elicit::{ElicitResponse, ID_PREFIX, read};
use grants::Grants;
use request_state::StateKey;

/// Minimum time that an agent's user has for the server's own questions about a call that was
/// approved.
const ROUND: Duration = Duration::from_secs(600);

/// All approval requests of the gate.
pub(crate) struct Approvals {
    open: Mutex<HashMap<String, Entry>>,
    grants: Grants,
    seal: StateKey,
    recorder: Arc<Recorder>,
    notifier: Option<Notifier>,
    /// Recent refusals: while an agent is in a refusal loop, approvers are not asked for a while.
    pub(crate) refusal_loop: RefusalLoop,
    /// Whether approvers can answer through the admin port.
    console: AtomicBool,
    deadline: Duration,
    wait: Duration,
    most: usize,
    most_bytes: usize,
    read: ReadLimits,
}

/// The channel by which an answer arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    /// The agent asked its user by elicitation, in either era.
    Elicitation,
    /// The admin port.
    Console,
}

impl AnsweredBy {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Console => "console",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The scope of the approval; `None` is a denial.
    pub(crate) yes: Option<Scope>,
    pub(crate) way: AnsweredBy,
    /// The name that the approver gave, if any.
    pub(crate) by: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Open,
    Answered(Answer),
    Cancelled,
}

struct Entry {
    matter: ApprovalRequest,
    since: Instant,
    asked_at: SystemTime,
    until: Instant,
    /// The id with which the agent is asked: unlike the request's name, it cannot be guessed.
    wire: String,
    /// Whether a call is currently waiting for the answer.
    attended: bool,
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
        let lasts = if one_session {
            (forever, forever)
        } else {
            (limits.session_idle, config.session)
        };
        Ok(Self {
            open: Mutex::default(),
            grants: Grants::new(config.file.clone(), lasts)?,
            seal: StateKey::new(),
            recorder,
            notifier: None,
            refusal_loop: RefusalLoop::new(limits),
            console: AtomicBool::new(false),
            deadline: config.deadline,
            wait: config.wait.min(config.deadline),
            most: limits.pending_approvals,
            most_bytes: limits.pending_approval_bytes,
            read: limits.read.clone(),
        })
    }

    /// Sets the notifier for new requests.
    #[must_use]
    pub(crate) fn notified_by(self, notifier: Option<Notifier>) -> Self {
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
    pub(crate) fn granted(
        &self,
        matter: &ApprovalRequest,
        question: AuditId,
    ) -> Result<bool, CallError> {
        let Some(scope) = self.grants.covers(matter) else {
            return Ok(false);
        };
        let told = Approval {
            outcome: "approved",
            way: "earlier",
            scope: Some(scope.name()),
            ..matter.event("")
        };
        self.record(Approval {
            audit: Some(question),
            ..told
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
        matter: ApprovalRequest,
        question: AuditId,
    ) -> Result<PendingQuestion, CallError> {
        let now = Instant::now();
        let mut open = self.entries(now);
        if let Some((id, entry)) = open
            .iter_mut()
            .find(|(_, entry)| !entry.attended && entry.matter.is_same_call(&matter))
        {
            entry.attended = true;
            entry.matter.request = matter.request;
            return Ok(self.ticket(id, entry));
        }
        let of_agent = |entry: &&Entry| entry.matter.context.holder() == matter.context.holder();
        if open.values().filter(of_agent).count() >= self.most {
            return Err(CallError::Limit("pending_approvals"));
        }
        let bytes: usize = open.values().map(|entry| entry.matter.bytes).sum();
        if bytes.saturating_add(matter.bytes) > self.most_bytes {
            return Err(CallError::Limit("pending_approval_bytes"));
        }
        let id = std::iter::repeat_with(make_id)
            .find(|id| !open.contains_key(id))
            .unwrap_or_default();
        self.record(Approval {
            outcome: "asked",
            audit: Some(question),
            ..matter.event(&id)
        })
        .map_err(CallError::Audit)?;
        let entry = Entry {
            matter,
            since: now,
            asked_at: SystemTime::now(),
            until: now + self.deadline,
            wire: format!("{ID_PREFIX}{}", uuid::Uuid::new_v4().simple()),
            attended: true,
            state: watch::Sender::new(State::Open),
        };
        if let Some(notifier) = &self.notifier {
            notifier.requested(&id, &entry.matter, self.deadline);
        }
        let ticket = self.ticket(&id, &entry);
        open.insert(id, entry);
        Ok(ticket)
    }

    fn ticket(self: &Arc<Self>, id: &str, entry: &Entry) -> PendingQuestion {
        let (id, wire) = (id.to_owned(), entry.wire.clone());
        PendingQuestion {
            approvals: self.clone(),
            id,
            wire,
            until: entry.until,
            state: entry.state.subscribe(),
        }
    }

    /// Resumes a request whose answer arrives with the retried call.
    pub(crate) fn resume(
        self: &Arc<Self>,
        id: &str,
        matter: &ApprovalRequest,
    ) -> Option<PendingQuestion> {
        let mut open = self.entries(Instant::now());
        let entry = open
            .get_mut(id)
            .filter(|entry| !entry.attended && entry.matter.is_same_call(matter))?;
        entry.attended = true;
        Some(self.ticket(id, entry))
    }

    /// Processes the agent's response to the question that was sent as `wire`. If the client
    /// reports that it cannot ask its user, the request stays open for other approvers.
    pub(crate) fn take_response(&self, wire: &str, context: &Context, result: Option<Value<'_>>) {
        let found = {
            let open = self.entries(Instant::now());
            let theirs = |entry: &Entry| entry.wire == wire && entry.matter.is_of(context);
            open.iter()
                .find(|(_, entry)| theirs(entry))
                .map(|(id, entry)| (id.clone(), entry.matter.scopes.clone()))
        };
        let Some((id, scopes)) = found else { return };
        let yes = match read(result, &scopes) {
            ElicitResponse::Yes(scope) => Some(scope),
            ElicitResponse::No => None,
            ElicitResponse::Nothing => return,
        };
        if let Err(why) = self.answer(&id, yes, AnsweredBy::Elicitation, None) {
            tracing::debug!(?why, "invalid elicitation response from the agent");
        }
    }

    /// Answers a request; only the first answer counts.
    fn answer(
        &self,
        id: &str,
        yes: Option<Scope>,
        way: AnsweredBy,
        by: Option<String>,
    ) -> Result<(), DecisionError> {
        let now = Instant::now();
        let mut open = self.entries(now);
        let entry = open
            .get_mut(id)
            .filter(|entry| entry.until > now)
            .ok_or(DecisionError::Unknown)?;
        if *entry.state.borrow() != State::Open {
            return Err(DecisionError::Already);
        }
        if yes.is_some_and(|scope| !entry.matter.scopes.contains(&scope)) {
            return Err(DecisionError::Scope(entry.matter.scopes.clone()));
        }
        let told = Approval {
            outcome: if yes.is_some() { "approved" } else { "denied" },
            way: way.name(),
            scope: yes.map(Scope::name),
            by: by.as_deref(),
            took: Some(now.saturating_duration_since(entry.since)),
            ..entry.matter.event(id)
        };
        self.record(told).map_err(|_| DecisionError::Untold)?;
        entry
            .state
            .send_replace(State::Answered(Answer { yes, way, by }));
        // If no call is waiting now, the agent has the full deadline again to come back for the
        // answer.
        entry.until = entry.until.max(now + self.deadline);
        Ok(())
    }

    /// Cancels a request that the agent has withdrawn: it is not sent, whatever the answer.
    pub(crate) fn cancelled(&self, context: &Context, request: &str) {
        let mut open = self.entries(Instant::now());
        open.retain(|id, entry| {
            let meant = entry.attended
                && entry.matter.is_of(context)
                && same_id(&entry.matter.request, request);
            if meant {
                self.told_of(Approval {
                    outcome: "cancelled",
                    ..entry.matter.event(id)
                });
                entry.state.send_replace(State::Cancelled);
            }
            !meant
        });
    }

    /// Returns the state that is sent with a question as `requestState`.
    pub(crate) fn sealed(
        &self,
        ticket: &PendingQuestion,
        matter: &ApprovalRequest,
        context: &Context,
        message: &Message,
    ) -> Option<String> {
        self.seal.seal(
            &ticket.id,
            &matter.digest,
            context,
            message,
            message.single()?,
        )
    }

    /// Returns the state that is sent with a request to log in: it contains only what the call
    /// carried.
    pub(crate) fn sealed_login(&self, context: &Context, message: &Message) -> Option<String> {
        let envelope = message.single()?;
        self.seal.seal(
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
    pub(crate) fn restored(
        &self,
        context: &Context,
        message: &Message,
    ) -> Result<Option<RestoredRequest>, CallError> {
        self.seal.open(context, message, &self.read)
    }

    /// Stores the approval for its scope.
    pub(crate) fn remember(&self, matter: &ApprovalRequest, scope: Scope) {
        if let Err(error) = self.grants.add(matter, scope) {
            tracing::error!(%error, "cannot store a permanent approval; it is valid until the gateway stops");
        }
    }

    /// Handles an approved call that the server answers with questions of its own (2026-07-28,
    /// MRTR): when the call is repeated with the answers, it is still the same call and needs no
    /// second approval.
    pub(crate) fn goes_on(&self, matter: &ApprovalRequest, message: &Message) {
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
                .next_round(matter, Instant::now() + self.deadline.max(ROUND));
        }
    }

    /// Removes expired requests and records them.
    pub(crate) fn sweep(&self) {
        drop(self.entries(Instant::now()));
    }

    /// Returns the open requests after removing those that have expired.
    fn entries(&self, now: Instant) -> MutexGuard<'_, HashMap<String, Entry>> {
        let mut open = self.open.lock();
        open.retain(|id, entry| {
            let over = !entry.attended && entry.until <= now;
            if over {
                self.told_over(id, entry, now);
            }
            !over
        });
        open
    }

    fn told_over(&self, id: &str, entry: &Entry, now: Instant) {
        let outcome = if *entry.state.borrow() == State::Open {
            "expired"
        } else {
            "unused"
        };
        let took = Some(now.saturating_duration_since(entry.since));
        self.told_of(Approval {
            outcome,
            took,
            ..entry.matter.event(id)
        });
    }

    fn record(&self, approval: Approval<'_>) -> io::Result<()> {
        self.recorder.record(Event::Approval(&approval))
    }

    fn told_of(&self, approval: Approval<'_>) {
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
