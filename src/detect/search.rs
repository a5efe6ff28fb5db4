//! Searches texts for the regexes of all rules of the kinds `pattern` and `signal` at once.

mod alternatives;
mod automaton;
mod class;
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

use class::Bounds;
pub(super) use class::{ANCHOR_WEIGHT, Class};
pub(super) use engine::{Engine, Phrase, RulePlaces, TextSearch};
pub use look::Cost;
pub use regex::{REGEX_BYTES, Regex};
pub(super) use scan::Scan;
pub use spec::Spec;
pub(super) use spec::needles;

/// Minimum length of a keyword, in bytes: shorter words are not found.
pub(super) const KEYWORD_BYTES: usize = 2;

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests;
