//! Audit lines: one JSON object for each event, on a line of its own.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::inspect::{Classified, Coverage, Delivery, Detail, Finding, Mode, Uninspected};
use crate::message::Direction;
use crate::protocol::{AuditId, CallError, Context};

use super::approval::Approval;
use super::definition::DefinitionChange;
use super::item::Item;
use super::line::Line;
use super::redact::Redactor;

/// Most findings of a line.
const FINDINGS: usize = 50;
/// Most uninspected parts of a line.
const UNINSPECTED: usize = 20;
/// Most faults or sentences of a line.
const SENTENCES: usize = 50;
/// Longest of the shorter texts (names, methods, places), in bytes.
const NAME_BYTES: usize = 256;

/// Writes audit lines.
pub(super) struct Audit {
    redactor: Redactor,
}

/// What is the same for all messages of a judged body.
pub(super) struct Body<'a> {
    pub(super) audit: AuditId,
    pub(super) direction: Direction,
    pub(super) context: &'a Context,
    pub(super) is_batch: bool,
    pub(super) coverage: &'a Coverage,
    pub(super) delivery: Option<&'a Delivery>,
    pub(super) classified: Option<&'a Classified>,
    pub(super) mode: Mode,
    pub(super) rules: &'a str,
    pub(super) took: Option<Duration>,
    pub(super) waited: Option<Duration>,
}

impl Audit {
    /// A writer.
    ///
    /// # Errors
    /// Never, unless the patterns that find secrets are wrong.
    pub(super) fn new() -> Result<Self, regex::Error> {
        Ok(Self { redactor: Redactor::new()? })
    }

    /// The line of one judged message.
    pub(super) fn judged(&self, body: &Body<'_>, item: &Item<'_>) -> String {
        let mut line = start("judged");
        line.text("audit", &body.audit.to_string());
        if body.is_batch {
            line.json("item", item.index);
        }
        context(&mut line, body.context);
        line.text("direction", body.direction.name());
        line.text("kind", item.kind);
        line.maybe("method", item.method.map(|method| self.name(method)).as_deref());
        line.maybe("tool", item.tool.as_deref().map(|tool| self.name(tool)).as_deref());
        line.maybe("id", item.id.map(|id| self.name(id.trim_matches('"'))).as_deref());
        verdict(&mut line, item.done(body.mode), item.wanted, body.mode);
        line.maybe("rule", item.refused_by.map(|rule| rule.as_str()));
        line.json("bytes", item.value.raw().len());
        if let Some((arguments, at)) = item.arguments(body.direction) {
            let at = if body.is_batch { format!("/{}{at}", item.index) } else { at.to_owned() };
            let found: Vec<&str> = item.findings.iter().map(|finding| finding.at.as_str()).collect();
            let shown = self.redactor.value(arguments, &at, &found);
            line.text("arguments_sha256", &hex(arguments.raw()));
            line.json("arguments", shown.json);
            if shown.left_out > 0 {
                line.json("arguments_left_out", shown.left_out);
            }
        }
        if let (true, Some(result)) = (item.is_answer && body.direction == Direction::Inbound, item.body) {
            line.json("result_bytes", result.raw().len());
            line.json("result_tokens", body.delivery.map_or(0, Delivery::tokens));
        }
        if let Some(delivery) = body.delivery {
            self.delivery(&mut line, delivery);
        }
        if let Some(classified) = body.classified {
            line.json("classifier", self.classified(classified).close());
        }
        self.end(&mut line, body, &item.findings, &item.uninspected);
        finish(line)
    }

    fn classified(&self, classified: &Classified) -> Line {
        let mut line = Line::open();
        match &classified.scores {
            Ok(scores) => {
                line.text("name", &self.name(&classified.name));
                line.maybe("version", classified.version.as_deref().map(|version| self.name(version)).as_deref());
                line.json("texts", scores.len());
                line.json("highest", format_args!("{:.4}", classified.highest().unwrap_or_default()));
            }
            Err(failure) => line.text("failed", failure.name()),
        }
        line.json("ms", format_args!("{:.3}", classified.took.as_secs_f64() * 1000.0));
        line
    }

    fn delivery(&self, line: &mut Line, delivery: &Delivery) {
        if delivery.cut_bytes > 0 {
            line.json("cut_bytes", delivery.cut_bytes);
            line.json("kept_rests", delivery.rests.len());
        }
        if !delivery.broken_digests.is_empty() {
            line.texts("broken_digests", delivery.broken_digests.iter().map(|at| self.name(at)));
        }
    }

    /// The line of a judged text that is no message.
    pub(super) fn judged_text(&self, body: &Body<'_>, bytes: usize, wanted: &str, done: &str, findings: &[Finding]) -> String {
        let mut line = start("judged");
        line.text("audit", &body.audit.to_string());
        context(&mut line, body.context);
        line.text("direction", body.direction.name());
        line.text("kind", "text");
        verdict(&mut line, done, wanted, body.mode);
        line.json("bytes", bytes);
        let (findings, uninspected): (Vec<_>, Vec<_>) = (findings.iter().collect(), body.coverage.uninspected.iter().collect());
        self.end(&mut line, body, &findings, &uninspected);
        finish(line)
    }

    /// What every judged line ends with: times, findings, and how much was looked at.
    fn end(&self, line: &mut Line, body: &Body<'_>, findings: &[&Finding], uninspected: &[&Uninspected]) {
        if let Some(took) = body.took {
            line.json("inspect_us", took.as_micros());
        }
        if let Some(waited) = body.waited {
            line.json("upstream_ms", format_args!("{:.3}", waited.as_secs_f64() * 1000.0));
        }
        line.text("rules", body.rules);
        line.maybe("model", body.coverage.model.as_deref());
        line.list("findings", findings.iter().take(FINDINGS).map(|finding| self.finding(finding)));
        if findings.len() > FINDINGS {
            line.json("findings_left_out", findings.len() - FINDINGS);
        }
        line.json("inspected_strings", body.coverage.strings);
        line.json("inspected_bytes", body.coverage.bytes);
        line.list("uninspected", uninspected.iter().take(UNINSPECTED).map(|part| self.uninspected(part)));
        if uninspected.len() > UNINSPECTED {
            line.json("uninspected_left_out", uninspected.len() - UNINSPECTED);
        }
    }

    fn finding(&self, finding: &Finding) -> Line {
        let mut evidence = Line::open();
        evidence.text("sha256", &finding.evidence.sha256);
        evidence.json("length", finding.evidence.length);
        let mut line = Line::open();
        line.text("rule", finding.rule.as_str());
        line.text("severity", finding.severity.name());
        line.text("action", finding.action.name());
        line.text("surface", finding.surface.name());
        line.text("at", &self.name(&finding.at));
        line.text("reading", finding.reading);
        line.json("evidence", evidence.close());
        match &finding.detail {
            Some(Detail::Score { score, by }) => {
                line.json("score", format_args!("{score:.4}"));
                line.text("by", &self.name(by));
            }
            Some(Detail::Source(source)) => {
                line.texts("source", source.servers.iter().map(|server| server.to_string()));
                if let Some(age) = source.age {
                    line.json("source_age_s", age.as_secs());
                }
            }
            Some(Detail::Wording(strongest)) => {
                let named = |(words, points): &(String, i32)| {
                    let mut line = Line::open();
                    line.text("words", &self.name(words));
                    line.json("points", points);
                    line
                };
                line.list("wording", strongest.iter().map(named));
            }
            None => {}
        }
        line
    }

    fn uninspected(&self, part: &Uninspected) -> Line {
        let mut line = Line::open();
        line.text("at", &self.name(&part.at));
        line.text("reason", part.reason);
        line.json("bytes", part.bytes);
        line
    }

    /// The line of a call that failed.
    pub(super) fn failed(&self, of: &Context, error: &CallError) -> String {
        let mut line = start("failed");
        context(&mut line, of);
        if let [asked] = &*of.asked {
            line.text("method", &self.name(&asked.method));
            if &*asked.method == "tools/call" {
                line.maybe("tool", asked.tool.as_deref().map(|tool| self.name(tool)).as_deref());
            }
        }
        line.text("side", error.side().name());
        line.text("error", &self.chain(error));
        finish(line)
    }

    /// The line of what happened to a question to a person.
    pub(super) fn approval(&self, approval: &Approval<'_>) -> String {
        let mut line = start("approval");
        line.maybe("audit", approval.audit.map(|audit| audit.to_string()).as_deref());
        context(&mut line, approval.context);
        line.maybe("approval", Some(approval.id).filter(|id| !id.is_empty()));
        line.text("tool", &self.name(approval.tool));
        line.texts("rules", approval.rules.iter().map(|rule| rule.as_str().to_owned()));
        line.text("outcome", approval.outcome);
        line.text("way", approval.way);
        line.maybe("scope", approval.scope);
        line.maybe("by", approval.by.map(|by| self.name(by)).as_deref());
        if let Some(took) = approval.took {
            line.json("open_ms", took.as_millis());
        }
        finish(line)
    }

    /// The line of a call that was refused just like this again and again.
    pub(super) fn refused_again(&self, audit: Option<AuditId>, of: &Context, tool: &str, rule: &str, times: usize) -> String {
        let mut line = start("refused_again");
        line.maybe("audit", audit.map(|audit| audit.to_string()).as_deref());
        context(&mut line, of);
        line.text("tool", &self.name(tool));
        line.text("rule", rule);
        line.json("times", times);
        finish(line)
    }

    /// The line of a list of tools that agents do not see as the server told it.
    pub(super) fn overlaid(&self, of: &Context, policy: &str, told_bytes: usize, shown_bytes: usize) -> String {
        let mut line = start("overlaid");
        context(&mut line, of);
        line.text("policy", policy);
        line.json("bytes", told_bytes);
        line.json("shown_bytes", shown_bytes);
        finish(line)
    }

    /// The line of a definition that is not what it was.
    pub(super) fn definition(&self, change: &DefinitionChange<'_>) -> String {
        let mut line = start("definition");
        match change.context {
            Some(of) => context(&mut line, of),
            None => line.text("upstream", &change.upstream.0),
        }
        line.text("kind", change.kind);
        line.text("name", &self.name(change.name));
        line.texts("classes", change.classes.iter().map(|class| class.name().to_owned()));
        line.text("action", change.action);
        line.maybe("pinned_sha256", change.old);
        line.maybe("listed_sha256", change.new);
        finish(line)
    }

    /// An error with all its causes. Parts of it may be a peer's words.
    pub(super) fn chain(&self, error: &dyn std::error::Error) -> String {
        let mut told = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause.filter(|_| told.len() < super::redact::TEXT_BYTES) {
            let text = error.to_string();
            if !told.ends_with(&text) {
                told = format!("{told}: {text}");
            }
            cause = error.source();
        }
        self.redactor.text(&told, super::redact::TEXT_BYTES)
    }

    fn name(&self, text: &str) -> String {
        self.redactor.text(text, NAME_BYTES)
    }
}

/// The line of a request that was turned away.
pub(super) fn turned_away(reason: &str) -> String {
    let mut line = start("turned_away");
    line.text("reason", reason);
    finish(line)
}

/// The line of a part of an answer that an agent asks for.
pub(super) fn page(page: &super::Page<'_>) -> String {
    let mut line = start("page");
    context(&mut line, page.context);
    line.text("outcome", page.outcome);
    line.json("bytes", page.bytes);
    finish(line)
}

/// The line of a login at a server.
pub(super) fn login(login: &super::Login<'_>) -> String {
    let mut line = start("login");
    line.text("upstream", login.upstream);
    line.text("principal", login.principal);
    line.text("outcome", login.outcome);
    line.maybe("error", login.error);
    if let Some(unix) = login.expires_unix {
        line.json("expires_unix", unix);
    }
    finish(line)
}

/// The line of a reload.
pub(super) fn reloaded(rules: usize, weakened: &[String]) -> String {
    let mut line = start("reloaded");
    line.json("rules", rules);
    line.texts("weakened", weakened.iter().take(SENTENCES).cloned());
    finish(line)
}

/// The line of definitions of a server that was not known.
pub(super) fn pinned(of: &Context, count: usize) -> String {
    let mut line = start("pinned");
    context(&mut line, of);
    line.json("count", count);
    finish(line)
}

/// The line of a lock file that was read anew.
pub(super) fn pins_reloaded(upstreams: &[&str]) -> String {
    let mut line = start("pins_reloaded");
    line.texts("upstreams", upstreams.iter().take(SENTENCES).map(|name| (*name).to_owned()));
    finish(line)
}

/// The line of a file that was refused.
pub(super) fn faults(event: &str, faults: &[crate::document::Fault]) -> String {
    let mut line = start(event);
    line.json("count", faults.len());
    line.texts("faults", faults.iter().take(SENTENCES).map(ToString::to_string));
    finish(line)
}

pub(super) fn start(event: &str) -> Line {
    let mut line = Line::open();
    line.text("at", &humantime::format_rfc3339_millis(SystemTime::now()).to_string());
    line.text("event", event);
    line
}

pub(super) fn finish(line: Line) -> String {
    line.close() + "\n"
}

fn context(line: &mut Line, context: &Context) {
    line.text("agent", &context.agent.0);
    line.maybe("user", context.caller.user.as_deref());
    line.maybe("session", context.session.as_ref().map(|session| session.digest()).as_deref());
    line.text("upstream", &context.upstream.0);
    line.text("era", context.era.name());
}

fn verdict(line: &mut Line, done: &str, wanted: &str, mode: Mode) {
    line.text("mode", mode.name());
    line.text("verdict", done);
    if mode == Mode::Observe {
        line.text("would", wanted);
    }
}

fn hex(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a `String` cannot fail.
        let _infallible = write!(hex, "{byte:02x}");
        hex
    })
}
