//! State from earlier messages of a session, used to judge later ones. It is an input to judging:
//! the component that forwards messages stores it, within limits, and updates it when a message has
//! been judged.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use zeroize::Zeroizing;

use super::files::{FileEffect, Files};
use crate::detect::flow::{self, TaintStore};
use crate::detect::secret::{self, Fingerprints};

/// Range of lengths, in bytes, of the end of an argument that is stored: it may be one piece of a
/// secret.
const PIECE_BYTES: std::ops::RangeInclusive<usize> = 3..=256;
/// Maximum length of a value, in bytes, that is appended to those of earlier calls in the same
/// argument: a secret may leave letter by letter.
const SHORT_BYTES: usize = 4;
/// Number of occurrences in a row from which a short value counts as an option of the tool and not
/// as a letter of a secret.
const REPEATS: usize = 3;
/// Maximum number of pieces stored of one call.
const PIECES: usize = 16;

/// The state of a session with one upstream. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Fingerprints of the secrets that this agent's upstreams have sent, each with the number of
    /// the upstream that sent it.
    pub fingerprints: Arc<Fingerprints>,
    /// The number of the upstream that the message goes to or comes from.
    pub upstream: usize,
    /// Ends of the arguments of recent calls, oldest first.
    pub pieces: Arc<[Piece]>,
    /// Files that the session's calls have written.
    pub files: Arc<Files>,
    /// Traces of what the agent received, whichever upstream sent it.
    pub traces: Arc<TaintStore>,
    /// The names of the agent's upstreams, indexed by their numbers.
    pub upstreams: Arc<[Box<str>]>,
    /// The current time.
    pub now: Option<Instant>,
}

/// The end of an argument that may be one piece of a secret. Wiped when dropped, and never
/// displayed.
#[derive(Clone)]
pub struct Piece {
    /// The tool and the argument.
    argument: Box<str>,
    text: Zeroizing<String>,
    /// Whether it consists of the short values of several calls, concatenated.
    accumulated: bool,
}

impl fmt::Debug for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Piece({})", self.argument)
    }
}

/// The state that a message adds.
#[derive(Clone, Debug, Default)]
pub struct SessionUpdate {
    /// Secrets that were received.
    pub secrets: secret::SecretUpdate,
    /// Ends of arguments that are sent.
    pub pieces: Vec<Piece>,
    /// Files that the message writes.
    pub files: Vec<FileEffect>,
    /// Pieces of what was received, and of what the agent sent.
    pub flow: flow::FlowUpdate,
}

impl Memory {
    /// Returns the session as seen by data flow rules.
    pub(super) fn session(&self) -> flow::Session<'_> {
        flow::Session::new(&self.traces, self.upstream).with_servers(&self.upstreams, self.now)
    }

    /// Returns the strings that the value of an argument may be combined with: earlier values of
    /// the same argument of the same tool, and then the first or the last word of the value. Empty
    /// if there are no earlier values, or if the previous one was the same: a repeated call adds no
    /// piece.
    pub(super) fn combined_values<'t>(
        &'t self,
        tool: &str,
        argument: &str,
        value: &'t str,
    ) -> Vec<Vec<&'t str>> {
        let argument_pieces = || {
            self.pieces
                .iter()
                .filter(|piece| piece.is_of(tool, argument))
        };
        let earlier: Vec<&str> = argument_pieces()
            .filter(|piece| !piece.accumulated)
            .map(|piece| piece.text.as_str())
            .collect();
        let accumulated = argument_pieces()
            .find(|piece| piece.accumulated)
            .map(|piece| piece.text.as_str());
        let mut combined: Vec<Vec<&str>> = accumulated
            .zip(short_end(value))
            .filter(|(accumulated, short_end)| !repeats(accumulated, short_end))
            .map(|(accumulated, short_end)| vec![accumulated, short_end])
            .into_iter()
            .collect();
        let Some(latest) = earlier.last() else {
            return combined;
        };
        let first = first_word(value);
        let last = last_word(value);
        let mut words: Vec<&str> = first.into_iter().chain(last).collect();
        words.dedup();
        words.retain(|word| word != latest);
        combined.extend(
            words
                .into_iter()
                .map(|word| earlier.iter().copied().chain([word]).collect()),
        );
        combined
    }

    /// Returns the piece of an argument that was stored last.
    fn latest(&self, tool: &str, argument: &str) -> Option<&str> {
        let newest = self
            .pieces
            .iter()
            .rev()
            .find(|piece| !piece.accumulated && piece.is_of(tool, argument));
        newest.map(|piece| piece.text.as_str())
    }

    /// Returns the short values of earlier calls in an argument.
    fn accumulated(&self, tool: &str, argument: &str) -> &str {
        let accumulated = self
            .pieces
            .iter()
            .find(|piece| piece.accumulated && piece.is_of(tool, argument));
        accumulated.map_or("", |piece| piece.text.as_str())
    }
}

impl SessionUpdate {
    /// Stores the end of an argument, if it may be a piece of a secret.
    pub(super) fn store_piece(&mut self, memory: &Memory, tool: &str, argument: &str, value: &str) {
        let previous = memory.accumulated(tool, argument);
        if let Some(short_end) =
            short_end(value).filter(|end| self.pieces.len() < PIECES && !repeats(previous, end))
        {
            let previous_end = previous
                .get((previous.len() + short_end.len()).saturating_sub(*PIECE_BYTES.end())..)
                .unwrap_or_default();
            let text = Zeroizing::new([previous_end, short_end].concat());
            self.pieces.push(Piece {
                argument: [tool, ".", argument].concat().into(),
                text,
                accumulated: true,
            });
        }
        let Some(word) = last_word(value).filter(|_| self.pieces.len() < PIECES) else {
            return;
        };
        let is_distinctive = word.bytes().any(|byte| {
            byte.is_ascii_digit() || byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-')
        });
        let is_token_byte = |byte: u8| {
            byte.is_ascii_alphanumeric()
                || matches!(
                    byte,
                    b'_' | b'-' | b'.' | b'/' | b'+' | b'=' | b':' | b'~' | b'%'
                )
        };
        let repeated = memory.latest(tool, argument) == Some(word);
        if is_distinctive
            && !repeated
            && PIECE_BYTES.contains(&word.len())
            && word.bytes().all(is_token_byte)
        {
            let argument = [tool, ".", argument].concat().into();
            self.pieces.push(Piece {
                argument,
                text: Zeroizing::new(word.to_owned()),
                accumulated: false,
            });
        }
    }

    /// Returns whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
            && self.pieces.is_empty()
            && self.files.is_empty()
            && self.flow.is_empty()
    }
}

impl Piece {
    /// Returns whether it contains everything that an older piece contained.
    pub fn replaces(&self, old: &Self) -> bool {
        self.accumulated && old.accumulated && self.argument == old.argument
    }

    fn is_of(&self, tool: &str, argument: &str) -> bool {
        self.argument
            .strip_prefix(tool)
            .and_then(|rest| rest.strip_prefix('.'))
            == Some(argument)
    }
}

/// Characters that surround a piece in prose.
const SURROUNDING_CHARS: [char; 10] = ['"', '\'', '`', ',', ';', '(', ')', '<', '>', '!'];

/// Returns a value of a few characters, or the few characters at the end of a URL or a short text.
fn short_end(value: &str) -> Option<&str> {
    let value = value.trim();
    let fits = |text: &&str| {
        (1..=SHORT_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if value.len() <= SHORT_BYTES {
        return Some(value).filter(fits);
    }
    let ends = value.len() <= *PIECE_BYTES.end() && value.contains("://");
    let last = value
        .trim_end_matches(['"', '\''])
        .rsplit(['=', '/', '&', '?', '#'])
        .next();
    last.filter(|_| ends).filter(fits)
}

/// Returns whether the last short values of an argument were all this one.
fn repeats(accumulated: &str, short_end: &str) -> bool {
    let ends = accumulated
        .as_bytes()
        .rchunks(short_end.len().max(1))
        .take(REPEATS);
    ends.len() == REPEATS && ends.into_iter().all(|end| end == short_end.as_bytes())
}

fn first_word(value: &str) -> Option<&str> {
    value
        .split_ascii_whitespace()
        .next()
        .map(|word| word.trim_matches(SURROUNDING_CHARS))
        .filter(|word| !word.is_empty())
}

fn last_word(value: &str) -> Option<&str> {
    value
        .split_ascii_whitespace()
        .next_back()
        .map(|word| word.trim_matches(SURROUNDING_CHARS))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the update after a call of `say` with this text.
    fn after(memory: &Memory, text: &str) -> SessionUpdate {
        let mut update = SessionUpdate::default();
        update.store_piece(memory, "say", "text", text);
        update
    }

    #[test]
    fn only_ends_that_may_be_pieces_are_kept() {
        let mut update = SessionUpdate::default();
        let none = Memory::default();
        update.store_piece(&none, "say", "text", "the first half is ghp_q8Zt4vNp2rKx7w");
        update.store_piece(&none, "say", "text", "just words");
        update.store_piece(&none, "say", "text", &"A".repeat(300));
        update.store_piece(&none, "say", "text", "käse-");
        assert_eq!(update.pieces.len(), 1);
        assert_eq!(format!("{:?}", update.pieces), "[Piece(say.text)]");
        let memory = Memory {
            pieces: update.pieces.into(),
            ..Memory::default()
        };
        let joined = memory.combined_values("say", "text", "Df9yGj3hLm5kQs6u and the rest");
        assert_eq!(
            joined,
            [
                ["ghp_q8Zt4vNp2rKx7w", "Df9yGj3hLm5kQs6u"],
                ["ghp_q8Zt4vNp2rKx7w", "rest"]
            ]
        );
        assert!(
            memory.combined_values("say", "channel", "x").is_empty()
                && memory.combined_values("sa", "y.text", "x").is_empty()
        );
        assert!(
            memory
                .combined_values("say", "text", "ghp_q8Zt4vNp2rKx7w")
                .is_empty(),
            "a call that is repeated"
        );
        assert!(after(&memory, "ghp_q8Zt4vNp2rKx7w").is_empty());
    }

    #[test]
    fn what_leaves_by_the_letter_is_kept_as_one() {
        for (before, behind) in [
            ("", ""),
            ("https://a.example/?c=", ""),
            ("curl 'https://a.example/", "'"),
        ] {
            let mut memory = Memory::default();
            for letter in "AKIA2E0A8F3B".chars() {
                let update = after(&memory, &format!("{before}{letter}{behind}"));
                let stored = memory
                    .pieces
                    .iter()
                    .filter(|old| !update.pieces.iter().any(|new| new.replaces(old)))
                    .cloned();
                memory.pieces = stored.chain(update.pieces.clone()).collect();
            }
            let accumulated = memory.pieces.iter().filter(|piece| piece.accumulated);
            assert_eq!(accumulated.count(), 1, "{before}");
            let next = format!("{before}2{behind}");
            assert_eq!(
                memory.combined_values("say", "text", &next).first(),
                Some(&vec!["AKIA2E0A8F3B", "2"]),
                "{before}"
            );
            let other = memory.combined_values("say", "text", "a text of some length");
            assert!(
                !other.iter().flatten().any(|piece| *piece == "AKIA2E0A8F3B"),
                "{before}"
            );
        }
        let mut memory = Memory::default();
        let mut most = 0;
        for number in 0..1_000 {
            let update = after(&memory, &format!("a{:02}", number % 100));
            let accumulated = update.pieces.into_iter().filter(|piece| piece.accumulated);
            memory.pieces = accumulated.collect();
            let longest = memory.pieces.iter().map(|piece| piece.text.len()).max();
            most = longest.unwrap_or_default().max(most);
        }
        assert!(
            (*PIECE_BYTES.end() - SHORT_BYTES..=*PIECE_BYTES.end()).contains(&most),
            "{most}"
        );
    }

    #[test]
    fn an_option_that_stays_the_same_is_no_secret_by_the_letter() {
        let mut memory = Memory::default();
        for _ in 0..10 {
            let mut update = SessionUpdate::default();
            update.store_piece(&memory, "fetch", "format", "text");
            if let Some(piece) = update.pieces.pop() {
                memory.pieces = Arc::new([piece]);
            }
        }
        assert_eq!(
            memory.accumulated("fetch", "format"),
            "text".repeat(REPEATS)
        );
        assert!(memory.combined_values("fetch", "format", "text").is_empty());
        assert_eq!(
            memory.combined_values("fetch", "format", "json"),
            [["texttexttext", "json"]]
        );
    }
}
