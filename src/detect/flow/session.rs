//! One message from the perspective of data flow: what is known about the session, and what the
//! message adds.

use std::cell::RefCell;
use std::fmt;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::text::{Text, cut};

use super::hash::Hashes;
use super::net::restore_signs;
use super::piece::{Look, Piece, fold_text, pieces};
use super::taint_store::{ReceivedData, Servers, TaintStore};

/// Maximum number of pieces taken from one message, for each kind of data.
const PIECES: usize = 65_536;
/// Maximum number of pieces of quarantined text of one message.
const QUARANTINED: usize = 1024;
/// Maximum number of URLs of a trusted server's message that are examined.
const URLS: usize = 1024;
/// Maximum length of an argument that is remembered as the agent's own, in bytes.
const AGENT_TEXT_BYTES: usize = 64 << 10;
/// Maximum length of a string without white space that may be an id or a path which a server gives
/// out to be called with again, in bytes.
const ID_BYTES: usize = 200;

/// The properties of a tool, as the policy declares them or as they can be guessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataLabels {
    /// Whether its results are private.
    pub private: bool,
    /// Whether its results may contain text from anyone.
    pub untrusted: bool,
    /// Whether its arguments leave the organization.
    pub outward: bool,
}

/// The place of a string in the flow of data: part of [`Place`](crate::detect::Place).
#[derive(Clone, Copy, Debug)]
pub struct FlowContext<'a> {
    /// The session.
    pub session: &'a Session<'a>,
    /// The properties that the policy declares for the tool.
    pub declared: DataLabels,
    /// The properties guessed from its annotations, if the policy declares none for any tool.
    pub guessed: DataLabels,
    /// The schema for calls of the tool: words in it do not count as coming from elsewhere.
    pub schema: Option<&'a str>,
}

/// The state of an agent's session with one server, and the additions of the current message.
pub struct Session<'s> {
    pub(super) store: &'s TaintStore,
    pub(super) server: usize,
    /// The names of the servers, by their numbers, and the current time.
    names_and_time: (&'s [Box<str>], Option<Instant>),
    learning: RefCell<Learning>,
    sources: RefCell<Vec<(usize, Source)>>,
}

/// The origin of a piece that goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The servers that sent it, by name; empty if there are too many servers to distinguish.
    pub servers: Vec<Box<str>>,
    /// How long ago it was first sent.
    pub age: Option<Duration>,
}

/// Maximum number of findings of a message whose source is kept.
const SOURCES: usize = 64;

#[derive(Default)]
struct Learning {
    update: FlowUpdate,
    /// Bytes of text from which pieces were taken: of text that the agent gets, and of withheld
    /// text. They are counted separately, so that a large amount of the former cannot keep the
    /// latter from being remembered.
    bytes: [usize; 2],
    /// Number of URLs that were examined.
    urls: usize,
    seen: [Hashes; 5],
}

/// The additions of a message. Wiped when dropped; `Debug` does not show the content.
#[derive(Clone, Default)]
pub struct FlowUpdate {
    pub(super) quarantined: Vec<QuarantinedPiece>,
    pub(super) untrusted: Vec<u64>,
    pub(super) private: Vec<u64>,
    /// Pieces that a trusted server sent openly.
    pub(super) clean: Vec<u64>,
    /// Pieces that the agent sent.
    pub(super) agent_pieces: Vec<u64>,
    /// The kinds of data that came in, in the order of [`ReceivedData`].
    pub(super) received: [bool; 4],
    /// Whether there was more text than pieces are taken from.
    pub(super) truncated: bool,
}

/// A piece of quarantined text.
#[derive(Clone)]
pub(super) struct QuarantinedPiece {
    pub(super) hash: u64,
    pub(super) piece: Piece,
    /// The form in which it is compared, and the form as written; both empty for phrases.
    values: [Zeroizing<String>; 2],
}

impl QuarantinedPiece {
    pub(super) fn forms(&self) -> impl Iterator<Item = &str> {
        let [compared, written] = &self.values;
        let other = (compared != written).then_some(written);
        std::iter::once(compared)
            .chain(other)
            .map(|value| value.as_str())
    }
}

impl fmt::Debug for FlowUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [quarantined, untrusted, private] = self.counts();
        write!(
            f,
            "Learnt({quarantined} quarantined, {untrusted} untrusted, {private} private)"
        )
    }
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({:?})", self.store)
    }
}

impl FlowUpdate {
    /// Reports whether there are no additions.
    pub fn is_empty(&self) -> bool {
        self.counts() == [0; 3]
            && self.clean.is_empty()
            && self.agent_pieces.is_empty()
            && self.received == [false; 4]
            && !self.truncated
    }

    /// Returns the numbers of pieces of quarantined, untrusted and private text.
    pub fn counts(&self) -> [usize; 3] {
        [
            self.quarantined.len(),
            self.untrusted.len(),
            self.private.len(),
        ]
    }

    /// Removes the withheld pieces: they have been released.
    pub fn clear_quarantined(&mut self) {
        self.quarantined.clear();
    }

    /// Removes the agent's own pieces: the call has not been sent.
    pub fn clear_agent_pieces(&mut self) {
        self.agent_pieces.clear();
    }
}

impl<'s> Session<'s> {
    /// Creates the view that the server of this number has of the session.
    pub fn new(store: &'s TaintStore, server: usize) -> Self {
        let names_and_time: (&[Box<str>], _) = (&[], None);
        Self {
            store,
            server,
            names_and_time,
            learning: RefCell::default(),
            sources: RefCell::default(),
        }
    }

    /// Sets the names of the servers and the current time.
    pub fn with_servers(self, servers: &'s [Box<str>], now: Option<Instant>) -> Self {
        Self {
            names_and_time: (servers, now),
            ..self
        }
    }

    /// Returns the additions of the message.
    pub fn into_update(self) -> FlowUpdate {
        self.learning.into_inner().update
    }

    /// Records text that was withheld from the agent.
    pub fn record_withheld(&self, text: &str) {
        let Ok(mut learning) = self.learning.try_borrow_mut() else {
            return;
        };
        let Some(text) = learning.take_budget(1, text, self.store.limits().message_bytes) else {
            return;
        };
        let text = Text::new(text);
        learning.quarantine_text(text.plain());
        for reading in text.readings() {
            learning.quarantine_text(&reading.text);
        }
    }

    /// Records the source of a finding.
    pub(super) fn record_source(&self, rule: usize, servers: Vec<usize>, since: Option<Instant>) {
        if let Ok(mut sources) = self.sources.try_borrow_mut() {
            let excess = sources.len().saturating_sub(SOURCES - 1);
            sources.drain(..excess);
            let (names, now) = self.names_and_time;
            let servers = servers
                .into_iter()
                .filter_map(|server| names.get(server).cloned())
                .collect();
            let age = now
                .zip(since)
                .map(|(now, since)| now.saturating_duration_since(since));
            sources.push((rule, Source { servers, age }));
        }
    }

    /// Returns the source of the last finding of a rule, given by its index in the set.
    pub fn source(&self, rule: usize) -> Option<Source> {
        let sources = self.sources.try_borrow().ok()?;
        sources
            .iter()
            .rev()
            .find(|(index, _)| *index == rule)
            .map(|(_, source)| source.clone())
    }

    pub(super) fn record_agent_piece(&self, hash: u64) {
        if let Ok(mut learning) = self.learning.try_borrow_mut() {
            learning.add(3, hash);
        }
    }
}

impl FlowContext<'_> {
    /// Records a server's text that the agent gets.
    pub fn record_received(&self, text: &Text<'_>) {
        let Ok(mut learning) = self.session.learning.try_borrow_mut() else {
            return;
        };
        let DataLabels {
            private, untrusted, ..
        } = self.declared;
        let received = [
            private,
            untrusted,
            self.guessed.private,
            self.guessed.untrusted,
        ];
        learning
            .update
            .received
            .iter_mut()
            .zip(received)
            .for_each(|(all, one)| *all |= one);
        if !private && !untrusted {
            return learning.record_open_text(text.raw(), self.session.store);
        }
        let Some(plain) =
            learning.take_budget(0, text.plain(), self.session.store.limits().message_bytes)
        else {
            return;
        };
        pieces(&fold_text(plain), Look::Some, &mut |piece| {
            if untrusted {
                learning.add(0, piece.hash);
            }
            if private {
                learning.add(1, piece.hash);
            }
        });
        if !untrusted {
            learning.record_open_text(text.raw(), self.session.store);
        }
    }

    /// Reports whether this call goes out after private and untrusted data came in: according to
    /// the policy, or by a guess. Also returns the servers that sent the data, and when data last
    /// came in.
    pub(super) fn check_completion(&self) -> (bool, bool, Vec<usize>, Option<Instant>) {
        let received = self.session.store.with_state(|state| *state.received());
        let ReceivedData {
            private,
            untrusted,
            maybe_private,
            maybe_untrusted,
            servers,
        } = received;
        let declared = self.declared.outward && private.is_some() && untrusted.is_some();
        let may_be_outward = self.declared.outward || self.guessed.outward;
        let guessed = may_be_outward
            && private.or(maybe_private).is_some()
            && untrusted.or(maybe_untrusted).is_some();
        let servers = servers
            .into_iter()
            .reduce(Servers::union)
            .unwrap_or_default()
            .numbers();
        (
            declared,
            guessed && !declared,
            servers,
            private
                .max(untrusted)
                .max(maybe_private)
                .max(maybe_untrusted),
        )
    }
}

impl Learning {
    /// Returns as much of a text as pieces may still be taken from.
    fn take_budget<'t>(&mut self, kind: usize, text: &'t str, limit: usize) -> Option<&'t str> {
        let bytes = self.bytes.get_mut(kind)?;
        let remaining = limit.saturating_sub(*bytes);
        self.update.truncated |= text.len() > remaining;
        *bytes += text.len().min(remaining);
        Some(cut(text, remaining)).filter(|text| !text.is_empty())
    }

    /// Adds to the untrusted, private, clean or own pieces, by the number of the list.
    fn add(&mut self, list: usize, hash: u64) {
        let FlowUpdate {
            untrusted,
            private,
            clean,
            agent_pieces: said,
            ..
        } = &mut self.update;
        let [a, b, c, d, _] = &mut self.seen;
        let (list, seen) = match list {
            0 => (untrusted, a),
            1 => (private, b),
            2 => (clean, c),
            _ => (said, d),
        };
        if list.len() < PIECES && seen.insert(hash) {
            list.push(hash);
        } else if list.len() >= PIECES {
            self.update.truncated = true;
        }
    }

    fn quarantine_text(&mut self, plain: &str) {
        let text = fold_text(plain);
        if let Some(signs) = restore_signs(&text) {
            self.quarantine_pieces(&signs, &signs);
        }
        self.quarantine_pieces(plain, &text);
    }

    fn quarantine_pieces(&mut self, plain: &str, text: &str) {
        let same = text.len() == plain.len();
        pieces(text, Look::All, &mut |piece| {
            let FlowUpdate {
                quarantined,
                truncated: cut,
                ..
            } = &mut self.update;
            let [.., seen] = &mut self.seen;
            *cut |= quarantined.len() >= QUARANTINED;
            if quarantined.len() >= QUARANTINED || !seen.insert(piece.hash) {
                return;
            }
            let values = match piece.piece {
                Piece::Phrase => [String::new(), String::new()],
                // A shell needs its spaces; a disguised command may be without them.
                Piece::Command => [piece.text.replace(' ', ""), piece.text.to_owned()],
                _ => {
                    let written = plain.get(piece.span).filter(|_| same).unwrap_or(piece.text);
                    [piece.text.to_owned(), written.to_owned()]
                }
            };
            quarantined.push(QuarantinedPiece {
                hash: piece.hash,
                piece: piece.piece,
                values: values.map(Zeroizing::new),
            });
        });
    }

    /// Records the pieces of a trusted server's text with which it may be called again. Once
    /// something was quarantined, all of them; before that, only those that cost next to nothing to
    /// find.
    fn record_open_text(&mut self, raw: &str, store: &TaintStore) {
        let all = !self.update.quarantined.is_empty()
            || store.with_state(|state| state.has_quarantined());
        let id = || raw.len() <= ID_BYTES && !raw.bytes().any(|byte| byte.is_ascii_whitespace());
        if raw.len() > AGENT_TEXT_BYTES * 16
            || !(all || id() || memchr::memmem::find(raw.as_bytes(), b"://").is_some())
        {
            return;
        }
        let record = |learning: &mut Self, text: &str| {
            pieces(&fold_text(text), Look::References, &mut |piece| {
                if piece.piece.is_reference() {
                    learning.add(2, piece.hash);
                }
            });
        };
        if all || id() {
            return record(self, raw);
        }
        let remaining = URLS.saturating_sub(self.urls);
        let places: Vec<usize> = memchr::memmem::find_iter(raw.as_bytes(), b"://")
            .take(remaining)
            .collect();
        self.urls += places.len();
        for at in places {
            let start = (at.saturating_sub(8)..=at)
                .find(|start| raw.is_char_boundary(*start))
                .unwrap_or(at);
            let line = cut(raw.get(start..).unwrap_or_default(), 600);
            let begin = line.split("://").next().map_or(0, |before| {
                before
                    .rfind(|c: char| !c.is_ascii_alphanumeric())
                    .map_or(0, |at| at + 1)
            });
            let url = line
                .get(begin..)
                .and_then(|url| url.split_ascii_whitespace().next())
                .unwrap_or_default();
            record(self, url);
        }
    }
}

/// Reports whether an argument is short enough to be remembered as the agent's own.
pub(super) fn is_recordable(text: &str) -> bool {
    text.len() <= AGENT_TEXT_BYTES
}
