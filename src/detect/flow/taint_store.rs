//! The data that has come in to one agent, as fingerprints: quarantined content, data from
//! untrusted and from private servers, and pieces that are exempt because the agent sent them first
//! or a trusted server sent them openly.

mod release;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use crate::detect::secret::{Fingerprints, for_each_form};

use super::hash::{ByHash, Hashes};
use super::piece::Piece;
use super::session::{FlowUpdate, QuarantinedPiece};

/// Maximum number of pieces kept of the agent's own text, and of text that trusted servers sent
/// openly.
const UNTAINTED_PIECES: usize = 65_536;
/// Minimum length of a piece that is searched for inside words and encodings, in bytes.
const INNER_PIECE_BYTES: usize = 8;
/// Maximum number of servers that are distinguished; further ones are only known to exist.
const SERVERS: usize = 63;

/// Limits on the data remembered for one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaintLimits {
    /// Number of pieces from untrusted and private servers: `flow_pieces`.
    pub pieces: usize,
    /// Number of quarantined pieces: `flow_quarantined_pieces`.
    pub quarantined: usize,
    /// Text of one message from which pieces are taken, in bytes: `flow_message_bytes`.
    pub message_bytes: usize,
    /// Age at which a piece is forgotten: `flow_age_seconds`.
    pub age: Duration,
}

impl Default for TaintLimits {
    fn default() -> Self {
        Self {
            pieces: 100_000,
            quarantined: 4096,
            message_bytes: 1 << 20,
            age: Duration::from_secs(4 * 3600),
        }
    }
}

enum_with_names! {
    /// The reason why a piece is remembered. Named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TaintReason {
        /// It was withheld from the agent.
        Quarantined = "quarantined",
        /// It came from an upstream that the policy declares untrusted.
        Untrusted = "untrusted",
        /// It came from a source of private data.
        Private = "private",
    }
}

/// A set of servers, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Servers(u64);

impl Servers {
    fn add(&mut self, server: usize) {
        self.0 |= 1 << server.min(SERVERS);
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns their numbers; servers that are not distinguished are left out.
    pub(super) fn numbers(self) -> Vec<usize> {
        (0..SERVERS)
            .filter(|server| self.contains(*server))
            .collect()
    }

    pub(super) fn contains(self, server: usize) -> bool {
        server < SERVERS && self.0 & (1 << server) != 0
    }
}

/// The sources of a piece, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Label {
    quarantined: Servers,
    untrusted: Servers,
    private: Servers,
    /// When it first came in.
    since: Option<Instant>,
}

impl Label {
    pub(super) fn since(&self) -> Option<Instant> {
        self.since
    }

    pub(super) fn servers(&self, from: TaintReason) -> Servers {
        match from {
            TaintReason::Quarantined => self.quarantined,
            TaintReason::Untrusted => self.untrusted,
            TaintReason::Private => self.private,
        }
    }

    fn servers_mut(&mut self, from: TaintReason) -> &mut Servers {
        match from {
            TaintReason::Quarantined => &mut self.quarantined,
            TaintReason::Untrusted => &mut self.untrusted,
            TaintReason::Private => &mut self.private,
        }
    }

    fn is_empty(&self) -> bool {
        self.quarantined.is_empty() && self.untrusted.is_empty() && self.private.is_empty()
    }
}

/// The kinds of data that have come in, and when each last did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceivedData {
    /// From servers that the policy declares as such.
    pub(super) private: Option<Instant>,
    pub(super) untrusted: Option<Instant>,
    /// From servers whose tools only describe themselves as such.
    pub(super) maybe_private: Option<Instant>,
    pub(super) maybe_untrusted: Option<Instant>,
    /// The servers that sent each kind, in the same order.
    pub(super) servers: [Servers; 4],
}

/// The data that has come in to one agent, in all its sessions. Shared; contains no text.
#[derive(Default)]
pub struct TaintStore {
    limits: TaintLimits,
    state: RwLock<TaintState>,
}

#[derive(Default)]
pub(super) struct TaintState {
    labels: ByHash<Label>,
    /// Oldest first, with the reason why each is remembered.
    order: VecDeque<(Instant, u64, TaintReason)>,
    quarantined: VecDeque<(Instant, u64, usize)>,
    /// Fingerprints of the values of quarantined pieces, and of their encodings.
    fingerprints: Fingerprints,
    /// The piece of each owner in `prints`.
    owners: HashMap<usize, (u64, Piece)>,
    next_owner: usize,
    agent_pieces: Recent<Hashes>,
    /// Pieces that servers sent openly, with those servers.
    clean: Recent<ByHash<Servers>>,
    received: ReceivedData,
}

/// A bounded collection, and the order in which it grew.
#[derive(Default)]
struct Recent<T> {
    items: T,
    order: VecDeque<(Instant, u64)>,
}

impl fmt::Debug for TaintStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Traces({})", self.state.read().labels.len())
    }
}

impl TaintStore {
    /// Creates an empty store.
    pub fn new(limits: TaintLimits) -> Self {
        Self {
            limits,
            state: RwLock::default(),
        }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &TaintLimits {
        &self.limits
    }

    /// Gives `look` read access to the content.
    pub(super) fn with_state<T>(&self, look: impl FnOnce(&TaintState) -> T) -> T {
        look(&self.state.read())
    }

    /// Adds the data of a message that came from or goes to the server of this number. Returns the
    /// limits that were reached, by name.
    pub fn add(&self, update: &FlowUpdate, server: usize, now: Instant) -> Vec<&'static str> {
        let mut exceeded = Vec::new();
        if update.truncated {
            exceeded.push("flow_message_bytes");
        }
        let mut state = self.state.write();
        let state = &mut *state;
        for value in &update.quarantined {
            state.quarantine(value, server, now);
        }
        for (from, hashes) in [
            (TaintReason::Untrusted, &update.untrusted),
            (TaintReason::Private, &update.private),
        ] {
            hashes
                .iter()
                .for_each(|hash| state.add_label(*hash, from, server, now));
        }
        if state.quarantined.len() > self.limits.quarantined {
            exceeded.push("flow_quarantined_pieces");
            state.forget_quarantined(state.quarantined.len() - self.limits.quarantined);
        }
        if state.order.len() > self.limits.pieces {
            exceeded.push("flow_pieces");
            state.forget(state.order.len() - self.limits.pieces);
        }
        for hash in &update.agent_pieces {
            // A piece that came in first is not the agent's own.
            if !state.labels.contains_key(hash) && state.agent_pieces.items.insert(*hash) {
                state.agent_pieces.order.push_back((now, *hash));
            }
        }
        for hash in &update.clean {
            let servers = state.clean.items.entry(*hash).or_default();
            if servers.is_empty() {
                state.clean.order.push_back((now, *hash));
            }
            servers.add(server);
        }
        let extra = state
            .agent_pieces
            .order
            .len()
            .saturating_sub(UNTAINTED_PIECES);
        state.forget_agent_pieces(extra);
        let extra = state.clean.order.len().saturating_sub(UNTAINTED_PIECES);
        state.forget_clean(extra);
        for (received, (last, servers)) in update.received.iter().zip(state.received.entries_mut())
        {
            if *received {
                *last = Some(now);
                servers.add(server);
            }
        }
        exceeded
    }

    /// Removes entries that are too old.
    pub fn expire(&self, now: Instant) {
        let is_old = |since: Instant| now.saturating_duration_since(since) >= self.limits.age;
        let any_old = self.with_state(|state| state.oldest().is_some_and(is_old));
        if !any_old {
            return;
        }
        let mut state = self.state.write();
        let count = state
            .order
            .iter()
            .take_while(|(since, ..)| is_old(*since))
            .count();
        state.forget(count);
        let count = state
            .quarantined
            .iter()
            .take_while(|(since, ..)| is_old(*since))
            .count();
        state.forget_quarantined(count);
        let count = state
            .agent_pieces
            .order
            .iter()
            .take_while(|(since, _)| is_old(*since))
            .count();
        state.forget_agent_pieces(count);
        let count = state
            .clean
            .order
            .iter()
            .take_while(|(since, _)| is_old(*since))
            .count();
        state.forget_clean(count);
        for (latest, servers) in state.received.entries_mut() {
            *latest = latest.filter(|since| !is_old(*since));
            *servers = if latest.is_some() {
                *servers
            } else {
                Servers::default()
            };
        }
    }
}

impl ReceivedData {
    fn entries_mut(&mut self) -> [(&mut Option<Instant>, &mut Servers); 4] {
        let [a, b, c, d] = &mut self.servers;
        [
            (&mut self.private, a),
            (&mut self.untrusted, b),
            (&mut self.maybe_private, c),
            (&mut self.maybe_untrusted, d),
        ]
    }
}

impl TaintState {
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    pub(super) fn label(&self, hash: u64) -> Option<&Label> {
        self.labels.get(&hash)
    }

    pub(super) fn received(&self) -> &ReceivedData {
        &self.received
    }

    /// Reports whether this server sent the piece openly.
    pub(super) fn is_clean(&self, hash: u64, server: usize) -> bool {
        self.clean
            .items
            .get(&hash)
            .is_some_and(|servers| servers.contains(server))
    }

    /// Reports whether any quarantined pieces are remembered.
    pub(super) fn has_quarantined(&self) -> bool {
        !self.quarantined.is_empty()
    }

    /// Returns the fingerprints of quarantined pieces and of their encodings; [`Self::owner`]
    /// returns the piece of each.
    pub(super) fn fingerprints(&self) -> &Fingerprints {
        &self.fingerprints
    }

    /// Returns the piece of an owner in [`Self::fingerprints`], and whether the fingerprint is that
    /// of an encoding.
    pub(super) fn owner(&self, owner: usize) -> Option<((u64, Piece), bool)> {
        self.owners
            .get(&(owner / 2))
            .map(|piece| (*piece, owner % 2 == 1))
    }

    fn oldest(&self) -> Option<Instant> {
        let oldest_times = [
            self.order.front().map(|(since, ..)| *since),
            self.quarantined.front().map(|(since, ..)| *since),
            self.agent_pieces.order.front().map(|(since, _)| *since),
            self.clean.order.front().map(|(since, _)| *since),
            self.received.private,
            self.received.untrusted,
            self.received.maybe_private,
            self.received.maybe_untrusted,
        ];
        oldest_times.into_iter().flatten().min()
    }

    fn add_label(&mut self, hash: u64, from: TaintReason, server: usize, now: Instant) {
        if self.agent_pieces.items.contains(&hash) {
            return;
        }
        let label = self.labels.entry(hash).or_default();
        label.since = label.since.or(Some(now));
        let servers = label.servers_mut(from);
        if servers.is_empty() {
            self.order.push_back((now, hash, from));
        }
        servers.add(server);
    }

    fn quarantine(&mut self, piece: &QuarantinedPiece, server: usize, now: Instant) {
        let hash = piece.hash;
        if self.agent_pieces.items.contains(&hash) {
            return;
        }
        let label = self.labels.entry(hash).or_default();
        label.since = label.since.or(Some(now));
        let servers = label.servers_mut(TaintReason::Quarantined);
        let is_new = servers.is_empty();
        servers.add(server);
        if !is_new {
            return;
        }
        let number = self.next_owner;
        self.next_owner += 1;
        self.quarantined.push_back((now, hash, number));
        self.owners.insert(number, (hash, piece.piece));
        for value in piece
            .forms()
            .filter(|value| value.len() >= INNER_PIECE_BYTES)
        {
            self.fingerprints.add(value.as_bytes(), number * 2);
            for_each_form(value, |form| {
                // A form that equals the value is not an encoding of it.
                if form != value {
                    self.fingerprints.add(form.as_bytes(), number * 2 + 1);
                }
            });
        }
    }

    fn forget(&mut self, count: usize) {
        for (_, hash, from) in self
            .order
            .drain(..count.min(self.order.len()))
            .collect::<Vec<_>>()
        {
            self.remove_label(hash, from);
        }
    }

    fn forget_quarantined(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let removed: Vec<_> = self
            .quarantined
            .drain(..count.min(self.quarantined.len()))
            .collect();
        for (_, hash, number) in removed {
            self.remove_label(hash, TaintReason::Quarantined);
            self.owners.remove(&number);
        }
        let owners = &self.owners;
        self.fingerprints
            .retain_owners(|owner| owners.contains_key(&(owner / 2)));
    }

    fn forget_agent_pieces(&mut self, count: usize) {
        for (_, hash) in self
            .agent_pieces
            .order
            .drain(..count.min(self.agent_pieces.order.len()))
        {
            self.agent_pieces.items.remove(&hash);
        }
    }

    fn forget_clean(&mut self, count: usize) {
        for (_, hash) in self.clean.order.drain(..count.min(self.clean.order.len())) {
            self.clean.items.remove(&hash);
        }
    }

    fn remove_label(&mut self, hash: u64, from: TaintReason) {
        if let Some(label) = self.labels.get_mut(&hash) {
            *label.servers_mut(from) = Servers::default();
            if label.is_empty() {
                self.labels.remove(&hash);
            }
        }
    }
}
