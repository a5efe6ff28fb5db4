//! The record of an agent and those of its sessions: concurrency slots, open requests, budgets,
//! memory, presence. A call looks up its record once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::agent_memory::AgentMemory;
use super::presence::Presence;
use crate::approval::ElicitationSupport;
use crate::inspect::files::{FileEffect, Files};
use crate::inspect::memory::{Memory, Piece, SessionUpdate};
use crate::message::{Direction, Envelope, Message, same_id};
use crate::protocol::{
    Call, CallError, Context, Era, Holder, OpenRequest, SessionId, UpstreamName, headers,
};

/// Maximum number of open requests per session, for answers that arrive on another stream than
/// their request's.
const OPEN: usize = 256;
/// Maximum number of answered requests per session, for answers that are sent again on a resumed
/// stream.
const ANSWERED: usize = 32;
/// Maximum number of pieces of secrets kept per session, and their age.
const PIECES: usize = 32;
const PIECE_AGE: Duration = Duration::from_secs(600);
/// The files that a session wrote are forgotten after this time without a write.
const FILES_AGE: Duration = Duration::from_secs(3600);

/// An agent, for one of its users.
pub(super) struct AgentRecord {
    pub(super) holder: Holder,
    /// Slots for calls in flight.
    places: Arc<Semaphore>,
    pub(super) memory: Mutex<AgentMemory>,
}

impl AgentRecord {
    pub(super) fn new(holder: Holder, calls: usize, memory: AgentMemory) -> Self {
        Self {
            holder,
            places: Arc::new(Semaphore::new(calls)),
            memory: Mutex::new(memory),
        }
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, AgentMemory> {
        self.memory.lock()
    }
}

/// A legacy session, or everything that an agent sends to an upstream outside of sessions.
pub(super) struct Session {
    pub(super) agent: Arc<AgentRecord>,
    pub(super) upstream: UpstreamName,
    pub(super) id: Option<SessionId>,
    /// The number of the upstream in the agent's memory.
    from: usize,
    state: Mutex<State>,
    /// Calls in flight.
    pub(super) calls: AtomicUsize,
    /// Open streams on which the agent only listens.
    pub(super) streams: AtomicUsize,
}

/// The state that changes from call to call.
pub(super) struct State {
    pub(super) used: Instant,
    requests: RecentRequests,
    /// The kinds of questions that the client presents to its user.
    pub(super) elicits: ElicitationSupport,
    /// Calls counted against a budget, by the glob of their tools, with the time of the last one.
    spent: HashMap<Box<str>, (u32, Instant)>,
    pieces: VecDeque<(Instant, Piece)>,
    files: Arc<Files>,
    wrote: Instant,
    pub(super) presence: Presence,
}

/// The last requests of a session.
#[derive(Default)]
struct RecentRequests {
    open: VecDeque<OpenRequest>,
    answered: VecDeque<OpenRequest>,
}

impl RecentRequests {
    fn add(&mut self, asked: &[OpenRequest]) {
        self.open.extend(asked.iter().cloned());
        let extra = self.open.len().saturating_sub(OPEN);
        self.open.drain(..extra);
    }

    fn answer(&mut self, id: &str) {
        let exact = self.open.iter().position(|asked| *asked.id == *id);
        let at = exact.or_else(|| self.open.iter().position(|asked| same_id(&asked.id, id)));
        self.answered.extend(at.and_then(|at| self.open.remove(at)));
        let extra = self.answered.len().saturating_sub(ANSWERED);
        self.answered.drain(..extra);
    }
}

impl Session {
    pub(super) fn new(
        agent: Arc<AgentRecord>,
        upstream: UpstreamName,
        id: Option<SessionId>,
        now: Instant,
    ) -> Self {
        let from = agent.memory().number(&upstream);
        let state = State {
            used: now,
            requests: RecentRequests::default(),
            elicits: ElicitationSupport::default(),
            spent: HashMap::new(),
            pieces: VecDeque::new(),
            files: Arc::default(),
            wrote: now,
            presence: Presence::default(),
        };
        Self {
            agent,
            upstream,
            id,
            from,
            state: Mutex::new(state),
            calls: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Takes a call's slots: one of its agent's, one of its upstream's. Streams that only listen
    /// need none: they are limited together with the connections that they occupy.
    ///
    /// # Errors
    /// The limit that was reached.
    pub(super) fn take_places(
        self: &Arc<Self>,
        listens: bool,
        of_upstream: &Arc<Semaphore>,
    ) -> Result<Permit, CallError> {
        if listens {
            return Ok(Permit::default());
        }
        let take = |places: &Arc<Semaphore>, limit| {
            places
                .clone()
                .try_acquire_owned()
                .map_err(|_| CallError::Limit(limit))
        };
        let agent = take(&self.agent.places, "calls_per_agent")?;
        let upstream = take(of_upstream, "calls_per_upstream")?;
        Ok(Permit {
            _places: Some([agent, upstream]),
            ..Permit::default()
        })
    }

    /// Records that a call is carried, or that a stream is open, until the result is dropped.
    pub(super) fn enter(self: &Arc<Self>, call: &Call) -> InFlightGuard {
        let listens = call.listens();
        self.state().presence.note(call, SystemTime::now());
        let counter = if listens { &self.streams } else { &self.calls };
        counter.fetch_add(1, Ordering::Relaxed);
        InFlightGuard {
            session: self.clone(),
            listens,
        }
    }

    /// Reports whether a budget of `most` calls of the tools that `glob` matches has room for one
    /// more. The budget restarts after `idle`.
    pub(super) fn has_budget(&self, glob: &str, most: u32, now: Instant, idle: Duration) -> bool {
        let state = self.state();
        let spent = state.spent.get(glob).filter(|(_, last)| now < *last + idle);
        spent.is_none_or(|(spent, _)| *spent < most)
    }

    /// Counts one call of the tools that `glob` matches.
    pub(super) fn spend(&self, glob: &str, now: Instant, idle: Duration) {
        let mut state = self.state();
        state.spent.retain(|_, (_, last)| now < *last + idle);
        let (spent, last) = state.spent.entry(glob.into()).or_insert((0, now));
        (*spent, *last) = (spent.saturating_add(1), now);
    }

    /// Records the requests of a message as open, and returns them. A modern request belongs to no
    /// session.
    pub(super) fn asking(&self, era: Era, message: &Message) -> Arc<[OpenRequest]> {
        let asked = headers::requests(message);
        if !asked.is_empty() && self.keeps_requests(era) {
            self.state().requests.add(&asked);
        }
        asked.into()
    }

    /// Returns the open requests of the session, and the last ones that were answered.
    pub(super) fn open_requests(&self, era: Era) -> Arc<[OpenRequest]> {
        if !self.keeps_requests(era) {
            return Arc::default();
        }
        let state = self.state();
        state
            .requests
            .answered
            .iter()
            .chain(&state.requests.open)
            .cloned()
            .collect()
    }

    /// Marks the requests that a message answers as no longer open.
    pub(super) fn close_answered(&self, era: Era, message: &Message) {
        let mut answers = message
            .envelopes()
            .iter()
            .filter(|envelope: &&Envelope| envelope.is_answer())
            .peekable();
        if answers.peek().is_some() && self.keeps_requests(era) {
            let mut state = self.state();
            answers
                .filter_map(|envelope| message.id(envelope))
                .for_each(|id| state.requests.answer(id));
        }
    }

    fn keeps_requests(&self, era: Era) -> bool {
        self.id.is_some() || era == Era::Legacy
    }

    /// Adds the requests of a call that opened the session.
    pub(super) fn opened_by(&self, asked: &[OpenRequest]) {
        self.state().requests.add(asked);
    }

    /// Returns the state from earlier messages that is needed to judge the next one.
    pub(super) fn memory(&self) -> Memory {
        let now = Instant::now();
        let (pieces, files) = {
            let state = self.state();
            let fresh = |(since, piece): &(Instant, Piece)| {
                (now.duration_since(*since) < PIECE_AGE).then(|| piece.clone())
            };
            // An empty slice needs no allocation.
            let pieces = if state.pieces.is_empty() {
                Arc::default()
            } else {
                state.pieces.iter().filter_map(fresh).collect()
            };
            let files = if now.duration_since(state.wrote) < FILES_AGE {
                state.files.clone()
            } else {
                Arc::default()
            };
            (pieces, files)
        };
        let memory = self.agent.memory().view(self.from, now);
        Memory {
            pieces,
            files,
            ..memory
        }
    }

    /// Stores the state that a judged message adds. Returns the limits that were reached, by name.
    pub(super) fn remember(
        &self,
        direction: Direction,
        learnt: SessionUpdate,
    ) -> Vec<&'static str> {
        if learnt.is_empty() {
            return Vec::new();
        }
        let now = Instant::now();
        if direction == Direction::Outbound {
            self.state().keep(learnt.pieces, learnt.files, now);
        }
        let traces = {
            let mut memory = self.agent.memory();
            if direction == Direction::Inbound {
                learnt
                    .secrets
                    .values()
                    .for_each(|value| memory.remember(value, self.from));
            }
            memory.traces()
        };
        traces.add(&learnt.flow, self.from, now)
    }

    /// Stores the state of an answer that was withheld and is now delivered to its agent. Returns
    /// the limits that were reached.
    pub(super) fn release(&self, mut learnt: SessionUpdate) -> Vec<&'static str> {
        let traces = self.agent.memory().traces();
        traces.release(&learnt.flow, self.from);
        learnt.flow.clear_quarantined();
        self.remember(Direction::Inbound, learnt)
    }

    /// Reports whether the session belongs to the caller.
    pub(super) fn is_of(&self, context: &Context) -> bool {
        context.is_of(&self.agent.holder)
    }

    /// Reports whether a call is in flight or a stream is open.
    pub(super) fn is_busy(&self) -> bool {
        self.calls.load(Ordering::Relaxed) + self.streams.load(Ordering::Relaxed) > 0
    }
}

impl State {
    fn keep(&mut self, pieces: Vec<Piece>, files: Vec<FileEffect>, now: Instant) {
        self.pieces.retain(|(since, old)| {
            now.duration_since(*since) < PIECE_AGE && !pieces.iter().any(|new| new.replaces(old))
        });
        self.pieces
            .extend(pieces.into_iter().map(|piece| (now, piece)));
        let extra = self.pieces.len().saturating_sub(PIECES);
        self.pieces.drain(..extra);
        if now.duration_since(self.wrote) >= FILES_AGE {
            self.files = Arc::default();
        }
        if !files.is_empty() {
            self.wrote = now;
            let kept = Arc::make_mut(&mut self.files);
            files.into_iter().for_each(|file| kept.add(file));
        }
    }
}

/// The slots of a call, returned when it is dropped.
#[derive(Default)]
pub(super) struct Permit {
    /// One of its agent's slots, and one of its upstream's.
    _places: Option<[OwnedSemaphorePermit; 2]>,
    _of_tool: Vec<OwnedSemaphorePermit>,
    _carried: Option<InFlightGuard>,
}

impl Permit {
    /// Adds slots of tools, and the presence guard.
    pub(super) fn with(self, of_tool: Vec<OwnedSemaphorePermit>, carried: InFlightGuard) -> Self {
        Self {
            _of_tool: of_tool,
            _carried: Some(carried),
            ..self
        }
    }
}

/// A call in flight or an open stream, counted with its session until it is dropped.
pub(super) struct InFlightGuard {
    session: Arc<Session>,
    listens: bool,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let counter = if self.listens {
            &self.session.streams
        } else {
            &self.session.calls
        };
        counter.fetch_sub(1, Ordering::Relaxed);
    }
}
