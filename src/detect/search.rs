//! Searches texts for the regexes of all rules of the kinds `pattern` and `signal` at once.

mod alternatives;
mod automaton;
mod companion;
mod draft;
mod engine;
mod entry;
mod filter;
mod folded;
mod grams;
mod grouped;
mod hir;
mod keywords;
mod literals;
mod look;
mod lower_case;
mod parse;
mod regex;
mod scan;
mod short_words;
mod spec;
mod vocabulary;
mod windows;
mod word_list;
mod word_uses;
mod words;

pub(super) use engine::{Engine, Phrase, RegionSearch, RulePlaces};
pub use look::Cost;
pub use regex::{REGEX_BYTES, Regex};
pub(super) use scan::Scan;
pub use spec::Spec;
pub(super) use spec::needles;

/// Minimum length of a keyword, in bytes: shorter words are not found.
pub(super) const KEYWORD_BYTES: usize = 2;
/// Bytes that regexes may examine in any text, whatever its size.
const BUDGET_BYTES: usize = 32 << 10;

/// A set of rules that are searched for together and within the same bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Rules of the kind `pattern`.
    Pattern,
    /// Strong signals. No sum is reached without one of them.
    Anchor,
    /// All other signals, which are only searched for around anchors.
    Other,
}

/// Limits on the cost and the output of a search.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Maximum number of matches of one rule reported for one text; beyond it, the match is for the
    /// whole text.
    spans: usize,
    /// Bytes that regexes may examine for each byte of a text.
    budget_per_byte: usize,
    /// Maximum distance from a keyword that a regex examines on each side, in bytes.
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
            // Signals are common words, so more of them are examined than of patterns.
            Self::Anchor | Self::Other => Bounds {
                spans: usize::MAX,
                budget_per_byte: 32,
                reach: 160,
            },
        }
    }
}

impl Bounds {
    /// Returns the number of bytes that regexes may examine in a text of `length` bytes.
    fn budget(&self, length: usize) -> usize {
        length
            .saturating_mul(self.budget_per_byte)
            .saturating_add(BUDGET_BYTES)
    }
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests;
