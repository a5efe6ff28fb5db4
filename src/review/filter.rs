//! Selects lines of the audit log.

use std::time::SystemTime;

use super::entry::Entry;
use crate::record::entry::member;
use crate::record::entry::object::finding;

/// The criteria for selecting lines; a line must meet all that are set.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub upstream: Option<String>,
    pub agent: Option<String>,
    pub tool: Option<String>,
    /// A rule that refused the message, requested approval or has a finding.
    pub rule: Option<String>,
    /// The verdict, whether applied or only observed.
    pub verdict: Option<String>,
    pub event: Option<String>,
    /// The earliest time, inclusive.
    pub since: Option<SystemTime>,
    /// The latest time, exclusive.
    pub until: Option<SystemTime>,
    /// Whether to include the lines of `lychgate prove`, which are otherwise left out.
    pub prove: bool,
}

impl Filter {
    /// Reports whether a line meets the criteria.
    pub fn matches_filter(&self, entry: &Entry) -> bool {
        let is_equal = |wanted: &Option<String>, name: &str| {
            wanted
                .as_ref()
                .is_none_or(|wanted| entry.text(name).is_some_and(|it| it == **wanted))
        };
        (self.prove || !entry.is_of_prove())
            && is_equal(&self.event, member::event::NAME)
            && is_equal(&self.upstream, member::upstream::NAME)
            && is_equal(&self.agent, member::agent::NAME)
            && is_equal(&self.tool, member::tool::NAME)
            && self
                .verdict
                .as_ref()
                .is_none_or(|wanted| has_verdict(entry, wanted))
            && self
                .rule
                .as_ref()
                .is_none_or(|wanted| has_rule(entry, wanted))
            && self.matches_time(entry)
    }

    fn matches_time(&self, entry: &Entry) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        let Some(time) = entry.time() else {
            return false;
        };
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

fn has_verdict(entry: &Entry, verdict: &str) -> bool {
    let verdicts = [entry.get(member::verdict), entry.get(member::would)];
    verdicts.into_iter().flatten().any(|one| one == verdict)
}

fn has_rule(entry: &Entry, rule: &str) -> bool {
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
