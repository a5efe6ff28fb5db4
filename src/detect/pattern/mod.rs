//! Rules of the kind `pattern`: regular expressions that run only near their keywords.

mod engine;
mod folded;
mod lazy;
mod literals;
mod rarity;
mod regex;
mod search;
mod sieve;

pub use engine::REACH_BYTES;
pub(super) use engine::{Bounds, Patterns};
pub use regex::{REGEX_BYTES, Regex};

use super::{Detector, Kind, Match, Place};
use crate::document::{Located, Table};
use lazy::Lazy;
use std::fmt;

/// Shortest keyword, in bytes.
const KEYWORD_BYTES: usize = 2;

/// The kind `pattern`.
#[derive(Debug)]
pub struct Pattern;

/// What a rule of this kind looks for.
pub struct Spec {
    /// One of these stands in every match, in any case.
    pub keywords: Vec<String>,
    /// The regexes: any of them is enough.
    pub any: Vec<String>,
    branches: Vec<literals::Branch>,
    lazy: Lazy,
}

impl Spec {
    /// Reads the regexes; tells what is wrong with which.
    pub(super) fn new(keywords: Vec<String>, any: Vec<String>) -> Result<Self, Vec<(usize, String)>> {
        let (mut branches, mut wrong) = (Vec::new(), Vec::new());
        for (at, source) in any.iter().enumerate() {
            match regex::parse_for_literals(source) {
                Ok(hir) => branches.extend(literals::branches(&hir)),
                Err(message) => wrong.push((at, message)),
            }
        }
        if wrong.is_empty() { Ok(Self { keywords, branches, lazy: Lazy::new(any.clone()), any }) } else { Err(wrong) }
    }
}

impl Spec {
    /// Compiles the regexes, which otherwise waits for the first text that calls for them.
    ///
    /// # Errors
    /// Which bound they break.
    pub fn compile(&self) -> Result<(), String> {
        match self.lazy.get() {
            Some(_) => Ok(()),
            None => regex::compile_any(&self.any).map(|_| ()),
        }
    }
}

/// Letters, in lower case, one of which stands in every match of a regex; `None` where there are none worth a search.
pub(super) fn needles(source: &str) -> Option<Vec<Vec<u8>>> {
    // They are looked for in any case.
    let hir = regex::parse_for_literals(source.strip_prefix("(?i)").unwrap_or(source)).ok()?;
    let words = literals::branches(&hir).into_iter().map(|branch| branch.needles.words);
    let words: Option<Vec<_>> = words.map(|words| Some(words).filter(|words| !words.is_empty())).collect();
    Some(words?.concat())
}

/// What decides what is found, and nothing else: it is part of a set's digest.
impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec").field("keywords", &self.keywords).field("any", &self.any).finish_non_exhaustive()
    }
}

impl Kind for Pattern {
    type Spec = Spec;

    fn read(table: &Table<'_>) -> Option<Spec> {
        let mut good = true;
        let hint = "words of which one stands in every match: the regexes run only near them";
        let keywords = table.strings("keywords");
        if keywords.is_empty() {
            table.missing("keywords", hint);
            good = false;
        }
        for keyword in &keywords {
            if keyword.value.len() < KEYWORD_BYTES {
                table.fault_at(
                    &keyword.place,
                    format!("the keyword `{}` is too short", keyword.value),
                    Some("two characters at the least; rare words are best"),
                );
                good = false;
            }
        }
        let any = table.strings("any");
        if any.is_empty() {
            table.missing("any", "a list of regular expressions, best written in '''…'''");
            good = false;
        }
        table.finish();
        let values = |list: &[Located<String>]| list.iter().map(|item| item.value.clone()).collect();
        let made = Spec::new(values(&keywords), values(&any));
        for (at, message) in made.as_ref().err().into_iter().flatten() {
            let place = any.get(*at).map_or_else(|| table.place(), |source| source.place.clone());
            table.fault_at(&place, message.as_str(), None);
        }
        made.ok().filter(|_| good)
    }

    fn build(rules: &[(usize, &Spec)]) -> Result<Box<dyn Detector>, Vec<(usize, String)>> {
        Ok(Box::new(Patterns::new(rules, Bounds { spans: 64, budget_per_byte: 4, reach_bytes: REACH_BYTES })?))
    }
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests;
