//! One pass over a text that tells where a closer look is worth it.

use aho_corasick::automaton::Automaton;
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind, StartKind};
use std::collections::BTreeMap;

use super::decode::{self, Class};
use super::escape::is_escape;

/// What a literal stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    /// A shape may begin with it.
    Shape(usize),
    /// The same, read backwards.
    Backwards(usize),
    /// A name that tells of secrets may hold it.
    Name,
    /// A name near which this shape is looked for.
    Near(usize),
    /// The whole text may be written backwards.
    Mirrored,
}

/// Literals and what each stands for.
pub(super) struct Sieve {
    automaton: DFA,
    meanings: Vec<(usize, Vec<Meaning>)>,
}

impl std::fmt::Debug for Sieve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sieve({})", self.meanings.len())
    }
}

/// Something met on the way.
pub(super) enum Met<'s> {
    /// A literal whose last byte stands at `last`.
    Literal { last: usize, length: usize, meanings: &'s [Meaning] },
    /// A run of characters that encodings are made of.
    Run { start: usize, end: usize },
    /// An escape.
    Escape,
}

impl Sieve {
    /// Prepares literals: lower case, and without what [`Class::is_joint`] passes over.
    pub(super) fn new(literals: impl Iterator<Item = (String, Meaning)>) -> Result<Self, String> {
        let mut words: BTreeMap<String, Vec<Meaning>> = BTreeMap::new();
        for (literal, meaning) in literals {
            let meanings = words.entry(literal).or_default();
            if !meanings.contains(&meaning) {
                meanings.push(meaning);
            }
        }
        let (words, meanings): (Vec<String>, Vec<_>) =
            words.into_iter().map(|(word, meanings)| (word.clone(), (word.len(), meanings))).unzip();
        let automaton = DFA::builder()
            .start_kind(StartKind::Unanchored)
            .match_kind(MatchKind::Standard)
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(words)
            .map_err(|error| error.to_string())?;
        Ok(Self { automaton, meanings })
    }

    /// Tells what stands in `text`, in its order, for as long as `tell` says to go on.
    pub(super) fn pass<'s>(&'s self, text: &str, mut tell: impl FnMut(Met<'s>) -> bool) {
        let Ok(start) = self.automaton.start_state(Anchored::No) else { return };
        let (mut state, mut run) = (start, 0);
        let bytes = text.as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            let class = Class::of(*byte);
            if !class.is_code() {
                if at - run >= decode::RUN && !tell(Met::Run { start: run, end: at }) {
                    return;
                }
                run = at + 1;
                if class.is_escape() && is_escape(bytes, at) && !tell(Met::Escape) {
                    return;
                }
            }
            if class.is_joint() {
                continue;
            }
            state = self.automaton.next_state(Anchored::No, state, *byte);
            if self.automaton.is_special(state) && self.automaton.is_match(state) {
                for index in 0..self.automaton.match_len(state) {
                    let pattern = self.automaton.match_pattern(state, index).as_usize();
                    if let Some((length, meanings)) = self.meanings.get(pattern)
                        && !tell(Met::Literal { last: at, length: *length, meanings })
                    {
                        return;
                    }
                }
            }
        }
        if bytes.len() - run >= decode::RUN {
            tell(Met::Run { start: run, end: bytes.len() });
        }
    }
}
