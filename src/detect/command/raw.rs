//! Regexes over whole scripts, preceded by one search for the literals without which they cannot
//! match.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;

use super::quote;
use crate::detect::search::{Regex, needles};

/// The regexes of all clauses that examine the text itself.
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

    /// Calls `hit` with each clause that has a matching regex. Comments, bodies of here-documents
    /// and quoted words that contain white space are skipped: they are mentioned, not run. A body
    /// that a shell reads is scanned as a script of its own.
    pub(super) fn scan(&self, script: &str, mut hit: impl FnMut(usize)) {
        let text = if script.contains(['\'', '"', '#', '<']) {
            Cow::Owned(quote::strip_mentions(script))
        } else {
            Cow::Borrowed(script)
        };
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
