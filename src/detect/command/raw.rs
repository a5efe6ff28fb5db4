//! Regexes over whole scripts, preceded by one search for the literals without which they cannot
//! match.

use std::borrow::Cow;
use std::sync::OnceLock;

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
    /// The literals, and the regex that each belongs to.
    literals: Vec<Vec<u8>>,
    owners: Vec<usize>,
    /// The search for the literals in any case, built for the first script: it takes a tenth of the
    /// instructions of a start. `None` if there are too many for one search; each regex is then
    /// tried on every script.
    search: OnceLock<Option<AhoCorasick>>,
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

    fn search(&self) -> Option<&AhoCorasick> {
        let build = || {
            AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .build(&self.literals)
                .ok()
        };
        self.search.get_or_init(build).as_ref()
    }

    /// Calls `hit` with each clause that has a regex that matches outside of mentions.
    pub(super) fn scan(&self, script: &str, mut hit: impl FnMut(usize)) {
        let text = without_mentions(script);
        let search = self.search();
        let mut hits = Vec::new();
        for occurrence in search
            .iter()
            .flat_map(|search| search.find_overlapping_iter(&*text))
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
            let may_match = !entry.has_needles || search.is_none() || hits.get(at) == Some(&true);
            if may_match && entry.regex.may_match(&text) {
                hit(entry.clause);
            }
        }
    }
}
