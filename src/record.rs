//! Records events in the audit log, the metrics and the log. Callers report each event once.

mod access_denied;
mod approval;
mod audit;
mod chain;
mod console_feed;
mod coverage;
mod definition;
mod digits;
pub mod entry;
mod escape;
mod event;
mod event_lines;
mod exporter;
mod item;
mod label;
mod log;
mod login;
mod metrics;
mod notifications;
mod printable;
mod process;
mod recent_stats;
mod redact;
mod result_page;
mod retention;
mod series;
mod side_log;
mod sink;
pub mod stores;
mod stream;
mod suppression_counters;
pub mod table;
mod tail;
mod trace;
pub mod verify;

use std::io;
use std::sync::{Arc, OnceLock};

use tracing::subscriber::{NoSubscriber, with_default};

use crate::config::{AuditConfig, EvidenceLevel};
use crate::inspect::Mode;
use crate::message::Direction;
use crate::protocol::Side;
use crate::rules::RuleId;

use audit::{Audit, Body};
use console_feed::ConsoleFeed;
use metrics::Metrics;
use sink::Sink;
use stores::Stores;

pub use access_denied::AccessDenied;
pub use approval::Approval;
pub use chain::PublicKey;
pub use console_feed::Reload;
pub use definition::DefinitionChange;
pub use escape::{terminal_safe, terminal_safe_json};
pub use event::Event;
pub use exporter::{ExportCounts, Exporters, LineExporter};
pub use log::start_log;
pub use login::Login;
pub use metrics::{UpstreamRules, is_injection};
pub use notifications::NotificationCounts;
pub use printable::printable;
pub use recent_stats::{
    BUCKET_SECONDS, Counts, RuleHits, StatsBucket, UpstreamStats, unix_seconds,
};
pub use redact::Redactor;
pub use result_page::ResultPage;
pub use retention::{QUARANTINE_OUTCOMES, QuarantineEvent};
pub use sink::PendingWrite;
pub use stream::OpenStream;
pub use tail::{AuditTail, TailBatch, TailReader};

/// Receives events and records them in the audit log, the metrics and the log. Shared by the whole
/// process.
pub struct Recorder {
    metrics: Metrics,
    audit: Audit,
    sink: Arc<Sink>,
    stores: Stores,
    console_feed: ConsoleFeed,
    exporters: Arc<OnceLock<Exporters>>,
    /// Whether it records the messages that `lychgate prove` sends. Their audit lines are marked,
    /// and nothing is logged.
    is_trial: bool,
}

impl Recorder {
    /// Opens the audit log and sets all counters to zero.
    ///
    /// # Errors
    /// The audit log cannot be opened.
    pub fn new(config: &AuditConfig) -> io::Result<Self> {
        let metrics = Metrics::new().map_err(io::Error::other)?;
        let sink = Arc::new(Sink::new(config, metrics.audit_counts())?);
        Ok(Self {
            metrics,
            audit: Audit::new().map_err(io::Error::other)?,
            sink,
            stores: Stores::default(),
            console_feed: ConsoleFeed::default(),
            exporters: Arc::default(),
            is_trial: false,
        })
    }

    /// Reopens the audit file after log rotation has moved it away.
    ///
    /// # Errors
    /// The file cannot be opened; lines are still written to the old one.
    pub fn reopen(&self) -> io::Result<()> {
        self.sink.reopen()
    }

    /// Reports whether required events can be recorded: false while the audit log is required and
    /// cannot be written.
    pub fn can_record(&self) -> bool {
        self.sink.can_record()
    }

    /// Waits until all audit lines recorded so far are written, for at most 5 s. Must be called
    /// before the process ends.
    pub fn flush(&self) {
        self.sink.flush();
        self.stores.flush();
    }

    /// Records an event and waits until it is written.
    ///
    /// # Errors
    /// The audit log is required and cannot be written. The call must then be refused.
    pub fn record(&self, event: Event<'_>) -> io::Result<()> {
        self.start(event).wait()
    }

    /// Like [`Self::record`], for callers that wait for the write themselves.
    pub fn start(&self, event: Event<'_>) -> PendingWrite {
        if !self.is_trial {
            return self.dispatch(event);
        }
        with_default(NoSubscriber::new(), || self.dispatch(event))
    }

    fn dispatch(&self, event: Event<'_>) -> PendingWrite {
        match event {
            Event::Judged {
                audit,
                direction,
                context,
                message,
                inspection,
                mode,
                evidence,
                rules,
                inspection_time: took,
                response_time: waited,
            } => {
                self.metrics
                    .count_flow_pieces(&context.upstream, inspection.session_update.flow.counts());
                if let Some(classified) = &inspection.classified {
                    self.metrics.count_classification(
                        &context.upstream,
                        classified.outcome(&inspection.findings),
                    );
                }
                let body = Body {
                    audit,
                    direction,
                    context,
                    is_batch: message.is_batch(),
                    coverage: &inspection.coverage,
                    delivery: Some(&inspection.result_size),
                    classified: inspection.classified.as_deref(),
                    mode,
                    evidence,
                    rules,
                    inspection_time: Some(took),
                    response_time: waited,
                };
                self.record_judged(&body, &item::items(message, context, inspection))
            }
            Event::JudgedText {
                audit,
                context,
                bytes,
                verdict,
                findings,
                coverage,
                mode,
                rules,
            } => {
                let body = Body {
                    audit,
                    direction: Direction::Inbound,
                    context,
                    is_batch: false,
                    coverage,
                    delivery: None,
                    classified: None,
                    mode,
                    evidence: EvidenceLevel::None,
                    rules,
                    inspection_time: None,
                    response_time: None,
                };
                let effective_verdict = if mode == Mode::Observe {
                    "pass"
                } else {
                    verdict
                };
                self.metrics.coverage.count(coverage);
                self.metrics
                    .count_text(&context.upstream, effective_verdict, findings, mode);
                self.console_feed
                    .count_judged(&body, effective_verdict, findings.iter(), None);
                self.log(&body, verdict, findings.first());
                self.line(|| {
                    self.audit
                        .judged_text_line(&body, bytes, verdict, effective_verdict, findings)
                })
            }
            Event::Failed { context, error } => {
                let side = error.side();
                self.metrics.count_failure(&context.upstream, side);
                self.console_feed.stats.count_failed(&context.upstream);
                let (upstream, agent) = (&context.upstream, &context.agent);
                let causes = self.audit.describe_error(error);
                match side {
                    Side::Agent => {
                        tracing::debug!(%upstream, %agent, error = ?causes, "call failed: invalid request")
                    }
                    Side::Server => {
                        tracing::warn!(%upstream, %agent, error = ?causes, "call failed: upstream error")
                    }
                    Side::Gateway => {
                        tracing::warn!(%upstream, %agent, error = ?causes, "call failed: gateway error")
                    }
                }
                self.trace_failure(context, error);
                self.line(|| self.audit.failure_line(context, error))
            }
            Event::Rejected { reason } => {
                self.metrics.count_rejection(reason);
                tracing::debug!(reason, "request rejected");
                self.line(|| event_lines::rejected(reason))
            }
            Event::AccessDenied(denial) => {
                self.metrics.count_rejection("access");
                let (upstream, agent, thing, why) =
                    (denial.upstream, denial.agent, denial.kind, denial.why);
                tracing::info!(%upstream, %agent, thing, why, "access denied");
                self.line(|| event_lines::access_denied(&denial))
            }
            Event::Limit { name } => {
                self.metrics.count_limit_hit(name);
                tracing::debug!(limit = name, "limit reached");
                PendingWrite::done()
            }
            Event::ResultPage(page) => {
                self.metrics.count_page(page.outcome);
                self.line(|| event_lines::page(page))
            }
            Event::Login(login) => {
                self.metrics.logins.count(login);
                let Login {
                    upstream,
                    principal,
                    outcome,
                    error,
                    ..
                } = *login;
                match outcome {
                    "owed" => tracing::warn!(
                        upstream,
                        principal,
                        "login required; run `lychgate login {upstream}`"
                    ),
                    "logged_in" | "renewed" => {
                        tracing::info!(upstream, principal, outcome, "upstream login")
                    }
                    _ => tracing::warn!(upstream, principal, outcome, error, "upstream login"),
                }
                self.line(|| event_lines::login(login))
            }
            Event::Approval(approval) => {
                self.metrics.count_approval(approval);
                self.trace_approval(approval);
                let Approval {
                    id, outcome, way, ..
                } = *approval;
                let (upstream, agent) = (&approval.context.upstream, &approval.context.agent);
                let rule = approval.rules.first().map(RuleId::as_str);
                tracing::info!(%upstream, %agent, approval = id, outcome, way, rule, "approval requested");
                self.line(|| self.audit.approval_line(approval))
            }
            Event::RefusedAgain {
                context,
                tool,
                rule,
                times,
                audit,
            } => {
                self.metrics.count_limit_hit("repeated_refusals");
                if audit.is_some() {
                    self.metrics
                        .count_unjudged_refusal(&context.upstream, tool, rule);
                    self.console_feed
                        .stats
                        .count_refused_unjudged(&context.upstream, rule);
                }
                tracing::info!(upstream = %context.upstream, agent = %context.agent, %rule, times, "repeated call refused");
                if audit.is_some() {
                    trace::trace_repeated_refusal(context, rule);
                }
                self.line(|| {
                    self.audit
                        .repeated_refusal_line(audit, context, tool, rule, times)
                })
            }
            Event::Overlaid {
                context,
                policy,
                received_bytes: told_bytes,
                shown_bytes,
            } => {
                tracing::debug!(upstream = %context.upstream, policy, "tool list overlaid");
                self.line(|| {
                    self.audit
                        .overlay_line(context, policy, told_bytes, shown_bytes)
                })
            }
            Event::Quarantine(quarantine_event) => {
                self.metrics.stores.count(quarantine_event.outcome, 1);
                let QuarantineEvent {
                    audit,
                    outcome,
                    agent,
                    upstream,
                    ..
                } = *quarantine_event;
                tracing::info!(%audit, outcome, agent, upstream, "quarantine");
                self.line(|| event_lines::quarantined(quarantine_event))
            }
            Event::Definition(change) => {
                self.metrics.count_definition_change(change);
                let DefinitionChange {
                    upstream,
                    kind,
                    action,
                    ..
                } = *change;
                let class = change.class();
                match action {
                    "pass" => tracing::info!(%upstream, kind, class, action, "definition changed"),
                    _ => {
                        tracing::warn!(%upstream, kind, class, action, "definition changed; see `lychgate pins`")
                    }
                }
                self.line(|| self.audit.definition_line(change))
            }
            Event::Pinned { context, count } => {
                tracing::info!(upstream = %context.upstream, count, "definitions of a new server pinned");
                self.line(|| event_lines::pinned(context, count))
            }
            Event::Held { upstream, count } => {
                self.metrics.set_held(upstream, count);
                PendingWrite::done()
            }
            Event::PinsReloaded { upstreams } => {
                tracing::info!(?upstreams, "lock file reloaded");
                self.line(|| event_lines::pins_reloaded(upstreams))
            }
            Event::PinsRefused { faults } => {
                tracing::error!(faults = faults.len(), first = ?faults.first().map(ToString::to_string), "invalid lock file; keeping the pins in force");
                self.line(|| event_lines::pins_refused(faults))
            }
            Event::Reloaded { rules, weakened } => {
                self.console_feed.set_reload(true, weakened.iter().cloned());
                self.metrics.count_reload(if weakened.is_empty() {
                    "applied"
                } else {
                    "weakened"
                });
                tracing::info!(rules, "config reloaded");
                weakened
                    .iter()
                    .for_each(|what| tracing::warn!(?what, "reload weakened protection"));
                self.line(|| event_lines::reloaded(rules, weakened))
            }
            Event::ReloadRefused { faults } => {
                self.console_feed
                    .set_reload(false, faults.iter().map(ToString::to_string));
                self.metrics.count_reload("refused");
                tracing::error!(faults = faults.len(), first = ?faults.first().map(ToString::to_string), "reload rejected; keeping the old rules");
                self.line(|| event_lines::reload_refused(faults))
            }
        }
    }
}

#[cfg(test)]
mod tests;
