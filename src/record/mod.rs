//! Telling what happened: said once, heard by the audit log, the counters and the log.

mod approval;
mod aside;
mod audit;
mod barred;
mod chain;
mod definition;
mod digits;
pub mod entry;
mod event;
mod item;
mod keeping;
pub mod kept;
mod label;
mod line;
mod live;
mod log;
mod login;
mod metrics;
mod notified;
mod outlet;
mod page;
mod printable;
mod process;
mod pulse;
mod redact;
mod series;
mod sink;
mod stream;
mod suppressed;
pub mod table;
mod told;
mod trace;
mod unread;
pub mod verify;
mod watched;

use std::io;
use std::sync::{Arc, OnceLock};

use tracing::subscriber::{NoSubscriber, with_default};

use crate::config::{AuditConfig, Keeps};
use crate::inspect::Mode;
use crate::message::Direction;
use crate::protocol::Side;
use crate::rules::RuleId;

use audit::{Audit, Body};
use kept::Stores;
use metrics::Metrics;
use sink::Sink;
use watched::Watched;

pub use approval::Approval;
pub use barred::Barred;
pub use chain::PublicKey;
pub use definition::DefinitionChange;
pub use event::Event;
pub use keeping::{QUARANTINE_OUTCOMES, Quarantined};
pub use line::{harmless, harmless_json};
pub use live::{Batch, Live, Watch};
pub use log::start_log;
pub use login::{LOGIN_OUTCOMES, Login};
pub use metrics::{InForce, is_injection};
pub use notified::Notified;
pub use outlet::{Exported, Lines, Outlets};
pub use page::Page;
pub use printable::printable;
pub use pulse::{BUCKET_SECONDS, Counts, Hits, Moment, Served};
pub use redact::Redactor;
pub use sink::Written;
pub use stream::OpenStream;
pub use watched::Reload;

/// Hears events and tells them on. Shared by the whole process.
pub struct Recorder {
    metrics: Metrics,
    audit: Audit,
    sink: Arc<Sink>,
    stores: Stores,
    watched: Watched,
    outlets: Arc<OnceLock<Outlets>>,
    /// Whether it records what `lychgate prove` sends: its lines are marked, and nothing is logged.
    is_trial: bool,
}

impl Recorder {
    /// Opens the audit log and sets all counters to zero.
    ///
    /// # Errors
    /// The log cannot be opened.
    pub fn new(config: &AuditConfig) -> io::Result<Self> {
        let metrics = Metrics::new().map_err(io::Error::other)?;
        let sink = Arc::new(Sink::new(config, metrics.audit_counts())?);
        Ok(Self {
            metrics,
            audit: Audit::new().map_err(io::Error::other)?,
            sink,
            stores: Stores::default(),
            watched: Watched::default(),
            outlets: Arc::default(),
            is_trial: false,
        })
    }

    /// Opens the audit file anew, after it was moved away to be kept or packed.
    ///
    /// # Errors
    /// It cannot be opened; lines go on into the old one.
    pub fn reopen(&self) -> io::Result<()> {
        self.sink.reopen()
    }

    /// Whether what must be told can be: false while the audit log is required and cannot be written.
    pub fn can_tell(&self) -> bool {
        self.sink.can_tell()
    }

    /// Waits, for at most 5 s, until every audit line told so far is written. To be called before the process ends.
    pub fn flush(&self) {
        self.sink.flush();
        self.stores.flush();
    }

    /// Tells of an event.
    ///
    /// # Errors
    /// Only where the audit log is required and cannot be written: then the call must not go on.
    pub fn tell(&self, event: Event<'_>) -> io::Result<()> {
        self.begin(event).wait()
    }

    /// As [`Self::tell`], for who waits in another way until the lines are written.
    pub fn begin(&self, event: Event<'_>) -> Written {
        if !self.is_trial {
            return self.record(event);
        }
        with_default(NoSubscriber::new(), || self.record(event))
    }

    fn record(&self, event: Event<'_>) -> Written {
        match event {
            Event::Judged { audit, direction, context, message, inspection, mode, evidence, rules, took, waited } => {
                self.metrics.remembered(&context.upstream, inspection.learnt.flow.counts());
                if let Some(classified) = &inspection.classified {
                    self.metrics.classified(&context.upstream, classified.outcome(&inspection.findings));
                }
                let body = Body {
                    audit,
                    direction,
                    context,
                    is_batch: message.is_batch(),
                    coverage: &inspection.coverage,
                    delivery: Some(&inspection.delivery),
                    classified: inspection.classified.as_deref(),
                    mode,
                    evidence,
                    rules,
                    took: Some(took),
                    waited,
                };
                self.judged(&body, &item::items(message, context, inspection))
            }
            Event::JudgedText { audit, context, bytes, verdict, findings, coverage, mode, rules } => {
                let body = Body {
                    audit,
                    direction: Direction::Inbound,
                    context,
                    is_batch: false,
                    coverage,
                    delivery: None,
                    classified: None,
                    mode,
                    evidence: Keeps::None,
                    rules,
                    took: None,
                    waited: None,
                };
                let done = if mode == Mode::Observe { "pass" } else { verdict };
                self.metrics.unlooked.tell(coverage);
                self.metrics.judged_text(&context.upstream, done, findings, mode);
                self.watched.judged(&body, done, findings.iter(), None);
                self.log(&body, verdict, findings.first());
                self.line(|| self.audit.judged_text(&body, bytes, verdict, done, findings))
            }
            Event::Failed { context, error } => {
                let side = error.side();
                self.metrics.failed(&context.upstream, side);
                self.watched.pulse.failed(&context.upstream);
                let (upstream, agent) = (&context.upstream, &context.agent);
                let told = self.audit.chain(error);
                match side {
                    Side::Agent => tracing::debug!(%upstream, %agent, error = ?told, "a call failed by the agent's fault"),
                    Side::Server => tracing::warn!(%upstream, %agent, error = ?told, "a call failed by the server's fault"),
                    Side::Gateway => tracing::warn!(%upstream, %agent, error = ?told, "a call failed in the gateway"),
                }
                self.failed_in_trace(context, error);
                self.line(|| self.audit.failed(context, error))
            }
            Event::TurnedAway { reason } => {
                self.metrics.turned_away(reason);
                tracing::debug!(reason, "a request was turned away");
                self.line(|| told::turned_away(reason))
            }
            Event::Barred(barred) => {
                self.metrics.turned_away("access");
                let (upstream, agent, thing, why) = (barred.upstream, barred.agent, barred.thing, barred.why);
                tracing::info!(%upstream, %agent, thing, why, "access denied");
                self.line(|| told::denied(&barred))
            }
            Event::Limit { name } => {
                self.metrics.limit_hit(name);
                tracing::debug!(limit = name, "a limit was hit");
                Written::done()
            }
            Event::Page(page) => {
                self.metrics.page(page.outcome);
                self.line(|| told::page(page))
            }
            Event::Login(login) => {
                self.metrics.logins.tell(login);
                let Login { upstream, principal, outcome, error, .. } = *login;
                match outcome {
                    "owed" => tracing::warn!(upstream, principal, "a login is owed: see `lychgate login {upstream}`"),
                    "logged_in" | "renewed" => tracing::info!(upstream, principal, outcome, "a login at a server"),
                    _ => tracing::warn!(upstream, principal, outcome, error, "a login at a server"),
                }
                self.line(|| told::login(login))
            }
            Event::Approval(approval) => {
                self.metrics.approval(approval);
                self.asked_in_trace(approval);
                let Approval { id, outcome, way, .. } = *approval;
                let (upstream, agent) = (&approval.context.upstream, &approval.context.agent);
                let rule = approval.rules.first().map(RuleId::as_str);
                tracing::info!(%upstream, %agent, approval = id, outcome, way, rule, "a person's yes is wanted");
                self.line(|| self.audit.approval(approval))
            }
            Event::RefusedAgain { context, tool, rule, times, audit } => {
                self.metrics.limit_hit("repeated_refusals");
                if audit.is_some() {
                    self.metrics.refused_unjudged(&context.upstream, tool, rule);
                    self.watched.pulse.refused_unjudged(&context.upstream, rule);
                }
                tracing::info!(upstream = %context.upstream, agent = %context.agent, %rule, times, "refused again");
                if audit.is_some() {
                    trace::refused_again(context, rule);
                }
                self.line(|| self.audit.refused_again(audit, context, tool, rule, times))
            }
            Event::Overlaid { context, policy, told_bytes, shown_bytes } => {
                tracing::debug!(upstream = %context.upstream, policy, "a list of tools was overlaid");
                self.line(|| self.audit.overlaid(context, policy, told_bytes, shown_bytes))
            }
            Event::Quarantined(what) => {
                self.metrics.keeping.count(what.outcome, 1);
                let Quarantined { audit, outcome, agent, upstream, .. } = *what;
                tracing::info!(%audit, outcome, agent, upstream, "a message in quarantine");
                self.line(|| told::quarantined(what))
            }
            Event::Definition(change) => {
                self.metrics.definition(change);
                let DefinitionChange { upstream, kind, action, .. } = *change;
                let class = change.class();
                match action {
                    "pass" => tracing::info!(%upstream, kind, class, action, "a definition has changed"),
                    _ => tracing::warn!(%upstream, kind, class, action, "a definition has changed: see `lychgate pins`"),
                }
                self.line(|| self.audit.definition(change))
            }
            Event::Pinned { context, count } => {
                tracing::info!(upstream = %context.upstream, count, "definitions of a new server were pinned");
                self.line(|| told::pinned(context, count))
            }
            Event::Held { upstream, count } => {
                self.metrics.held(upstream, count);
                Written::done()
            }
            Event::PinsReloaded { upstreams } => {
                tracing::info!(?upstreams, "the pins of the lock file are in force");
                self.line(|| told::pins_reloaded(upstreams))
            }
            Event::PinsRefused { faults } => {
                tracing::error!(faults = faults.len(), first = ?faults.first().map(ToString::to_string), "the lock file is not used");
                self.line(|| told::pins_refused(faults))
            }
            Event::Reloaded { rules, weakened } => {
                self.watched.reloaded(true, weakened.iter().cloned());
                self.metrics.reloaded(if weakened.is_empty() { "applied" } else { "weakened" });
                tracing::info!(rules, "new rules are in force");
                weakened.iter().for_each(|what| tracing::warn!(?what, "the new rules protect less than before"));
                self.line(|| told::reloaded(rules, weakened))
            }
            Event::ReloadRefused { faults } => {
                self.watched.reloaded(false, faults.iter().map(ToString::to_string));
                self.metrics.reloaded("refused");
                tracing::error!(faults = faults.len(), first = ?faults.first().map(ToString::to_string), "the reload was refused; the old rules stay");
                self.line(|| told::reload_refused(faults))
            }
        }
    }
}

#[cfg(test)]
mod tests;
