//! The data for the console: audit lines as they are recorded, and statistics of the last hour.
//! Both cost next to nothing while nobody uses them.

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

/// Maximum number of messages that are kept for a reload.
const MAX_REASONS: usize = 20;

/// The data for the console.
#[derive(Default)]
pub(super) struct ConsoleFeed {
    tail: AuditTail,
    reload: Mutex<Option<Reload>>,
    pub(super) stats: RecentStats,
}

/// The result of the last reload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reload {
    /// When it ended, in seconds since 1970.
    pub at: u64,
    /// Whether the new rules are in force.
    pub applied: bool,
    /// What is less protected than before, or why the reload was rejected.
    pub told: Vec<String>,
}

impl Recorder {
    /// Returns the result of the last reload; `None` if there was none.
    pub fn last_reload(&self) -> Option<Reload> {
        self.console_feed.reload.lock().clone()
    }

    /// Returns a handle for the most recent audit lines.
    pub fn audit_tail(&self) -> AuditTail {
        self.console_feed.tail.clone()
    }

    /// Starts collecting what [`Self::last_hour`], [`Self::rule_hits`] and [`Self::upstream_stats`]
    /// report.
    pub fn start_recent_stats(&self) {
        self.console_feed.stats.start();
    }

    /// Adds counts from earlier in the last hour, the oldest first: seconds since 1970, and the
    /// counts of that time. Must be called before [`Self::start_recent_stats`].
    pub fn restore_hour(&self, earlier: impl Iterator<Item = (u64, Counts)>) {
        self.console_feed.stats.restore(earlier);
    }

    /// Returns the statistics of the last hour, the oldest first; times without traffic are
    /// omitted.
    pub fn last_hour(&self) -> Vec<StatsBucket> {
        self.console_feed.stats.last_hour()
    }

    /// Returns the number of matches of each rule.
    pub fn rule_hits(&self) -> BTreeMap<Box<str>, RuleHits> {
        self.console_feed.stats.rule_hits()
    }

    /// Returns the statistics of an upstream.
    pub fn upstream_stats(&self, upstream: &UpstreamName) -> UpstreamStats {
        self.console_feed.stats.upstream_stats(upstream)
    }

    pub(super) fn record_judged(&self, body: &Body<'_>, items: &[Item<'_>]) -> PendingWrite {
        self.metrics
            .observe_inspection(body.direction, body.inspection_time.unwrap_or_default());
        self.metrics.coverage.count(body.coverage);
        self.console_feed
            .stats
            .count_duration(body.inspection_time.unwrap_or_default());
        let mut lines = String::new();
        for item in items {
            self.metrics.count_message(
                &body.context.upstream,
                body.direction,
                item,
                body.mode,
                body.response_time,
            );
            let response_time = body.response_time.filter(|_| item.is_answer);
            self.console_feed.count_judged(
                body,
                item.outcome(body.mode),
                item.findings.iter().copied(),
                response_time,
            );
            self.log(body, item.verdict, item.findings.first().copied());
            if self.has_reader() {
                let line = self.audit.judged_line(body, item);
                if lines.is_empty() {
                    lines = line;
                } else {
                    lines.push_str(&line);
                }
            }
        }
        self.trace_judged(body, items);
        self.write(lines, items.len() as u64)
    }

    /// Logs a message that did not simply pass. The log entry contains no text of an agent or an
    /// upstream.
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

    /// Reports whether audit lines have any reader.
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
        if let Some(exporters) = self.exporters.get() {
            exporters.lines(&lines);
        }
        self.sink.write(lines, count)
    }
}

/// Adds the member to lines that marks them as those of `lychgate prove`. The agent's name would
/// not suffice, since any agent may have it.
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
    /// Stores the result of a reload.
    pub(super) fn set_reload(&self, applied: bool, reasons: impl Iterator<Item = String>) {
        let reload = Reload {
            at: recent_stats::now(),
            applied,
            told: reasons.take(MAX_REASONS).collect(),
        };
        *self.reload.lock() = Some(reload);
    }

    /// Counts an inspected message.
    pub(super) fn count_judged<'f>(
        &self,
        body: &Body<'_>,
        outcome: &str,
        findings: impl Iterator<Item = &'f Finding> + Clone,
        response_time: Option<Duration>,
    ) {
        if self.stats.is_on() {
            let upstream = &body.context.upstream;
            let outbound = body.direction == Direction::Outbound;
            let injection_matches = findings
                .clone()
                .filter(|finding| !outbound && is_injection(finding.action))
                .count();
            let rules = findings.map(|found| found.rule.as_str());
            self.stats.count_message(JudgedMessage {
                upstream,
                outbound,
                outcome,
                injection_matches,
                rules,
                response_time,
            });
        }
    }
}
