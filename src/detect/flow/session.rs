//! One message from the perspective of data flow: what is known about the session, and what the
//! message adds.

use std::cell::RefCell;
use std::fmt;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::text::{Text, cut};

use super::hash::Hashes;
use super::net::with_signs;
use super::piece::{Look, Piece, folded, pieces};
use super::taint_store::{ReceivedData, Servers, TaintStore};

/// Maximum number of pieces taken from one message, for each kind of data.
const PIECES: usize = 65_536;
/// Maximum number of pieces of quarantined text of one message.
const QUARANTINED: usize = 1024;
/// Maximum number of URLs of a trusted server's message that are examined.
const URLS: usize = 1024;
/// Maximum length of an argument that is remembered as the agent's own, in bytes.
const SAID_BYTES: usize = 64 << 10;
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
    pub(super) traces: &'s TaintStore,
    pub(super) server: usize,
    /// The names of the servers, by their numbers, and the current time.
    known: (&'s [Box<str>], Option<Instant>),
    learnt: RefCell<Learning>,
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
    learnt: FlowUpdate,
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
    pub(super) said: Vec<u64>,
    /// The kinds of data that came in, in the order of [`Came`].
    pub(super) came: [bool; 4],
    /// Whether there was more text than pieces are taken from.
    pub(super) cut: bool,
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
        write!(f, "Session({:?})", self.traces)
    }
}

impl FlowUpdate {
    /// Reports whether there are no additions.
    pub fn is_empty(&self) -> bool {
        self.counts() == [0; 3]
            && self.clean.is_empty()
            && self.said.is_empty()
            && self.came == [false; 4]
            && !self.cut
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
    pub fn unwithheld(&mut self) {
        self.quarantined.clear();
    }

    /// Removes the agent's own pieces: the call has not been sent.
    pub fn unsaid(&mut self) {
        self.said.clear();
    }
}

impl<'s> Session<'s> {
    /// Creates the view that the server of this number has of the session.
    pub fn new(traces: &'s TaintStore, server: usize) -> Self {
        let known: (&[Box<str>], _) = (&[], None);
        Self {
            traces,
            server,
            known,
            learnt: RefCell::default(),
            sources: RefCell::default(),
        }
    }

    /// Sets the names of the servers and the current time.
    pub fn at(self, servers: &'s [Box<str>], now: Option<Instant>) -> Self {
        Self {
            known: (servers, now),
            ..self
        }
    }

    /// Returns the additions of the message.
    pub fn learnt(self) -> FlowUpdate {
        self.learnt.into_inner().learnt
    }

    /// Records text that was withheld from the agent.
    pub fn withheld(&self, text: &str) {
        let Ok(mut learning) = self.learnt.try_borrow_mut() else {
            return;
        };
        let Some(text) = learning.afford(1, text, self.traces.limits().message_bytes) else {
            return;
        };
        let text = Text::new(text);
        learning.withhold(text.plain());
        for reading in text.readings() {
            learning.withhold(&reading.text);
        }
    }

    /// Records the source of a finding.
    pub(super) fn came_from(&self, rule: usize, servers: Vec<usize>, since: Option<Instant>) {
        if let Ok(mut sources) = self.sources.try_borrow_mut() {
            let drop = sources.len().saturating_sub(SOURCES - 1);
            sources.drain(..drop);
            let (names, now) = self.known;
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
            .find(|(of, _)| *of == rule)
            .map(|(_, source)| source.clone())
    }

    pub(super) fn note_said(&self, hash: u64) {
        if let Ok(mut learning) = self.learnt.try_borrow_mut() {
            learning.add(3, hash);
        }
    }
}

impl FlowContext<'_> {
    /// Records a server's text that the agent gets.
    pub fn came_in(&self, text: &Text<'_>) {
        let Ok(mut learning) = self.session.learnt.try_borrow_mut() else {
            return;
        };
        let DataLabels {
            private, untrusted, ..
        } = self.declared;
        let came = [
            private,
            untrusted,
            self.guessed.private,
            self.guessed.untrusted,
        ];
        learning
            .learnt
            .came
            .iter_mut()
            .zip(came)
            .for_each(|(all, one)| *all |= one);
        if !private && !untrusted {
            return learning.openly(text.raw(), self.session.traces);
        }
        let Some(plain) =
            learning.afford(0, text.plain(), self.session.traces.limits().message_bytes)
        else {
            return;
        };
        pieces(&folded(plain), Look::Some, &mut |found| {
            if untrusted {
                learning.add(0, found.hash);
            }
            if private {
                learning.add(1, found.hash);
            }
        });
        if !untrusted {
            learning.openly(text.raw(), self.session.traces);
        }
    }

    /// Reports whether this call goes out after private and untrusted data came in: according to
    /// the policy, or by a guess. Also returns the servers that sent the data, and when data last
    /// came in.
    pub(super) fn completes(&self) -> (bool, bool, Vec<usize>, Option<Instant>) {
        let came = self.session.traces.look(|kept| *kept.came());
        let ReceivedData {
            private,
            untrusted,
            maybe_private,
            maybe_untrusted,
            servers,
        } = came;
        let told = self.declared.outward && private.is_some() && untrusted.is_some();
        let out = self.declared.outward || self.guessed.outward;
        let guessed =
            out && private.or(maybe_private).is_some() && untrusted.or(maybe_untrusted).is_some();
        let servers = servers
            .into_iter()
            .reduce(Servers::and)
            .unwrap_or_default()
            .numbers();
        (
            told,
            guessed && !told,
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
    fn afford<'t>(&mut self, of: usize, text: &'t str, most: usize) -> Option<&'t str> {
        let bytes = self.bytes.get_mut(of)?;
        let left = most.saturating_sub(*bytes);
        self.learnt.cut |= text.len() > left;
        *bytes += text.len().min(left);
        Some(cut(text, left)).filter(|text| !text.is_empty())
    }

    /// Adds to the untrusted, private, clean or own pieces, by the number of the list.
    fn add(&mut self, list: usize, hash: u64) {
        let FlowUpdate {
            untrusted,
            private,
            clean,
            said,
            ..
        } = &mut self.learnt;
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
            self.learnt.cut = true;
        }
    }

    fn withhold(&mut self, plain: &str) {
        let text = folded(plain);
        if let Some(signs) = with_signs(&text) {
            self.hold(&signs, &signs);
        }
        self.hold(plain, &text);
    }

    fn hold(&mut self, plain: &str, text: &str) {
        let same = text.len() == plain.len();
        pieces(text, Look::All, &mut |found| {
            let FlowUpdate {
                quarantined, cut, ..
            } = &mut self.learnt;
            let [.., seen] = &mut self.seen;
            *cut |= quarantined.len() >= QUARANTINED;
            if quarantined.len() >= QUARANTINED || !seen.insert(found.hash) {
                return;
            }
            let values = match found.piece {
                Piece::Phrase => [String::new(), String::new()],
                // A shell needs its spaces; a disguised command may be without them.
                Piece::Command => [found.text.replace(' ', ""), found.text.to_owned()],
                _ => {
                    let written = plain.get(found.span).filter(|_| same).unwrap_or(found.text);
                    [found.text.to_owned(), written.to_owned()]
                }
            };
            quarantined.push(QuarantinedPiece {
                hash: found.hash,
                piece: found.piece,
                values: values.map(Zeroizing::new),
            });
        });
    }

    /// Records the pieces of a trusted server's text with which it may be called again. Once
    /// something was quarantined, all of them; before that, only those that cost next to nothing to
    /// find.
    fn openly(&mut self, raw: &str, traces: &TaintStore) {
        let all = !self.learnt.quarantined.is_empty() || traces.look(|kept| kept.has_quarantined());
        let id = || raw.len() <= ID_BYTES && !raw.bytes().any(|byte| byte.is_ascii_whitespace());
        if raw.len() > SAID_BYTES * 16
            || !(all || id() || memchr::memmem::find(raw.as_bytes(), b"://").is_some())
        {
            return;
        }
        let note = |learning: &mut Self, text: &str| {
            pieces(&folded(text), Look::References, &mut |found| {
                if found.piece.is_reference() {
                    learning.add(2, found.hash);
                }
            });
        };
        if all || id() {
            return note(self, raw);
        }
        let left = URLS.saturating_sub(self.urls);
        let places: Vec<usize> = memchr::memmem::find_iter(raw.as_bytes(), b"://")
            .take(left)
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
            note(self, url);
        }
    }
}

/// Reports whether an argument is short enough to be remembered as the agent's own.
pub(super) fn sayable(text: &str) -> bool {
    text.len() <= SAID_BYTES
}
