//! Counts the contents of a log.

use std::collections::HashMap;
use std::time::SystemTime;

use super::entry::{Entry, EntryFinding};
use crate::record::entry::member;
use crate::record::entry::object::{finding, uninspected};

/// Maximum number of distinct names that are counted separately; the rest are counted together.
/// Names come from agents and servers.
const MAX_NAMES: usize = 10_000;
/// Maximum length of a name that is stored, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Counts of the contents of a log. Memory use is bounded, regardless of the length of the log.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// The number of lines counted.
    pub lines: u64,
    /// The number of lines that could not be read.
    pub bad_lines: u64,
    pub bytes: u64,
    /// The time of the first line.
    pub from: Option<SystemTime>,
    /// The time of the last line.
    pub to: Option<SystemTime>,
    /// The number of judged messages that were only partly inspected.
    pub partial: u64,
    /// The number of bytes that were not inspected.
    pub uninspected_bytes: u64,
    /// The number of judged messages with at least one injection finding.
    pub injections: u64,
    /// The number of injection findings in those messages.
    pub injection_matches: u64,
    /// Lines by event.
    pub events: NameCounts,
    /// Messages by verdict, including those refused without being judged.
    pub verdicts: NameCounts,
    /// Findings by rule.
    pub rules: NameCounts,
    /// Messages sent by agents, by tool.
    pub tools: NameCounts,
    /// Judged messages by upstream.
    pub upstreams: NameCounts,
    /// Judged messages by agent.
    pub agents: NameCounts,
}

/// Names and the number of times that each occurred.
#[derive(Clone, Debug, Default)]
pub struct NameCounts {
    counts: HashMap<Box<str>, u64>,
    others: u64,
}

impl Stats {
    /// Counts a line.
    pub fn add(&mut self, entry: &Entry) {
        self.lines += 1;
        self.bytes += entry.raw().len() as u64;
        let time = entry.time();
        self.from = self.from.or(time);
        self.to = time.or(self.to);
        let event = entry.event();
        self.events.add(&event);
        let is_unjudged = entry.is_unjudged_refusal();
        if event != "judged" && !is_unjudged {
            return;
        }
        if let Some(verdict) = entry.get(member::verdict) {
            self.verdicts.add(&verdict);
        }
        if let (Some(rule), true) = (entry.get(member::rule), is_unjudged) {
            self.rules.add(&rule);
        }
        let matches = entry.findings().filter(EntryFinding::is_injection).count() as u64;
        if let (1.., Some("inbound")) = (matches, entry.get(member::direction).as_deref()) {
            self.injections += 1;
            self.injection_matches += matches;
        }
        entry
            .findings()
            .for_each(|found| self.rules.add(&found.text(finding::rule)));
        if let (Some(tool), true) = (
            entry.get(member::tool),
            is_unjudged || entry.get(member::direction).as_deref() == Some("outbound"),
        ) {
            self.tools.add(&tool);
        }
        if let Some(upstream) = entry.get(member::upstream) {
            self.upstreams.add(&upstream);
        }
        if let Some(agent) = entry.get(member::agent) {
            self.agents.add(&agent);
        }
        let parts = entry.get(member::uninspected).unwrap_or_default();
        self.partial += u64::from(!parts.is_empty());
        for part in parts {
            self.uninspected_bytes = self
                .uninspected_bytes
                .saturating_add(part.get(uninspected::bytes).unwrap_or(0));
        }
    }

    /// Counts a line that could not be read.
    pub fn add_bad(&mut self) {
        self.bad_lines += 1;
    }
}

impl NameCounts {
    fn add(&mut self, name: &str) {
        let name = crate::text::cut(name, MAX_NAME_BYTES);
        if let Some(count) = self.counts.get_mut(name) {
            *count += 1;
        } else if self.counts.len() < MAX_NAMES {
            self.counts.insert(name.into(), 1);
        } else {
            self.others += 1;
        }
    }

    /// Returns up to `limit` names, the most frequent first.
    pub fn first(&self, limit: usize) -> Vec<(&str, u64)> {
        let mut all: Vec<(&str, u64)> = self
            .counts
            .iter()
            .map(|(name, count)| (&**name, *count))
            .collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        all.truncate(limit);
        all
    }

    /// Returns the number of distinct names that are counted separately.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Reports whether no name is counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the number of occurrences counted together because there were too many names.
    pub fn others(&self) -> u64 {
        self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(lines: &[&str]) -> Stats {
        let file = std::path::Path::new("audit.jsonl").into();
        let mut stats = Stats::default();
        for line in lines {
            stats.add(&Entry::read((*line).to_owned().into(), &file, 1).unwrap());
        }
        stats
    }

    #[test]
    fn refusals_without_a_judgement_count_once_and_others_with_their_judgement() {
        let stats = stats(&[
            r#"{"event":"judged","direction":"outbound","verdict":"block","rule":"a","gen_ai.tool.name":"t","upstream":"u","findings":[{"rule":"a","action":"block"}]}"#,
            r#"{"event":"refused_again","verdict":"block","rule":"a","gen_ai.tool.name":"t","upstream":"u","times":4}"#,
            r#"{"event":"refused_again","audit":"x","verdict":"block","rule":"a","gen_ai.tool.name":"t","upstream":"u","times":5}"#,
        ]);
        assert_eq!(stats.verdicts.first(9), [("block", 2)]);
        assert_eq!(
            (stats.tools.first(9), stats.rules.first(9)),
            (vec![("t", 2)], vec![("a", 2)])
        );
        assert_eq!(
            (stats.upstreams.first(9), stats.injections),
            (vec![("u", 2)], 0)
        );
    }

    #[test]
    fn injections_are_messages_with_matches_beside_them() {
        let stats = stats(&[
            r#"{"event":"judged","direction":"inbound","verdict":"rewrite","findings":[{"rule":"a","action":"quarantine"},{"rule":"b","action":"wrap"},{"rule":"c","action":"log"}]}"#,
            r#"{"event":"judged","direction":"inbound","verdict":"pass","findings":[{"rule":"a","action":"quarantine","suppressed":true}]}"#,
            r#"{"event":"judged","direction":"outbound","verdict":"block","findings":[{"rule":"d","action":"block"}]}"#,
        ]);
        assert_eq!((stats.injections, stats.injection_matches), (1, 2));
    }

    #[test]
    fn names_are_counted_and_their_number_is_bounded() {
        let mut top = NameCounts::default();
        for name in ["b", "a", "b", "c"] {
            top.add(name);
        }
        assert_eq!(
            (top.first(2), top.len(), top.others()),
            (vec![("b", 2), ("a", 1)], 3, 0)
        );
        (0..2 * MAX_NAMES).for_each(|n| top.add(&format!("n{n}")));
        assert_eq!((top.len(), top.others()), (MAX_NAMES, MAX_NAMES as u64 + 3));
        top.add("b");
        assert_eq!(top.first(1), [("b", 3)]);
    }
}
