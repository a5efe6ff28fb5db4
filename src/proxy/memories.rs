//! What is remembered of sessions, for judging later messages: bounded in agents, sessions, bytes and time.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::pages::Pages;
use crate::config::Limits;
use crate::detect::flow::{TraceLimits, Traces};
use crate::detect::secret::{Prints, UPSTREAMS, remember};
use crate::inspect::files::{Files, Wrote};
use crate::inspect::memory::{Learnt, Memory, Piece};
use crate::message::Direction;
use crate::protocol::{Context, Holder, SessionId, UpstreamName};

/// Most secrets remembered of one agent's upstreams; the oldest is forgotten first.
const SECRETS: usize = 512;
/// Most pieces kept of a session, and how long one is.
const PIECES: usize = 32;
const PIECE_AGE: Duration = Duration::from_secs(600);
/// What a session wrote to files is forgotten when it has written none for so long.
const FILES_AGE: Duration = Duration::from_secs(3600);
/// Most sessions of one agent.
const SESSIONS: usize = 64;

/// The memories of all agents.
pub(super) struct Memories {
    kept: Mutex<HashMap<Holder, Kept>>,
    most: usize,
    idle: Duration,
    flow: TraceLimits,
    /// What agents can read on in.
    pub(super) pages: Pages,
}

/// What is remembered of one agent.
struct Kept {
    used: Instant,
    upstreams: Vec<UpstreamName>,
    /// The same, as judges know them.
    names: Arc<[Box<str>]>,
    prints: Arc<Prints>,
    /// The owners in `prints`, oldest first.
    owners: VecDeque<usize>,
    next: usize,
    traces: Arc<Traces>,
    sessions: HashMap<(usize, Option<SessionId>), Recent>,
}

/// What a session has sent lately.
struct Recent {
    used: Instant,
    /// When a file was written last, and all that were.
    wrote: Instant,
    files: Arc<Files>,
    /// Oldest first.
    pieces: VecDeque<(Instant, Piece)>,
}

impl Memories {
    /// For so many agents, each forgotten when it has been idle for too long.
    pub(super) fn new(limits: &Limits, most: usize) -> Self {
        Self { kept: Mutex::default(), most, idle: limits.session_idle, flow: limits.flow, pages: Pages::new(&limits.kept) }
    }

    /// What is known for a message.
    pub(super) fn of(&self, context: &Context) -> Memory {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(kept) = kept.get_mut(&context.holder()) else { return Memory::default() };
        kept.used = Instant::now();
        kept.traces.expire(kept.used);
        let from = kept.number(&context.upstream);
        let recent = kept.sessions.get(&(from, context.session.clone()));
        let fresh = |(since, piece): &(Instant, Piece)| (since.elapsed() < PIECE_AGE).then(|| piece.clone());
        let pieces = recent.into_iter().flat_map(|recent| &recent.pieces).filter_map(fresh).collect();
        let files = recent.filter(|recent| recent.wrote.elapsed() < FILES_AGE).map(|recent| recent.files.clone());
        Memory {
            prints: kept.prints.clone(),
            from,
            pieces,
            files: files.unwrap_or_default(),
            traces: kept.traces.clone(),
            upstreams: kept.names.clone(),
            now: Some(kept.used),
        }
    }

    /// Adds what a judged message leaves behind. Gives the limits that were hit, by name.
    pub(super) fn learn(&self, context: &Context, direction: Direction, learnt: Learnt) -> Vec<&'static str> {
        if learnt.is_empty() {
            return Vec::new();
        }
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !all.contains_key(&context.holder()) && all.len() >= self.most {
            let idle = self.idle;
            all.retain(|_, kept| kept.used.elapsed() < idle);
            if all.len() >= self.most {
                let oldest = all.iter().min_by_key(|(_, kept)| kept.used).map(|(holder, _)| holder.clone());
                oldest.map(|holder| all.remove(&holder));
            }
        }
        let kept = all.entry(context.holder()).or_insert_with(|| Kept::new(self.flow));
        let from = kept.number(&context.upstream);
        let traces = kept.traces.clone();
        match direction {
            Direction::Inbound => learnt.secrets.values().for_each(|value| kept.remember(value, from)),
            Direction::Outbound => kept.keep((from, context.session.clone()), learnt.pieces, learnt.files),
        }
        drop(all);
        traces.add(&learnt.flow, from, Instant::now())
    }

    /// Adds what an answer leaves behind that was withheld and is given to its agent now. Gives the limits that were hit.
    pub(super) fn release(&self, context: &Context, mut learnt: Learnt) -> Vec<&'static str> {
        let known = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&context.holder()).map(|kept| {
            let from = kept.number(&context.upstream);
            (kept.traces.clone(), from)
        });
        if let Some((traces, from)) = known {
            traces.release(&learnt.flow, from);
        }
        learnt.flow.unwithheld();
        self.learn(context, Direction::Inbound, learnt)
    }
}

impl Kept {
    fn new(flow: TraceLimits) -> Self {
        Self {
            used: Instant::now(),
            upstreams: Vec::new(),
            names: Arc::default(),
            prints: Arc::default(),
            owners: VecDeque::new(),
            next: 0,
            traces: Arc::new(Traces::new(flow)),
            sessions: HashMap::new(),
        }
    }

    /// The number of an upstream. There are as many as the config names.
    fn number(&mut self, upstream: &UpstreamName) -> usize {
        self.upstreams.iter().position(|known| known == upstream).unwrap_or_else(|| {
            self.upstreams.push(upstream.clone());
            self.names = self.upstreams.iter().map(|upstream| upstream.0.as_ref().into()).collect();
            self.upstreams.len() - 1
        })
    }

    fn remember(&mut self, value: &str, from: usize) {
        let owner = self.next * UPSTREAMS + from;
        let prints = Arc::make_mut(&mut self.prints);
        if !remember(prints, value, owner) {
            return;
        }
        self.next += 1;
        self.owners.push_back(owner);
        while self.owners.len() > SECRETS {
            self.owners.pop_front().into_iter().for_each(|owner| prints.forget(owner));
        }
    }

    fn keep(&mut self, session: (usize, Option<SessionId>), pieces: Vec<Piece>, files: Vec<Wrote>) {
        if !self.sessions.contains_key(&session) && self.sessions.len() >= SESSIONS {
            let oldest = self.sessions.iter().min_by_key(|(_, recent)| recent.used).map(|(session, _)| session.clone());
            oldest.map(|session| self.sessions.remove(&session));
        }
        let now = Instant::now();
        let new = || Recent { used: now, wrote: now, files: Arc::default(), pieces: VecDeque::new() };
        let recent = self.sessions.entry(session).or_insert_with(new);
        recent.used = now;
        recent.pieces.retain(|(since, _)| since.elapsed() < PIECE_AGE);
        recent.pieces.retain(|(_, old)| !pieces.iter().any(|new| new.replaces(old)));
        recent.pieces.extend(pieces.into_iter().map(|piece| (now, piece)));
        let extra = recent.pieces.len().saturating_sub(PIECES);
        recent.pieces.drain(..extra);
        if recent.wrote.elapsed() >= FILES_AGE {
            recent.files = Arc::default();
        }
        if !files.is_empty() {
            recent.wrote = now;
            let kept = Arc::make_mut(&mut recent.files);
            files.into_iter().for_each(|file| kept.add(file));
        }
    }
}
