//! Audit lines: one JSON object for each event, on a line of its own.

use std::time::{Duration, SystemTime};

use crate::config::Keeps;
use crate::inspect::{Classified, Coverage, Delivery, Detail, Finding, Mode, Uninspected};
use crate::message::Direction;
use crate::protocol::{AuditId, Context};
use crate::rules::{Action, Severity};

use super::chain::sha;
use super::item::Item;
use super::line::Line;
use super::names;
use super::redact::Redactor;

/// Most findings of a line.
const FINDINGS: usize = 50;
/// Most uninspected parts of a line.
const UNINSPECTED: usize = 20;
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
    pub(super) evidence: Keeps,
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
        let mut line = start("judged", severity(&item.findings));
        line.id(names::AUDIT, body.audit);
        if body.is_batch {
            line.number(names::ITEM, item.index);
        }
        context(&mut line, body.context);
        line.word(names::DIRECTION, body.direction.name());
        line.word(names::KIND, item.kind);
        line.maybe(names::METHOD, item.method.map(|method| self.name(method)).as_deref());
        if let Some((kind, name)) = &item.named {
            if *kind == names::TOOL {
                line.word(names::OPERATION, "execute_tool");
            }
            line.text(kind, &self.name(name));
        }
        line.maybe(names::REQUEST, item.id.map(|id| self.name(id.trim_matches('"'))).as_deref());
        self.failure(&mut line, item);
        verdict(&mut line, item.done(body.mode), item.wanted, body.mode, &item.findings);
        line.maybe(names::RULE, item.refused_by.map(|rule| rule.as_str()));
        line.number(names::BYTES, item.value.raw().len());
        if let Some((arguments, at)) = item.arguments(body.direction) {
            let at = if body.is_batch { format!("/{}{at}", item.index) } else { at.to_owned() };
            let name = if at.ends_with("/params/arguments") { names::ARGUMENTS } else { names::SENT };
            // What else was found in what an agent sent stands there, so that it can be explained and judged again.
            let shows = body.direction == Direction::Outbound && body.evidence != Keeps::None;
            let masked = item.findings.iter().filter(|finding| finding.private || !shows);
            let found: Vec<&str> = masked.map(|finding| finding.at.as_str()).collect();
            let shown = self.redactor.value(arguments, &at, &found);
            line.digest(names::SENT_SHA256, &sha(arguments.raw().as_bytes()));
            line.raw(name, &shown.json);
            if shown.left_out > 0 {
                line.number(names::SENT_LEFT_OUT, shown.left_out);
            }
        }
        if let (true, Some(result)) = (item.is_answer && body.direction == Direction::Inbound, item.body) {
            line.number(names::RESULT_BYTES, result.raw().len());
            line.number(names::RESULT_TOKENS, body.delivery.map_or(0, Delivery::tokens));
        }
        if let Some(delivery) = body.delivery {
            self.delivery(&mut line, delivery);
        }
        if let Some(classified) = body.classified {
            line.raw(names::CLASSIFIER, &self.classified(classified).close());
        }
        self.end(&mut line, body, &item.findings, &item.uninspected);
        finish(line)
    }

    /// What went wrong, where the message says so: the code of an error, or a tool's own word for it.
    fn failure(&self, line: &mut Line, item: &Item<'_>) {
        let Some(body) = item.body.filter(|_| item.is_answer) else { return };
        match item.kind {
            "error" => {
                let code = body.get("code").map(|code| self.name(code.raw()));
                line.maybe(names::STATUS, code.as_deref());
                line.text(names::ERROR, code.as_deref().unwrap_or("_OTHER"));
            }
            _ if body.get("isError").is_some_and(|value| value.raw() == "true") => line.word(names::ERROR, "tool_error"),
            _ => {}
        }
    }

    fn classified(&self, classified: &Classified) -> Line {
        let mut line = Line::open();
        match &classified.scores {
            Ok(scores) => {
                line.text(names::NAME, &self.name(&classified.name));
                line.maybe(names::VERSION, classified.version.as_deref().map(|version| self.name(version)).as_deref());
                line.number(names::TEXTS, scores.len());
                line.json(names::HIGHEST, format_args!("{:.4}", classified.highest().unwrap_or_default()));
            }
            Err(failure) => line.word(names::FAILED, failure.name()),
        }
        line.milliseconds(names::MS, classified.took);
        line
    }

    fn delivery(&self, line: &mut Line, delivery: &Delivery) {
        if delivery.cut_bytes > 0 {
            line.number(names::CUT_BYTES, delivery.cut_bytes);
            line.number(names::KEPT_RESTS, delivery.rests.len());
        }
        if !delivery.broken_digests.is_empty() {
            line.texts(names::BROKEN_DIGESTS, delivery.broken_digests.iter().map(|at| self.name(at)));
        }
    }

    /// The line of a judged text that is no message.
    pub(super) fn judged_text(
        &self,
        body: &Body<'_>,
        bytes: usize,
        wanted: &'static str,
        done: &'static str,
        findings: &[Finding],
    ) -> String {
        let found: Vec<&Finding> = findings.iter().collect();
        let mut line = start("judged", severity(&found));
        line.id(names::AUDIT, body.audit);
        context(&mut line, body.context);
        line.word(names::DIRECTION, body.direction.name());
        line.word(names::KIND, "text");
        verdict(&mut line, done, wanted, body.mode, &found);
        line.number(names::BYTES, bytes);
        let uninspected: Vec<&Uninspected> = body.coverage.uninspected.iter().collect();
        self.end(&mut line, body, &found, &uninspected);
        finish(line)
    }

    /// What every judged line ends with: times, findings, and how much was looked at.
    fn end(&self, line: &mut Line, body: &Body<'_>, findings: &[&Finding], uninspected: &[&Uninspected]) {
        if let Some(took) = body.took {
            line.number(names::INSPECT_US, took.as_micros());
        }
        if let Some(waited) = body.waited {
            line.milliseconds(names::UPSTREAM_MS, waited);
        }
        line.text(names::RULE_SET, body.rules);
        line.maybe(names::MODEL, body.coverage.model.as_deref());
        line.word(names::COVERAGE, if uninspected.is_empty() { "full" } else { "partial" });
        line.flag(names::CLEAN, uninspected.is_empty() && findings.is_empty());
        line.list(names::FINDINGS, findings.iter().take(FINDINGS).map(|finding| self.finding(finding)));
        if findings.len() > FINDINGS {
            line.number(names::FINDINGS_LEFT_OUT, findings.len() - FINDINGS);
        }
        line.number(names::INSPECTED_STRINGS, body.coverage.strings);
        line.number(names::INSPECTED_BYTES, body.coverage.bytes);
        line.texts(names::INSPECTED_READINGS, &body.coverage.readings);
        line.list(names::UNINSPECTED, uninspected.iter().take(UNINSPECTED).map(|part| self.uninspected(part)));
        if uninspected.len() > UNINSPECTED {
            line.number(names::UNINSPECTED_LEFT_OUT, uninspected.len() - UNINSPECTED);
        }
    }

    fn finding(&self, finding: &Finding) -> Line {
        let mut evidence = Line::open();
        evidence.text(names::SHA256, &finding.evidence.sha256);
        evidence.number(names::LENGTH, finding.evidence.length);
        let mut line = Line::open();
        line.text(names::RULE, finding.rule.as_str());
        line.word(names::SEVERITY, caption(finding.severity));
        line.word(names::ACTION, finding.action.name());
        if let Some(suppressed) = &finding.suppressed {
            line.flag(names::SUPPRESSED, true);
            line.word(names::SUPPRESSED_ACTION, suppressed.action.name());
            line.text(names::SUPPRESSED_REASON, &self.name(&suppressed.by.reason));
            line.text(names::SUPPRESSED_UNTIL, &suppressed.by.until.written);
        }
        line.word(names::SURFACE, finding.surface.name());
        line.text(names::AT, &self.name(&finding.at));
        line.word(names::READING, finding.reading);
        line.raw(names::EVIDENCE, &evidence.close());
        match &finding.detail {
            Some(Detail::Score { score, by }) => {
                line.json(names::SCORE, format_args!("{score:.4}"));
                line.text(names::BY, &self.name(by));
            }
            Some(Detail::Source(source)) => {
                line.texts(names::SOURCE, source.servers.iter().map(|server| server.to_string()));
                if let Some(age) = source.age {
                    line.number(names::SOURCE_AGE, age.as_secs());
                }
            }
            Some(Detail::Wording(strongest)) => {
                let named = |(words, points): &(String, i32)| {
                    let mut line = Line::open();
                    line.text(names::WORDS, &self.name(words));
                    line.json(names::POINTS, points);
                    line
                };
                line.list(names::WORDING, strongest.iter().map(named));
            }
            None => {}
        }
        line
    }

    fn uninspected(&self, part: &Uninspected) -> Line {
        let mut line = Line::open();
        line.text(names::AT, &self.name(&part.at));
        line.word(names::REASON, part.reason.name());
        line.number(names::BYTES, part.bytes);
        line
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

    /// A peer's words as they may be shown: bounded, secrets masked.
    pub(super) fn name(&self, text: &str) -> String {
        self.redactor.text(text, NAME_BYTES)
    }
}

pub(super) fn start(event: &'static str, severity: Severity) -> Line {
    let mut line = Line::whole();
    line.time(names::TIME, SystemTime::now());
    line.word(names::EVENT, event);
    line.word(names::SEVERITY, caption(severity));
    line
}

pub(super) fn finish(line: Line) -> String {
    line.finish()
}

pub(super) fn context(line: &mut Line, context: &Context) {
    line.text(names::AGENT, &context.agent.0);
    line.maybe(names::USER, context.caller.user.as_deref());
    line.maybe(names::SESSION, context.session.as_ref().map(|session| session.digest()));
    line.text(names::UPSTREAM, &context.upstream.0);
    line.word(names::ERA, context.era.name());
    line.maybe(names::REVISION, context.wire.revision.as_deref());
    if let Some(carrier) = context.wire.carrier {
        line.word(names::TRANSPORT, carrier.transport());
    }
    if let Some(trace) = &context.trace {
        line.text(names::TRACE, &trace.id.to_string());
        line.text(names::SPAN, &trace.span.to_string());
    }
}

fn verdict(line: &mut Line, done: &'static str, wanted: &'static str, mode: Mode, findings: &[&Finding]) {
    line.word(names::MODE, mode.name());
    line.word(names::VERDICT, done);
    if mode == Mode::Observe {
        line.word(names::WOULD, wanted);
    }
    line.word(names::DISPOSITION, disposition(done, wanted, findings));
}

/// What was done, as OCSF has it (1.6, `disposition_id`).
fn disposition(done: &str, wanted: &str, findings: &[&Finding]) -> &'static str {
    let taken_out = |finding: &&Finding| matches!(finding.action, Action::Quarantine | Action::Withhold);
    match done {
        "block" => "Blocked",
        "ask" => "Delayed",
        "rewrite" if findings.iter().any(taken_out) => "Quarantined",
        "rewrite" => "Corrected",
        _ if wanted != "pass" => "Detected",
        _ if !findings.is_empty() => "Logged",
        _ => "Allowed",
    }
}

/// The gravest of what was found, and not suppressed.
fn severity(findings: &[&Finding]) -> Severity {
    findings.iter().filter(|finding| finding.suppressed.is_none()).map(|finding| finding.severity).max().unwrap_or(Severity::Info)
}

/// How grave something is, as OCSF has it (1.6, `severity_id`).
fn caption(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "Informational",
        Severity::Low => "Low",
        Severity::Medium => "Medium",
        Severity::High => "High",
        Severity::Critical => "Critical",
    }
}
