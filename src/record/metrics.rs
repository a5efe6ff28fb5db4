//! Counters and histograms, in the text format of Prometheus. What they mean stands in [`super::table`].

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Counter, Encoder, Error, Gauge, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use crate::config::Limits;
use crate::detect::flow::From;
use crate::inspect::{ClassifierFailure, Finding, Mode};
use crate::message::Direction;
use crate::protocol::{Side, UpstreamName};
use crate::rules::{Action, RuleSet};

use super::approval::{Approval, OUTCOMES, WAYS};
use super::definition::{self, DefinitionChange};
use super::item::Item;
use super::login::Logins;
use super::process;
use super::sink::Counts;
use super::table::{self, Kind, Metric};

/// Tools with a label of their own, for each upstream; all others share `other`.
const TOOLS: usize = 512;
/// The label of a tool that has none of its own.
const OTHER: &str = "other";
/// What is done about a match where the policy only observes.
const OBSERVED: &str = "observed";
/// Why requests are turned away: those that have a counter from the start.
const TURNED_AWAY: [&str; 9] = ["access", "certificate", "credential", "host", "origin", "path", "scope", "tls", "token"];
const BOTH: [Direction; 2] = [Direction::Outbound, Direction::Inbound];

/// The rules that judge one upstream.
pub struct InForce<'a> {
    /// The upstream.
    pub upstream: &'a UpstreamName,
    /// Whether verdicts are carried out.
    pub mode: Mode,
    /// What judges what agents send.
    pub outbound: &'a RuleSet,
    /// What judges what servers send.
    pub inbound: &'a RuleSet,
}

/// All counters of the process.
pub(super) struct Metrics {
    registry: Registry,
    messages: IntCounterVec,
    findings: IntCounterVec,
    injections: IntCounterVec,
    commands_blocked: IntCounterVec,
    inspect: HistogramVec,
    upstream: HistogramVec,
    flow_pieces: IntCounterVec,
    approvals: IntCounterVec,
    definitions: IntCounterVec,
    held: IntGaugeVec,
    classified: IntCounterVec,
    pub(super) logins: Logins,
    failures: IntCounterVec,
    turned_away: IntCounterVec,
    limits_hit: IntCounterVec,
    reloads: IntCounterVec,
    pages: IntCounterVec,
    rules: IntGaugeVec,
    audit_lines: IntCounterVec,
    streams: IntGauge,
    memory: Gauge,
    cpu: Counter,
    files: Gauge,
    tools: Mutex<HashMap<UpstreamName, HashSet<Box<str>>>>,
}

impl Metrics {
    /// All at zero.
    ///
    /// # Errors
    /// Never, unless the table is wrong.
    pub(super) fn new() -> Result<Self, Error> {
        let made = Maker(Registry::new());
        let made = Self {
            messages: made.counters(table::MESSAGES)?,
            findings: made.counters(table::FINDINGS)?,
            injections: made.counters(table::INJECTIONS)?,
            commands_blocked: made.counters(table::COMMANDS_BLOCKED)?,
            inspect: made.histograms(table::INSPECT)?,
            upstream: made.histograms(table::UPSTREAM)?,
            flow_pieces: made.counters(table::FLOW_PIECES)?,
            approvals: made.counters(table::APPROVALS)?,
            definitions: made.counters(table::DEFINITION_CHANGES)?,
            held: made.gauges(table::DEFINITIONS_HELD)?,
            classified: made.counters(table::CLASSIFIED)?,
            logins: Logins::new(&made)?,
            failures: made.counters(table::FAILURES)?,
            turned_away: made.counters(table::TURNED_AWAY)?,
            limits_hit: made.counters(table::LIMITS_HIT)?,
            reloads: made.counters(table::RELOADS)?,
            pages: made.counters(table::PAGES)?,
            rules: made.gauges(table::RULES)?,
            audit_lines: made.counters(table::AUDIT_LINES)?,
            streams: made.register(IntGauge::new(table::STREAMS.name, table::STREAMS.help)?)?,
            memory: made.register(Gauge::new(table::PROCESS_MEMORY.name, table::PROCESS_MEMORY.help)?)?,
            cpu: made.register(Counter::new(table::PROCESS_CPU.name, table::PROCESS_CPU.help)?)?,
            files: made.register(Gauge::new(table::PROCESS_FILES.name, table::PROCESS_FILES.help)?)?,
            tools: Mutex::default(),
            registry: {
                made.gauges(table::BUILD_INFO)?.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
                let start = Gauge::new(table::PROCESS_START.name, table::PROCESS_START.help)?;
                made.register(start)?.set(process::seconds_since_1970());
                made.0
            },
        };
        for direction in BOTH {
            made.inspect.with_label_values(&[direction.name()]);
        }
        for outcome in OUTCOMES {
            let ways = WAYS.iter().filter(|way| matches!(outcome, "approved" | "denied") != (**way == "none"));
            ways.filter(|way| **way != "earlier" || outcome == "approved")
                .for_each(|way| made.approvals.with_label_values(&[outcome, way]).inc_by(0));
        }
        TURNED_AWAY.iter().for_each(|reason| made.turned_away.with_label_values(&[reason]).inc_by(0));
        Limits::NAMES.iter().for_each(|limit| made.limits_hit.with_label_values(&[limit]).inc_by(0));
        ["read", "gone"].iter().for_each(|outcome| made.pages.with_label_values(&[outcome]).inc_by(0));
        ["applied", "weakened", "refused"].iter().for_each(|outcome| made.reloads.with_label_values(&[outcome]).inc_by(0));
        Ok(made)
    }

    /// Where the audit log counts its lines.
    pub(super) fn audit_counts(&self) -> Counts {
        let count = |outcome| self.audit_lines.with_label_values(&[outcome]);
        Counts { written: count("written"), dropped: count("dropped"), failed: count("failed") }
    }

    /// Puts a counter at zero for everything that these rules can cause, so that its first rise can be seen.
    pub(super) fn rules_in_force(&self, all: &[InForce<'_>]) {
        let mut distinct: [HashSet<&str>; 2] = Default::default();
        for InForce { upstream, mode, outbound, inbound } in all {
            let upstream = upstream.0.as_ref();
            for (direction, verdicts) in [("outbound", ["pass", "ask", "block"]), ("inbound", ["pass", "rewrite", "block"])] {
                verdicts.iter().for_each(|verdict| self.messages.with_label_values(&[upstream, direction, verdict]).inc_by(0));
            }
            self.held.with_label_values(&[upstream]);
            self.logins.announce(upstream);
            for class in definition::classes() {
                ["pass", "hold"]
                    .iter()
                    .for_each(|action| self.definitions.with_label_values(&[upstream, class, action]).inc_by(0));
            }
            Side::ALL.iter().for_each(|side| self.failures.with_label_values(&[upstream, side.name()]).inc_by(0));
            self.upstream.with_label_values(&[upstream]);
            ["clean", "flagged"].into_iter().chain(ClassifierFailure::ALL.map(ClassifierFailure::name)).for_each(|outcome| {
                self.classified.with_label_values(&[upstream, outcome]);
            });
            From::WORDS.iter().for_each(|(from, _)| self.flow_pieces.with_label_values(&[upstream, from]).inc_by(0));
            for rule in outbound.rules() {
                distinct[0].insert(rule.id.as_str());
                self.findings.with_label_values(&[rule.id.as_str(), done_about(rule.action, *mode)]);
                if rule.action == Action::Block {
                    self.commands_blocked.with_label_values(&[upstream, "", rule.id.as_str()]);
                }
            }
            for rule in inbound.rules() {
                distinct[1].insert(rule.id.as_str());
                let action = done_about(rule.action, *mode);
                self.findings.with_label_values(&[rule.id.as_str(), action]);
                if is_injection(rule.action) {
                    self.injections.with_label_values(&[upstream, "", rule.id.as_str(), action, "content"]);
                }
            }
        }
        for (direction, rules) in BOTH.iter().zip(&distinct) {
            self.rules.with_label_values(&[direction.name()]).set(i64::try_from(rules.len()).unwrap_or(i64::MAX));
        }
    }

    /// A body was judged.
    pub(super) fn inspected(&self, direction: Direction, took: Duration) {
        self.inspect.with_label_values(&[direction.name()]).observe(took.as_secs_f64());
    }

    /// Pieces of it are remembered: so many as quarantined, untrusted and private.
    pub(super) fn remembered(&self, upstream: &UpstreamName, counts: [usize; 3]) {
        for ((from, _), count) in From::WORDS.iter().zip(counts).filter(|(_, count)| *count > 0) {
            self.flow_pieces.with_label_values(&[&*upstream.0, *from]).inc_by(count as u64);
        }
    }

    /// One message of it.
    pub(super) fn judged(
        &self,
        upstream: &UpstreamName,
        direction: Direction,
        item: &Item<'_>,
        mode: Mode,
        waited: Option<Duration>,
    ) {
        self.messages.with_label_values(&[&upstream.0, direction.name(), item.done(mode)]).inc();
        if let (Some(waited), true) = (waited, item.is_answer) {
            self.upstream.with_label_values(&[&upstream.0]).observe(waited.as_secs_f64());
        }
        for finding in &item.findings {
            self.found(upstream, direction, finding, mode, || item.tool_of(finding));
        }
        if let (Direction::Outbound, "block", Some(rule)) = (direction, item.done(mode), item.refused_by) {
            let tool = self.tool(upstream, item.tool.as_deref());
            self.commands_blocked.with_label_values(&[&*upstream.0, &tool, rule.as_str()]).inc();
        }
    }

    /// A text that is no message was judged.
    pub(super) fn judged_text(&self, upstream: &UpstreamName, done: &str, findings: &[Finding], mode: Mode) {
        self.messages.with_label_values(&[&upstream.0, Direction::Inbound.name(), done]).inc();
        for finding in findings {
            self.found(upstream, Direction::Inbound, finding, mode, || None);
        }
    }

    fn found<'t>(
        &self,
        upstream: &UpstreamName,
        direction: Direction,
        finding: &Finding,
        mode: Mode,
        tool: impl FnOnce() -> Option<&'t str>,
    ) {
        let (rule, action) = (finding.rule.as_str(), done_about(finding.action, mode));
        self.findings.with_label_values(&[rule, action]).inc();
        if direction == Direction::Inbound && is_injection(finding.action) {
            let tool = self.tool(upstream, tool());
            self.injections.with_label_values(&[&*upstream.0, &tool, rule, action, finding.surface.name()]).inc();
        }
    }

    /// A tool's label. Names come from agents and servers, so they are many and anything: only
    /// what MCP allows as a name (2025-11-25, Tool Names) gets a label, and only the first of them.
    fn tool(&self, upstream: &UpstreamName, name: Option<&str>) -> String {
        let Some(name) = name else { return String::new() };
        let is_name = (1..=128).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/'));
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let known = tools.entry(upstream.clone()).or_default();
        if is_name && (known.contains(name) || (known.len() < TOOLS && known.insert(name.into()))) {
            return name.to_owned();
        }
        OTHER.to_owned()
    }

    /// A call failed.
    pub(super) fn failed(&self, upstream: &UpstreamName, side: Side) {
        self.failures.with_label_values(&[&*upstream.0, side.name()]).inc();
    }

    /// A request was turned away.
    pub(super) fn turned_away(&self, reason: &'static str) {
        self.turned_away.with_label_values(&[reason]).inc();
    }

    /// A call was refused without being judged, since it was refused before.
    pub(super) fn refused_unjudged(&self, upstream: &UpstreamName, tool: &str, rule: &str) {
        self.messages.with_label_values(&[&*upstream.0, Direction::Outbound.name(), "block"]).inc();
        let tool = self.tool(upstream, Some(tool));
        self.commands_blocked.with_label_values(&[&*upstream.0, &tool, rule]).inc();
    }

    /// Something happened to a question to a person.
    pub(super) fn approval(&self, approval: &Approval<'_>) {
        self.approvals.with_label_values(&[approval.outcome, approval.way]).inc();
    }

    /// An external classifier was asked.
    pub(super) fn classified(&self, upstream: &UpstreamName, outcome: &'static str) {
        self.classified.with_label_values(&[&*upstream.0, outcome]).inc();
    }

    /// A definition is not what it was.
    pub(super) fn definition(&self, change: &DefinitionChange<'_>) {
        self.definitions.with_label_values(&[&change.upstream.0, change.class(), change.action]).inc();
    }

    /// So many definitions wait.
    pub(super) fn held(&self, upstream: &UpstreamName, count: usize) {
        self.held.with_label_values(&[&upstream.0]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// A limit was hit.
    pub(super) fn limit_hit(&self, limit: &'static str) {
        self.limits_hit.with_label_values(&[limit]).inc();
    }

    /// A part of an answer was asked for.
    pub(super) fn page(&self, outcome: &'static str) {
        self.pages.with_label_values(&[outcome]).inc();
    }

    /// A reload ended.
    pub(super) fn reloaded(&self, outcome: &'static str) {
        self.reloads.with_label_values(&[outcome]).inc();
    }

    /// Event streams to agents.
    pub(super) fn streams(&self) -> &IntGauge {
        &self.streams
    }

    /// Everything, in the text format 0.0.4.
    pub(super) fn text(&self) -> String {
        if let Some(usage) = process::usage() {
            self.memory.set(usage.resident_bytes);
            self.cpu.inc_by((usage.cpu_seconds - self.cpu.get()).max(0.0));
            self.files.set(usage.open_files);
        }
        self.logins.refresh();
        let mut out = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            tracing::error!(%error, "the metrics cannot be written");
        }
        String::from_utf8(out).unwrap_or_default()
    }
}

/// The label for what is done about a match.
fn done_about(action: Action, mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => action.name(),
        Mode::Observe => OBSERVED,
    }
}

/// Whether an inbound rule with this action takes what it finds for an injection: what is only
/// recorded, stripped of markup or masked is not one.
fn is_injection(action: Action) -> bool {
    matches!(action, Action::Wrap | Action::Quarantine | Action::Withhold | Action::Block)
}

/// Makes metrics from the table and registers them.
pub(super) struct Maker(Registry);

impl Maker {
    fn register<C: Collector + Clone + 'static>(&self, metric: C) -> Result<C, Error> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    pub(super) fn counters(&self, metric: Metric) -> Result<IntCounterVec, Error> {
        self.register(IntCounterVec::new(Opts::new(metric.name, metric.help), metric.labels)?)
    }

    pub(super) fn gauges(&self, metric: Metric) -> Result<IntGaugeVec, Error> {
        self.register(IntGaugeVec::new(Opts::new(metric.name, metric.help), metric.labels)?)
    }

    fn histograms(&self, metric: Metric) -> Result<HistogramVec, Error> {
        let buckets = match metric.kind {
            Kind::Histogram(buckets) => buckets.to_vec(),
            Kind::Counter | Kind::Gauge => Vec::new(),
        };
        self.register(HistogramVec::new(HistogramOpts::new(metric.name, metric.help).buckets(buckets), metric.labels)?)
    }
}
