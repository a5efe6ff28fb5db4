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
use super::stream_openings::StreamOpenings;
use crate::approval::ElicitationSupport;
use crate::inspect::files::{FileEffect, Files};
use crate::inspect::memory::{Memory, Piece, SessionUpdate};
use crate::message::{Direction, Message, same_id};
use crate::protocol::{
    Call, CallError, Context, Era, Holder, OpenRequest, SessionId, UpstreamName, headers,
};

/// Maximum number of open requests per session, for answers that arrive on another stream than
/// their request's.
const MAX_OPEN: usize = 256;
/// Maximum number of answered requests per session, for answers that are sent again on a resumed
/// stream.
const MAX_ANSWERED: usize = 32;
/// Maximum number of pieces of secrets kept per session, and their age.
const PIECES: usize = 32;
const PIECE_AGE: Duration = Duration::from_secs(600);
/// The files that a session wrote are forgotten after this time without a write.
const FILES_AGE: Duration = Duration::from_secs(3600);

/// An agent, for one of its users.
pub(super) struct AgentRecord {
    pub(super) holder: Holder,
    /// Slots for calls in flight.
    slots: Arc<Semaphore>,
    pub(super) memory: Mutex<AgentMemory>,
}

impl AgentRecord {
    pub(super) fn new(holder: Holder, calls: usize, memory: AgentMemory) -> Self {
        Self {
            holder,
            slots: Arc::new(Semaphore::new(calls)),
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
    upstream_number: usize,
    state: Mutex<State>,
    /// Calls in flight.
    pub(super) calls: AtomicUsize,
    /// Open streams on which the agent only listens.
    pub(super) streams: AtomicUsize,
    pub(super) stream_openings: StreamOpenings,
}

/// The state that changes from call to call.
pub(super) struct State {
    pub(super) last_used: Instant,
    requests: RecentRequests,
    /// The kinds of questions that the client presents to its user.
    pub(super) elicitation: ElicitationSupport,
    /// Calls counted against a budget, by the glob of their tools, with the time of the last one.
    call_counts: HashMap<Box<str>, (u32, Instant)>,
    pieces: VecDeque<(Instant, Piece)>,
    files: Arc<Files>,
    last_write: Instant,
    pub(super) presence: Presence,
}

/// The last requests of a session.
#[derive(Default)]
struct RecentRequests {
    open: VecDeque<OpenRequest>,
    answered: VecDeque<OpenRequest>,
}

impl RecentRequests {
    fn add(&mut self, requests: &[OpenRequest]) {
        self.open.extend(requests.iter().cloned());
        let extra = self.open.len().saturating_sub(MAX_OPEN);
        self.open.drain(..extra);
    }

    fn mark_answered(&mut self, id: &str) {
        let exact = self.open.iter().position(|asked| *asked.id == *id);
        let at = exact.or_else(|| self.open.iter().position(|asked| same_id(&asked.id, id)));
        self.answered.extend(at.and_then(|at| self.open.remove(at)));
        let extra = self.answered.len().saturating_sub(MAX_ANSWERED);
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
        let upstream_number = agent.memory().number(&upstream);
        let state = State {
            last_used: now,
            requests: RecentRequests::default(),
            elicitation: ElicitationSupport::default(),
            call_counts: HashMap::new(),
            pieces: VecDeque::new(),
            files: Arc::default(),
            last_write: now,
            presence: Presence::default(),
        };
        Self {
            agent,
            upstream,
            id,
            upstream_number,
            state: Mutex::new(state),
            calls: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            stream_openings: StreamOpenings::default(),
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
    pub(super) fn acquire_slots(
        self: &Arc<Self>,
        listens: bool,
        upstream_slots: &Arc<Semaphore>,
    ) -> Result<Permit, CallError> {
        if listens {
            return Ok(Permit::default());
        }
        let acquire = |places: &Arc<Semaphore>, limit| {
            places
                .clone()
                .try_acquire_owned()
                .map_err(|_| CallError::Limit(limit))
        };
        let agent = acquire(&self.agent.slots, "calls_per_agent")?;
        let upstream = acquire(upstream_slots, "calls_per_upstream")?;
        Ok(Permit {
            _places: Some([agent, upstream]),
            ..Permit::default()
        })
    }

    /// Records that a call is carried, or that a stream is open, until the result is dropped.
    pub(super) fn track_call(self: &Arc<Self>, call: &Call) -> InFlightGuard {
        let listens = call.listens();
        self.state().presence.record_call(call, SystemTime::now());
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
        let count = state
            .call_counts
            .get(glob)
            .filter(|(_, last)| now < *last + idle);
        count.is_none_or(|(spent, _)| *spent < most)
    }

    /// Counts one call of the tools that `glob` matches.
    pub(super) fn spend(&self, glob: &str, now: Instant, idle: Duration) {
        let mut state = self.state();
        state.call_counts.retain(|_, (_, last)| now < *last + idle);
        let (count, last) = state.call_counts.entry(glob.into()).or_insert((0, now));
        (*count, *last) = (count.saturating_add(1), now);
    }

    /// Records the requests of a message as open, and returns them. A modern request belongs to no
    /// session.
    pub(super) fn record_requests(&self, era: Era, message: &Message) -> Arc<[OpenRequest]> {
        let requests = headers::requests(message);
        if !requests.is_empty() && self.keeps_requests(era) {
            self.state().requests.add(&requests);
        }
        requests.into()
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
        let mut answers = message.answers().peekable();
        if answers.peek().is_some() && self.keeps_requests(era) {
            let mut state = self.state();
            answers
                .filter_map(|envelope| message.id(envelope))
                .for_each(|id| state.requests.mark_answered(id));
        }
    }

    fn keeps_requests(&self, era: Era) -> bool {
        self.id.is_some() || era == Era::Legacy
    }

    /// Adds the requests of a call that opened the session.
    pub(super) fn add_requests(&self, requests: &[OpenRequest]) {
        self.state().requests.add(requests);
    }

    /// Returns the state from earlier messages that is needed to judge the next one.
    pub(super) fn memory(&self) -> Memory {
        let now = Instant::now();
        let (pieces, files) = {
            let state = self.state();
            let recent = |(since, piece): &(Instant, Piece)| {
                (now.duration_since(*since) < PIECE_AGE).then(|| piece.clone())
            };
            // An empty slice needs no allocation.
            let pieces = if state.pieces.is_empty() {
                Arc::default()
            } else {
                state.pieces.iter().filter_map(recent).collect()
            };
            let files = if now.duration_since(state.last_write) < FILES_AGE {
                state.files.clone()
            } else {
                Arc::default()
            };
            (pieces, files)
        };
        let memory = self.agent.memory().view(self.upstream_number, now);
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
        update: SessionUpdate,
    ) -> Vec<&'static str> {
        if update.is_empty() {
            return Vec::new();
        }
        let now = Instant::now();
        if direction == Direction::Outbound {
            self.state().store(update.pieces, update.files, now);
        }
        let traces = {
            let mut memory = self.agent.memory();
            if direction == Direction::Inbound {
                update
                    .secrets
                    .values()
                    .for_each(|value| memory.remember(value, self.upstream_number));
            }
            memory.traces()
        };
        traces.add(&update.flow, self.upstream_number, now)
    }

    /// Stores the state of an answer that was withheld and is now delivered to its agent. Returns
    /// the limits that were reached.
    pub(super) fn release(&self, mut update: SessionUpdate) -> Vec<&'static str> {
        let traces = self.agent.memory().traces();
        traces.release(&update.flow, self.upstream_number);
        update.flow.clear_quarantined();
        self.remember(Direction::Inbound, update)
    }

    /// Reports whether the session belongs to the caller.
    pub(super) fn belongs_to(&self, context: &Context) -> bool {
        context.belongs_to(&self.agent.holder)
    }

    /// Reports whether a call is in flight or a stream is open.
    pub(super) fn is_busy(&self) -> bool {
        self.calls.load(Ordering::Relaxed) + self.streams.load(Ordering::Relaxed) > 0
    }
}

impl State {
    fn store(&mut self, pieces: Vec<Piece>, files: Vec<FileEffect>, now: Instant) {
        self.pieces.retain(|(since, old)| {
            now.duration_since(*since) < PIECE_AGE && !pieces.iter().any(|new| new.replaces(old))
        });
        self.pieces
            .extend(pieces.into_iter().map(|piece| (now, piece)));
        let extra = self.pieces.len().saturating_sub(PIECES);
        self.pieces.drain(..extra);
        if now.duration_since(self.last_write) >= FILES_AGE {
            self.files = Arc::default();
        }
        if !files.is_empty() {
            self.last_write = now;
            let stored_files = Arc::make_mut(&mut self.files);
            files.into_iter().for_each(|file| stored_files.add(file));
        }
    }
}

/// The slots of a call, returned when it is dropped.
#[derive(Default)]
pub(super) struct Permit {
    /// One of its agent's slots, and one of its upstream's.
    _places: Option<[OwnedSemaphorePermit; 2]>,
    _tool_permits: Vec<OwnedSemaphorePermit>,
    _in_flight: Option<InFlightGuard>,
}

impl Permit {
    /// Adds slots of tools, and the presence guard.
    pub(super) fn with_guards(
        self,
        tool_permits: Vec<OwnedSemaphorePermit>,
        in_flight: InFlightGuard,
    ) -> Self {
        Self {
            _tool_permits: tool_permits,
            _in_flight: Some(in_flight),
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
