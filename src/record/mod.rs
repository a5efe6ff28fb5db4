//! Telling what happened: said once, heard by the audit log, the counters and the log.

mod approval;
mod audit;
mod barred;
mod definition;
mod item;
mod line;
mod log;
mod login;
mod metrics;
mod page;
mod process;
mod redact;
mod sink;
mod stream;
mod table;

use std::io;
use std::time::Duration;

use crate::config::AuditConfig;
use crate::inspect::{Coverage, Finding, Inspection, Mode};
use crate::message::{Direction, Message};
use crate::protocol::{AuditId, CallError, Context, Side, UpstreamName};
use crate::rules::RuleId;

use audit::{Audit, Body};
use item::Item;
use metrics::Metrics;
use sink::Sink;

pub use approval::Approval;
pub use barred::Barred;
pub use definition::DefinitionChange;
pub use log::start_log;
pub use login::{LOGIN_OUTCOMES, Login};
pub use metrics::InForce;
pub use page::Page;
pub use stream::OpenStream;
pub use table::{Kind, METRICS, Metric};

/// Something worth telling.
pub enum Event<'a> {
    /// A message was judged.
    Judged {
        /// Names this line.
        audit: AuditId,
        /// Which way it went.
        direction: Direction,
        /// Who sent it to whom.
        context: &'a Context,
        /// The message.
        message: &'a Message,
        /// What judging gave.
        inspection: &'a Inspection,
        /// Whether the verdict is carried out.
        mode: Mode,
        /// The rule set that judged it.
        rules: &'a str,
        /// How long judging took.
        took: Duration,
        /// For a reply: how long ago its call was sent upstream.
        waited: Option<Duration>,
    },
    /// A body that is not JSON-RPC (an HTTP error's, say) was judged as one text.
    JudgedText {
        /// Names this line.
        audit: AuditId,
        /// Whose answer it is, to whom.
        context: &'a Context,
        /// Its length in bytes.
        bytes: usize,
        /// What became of it, or would have: `pass`, `rewrite` or `block`.
        verdict: &'static str,
        /// What was found.
        findings: &'a [Finding],
        /// How much was looked at.
        coverage: &'a Coverage,
        /// Whether the verdict is carried out.
        mode: Mode,
        /// The rule set that judged it.
        rules: &'a str,
    },
    /// A call failed.
    Failed {
        /// Who called whom.
        context: &'a Context,
        /// Why it failed.
        error: &'a CallError,
    },
    /// A request was turned away before it was a call: unknown token, wrong `Host` and the like.
    TurnedAway {
        /// Why: a short name, a metric label.
        reason: &'static str,
    },
    /// Somebody asked for what is not theirs to use, and was told that it is not there.
    Barred(Barred<'a>),
    /// A limit of the config was hit.
    Limit {
        /// Its name in the config.
        name: &'static str,
    },
    /// An agent reads on in an answer that was too long.
    Page(&'a Page<'a>),
    /// Something happened to a login at a server.
    Login(&'a Login<'a>),
    /// Something happened to a question to a person.
    Approval(&'a Approval<'a>),
    /// A call was refused that was refused like this again and again.
    RefusedAgain {
        /// Who calls whom.
        context: &'a Context,
        /// The tool.
        tool: &'a str,
        /// The rule.
        rule: &'a str,
        /// How often within the time that counts.
        times: usize,
        /// Names this line where the call was not even judged any more.
        audit: Option<AuditId>,
    },
    /// Agents get a list of tools that is not as the server told it: the operator's words are in it, or tools are hidden.
    Overlaid {
        /// Whose list it is, and who asked for it.
        context: &'a Context,
        /// The policy that says so.
        policy: &'a str,
        /// Length of the list as it came, in bytes.
        told_bytes: usize,
        /// The same as agents see it.
        shown_bytes: usize,
    },
    /// A definition is not what it was when it was pinned.
    Definition(&'a DefinitionChange<'a>),
    /// Definitions of a server were pinned that was not known before.
    Pinned {
        /// Whose list it was, and who asked for it.
        context: &'a Context,
        /// How many.
        count: usize,
    },
    /// How many definitions of an upstream wait for approval.
    Held {
        /// Whose.
        upstream: &'a UpstreamName,
        /// How many.
        count: usize,
    },
    /// The lock file has changed, and its pins are in force.
    PinsReloaded {
        /// Upstreams whose lists agents see otherwise now.
        upstreams: &'a [&'a str],
    },
    /// The lock file cannot be read or written; the pins in memory stay in force.
    PinsRefused {
        /// All faults.
        faults: &'a [crate::document::Fault],
    },
    /// New rules are in force.
    Reloaded {
        /// How many.
        rules: usize,
        /// What protects less than before; empty if nothing.
        weakened: &'a [String],
    },
    /// A reload was refused; the old rules stay in force.
    ReloadRefused {
        /// All faults.
        faults: &'a [crate::document::Fault],
    },
}

/// Hears events and tells them on. Shared by the whole process.
pub struct Recorder {
    metrics: Metrics,
    audit: Audit,
    sink: Sink,
}

impl Recorder {
    /// Opens the audit log and sets all counters to zero.
    ///
    /// # Errors
    /// The log cannot be opened.
    pub fn new(config: &AuditConfig) -> io::Result<Self> {
        let metrics = Metrics::new().map_err(io::Error::other)?;
        let sink = Sink::new(config, metrics.audit_counts())?;
        Ok(Self { metrics, audit: Audit::new().map_err(io::Error::other)?, sink })
    }

    /// Gives every rule in force its counters, at zero, so that the first hit shows as a rise. To be called
    /// at the start and after each reload, with one entry for each upstream.
    pub fn rules_in_force(&self, all: &[InForce<'_>]) {
        self.metrics.rules_in_force(all);
    }

    /// Counts an event stream to an agent, for as long as what this gives is kept.
    pub fn open_stream(&self) -> OpenStream {
        OpenStream::of(self.metrics.streams())
    }

    /// Everything that was counted, in the text format of Prometheus (0.0.4).
    pub fn metrics_text(&self) -> String {
        self.metrics.text()
    }

    /// Opens the audit file anew, after it was moved away to be kept or packed.
    ///
    /// # Errors
    /// It cannot be opened; lines go on into the old one.
    pub fn reopen(&self) -> io::Result<()> {
        self.sink.reopen()
    }

    /// Waits, for at most 5 s, until every audit line told so far is written. To be called before the process ends.
    pub fn flush(&self) {
        self.sink.flush();
    }

    /// Tells of an event.
    ///
    /// # Errors
    /// Only where the audit log is required and cannot be written: then the call must not go on.
    pub fn tell(&self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Judged { audit, direction, context, message, inspection, mode, rules, took, waited } => {
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
                    rules,
                    took: None,
                    waited: None,
                };
                let done = if mode == Mode::Observe { "pass" } else { verdict };
                self.metrics.judged_text(&context.upstream, done, findings, mode);
                self.log(&body, verdict, findings.first());
                self.line(|| self.audit.judged_text(&body, bytes, verdict, done, findings))
            }
            Event::Failed { context, error } => {
                let side = error.side();
                self.metrics.failed(&context.upstream, side);
                let (upstream, agent) = (&context.upstream, &context.agent);
                let told = self.audit.chain(error);
                match side {
                    Side::Agent => tracing::debug!(%upstream, %agent, error = ?told, "a call failed by the agent's fault"),
                    Side::Server => tracing::warn!(%upstream, %agent, error = ?told, "a call failed by the server's fault"),
                    Side::Gateway => tracing::warn!(%upstream, %agent, error = ?told, "a call failed in the gateway"),
                }
                self.line(|| self.audit.failed(context, error))
            }
            Event::TurnedAway { reason } => {
                self.metrics.turned_away(reason);
                tracing::debug!(reason, "a request was turned away");
                self.line(|| audit::turned_away(reason))
            }
            Event::Barred(barred) => {
                self.metrics.turned_away("access");
                self.line(|| barred.told())
            }
            Event::Limit { name } => {
                self.metrics.limit_hit(name);
                tracing::debug!(limit = name, "a limit was hit");
                Ok(())
            }
            Event::Page(page) => {
                self.metrics.page(page.outcome);
                self.line(|| audit::page(page))
            }
            Event::Login(login) => {
                self.metrics.logins.tell(login);
                let Login { upstream, principal, outcome, error, .. } = *login;
                match outcome {
                    "owed" => tracing::warn!(upstream, principal, "a login is owed: see `lychgate login {upstream}`"),
                    "logged_in" | "renewed" => tracing::info!(upstream, principal, outcome, "a login at a server"),
                    _ => tracing::warn!(upstream, principal, outcome, error, "a login at a server"),
                }
                self.line(|| audit::login(login))
            }
            Event::Approval(approval) => {
                self.metrics.approval(approval);
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
                }
                tracing::info!(upstream = %context.upstream, agent = %context.agent, %rule, times, "refused again");
                self.line(|| self.audit.refused_again(audit, context, tool, rule, times))
            }
            Event::Overlaid { context, policy, told_bytes, shown_bytes } => {
                tracing::debug!(upstream = %context.upstream, policy, "a list of tools was overlaid");
                self.line(|| self.audit.overlaid(context, policy, told_bytes, shown_bytes))
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
                self.line(|| audit::pinned(context, count))
            }
            Event::Held { upstream, count } => {
                self.metrics.held(upstream, count);
                Ok(())
            }
            Event::PinsReloaded { upstreams } => {
                tracing::info!(?upstreams, "the pins of the lock file are in force");
                self.line(|| audit::pins_reloaded(upstreams))
            }
            Event::PinsRefused { faults } => {
                tracing::error!(faults = faults.len(), first = ?faults.first().map(ToString::to_string), "the lock file is not used");
                self.line(|| audit::faults("pins_refused", faults))
            }
            Event::Reloaded { rules, weakened } => {
                self.metrics.reloaded(if weakened.is_empty() { "applied" } else { "weakened" });
                tracing::info!(rules, "new rules are in force");
                weakened.iter().for_each(|what| tracing::warn!(?what, "the new rules protect less than before"));
                self.line(|| audit::reloaded(rules, weakened))
            }
            Event::ReloadRefused { faults } => {
                self.metrics.reloaded("refused");
                tracing::error!(faults = faults.len(), first = ?faults.first().map(ToString::to_string), "the reload was refused; the old rules stay");
                self.line(|| audit::faults("reload_refused", faults))
            }
        }
    }

    fn judged(&self, body: &Body<'_>, items: &[Item<'_>]) -> io::Result<()> {
        self.metrics.inspected(body.direction, body.took.unwrap_or_default());
        let mut lines = String::new();
        for item in items {
            self.metrics.judged(&body.context.upstream, body.direction, item, body.mode, body.waited);
            self.log(body, item.wanted, item.findings.first().copied());
            if self.sink.listens() {
                lines.push_str(&self.audit.judged(body, item));
            }
        }
        self.sink.write(lines, items.len() as u64)
    }

    /// Logs what did not simply pass. Nothing in it is an agent's or a server's own text.
    fn log(&self, body: &Body<'_>, wanted: &str, first: Option<&Finding>) {
        if wanted == "pass" {
            return;
        }
        let (audit, context, direction, mode) = (body.audit, body.context, body.direction.name(), body.mode.name());
        let (upstream, agent, rule) = (&context.upstream, &context.agent, first.map(|finding| finding.rule.as_str()));
        tracing::info!(%audit, %upstream, %agent, direction, mode, verdict = wanted, rule, "a message was not harmless");
    }

    fn line(&self, line: impl FnOnce() -> String) -> io::Result<()> {
        if self.sink.listens() { self.sink.write(line(), 1) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
