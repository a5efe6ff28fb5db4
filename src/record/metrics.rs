//! Counters and histograms, in the text format of Prometheus. They are described in
//! [`super::table`].

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use prometheus::proto::MetricFamily;
use prometheus::{Counter, Encoder, Error, Gauge, IntCounter, IntGauge, Registry, TextEncoder};

use crate::config::{Limits, Suppression};
use crate::detect::{flow::TaintReason, work};
use crate::inspect::{Finding, Mode};
use crate::message::Direction;
use crate::protocol::{Side, UpstreamName};
use crate::rules::{Action, RuleSet};

use super::Recorder;
use super::approval::{Approval, OUTCOMES, WAYS};
use super::coverage::CoverageCounters;
use super::definition::{self, DefinitionChange};
use super::exporter::ExportCounters;
use super::item::Item;
use super::label::{Counters, Gauges, Histograms, Maker};
use super::login::Logins;
use super::notifications::NotificationCounters;
use super::process;
use super::retention::StoreCounters;
use super::series::{ByDirection, UpstreamSeries};
use super::sink::Counts;
use super::stream::OpenStream;
use super::suppression_counters::SuppressionCounters;
use super::table;

/// The action label of a match if the policy only observes.
const OBSERVED: &str = "observed";
/// The action label of a match that is suppressed.
const SUPPRESSED: &str = "suppressed";
const BOTH: [Direction; 2] = [Direction::Outbound, Direction::Inbound];

/// The rules that apply to one upstream.
pub struct UpstreamRules<'a> {
    pub upstream: &'a UpstreamName,
    /// Whether verdicts are enforced or only observed.
    pub mode: Mode,
    /// The rules for messages of agents.
    pub outbound: &'a RuleSet,
    /// The rules for messages of the upstream.
    pub inbound: &'a RuleSet,
}

/// Metrics that are updated without an event.
impl Recorder {
    /// Creates the counters of every rule in force, at zero, so that the first hit shows as an
    /// increase. Must be called at startup and after each reload, with one entry for each upstream.
    pub fn announce_rules(&self, all: &[UpstreamRules<'_>]) {
        self.metrics.announce_rules(all);
    }

    /// Sets the suppressions in force. Must be called with [`Recorder::announce_rules`].
    pub fn set_suppressions(&self, all: &[Arc<Suppression>]) {
        self.metrics.suppressions.announce(all);
    }

    /// Counts an event stream to an agent for as long as the returned value exists.
    pub fn open_stream(&self) -> OpenStream {
        OpenStream::new(self.metrics.streams())
    }

    /// Sets whether an upstream is up.
    pub fn set_upstream_up(&self, upstream: &UpstreamName, is_up: bool) {
        self.metrics.set_up(upstream, is_up);
    }

    /// Removes the state of an upstream that was removed.
    pub fn forget_upstream(&self, upstream: &UpstreamName) {
        self.metrics.forget_upstream(upstream);
    }

    /// Returns the counter of a limit, for callers that reach it without an event.
    pub fn limit_hits(&self, limit: &'static str) -> IntCounter {
        self.metrics.limits_hit.with(&[limit])
    }

    /// Returns all metrics, in the text format of Prometheus (0.0.4).
    pub fn metrics_text(&self) -> String {
        self.metrics.text()
    }
}

/// All metrics of the process.
pub(super) struct Metrics {
    registry: Registry,
    messages: Counters,
    findings: Counters,
    pub(super) suppressions: SuppressionCounters,
    injections: Counters,
    injected_messages: Counters,
    commands_blocked: Counters,
    inspect: ByDirection,
    upstream: Histograms,
    of_upstreams: UpstreamSeries,
    flow_pieces: Counters,
    approvals: Counters,
    definitions: Counters,
    held: Gauges,
    up: Gauges,
    classified: Counters,
    pub(super) logins: Logins,
    failures: Counters,
    turned_away: Counters,
    pub(super) coverage: CoverageCounters,
    limits_hit: Counters,
    reloads: Counters,
    pages: Counters,
    rules: Gauges,
    pub(super) stores: StoreCounters,
    audit: Counts,
    pub(super) exports: ExportCounters,
    pub(super) notifications: NotificationCounters,
    streams: IntGauge,
    memory: Gauge,
    cpu: Counter,
    files: Gauge,
}

impl Metrics {
    /// Creates all metrics, at zero.
    ///
    /// # Errors
    /// Never, unless the table is invalid.
    pub(super) fn new() -> Result<Self, Error> {
        let maker = Maker::new()?;
        let metrics = Self {
            messages: maker.counters(table::MESSAGES)?,
            findings: maker.counters(table::FINDINGS)?,
            suppressions: SuppressionCounters::new(&maker)?,
            injections: maker.counters(table::INJECTIONS)?,
            injected_messages: maker.counters(table::INJECTED_MESSAGES)?,
            commands_blocked: maker.counters(table::COMMANDS_BLOCKED)?,
            inspect: ByDirection::new(&maker.histograms(table::INSPECT)?),
            upstream: maker.histograms(table::UPSTREAM)?,
            of_upstreams: UpstreamSeries::default(),
            flow_pieces: maker.counters(table::FLOW_PIECES)?,
            approvals: maker.counters(table::APPROVALS)?,
            definitions: maker.counters(table::DEFINITION_CHANGES)?,
            held: maker.gauges(table::DEFINITIONS_HELD)?,
            up: maker.gauges(table::UPSTREAM_UP)?,
            classified: maker.counters(table::CLASSIFIED)?,
            logins: Logins::new(&maker)?,
            failures: maker.counters(table::FAILURES)?,
            turned_away: maker.counters(table::TURNED_AWAY)?,
            coverage: CoverageCounters::new(&maker)?,
            limits_hit: maker.counters(table::LIMITS_HIT)?,
            reloads: maker.counters(table::RELOADS)?,
            pages: maker.counters(table::PAGES)?,
            rules: maker.gauges(table::RULES_IN_FORCE)?,
            stores: StoreCounters::new(&maker)?,
            audit: Counts::new(&maker)?,
            exports: ExportCounters::new(&maker)?,
            notifications: NotificationCounters::new(&maker)?,
            streams: maker.level(table::STREAMS)?,
            memory: maker.gauge(table::PROCESS_MEMORY)?,
            cpu: maker.counter(table::PROCESS_CPU)?,
            files: maker.gauge(table::PROCESS_FILES)?,
            registry: {
                maker
                    .gauges(table::BUILD_INFO)?
                    .with(&[env!("CARGO_PKG_VERSION")])
                    .set(1);
                maker
                    .gauge(table::PROCESS_START)?
                    .set(process::seconds_since_1970());
                maker.registry()
            },
        };
        for outcome in OUTCOMES {
            let ways = WAYS
                .iter()
                .filter(|way| matches!(outcome, "approved" | "denied") != (**way == "none"));
            ways.filter(|way| **way != "earlier" || outcome == "approved")
                .for_each(|way| drop(metrics.approvals.with(&[outcome, way])));
        }
        Limits::NAMES
            .iter()
            .chain(&work::ALL)
            .for_each(|limit| drop(metrics.limits_hit.with(&[limit])));
        Ok(metrics)
    }

    /// Returns the counters of the audit log.
    pub(super) fn audit_counts(&self) -> Counts {
        self.audit.clone()
    }

    /// Creates the counters that these rules can increase, at zero, so that their first increase is
    /// visible. This excludes the counters by rule and upstream: there would be 650 for each
    /// upstream, without the name of a tool, and hardly any event would increase them.
    pub(super) fn announce_rules(&self, all: &[UpstreamRules<'_>]) {
        self.of_upstreams.resolve(
            all.iter().map(|rules| rules.upstream),
            &self.messages,
            &self.upstream,
        );
        let mut distinct: [HashSet<&str>; 2] = Default::default();
        let mut done = HashSet::new();
        for UpstreamRules {
            upstream,
            mode,
            outbound,
            inbound,
        } in all
        {
            let upstream = upstream.0.as_ref();
            for class in definition::classes() {
                ["pass", "hold"]
                    .iter()
                    .for_each(|action| drop(self.definitions.with(&[upstream, class, action])));
            }
            self.held.with(&[upstream]);
            self.injected_messages.with(&[upstream, ""]);
            self.injections.with(&[upstream, "", "", "", ""]);
            self.commands_blocked.with(&[upstream, "", ""]);
            self.logins.announce(upstream);
            for counters in [&self.failures, &self.classified, &self.flow_pieces] {
                counters.announce(upstream);
            }
            for (rules, distinct) in [outbound, inbound].into_iter().zip(&mut distinct) {
                // Most upstreams share their rules.
                if done.insert((rules.direction().name(), rules.digest(), mode.name())) {
                    for rule in rules.rules() {
                        distinct.insert(rule.id.as_str());
                        self.findings
                            .with(&[rule.id.as_str(), action_label(rule.action, *mode)]);
                    }
                }
            }
        }
        for (direction, rules) in BOTH.iter().zip(&distinct) {
            self.rules
                .with(&[direction.name()])
                .set(i64::try_from(rules.len()).unwrap_or(i64::MAX));
        }
    }

    /// Records the inspection of a body.
    pub(super) fn observe_inspection(&self, direction: Direction, duration: Duration) {
        self.inspect.observe(direction, duration);
    }

    /// Counts pieces of a body that are remembered: as quarantined, as untrusted and as private.
    pub(super) fn count_flow_pieces(&self, upstream: &UpstreamName, counts: [usize; 3]) {
        for (from, count) in TaintReason::NAMES
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
        {
            self.flow_pieces
                .with(&[&*upstream.0, from])
                .inc_by(count as u64);
        }
    }

    /// Counts one inspected message.
    pub(super) fn count_message(
        &self,
        upstream: &UpstreamName,
        direction: Direction,
        item: &Item<'_>,
        mode: Mode,
        response_time: Option<Duration>,
    ) {
        let seconds_waited = response_time
            .filter(|_| item.is_answer)
            .map(|waited| waited.as_secs_f64());
        if !self
            .of_upstreams
            .count(upstream, direction, item.outcome(mode), seconds_waited)
        {
            self.messages
                .with(&[&upstream.0, direction.name(), item.outcome(mode)])
                .inc();
            seconds_waited
                .into_iter()
                .for_each(|seconds| self.upstream.with(&[&upstream.0]).observe(seconds));
        }
        for finding in &item.findings {
            self.count_finding(upstream, direction, finding, mode, || {
                item.finding_tool(finding)
            });
        }
        if let Some(first) = item
            .findings
            .iter()
            .find(|finding| counts_as_injection(direction, finding))
        {
            self.injected_messages
                .with(&[&*upstream.0, item.finding_tool(first).unwrap_or("")])
                .inc();
        }
        if let (Direction::Outbound, "block", Some(rule)) =
            (direction, item.outcome(mode), item.refused_by)
        {
            self.commands_blocked
                .with(&[&*upstream.0, item.tool().unwrap_or(""), rule.as_str()])
                .inc();
        }
    }

    /// Counts an inspected text that is not a message.
    pub(super) fn count_text(
        &self,
        upstream: &UpstreamName,
        outcome: &str,
        findings: &[Finding],
        mode: Mode,
    ) {
        self.messages
            .with(&[&upstream.0, Direction::Inbound.name(), outcome])
            .inc();
        for finding in findings {
            self.count_finding(upstream, Direction::Inbound, finding, mode, || None);
        }
        if findings
            .iter()
            .any(|finding| counts_as_injection(Direction::Inbound, finding))
        {
            self.injected_messages.with(&[&*upstream.0, ""]).inc();
        }
    }

    fn count_finding<'t>(
        &self,
        upstream: &UpstreamName,
        direction: Direction,
        finding: &Finding,
        mode: Mode,
        tool: impl FnOnce() -> Option<&'t str>,
    ) {
        if finding.suppressed.is_some() {
            self.suppressions.count(finding.rule.as_str());
            self.findings
                .with(&[finding.rule.as_str(), SUPPRESSED])
                .inc();
            return;
        }
        let rule = finding.rule.as_str();
        let action = action_label(finding.action, mode);
        self.findings.with(&[rule, action]).inc();
        if counts_as_injection(direction, finding) {
            self.injections
                .with(&[
                    &*upstream.0,
                    tool().unwrap_or(""),
                    rule,
                    action,
                    finding.surface.name(),
                ])
                .inc();
        }
    }

    /// Counts a failed call.
    pub(super) fn count_failure(&self, upstream: &UpstreamName, side: Side) {
        self.failures.with(&[&*upstream.0, side.name()]).inc();
    }

    /// Counts a rejected request.
    pub(super) fn count_rejection(&self, reason: &'static str) {
        self.turned_away.with(&[reason]).inc();
    }

    /// Counts a call that was refused without inspection, since it was refused before.
    pub(super) fn count_unjudged_refusal(&self, upstream: &UpstreamName, tool: &str, rule: &str) {
        self.messages
            .with(&[&*upstream.0, Direction::Outbound.name(), "block"])
            .inc();
        self.commands_blocked
            .with(&[&*upstream.0, tool, rule])
            .inc();
    }

    /// Counts a change of the state of an approval request.
    pub(super) fn count_approval(&self, approval: &Approval<'_>) {
        self.approvals.with(&[approval.outcome, approval.way]).inc();
    }

    /// Counts a request to an external classifier.
    pub(super) fn count_classification(&self, upstream: &UpstreamName, outcome: &'static str) {
        self.classified.with(&[&*upstream.0, outcome]).inc();
    }

    /// Counts a changed definition.
    pub(super) fn count_definition_change(&self, change: &DefinitionChange<'_>) {
        self.definitions
            .with(&[&change.upstream.0, change.class(), change.action])
            .inc();
    }

    /// Sets the number of definitions that wait for approval.
    pub(super) fn set_held(&self, upstream: &UpstreamName, count: usize) {
        self.held
            .with(&[&upstream.0])
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets whether an upstream is up.
    pub(super) fn set_up(&self, upstream: &UpstreamName, is_up: bool) {
        self.up.with(&[&*upstream.0]).set(i64::from(is_up));
    }

    /// Removes the gauges of an upstream that was removed. Its counters stay, as counters must.
    pub(super) fn forget_upstream(&self, upstream: &UpstreamName) {
        self.up.forget(&[&*upstream.0]);
        self.held.forget(&[&*upstream.0]);
    }

    pub(super) fn count_limit_hit(&self, limit: &'static str) {
        self.limits_hit.with(&[limit]).inc();
    }

    /// Counts a requested part of a result.
    pub(super) fn count_page(&self, outcome: &'static str) {
        self.pages.with(&[outcome]).inc();
    }

    /// Counts a reload.
    pub(super) fn count_reload(&self, outcome: &'static str) {
        self.reloads.with(&[outcome]).inc();
    }

    /// Returns the gauge of open event streams to agents.
    pub(super) fn streams(&self) -> &IntGauge {
        &self.streams
    }

    /// Returns all metrics.
    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        if let Some(usage) = process::usage() {
            self.memory.set(usage.resident_bytes);
            self.cpu
                .inc_by((usage.cpu_seconds - self.cpu.get()).max(0.0));
            self.files.set(usage.open_files);
        }
        self.logins.refresh();
        self.suppressions.refresh();
        self.registry.gather()
    }

    /// Returns all metrics, in the text format 0.0.4.
    pub(super) fn text(&self) -> String {
        let mut out = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.gather(), &mut out) {
            tracing::error!(%error, "cannot encode metrics");
        }
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Returns the label for the action on a match.
fn action_label(action: Action, mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => action.name(),
        Mode::Observe => OBSERVED,
    }
}

fn counts_as_injection(direction: Direction, finding: &Finding) -> bool {
    direction == Direction::Inbound && finding.suppressed.is_none() && is_injection(finding.action)
}

/// Reports whether an inbound rule with this action classifies its matches as injections. Matches
/// that are only recorded, stripped of markup or masked are not.
pub fn is_injection(action: Action) -> bool {
    matches!(
        action,
        Action::Wrap | Action::Quarantine | Action::Withhold | Action::Block
    )
}
