//! The data that has come in to one agent, as fingerprints: quarantined content, data from
//! untrusted and from private servers, and pieces that are exempt because the agent sent them first
//! or a trusted server sent them openly.

mod release;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use crate::detect::secret::{Fingerprints, forms};

use super::hash::{ByHash, Hashes};
use super::piece::Piece;
use super::session::{FlowUpdate, QuarantinedPiece};

/// Maximum number of pieces kept of the agent's own text, and of text that trusted servers sent
/// openly.
const KNOWN: usize = 65_536;
/// Minimum length of a piece that is searched for inside words and encodings, in bytes.
const HELD_BYTES: usize = 8;
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

/// The reason why a piece is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaintReason {
    /// It was withheld from the agent.
    Quarantined,
    /// It came from an upstream that the policy declares untrusted.
    Untrusted,
    /// It came from a source of private data.
    Private,
}

impl TaintReason {
    /// Names in rule files.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("quarantined", Self::Quarantined),
        ("untrusted", Self::Untrusted),
        ("private", Self::Private),
    ];
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

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns their numbers; servers that are not distinguished are left out.
    pub(super) fn numbers(self) -> Vec<usize> {
        (0..SERVERS).filter(|server| self.has(*server)).collect()
    }

    pub(super) fn has(self, server: usize) -> bool {
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

    fn set(&mut self, from: TaintReason) -> &mut Servers {
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
    kept: RwLock<TaintState>,
}

#[derive(Default)]
pub(super) struct TaintState {
    marks: ByHash<Label>,
    /// Oldest first, with the reason why each is remembered.
    order: VecDeque<(Instant, u64, TaintReason)>,
    quarantined: VecDeque<(Instant, u64, usize)>,
    /// Fingerprints of the values of quarantined pieces, and of their encodings.
    prints: Fingerprints,
    /// The piece of each owner in `prints`.
    owners: HashMap<usize, (u64, Piece)>,
    next: usize,
    said: Recent<Hashes>,
    /// Pieces that servers sent openly, with those servers.
    clean: Recent<ByHash<Servers>>,
    came: ReceivedData,
}

/// A bounded collection, and the order in which it grew.
#[derive(Default)]
struct Recent<T> {
    held: T,
    order: VecDeque<(Instant, u64)>,
}

impl fmt::Debug for TaintStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Traces({})", self.kept.read().marks.len())
    }
}

impl TaintStore {
    /// Creates an empty store.
    pub fn new(limits: TaintLimits) -> Self {
        Self {
            limits,
            kept: RwLock::default(),
        }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &TaintLimits {
        &self.limits
    }

    /// Gives `look` read access to the content.
    pub(super) fn look<T>(&self, look: impl FnOnce(&TaintState) -> T) -> T {
        look(&self.kept.read())
    }

    /// Adds the data of a message that came from or goes to the server of this number. Returns the
    /// limits that were reached, by name.
    pub fn add(&self, learnt: &FlowUpdate, server: usize, now: Instant) -> Vec<&'static str> {
        let mut hit = Vec::new();
        if learnt.cut {
            hit.push("flow_message_bytes");
        }
        let mut kept = self.kept.write();
        let kept = &mut *kept;
        for value in &learnt.quarantined {
            kept.quarantine(value, server, now);
        }
        for (from, hashes) in [
            (TaintReason::Untrusted, &learnt.untrusted),
            (TaintReason::Private, &learnt.private),
        ] {
            hashes
                .iter()
                .for_each(|hash| kept.mark(*hash, from, server, now));
        }
        if kept.quarantined.len() > self.limits.quarantined {
            hit.push("flow_quarantined_pieces");
            kept.forget_quarantined(kept.quarantined.len() - self.limits.quarantined);
        }
        if kept.order.len() > self.limits.pieces {
            hit.push("flow_pieces");
            kept.forget(kept.order.len() - self.limits.pieces);
        }
        for hash in &learnt.said {
            // A piece that came in first is not the agent's own.
            if !kept.marks.contains_key(hash) && kept.said.held.insert(*hash) {
                kept.said.order.push_back((now, *hash));
            }
        }
        for hash in &learnt.clean {
            let servers = kept.clean.held.entry(*hash).or_default();
            if servers.is_empty() {
                kept.clean.order.push_back((now, *hash));
            }
            servers.add(server);
        }
        let extra = kept.said.order.len().saturating_sub(KNOWN);
        kept.forget_said(extra);
        let extra = kept.clean.order.len().saturating_sub(KNOWN);
        kept.forget_clean(extra);
        for (came, (last, servers)) in learnt.came.iter().zip(kept.came.all()) {
            if *came {
                *last = Some(now);
                servers.add(server);
            }
        }
        hit
    }

    /// Removes entries that are too old.
    pub fn expire(&self, now: Instant) {
        let old = |since: Instant| now.saturating_duration_since(since) >= self.limits.age;
        let any = self.look(|kept| kept.oldest().is_some_and(old));
        if !any {
            return;
        }
        let mut kept = self.kept.write();
        let count = kept
            .order
            .iter()
            .take_while(|(since, ..)| old(*since))
            .count();
        kept.forget(count);
        let count = kept
            .quarantined
            .iter()
            .take_while(|(since, ..)| old(*since))
            .count();
        kept.forget_quarantined(count);
        let count = kept
            .said
            .order
            .iter()
            .take_while(|(since, _)| old(*since))
            .count();
        kept.forget_said(count);
        let count = kept
            .clean
            .order
            .iter()
            .take_while(|(since, _)| old(*since))
            .count();
        kept.forget_clean(count);
        for (came, servers) in kept.came.all() {
            *came = came.filter(|since| !old(*since));
            *servers = if came.is_some() {
                *servers
            } else {
                Servers::default()
            };
        }
    }
}

impl ReceivedData {
    fn all(&mut self) -> [(&mut Option<Instant>, &mut Servers); 4] {
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
        self.marks.is_empty()
    }

    pub(super) fn label(&self, hash: u64) -> Option<&Label> {
        self.marks.get(&hash)
    }

    pub(super) fn came(&self) -> &ReceivedData {
        &self.came
    }

    /// Reports whether this server sent the piece openly.
    pub(super) fn is_clean(&self, hash: u64, server: usize) -> bool {
        self.clean
            .held
            .get(&hash)
            .is_some_and(|servers| servers.has(server))
    }

    /// Reports whether any quarantined pieces are remembered.
    pub(super) fn has_quarantined(&self) -> bool {
        !self.quarantined.is_empty()
    }

    /// Returns the fingerprints of quarantined pieces and of their encodings; [`Self::owner`]
    /// returns the piece of each.
    pub(super) fn prints(&self) -> &Fingerprints {
        &self.prints
    }

    /// Returns the piece of an owner in [`Self::prints`], and whether the fingerprint is that of an
    /// encoding.
    pub(super) fn owner(&self, owner: usize) -> Option<((u64, Piece), bool)> {
        self.owners
            .get(&(owner / 2))
            .map(|piece| (*piece, owner % 2 == 1))
    }

    fn oldest(&self) -> Option<Instant> {
        let fronts = [
            self.order.front().map(|(since, ..)| *since),
            self.quarantined.front().map(|(since, ..)| *since),
            self.said.order.front().map(|(since, _)| *since),
            self.clean.order.front().map(|(since, _)| *since),
            self.came.private,
            self.came.untrusted,
            self.came.maybe_private,
            self.came.maybe_untrusted,
        ];
        fronts.into_iter().flatten().min()
    }

    fn mark(&mut self, hash: u64, from: TaintReason, server: usize, now: Instant) {
        if self.said.held.contains(&hash) {
            return;
        }
        let mark = self.marks.entry(hash).or_default();
        mark.since = mark.since.or(Some(now));
        let servers = mark.set(from);
        if servers.is_empty() {
            self.order.push_back((now, hash, from));
        }
        servers.add(server);
    }

    fn quarantine(&mut self, value: &QuarantinedPiece, server: usize, now: Instant) {
        let hash = value.hash;
        if self.said.held.contains(&hash) {
            return;
        }
        let mark = self.marks.entry(hash).or_default();
        mark.since = mark.since.or(Some(now));
        let servers = mark.set(TaintReason::Quarantined);
        let new = servers.is_empty();
        servers.add(server);
        if !new {
            return;
        }
        let number = self.next;
        self.next += 1;
        self.quarantined.push_back((now, hash, number));
        self.owners.insert(number, (hash, value.piece));
        for value in value.forms().filter(|value| value.len() >= HELD_BYTES) {
            self.prints.add(value.as_bytes(), number * 2);
            forms(value, |form| {
                // A form that equals the value is not an encoding of it.
                if form != value {
                    self.prints.add(form.as_bytes(), number * 2 + 1);
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
            self.unmark(hash, from);
        }
    }

    fn forget_quarantined(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let gone: Vec<_> = self
            .quarantined
            .drain(..count.min(self.quarantined.len()))
            .collect();
        for (_, hash, number) in gone {
            self.unmark(hash, TaintReason::Quarantined);
            self.owners.remove(&number);
        }
        let owners = &self.owners;
        self.prints.keep(|owner| owners.contains_key(&(owner / 2)));
    }

    fn forget_said(&mut self, count: usize) {
        for (_, hash) in self.said.order.drain(..count.min(self.said.order.len())) {
            self.said.held.remove(&hash);
        }
    }

    fn forget_clean(&mut self, count: usize) {
        for (_, hash) in self.clean.order.drain(..count.min(self.clean.order.len())) {
            self.clean.held.remove(&hash);
        }
    }

    fn unmark(&mut self, hash: u64, from: TaintReason) {
        if let Some(mark) = self.marks.get_mut(&hash) {
            *mark.set(from) = Servers::default();
            if mark.is_empty() {
                self.marks.remove(&hash);
            }
        }
    }
}
