//! What people watch: lines as they are told, and what happened lately. Both cost next to nothing while nobody looks.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

use super::audit::Body;
use super::entry::{add, member};
use super::exporter::Exporters;
use super::item::Item;
use super::metrics::is_injection;
use super::recent_stats::{
    Counts, JudgedMessage, RecentStats, RuleHits, StatsBucket, UpstreamStats,
};
use super::tail::AuditTail;
use super::{PendingWrite, Recorder, recent_stats};
use crate::inspect::Finding;
use crate::message::Direction;
use crate::protocol::UpstreamName;

/// Maximum number of sentences that are kept of a reload.
const MAX_REASONS: usize = 20;

/// What people watch.
#[derive(Default)]
pub(super) struct ConsoleFeed {
    tail: AuditTail,
    reload: Mutex<Option<Reload>>,
    pub(super) stats: RecentStats,
}

/// How the last reload ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reload {
    /// When, in seconds since 1970.
    pub at: u64,
    /// Whether the new rules are in force.
    pub applied: bool,
    /// What protects less than before, or why it was refused.
    pub told: Vec<String>,
}

impl Recorder {
    /// How the last reload ended; `None` if there was none.
    pub fn last_reload(&self) -> Option<Reload> {
        self.console_feed.reload.lock().clone()
    }

    /// The last audit lines, for whoever watches.
    pub fn audit_tail(&self) -> AuditTail {
        self.console_feed.tail.clone()
    }

    /// Counts what [`Self::last_hour`], [`Self::rule_hits`] and [`Self::upstream_stats`] report, from now on.
    pub fn start_recent_stats(&self) {
        self.console_feed.stats.start();
    }

    /// Counts what happened earlier within the last hour, the oldest first: seconds since 1970, and what is counted then. To
    /// be called before [`Self::start_recent_stats`].
    pub fn restore_hour(&self, earlier: impl Iterator<Item = (u64, Counts)>) {
        self.console_feed.stats.restore(earlier);
    }

    /// What happened in the last hour, the oldest first; times without traffic are left out.
    pub fn last_hour(&self) -> Vec<StatsBucket> {
        self.console_feed.stats.last_hour()
    }

    /// How often each rule has matched.
    pub fn rule_hits(&self) -> BTreeMap<Box<str>, RuleHits> {
        self.console_feed.stats.rule_hits()
    }

    /// How an upstream has done.
    pub fn upstream_stats(&self, upstream: &UpstreamName) -> UpstreamStats {
        self.console_feed.stats.upstream_stats(upstream)
    }

    pub(super) fn record_judged(&self, body: &Body<'_>, items: &[Item<'_>]) -> PendingWrite {
        self.metrics
            .inspected(body.direction, body.took.unwrap_or_default());
        self.metrics.uninspected.count(body.coverage);
        self.console_feed
            .stats
            .count_duration(body.took.unwrap_or_default());
        let mut lines = String::new();
        for item in items {
            self.metrics.judged(
                &body.context.upstream,
                body.direction,
                item,
                body.mode,
                body.waited,
            );
            let waited = body.waited.filter(|_| item.is_answer);
            self.console_feed.count_judged(
                body,
                item.outcome(body.mode),
                item.findings.iter().copied(),
                waited,
            );
            self.log(body, item.verdict, item.findings.first().copied());
            if self.has_reader() {
                let line = self.audit.judged(body, item);
                if lines.is_empty() {
                    lines = line;
                } else {
                    lines.push_str(&line);
                }
            }
        }
        self.judged_in_trace(body, items);
        self.write(lines, items.len() as u64)
    }

    /// Logs what did not simply pass. Nothing in it is an agent's or a server's own text.
    pub(super) fn log(&self, body: &Body<'_>, wanted: &str, first: Option<&Finding>) {
        if wanted == "pass" {
            return;
        }
        let audit = body.audit;
        let context = body.context;
        let direction = body.direction.name();
        let mode = body.mode.name();
        let upstream = &context.upstream;
        let agent = &context.agent;
        let rule = first.map(|finding| finding.rule.as_str());
        tracing::info!(%audit, %upstream, %agent, direction, mode, verdict = wanted, rule, "message blocked or rewritten");
    }

    pub(super) fn line(&self, line: impl FnOnce() -> String) -> PendingWrite {
        if self.has_reader() {
            self.write(line(), 1)
        } else {
            PendingWrite::done()
        }
    }

    /// Whether anybody reads lines.
    fn has_reader(&self) -> bool {
        self.sink.is_open()
            || self.console_feed.tail.is_watched()
            || self.exporters.get().is_some_and(Exporters::exports_lines)
    }

    fn write(&self, lines: String, count: u64) -> PendingWrite {
        let lines = if self.is_trial {
            mark_as_trial(&lines)
        } else {
            lines
        };
        self.console_feed.tail.push(&lines);
        if let Some(outlets) = self.exporters.get() {
            outlets.lines(&lines);
        }
        self.sink.write(lines, count)
    }
}

/// The same lines with the member that marks those of `lychgate prove`. An agent's name would not do: any agent may have it.
fn mark_as_trial(lines: &str) -> String {
    let mut out = String::with_capacity(lines.len() + 32);
    for line in lines.lines() {
        out.push_str(line.strip_suffix('}').unwrap_or(line));
        add::<member::prove>((), &mut out);
        out.push_str("}\n");
    }
    out
}

impl ConsoleFeed {
    /// Notes how a reload ended.
    pub(super) fn reloaded(&self, applied: bool, told: impl Iterator<Item = String>) {
        let reload = Reload {
            at: recent_stats::now(),
            applied,
            told: told.take(MAX_REASONS).collect(),
        };
        *self.reload.lock() = Some(reload);
    }

    /// Counts a judged message.
    pub(super) fn count_judged<'f>(
        &self,
        body: &Body<'_>,
        done: &str,
        findings: impl Iterator<Item = &'f Finding> + Clone,
        waited: Option<Duration>,
    ) {
        if self.stats.is_on() {
            let upstream = &body.context.upstream;
            let outbound = body.direction == Direction::Outbound;
            let injection_matches = findings
                .clone()
                .filter(|found| !outbound && is_injection(found.action))
                .count();
            let rules = findings.map(|found| found.rule.as_str());
            self.stats.count_message(JudgedMessage {
                upstream,
                outbound,
                done,
                injection_matches,
                rules,
                waited,
            });
        }
    }
}
