//! Which lines are wanted.

use std::time::SystemTime;

use super::entry::Entry;
use crate::record::entry::member;
use crate::record::entry::object::finding;

/// Which lines are wanted: those that fit in everything that is given.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The server.
    pub upstream: Option<String>,
    pub agent: Option<String>,
    pub tool: Option<String>,
    /// A rule that refused, asked or found something.
    pub rule: Option<String>,
    /// What was done, or would have been.
    pub verdict: Option<String>,
    pub event: Option<String>,
    /// Not before.
    pub since: Option<SystemTime>,
    /// Not from this time on.
    pub until: Option<SystemTime>,
    /// Lines of `lychgate prove` too, which are left out otherwise.
    pub prove: bool,
}

impl Filter {
    /// Whether a line is wanted.
    pub fn matches_filter(&self, entry: &Entry) -> bool {
        let is = |wanted: &Option<String>, name: &str| {
            wanted
                .as_ref()
                .is_none_or(|wanted| entry.text(name).is_some_and(|it| it == **wanted))
        };
        (self.prove || !entry.is_of_prove())
            && is(&self.event, member::event::NAME)
            && is(&self.upstream, member::upstream::NAME)
            && is(&self.agent, member::agent::NAME)
            && is(&self.tool, member::tool::NAME)
            && self
                .verdict
                .as_ref()
                .is_none_or(|wanted| names_verdict(entry, wanted))
            && self
                .rule
                .as_ref()
                .is_none_or(|wanted| names_rule(entry, wanted))
            && self.wants_time(entry)
    }

    fn wants_time(&self, entry: &Entry) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        let Some(time) = entry.time() else {
            return false;
        };
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

fn names_verdict(entry: &Entry, verdict: &str) -> bool {
    let verdicts = [entry.get(member::verdict), entry.get(member::would)];
    verdicts.into_iter().flatten().any(|one| one == verdict)
}

fn names_rule(entry: &Entry, rule: &str) -> bool {
    entry.get(member::rule).is_some_and(|one| one == rule)
        || entry
            .findings()
            .any(|found| found.text(finding::rule) == rule)
        || entry
            .get(member::rules)
            .unwrap_or_default()
            .iter()
            .any(|one| one == rule)
}
