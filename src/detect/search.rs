//! Searches texts for the regexes of all rules of the kinds `pattern` and `signal` at once.

mod automaton;
mod engine;
mod entry;
mod filter;
mod folded;
mod grams;
mod grouped;
mod keywords;
mod literals;
mod look;
mod parse;
mod regex;
mod scan;
mod short_words;
mod spec;
mod vocabulary;
mod wanted;
mod windows;
mod word_list;
mod words;

pub(super) use engine::{Engine, Phrase};
pub use look::Cost;
pub use regex::{REGEX_BYTES, Regex};
pub(super) use scan::Scan;
pub use spec::Spec;
pub(super) use spec::needles;

/// Shortest keyword, in bytes: shorter words are not found.
pub(super) const KEYWORD_BYTES: usize = 2;
/// Bytes that regexes may look at for any text, whatever its size.
const BUDGET_BYTES: usize = 32 << 10;

/// Rules that are searched for together and within the same bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Rules of the kind `pattern`.
    Pattern,
    /// Signals without which nothing adds up.
    Anchor,
    /// All other signals, which count around anchors.
    Other,
}

/// How much a search may cost and report.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Matches of one rule that are reported of one text, at most; beyond, the text as a whole is meant.
    spans: usize,
    /// Bytes that regexes may look at for each byte of a text.
    budget_per_byte: usize,
    /// How far a regex looks on each side of a keyword, in bytes.
    reach: usize,
}

impl Class {
    pub(super) const ALL: [Self; 3] = [Self::Pattern, Self::Anchor, Self::Other];

    fn bounds(self) -> Bounds {
        match self {
            Self::Pattern => Bounds {
                spans: 64,
                budget_per_byte: 32,
                reach: 512,
            },
            // Signals are common words: more of them are looked at than of patterns.
            Self::Anchor | Self::Other => Bounds {
                spans: usize::MAX,
                budget_per_byte: 32,
                reach: 160,
            },
        }
    }
}

impl Bounds {
    /// Bytes that regexes may look at in a text of so many bytes.
    fn budget(&self, length: usize) -> usize {
        length
            .saturating_mul(self.budget_per_byte)
            .saturating_add(BUDGET_BYTES)
    }
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests;
