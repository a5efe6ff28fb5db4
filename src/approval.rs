//! Calls that wait for a person's yes: what is asked, who is asked, and what was answered. Asking does not send: what
//! becomes of the call is for whoever holds its ticket.

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

/// At least so long an agent's user has for the server's own questions about a call that was approved.
const ROUND: Duration = Duration::from_secs(600);

/// Every question of the gate.
pub(crate) struct Approvals {
    open: Mutex<HashMap<String, Entry>>,
    grants: Grants,
    seal: StateKey,
    recorder: Arc<Recorder>,
    notifier: Option<Notifier>,
    /// Refusals of late: an agent that does not stop has nobody asked for a while.
    pub(crate) refusal_loop: RefusalLoop,
    /// Whether somebody can answer through the admin port.
    console: AtomicBool,
    deadline: Duration,
    wait: Duration,
    most: usize,
    most_bytes: usize,
    read: ReadLimits,
}

/// By which way an answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    /// The agent asked its user: elicitation, in either era.
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
    /// What the yes is for; `None` is no.
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
    /// The id under which the agent is asked: unlike its name, nobody can guess it.
    wire: String,
    /// Whether a call waits for it now.
    attended: bool,
    state: watch::Sender<State>,
}

impl Approvals {
    /// Nothing asked so far, and nothing granted but what the file holds.
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

    /// The same, with people notified of each new question.
    #[must_use]
    pub(crate) fn notified_by(self, notifier: Option<Notifier>) -> Self {
        Self { notifier, ..self }
    }

    /// From now on, somebody can answer through the admin port.
    pub(crate) fn has_console(&self) -> bool {
        self.console.load(Ordering::Relaxed)
    }

    /// How long a call waits whose agent cannot ask its user itself.
    pub(crate) fn wait(&self) -> Duration {
        self.wait
    }

    /// Whether an earlier yes covers the call.
    ///
    /// # Errors
    /// It does, and that cannot be told.
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

    /// Opens a question, or finds the one that the same call left open.
    ///
    /// # Errors
    /// There are too many, or it cannot be told.
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

    /// Takes up a question again whose answer comes back with the call.
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

    /// The agent's user has answered the question that went out as `wire`, or its client has said that it cannot ask:
    /// then others still may.
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

    /// Answers a question; only the first answer counts.
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
        // Whoever is not waiting now gets as long again to come back for the answer.
        entry.until = entry.until.max(now + self.deadline);
        Ok(())
    }

    /// The agent takes a request back: it is not carried out, whatever is answered.
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

    /// The state that goes out with a question as `requestState`.
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

    /// The state that goes out with a login: it carries nothing but what the call had brought.
    pub(crate) fn sealed_login(&self, context: &Context, message: &Message) -> Option<String> {
        let envelope = message.single()?;
        self.seal.seal(
            "login",
            &CallDigest::of(context, message, envelope),
            context,
            message,
            envelope,
        )
    }

    /// A retried request without the gate's parts; `None` if it has none.
    ///
    /// # Errors
    /// It has some, and they are not good.
    pub(crate) fn restored(
        &self,
        context: &Context,
        message: &Message,
    ) -> Result<Option<RestoredRequest>, CallError> {
        self.seal.open(context, message, &self.read)
    }

    /// Remembers what a yes is for.
    pub(crate) fn remember(&self, matter: &ApprovalRequest, scope: Scope) {
        if let Err(error) = self.grants.add(matter, scope) {
            tracing::error!(%error, "cannot store a permanent approval; it is valid until the gateway stops");
        }
    }

    /// The server answers an approved call with questions of its own (2026-07-28, MRTR): when the call comes once more
    /// with their answers, it is still the same call, and nobody is asked about it twice.
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

    /// Removes expired requests, and records them.
    pub(crate) fn sweep(&self) {
        drop(self.entries(Instant::now()));
    }

    /// The open questions, without those whose time is over.
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

/// What notifies people of questions, if the config names anything that does.
///
/// # Errors
/// What cannot be used of the config.
pub(crate) fn notifier(
    config: &Config,
    recorder: &Recorder,
) -> Result<Option<Notifier>, Vec<Fault>> {
    Notifier::start(&config.notify, recorder)
        .map_err(|error| vec![Fault::of_file("approval", error, None)])
}

/// A name that can be typed: it names a question and is no secret.
fn make_id() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    id.get(..8).unwrap_or(&id).to_owned()
}
