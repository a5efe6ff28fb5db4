//! Regexes over whole scripts, preceded by one search for the literals without which they cannot
//! match.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;

use super::quote;
use crate::detect::search::{Regex, needles};

/// Reports whether one of the regexes, if there are any, matches one of the scripts.
pub(super) fn any_matches<'s>(
    regexes: &[Regex],
    mut scripts: impl Iterator<Item = &'s String>,
) -> bool {
    regexes.is_empty()
        || scripts.any(|script| {
            let text = without_mentions(script);
            regexes.iter().any(|regex| regex.may_match(&text))
        })
}

/// Returns a script without comments, bodies of here-documents and quoted words that contain white
/// space: they are mentioned, not run. A body that a shell reads is a script of its own.
fn without_mentions(script: &str) -> Cow<'_, str> {
    if script.contains(['\'', '"', '#', '<']) {
        Cow::Owned(quote::strip_mentions(script))
    } else {
        Cow::Borrowed(script)
    }
}

/// The regexes of all clauses that examine only the text itself.
#[derive(Debug, Default)]
pub(super) struct Raw {
    regexes: Vec<ClauseRegex>,
    /// The literals, in any case, and the regex that each belongs to.
    needles: Option<AhoCorasick>,
    owners: Vec<usize>,
    /// Literals collected while rules are added.
    literals: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct ClauseRegex {
    clause: usize,
    regex: Regex,
    /// Whether the regex can only match where one of its literals is found.
    has_needles: bool,
}

impl Raw {
    /// Adds the regexes of a clause.
    pub(super) fn add(&mut self, clause: usize, regexes: &[Regex]) {
        for regex in regexes {
            let needles = needles(regex.source());
            let has_needles = needles.is_some();
            for needle in needles.into_iter().flatten() {
                self.owners.push(self.regexes.len());
                self.literals.push(needle);
            }
            self.regexes.push(ClauseRegex {
                clause,
                regex: regex.clone(),
                has_needles,
            });
        }
    }

    /// Builds the search for the literals of all regexes.
    pub(super) fn finish(&mut self) {
        let search = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(std::mem::take(&mut self.literals))
            .ok();
        if search.is_none() {
            // Too many for one search: each regex is tried on every text.
            self.regexes
                .iter_mut()
                .for_each(|entry| entry.has_needles = false);
        }
        self.needles = search;
    }

    /// Calls `hit` with each clause that has a regex that matches outside of mentions.
    pub(super) fn scan(&self, script: &str, mut hit: impl FnMut(usize)) {
        let text = without_mentions(script);
        let mut hits = Vec::new();
        for occurrence in self
            .needles
            .iter()
            .flat_map(|needles| needles.find_overlapping_iter(&*text))
        {
            hits.resize(self.regexes.len(), false);
            if let Some(slot) = self
                .owners
                .get(occurrence.pattern().as_usize())
                .and_then(|at| hits.get_mut(*at))
            {
                *slot = true;
            }
        }
        for (at, entry) in self.regexes.iter().enumerate() {
            if (!entry.has_needles || hits.get(at) == Some(&true)) && entry.regex.may_match(&text) {
                hit(entry.clause);
            }
        }
    }
}
