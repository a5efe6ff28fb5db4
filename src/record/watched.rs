//! What people watch: lines as they are told, and what happened lately. Both cost next to nothing while nobody looks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::audit::Body;
use super::entry::{add, member};
use super::item::Item;
use super::live::Live;
use super::metrics::is_injection;
use super::outlet::Outlets;
use super::pulse::{Beat, Counts, Hits, Moment, Pulse, Served};
use super::{Recorder, Written, pulse};
use crate::inspect::Finding;
use crate::message::Direction;
use crate::protocol::UpstreamName;

/// Most sentences that are kept of a reload.
const SENTENCES: usize = 20;

/// What people watch.
#[derive(Default)]
pub(super) struct Watched {
    live: Live,
    reload: Mutex<Option<Reload>>,
    pub(super) pulse: Pulse,
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
        self.watched.reload.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last audit lines, for whoever watches.
    pub fn live(&self) -> Live {
        self.watched.live.clone()
    }

    /// Counts what [`Self::hour`], [`Self::hits`] and [`Self::served`] tell, from now on.
    pub fn start_pulse(&self) {
        self.watched.pulse.start();
    }

    /// Counts what happened earlier within the last hour, the oldest first: seconds since 1970, and what is counted then. To
    /// be called before [`Self::start_pulse`].
    pub fn restore_hour(&self, earlier: impl Iterator<Item = (u64, Counts)>) {
        self.watched.pulse.restore(earlier);
    }

    /// What happened in the last hour, the oldest first; times without traffic are left out.
    pub fn hour(&self) -> Vec<Moment> {
        self.watched.pulse.hour()
    }

    /// How often each rule has matched.
    pub fn hits(&self) -> BTreeMap<Box<str>, Hits> {
        self.watched.pulse.hits()
    }

    /// How an upstream has done.
    pub fn served(&self, upstream: &UpstreamName) -> Served {
        self.watched.pulse.served(upstream)
    }

    pub(super) fn judged(&self, body: &Body<'_>, items: &[Item<'_>]) -> Written {
        self.metrics.inspected(body.direction, body.took.unwrap_or_default());
        self.metrics.unlooked.tell(body.coverage);
        self.watched.pulse.judged_within(body.took.unwrap_or_default());
        let mut lines = String::new();
        for item in items {
            self.metrics.judged(&body.context.upstream, body.direction, item, body.mode, body.waited);
            let waited = body.waited.filter(|_| item.is_answer);
            self.watched.judged(body, item.done(body.mode), item.findings.iter().copied(), waited);
            self.log(body, item.wanted, item.findings.first().copied());
            if self.listens() {
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
        let (audit, context, direction, mode) = (body.audit, body.context, body.direction.name(), body.mode.name());
        let (upstream, agent, rule) = (&context.upstream, &context.agent, first.map(|finding| finding.rule.as_str()));
        tracing::info!(%audit, %upstream, %agent, direction, mode, verdict = wanted, rule, "a message was not harmless");
    }

    pub(super) fn line(&self, line: impl FnOnce() -> String) -> Written {
        if self.listens() { self.write(line(), 1) } else { Written::done() }
    }

    /// Whether anybody reads lines.
    fn listens(&self) -> bool {
        self.sink.listens() || self.watched.live.is_watched() || self.outlets.get().is_some_and(Outlets::wants_lines)
    }

    fn write(&self, lines: String, count: u64) -> Written {
        let lines = if self.is_trial { marked(&lines) } else { lines };
        self.watched.live.push(&lines);
        if let Some(outlets) = self.outlets.get() {
            outlets.lines(&lines);
        }
        self.sink.write(lines, count)
    }
}

/// The same lines with the member that marks those of `lychgate prove`. An agent's name would not do: any agent may have it.
fn marked(lines: &str) -> String {
    let mut out = String::with_capacity(lines.len() + 32);
    for line in lines.lines() {
        out.push_str(line.strip_suffix('}').unwrap_or(line));
        add::<member::prove>((), &mut out);
        out.push_str("}\n");
    }
    out
}

impl Watched {
    /// Notes how a reload ended.
    pub(super) fn reloaded(&self, applied: bool, told: impl Iterator<Item = String>) {
        let reload = Reload { at: pulse::now(), applied, told: told.take(SENTENCES).collect() };
        *self.reload.lock().unwrap_or_else(PoisonError::into_inner) = Some(reload);
    }

    /// Counts a judged message.
    pub(super) fn judged<'f>(
        &self,
        body: &Body<'_>,
        done: &str,
        findings: impl Iterator<Item = &'f Finding> + Clone,
        waited: Option<Duration>,
    ) {
        if self.pulse.is_on() {
            let (upstream, outbound) = (&body.context.upstream, body.direction == Direction::Outbound);
            let injection_matches = findings.clone().filter(|found| !outbound && is_injection(found.action)).count();
            let rules = findings.map(|found| found.rule.as_str());
            self.pulse.beat(Beat { upstream, outbound, done, injection_matches, rules, waited });
        }
    }
}
