//! Regexes over whole scripts, behind one search for the letters that they cannot match without.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;

use super::quote;
use crate::detect::search::{Regex, needles};

/// The regexes of all clauses that look at the text itself.
#[derive(Debug, Default)]
pub(super) struct Raw {
    regexes: Vec<Look>,
    /// The letters, in any case, and the regex that each is of.
    needles: Option<AhoCorasick>,
    owners: Vec<usize>,
    /// Letters found so far, while rules are added.
    found: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Look {
    clause: usize,
    regex: Regex,
    /// Whether it can match only where one of its letters stands.
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
                self.found.push(needle);
            }
            self.regexes.push(Look {
                clause,
                regex: regex.clone(),
                has_needles,
            });
        }
    }

    /// Makes the search for the letters of all.
    pub(super) fn finish(&mut self) {
        let made = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(std::mem::take(&mut self.found))
            .ok();
        if made.is_none() {
            // Too many for one search: each regex is tried on everything.
            self.regexes
                .iter_mut()
                .for_each(|look| look.has_needles = false);
        }
        self.needles = made;
    }

    /// Calls `hit` with each clause that has a regex that matches. Comments, bodies of here-documents and words in quotes
    /// that hold spaces are left out: they are what is said, not what is run. A body that a shell reads is a script of its
    /// own.
    pub(super) fn scan(&self, script: &str, mut hit: impl FnMut(usize)) {
        let text = if script.contains(['\'', '"', '#', '<']) {
            Cow::Owned(quote::without_said(script))
        } else {
            Cow::Borrowed(script)
        };
        let mut wanted = Vec::new();
        for found in self
            .needles
            .iter()
            .flat_map(|needles| needles.find_overlapping_iter(&*text))
        {
            wanted.resize(self.regexes.len(), false);
            if let Some(wanted) = self
                .owners
                .get(found.pattern().as_usize())
                .and_then(|at| wanted.get_mut(*at))
            {
                *wanted = true;
            }
        }
        for (at, look) in self.regexes.iter().enumerate() {
            if (!look.has_needles || wanted.get(at) == Some(&true)) && look.regex.may_match(&text) {
                hit(look.clause);
            }
        }
    }
}
