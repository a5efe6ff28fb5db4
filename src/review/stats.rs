//! What a log holds, counted.

use std::collections::HashMap;
use std::time::SystemTime;

use super::entry::Entry;
use crate::record::names;

/// Most different names that are counted one by one; the rest are counted together. Names come from agents and servers.
const NAMES: usize = 10_000;
/// Longest name that is kept, in bytes.
const NAME_BYTES: usize = 256;

/// What a log holds, counted. Bounded, however long the log is.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Lines counted.
    pub lines: u64,
    /// Lines that could not be read.
    pub bad: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time of the first line.
    pub from: Option<SystemTime>,
    /// The time of the last line.
    pub to: Option<SystemTime>,
    /// Judged messages of which something was not looked at.
    pub partial: u64,
    /// Bytes that were not looked at.
    pub uninspected_bytes: u64,
    /// Lines by event.
    pub events: Top,
    /// Judged messages by what was done.
    pub verdicts: Top,
    /// Findings by rule.
    pub rules: Top,
    /// Messages by tool, of those that agents sent.
    pub tools: Top,
    /// Judged messages by server.
    pub upstreams: Top,
    /// Judged messages by agent.
    pub agents: Top,
}

/// Names by how often they came.
#[derive(Clone, Debug, Default)]
pub struct Top {
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
        if event != "judged" {
            return;
        }
        if let Some(verdict) = entry.verdict() {
            self.verdicts.add(&verdict);
        }
        entry.findings().for_each(|found| self.rules.add(&found.rule()));
        if let (Some(tool), Some("outbound")) = (entry.tool(), entry.direction().as_deref()) {
            self.tools.add(&tool);
        }
        if let Some(upstream) = entry.upstream() {
            self.upstreams.add(&upstream);
        }
        if let Some(agent) = entry.agent() {
            self.agents.add(&agent);
        }
        let parts = entry.root().get(names::UNINSPECTED).into_iter().flat_map(|parts| parts.elements());
        let bytes = |part: crate::message::Value<'_>| part.get(names::BYTES)?.raw().parse::<u64>().ok();
        let (mut any, mut sum) = (false, 0u64);
        for part in parts {
            any = true;
            sum = sum.saturating_add(bytes(part).unwrap_or(0));
        }
        self.partial += u64::from(any);
        self.uninspected_bytes = self.uninspected_bytes.saturating_add(sum);
    }

    /// Counts a line that could not be read.
    pub fn add_bad(&mut self) {
        self.bad += 1;
    }
}

impl Top {
    fn add(&mut self, name: &str) {
        let name = crate::text::cut(name, NAME_BYTES);
        if let Some(count) = self.counts.get_mut(name) {
            *count += 1;
        } else if self.counts.len() < NAMES {
            self.counts.insert(name.into(), 1);
        } else {
            self.others += 1;
        }
    }

    /// The first so many, the most frequent first.
    pub fn first(&self, most: usize) -> Vec<(&str, u64)> {
        let mut all: Vec<(&str, u64)> = self.counts.iter().map(|(name, count)| (&**name, *count)).collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        all.truncate(most);
        all
    }

    /// How many different names there are that are counted one by one.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How many were counted together, since there were too many names.
    pub fn others(&self) -> u64 {
        self.others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_and_their_number_is_bounded() {
        let mut top = Top::default();
        for name in ["b", "a", "b", "c"] {
            top.add(name);
        }
        assert_eq!((top.first(2), top.len(), top.others()), (vec![("b", 2), ("a", 1)], 3, 0));
        (0..2 * NAMES).for_each(|n| top.add(&format!("n{n}")));
        assert_eq!((top.len(), top.others()), (NAMES, NAMES as u64 + 3));
        top.add("b");
        assert_eq!(top.first(1), [("b", 3)]);
    }
}
