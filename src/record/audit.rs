//! Builds the audit lines of inspected messages.

use std::borrow::Cow;
use std::time::Duration;

use super::chain::sha;
use super::entry::event::{self, Event as _, Who, caption};
use super::entry::kind::{Fill, List, Text};
use super::entry::{member, object};
use super::item::Item;
use super::redact::Redactor;
use crate::config::EvidenceLevel;
use crate::inspect::{Classified, Coverage, Detail, Finding, Mode, ResultSize, Uninspected};
use crate::message::Direction;
use crate::protocol::{AuditId, Context};
use crate::rules::{Action, Severity};

/// Maximum number of findings in a line.
const MAX_FINDINGS: usize = 50;
/// Maximum number of uninspected parts in a line.
const MAX_UNINSPECTED: usize = 20;
/// Maximum length of the shorter texts (names, methods, places), in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Builds audit lines.
pub(super) struct Audit {
    redactor: Redactor,
}

/// The properties shared by all messages of an inspected body.
pub(super) struct Body<'a> {
    pub(super) audit: AuditId,
    pub(super) direction: Direction,
    pub(super) context: &'a Context,
    pub(super) is_batch: bool,
    pub(super) coverage: &'a Coverage,
    pub(super) delivery: Option<&'a ResultSize>,
    pub(super) classified: Option<&'a Classified>,
    pub(super) mode: Mode,
    pub(super) evidence: EvidenceLevel,
    pub(super) rules: &'a str,
    pub(super) inspection_time: Option<Duration>,
    pub(super) response_time: Option<Duration>,
}

/// One inspected message or text.
struct Judgement<'a, 'i> {
    /// The message; `None` for a text that is not one.
    item: Option<&'a Item<'i>>,
    kind: &'static str,
    bytes: usize,
    verdict: &'static str,
    outcome: &'static str,
    findings: &'a [&'a Finding],
    uninspected: &'a [&'a Uninspected],
}

/// Content from an agent, redacted for the log.
struct AgentContent {
    sha256: [u8; 32],
    arguments: Option<String>,
    other: Option<String>,
    left_out: usize,
}

impl Audit {
    /// # Errors
    /// Never, unless the patterns for secrets are invalid.
    pub(super) fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            redactor: Redactor::new()?,
        })
    }

    /// Returns the line of an inspected message.
    pub(super) fn judged_line(&self, body: &Body<'_>, item: &Item<'_>) -> String {
        let judgement = Judgement {
            item: Some(item),
            kind: item.kind,
            bytes: item.value.raw().len(),
            verdict: item.verdict,
            outcome: item.outcome(body.mode),
            findings: &item.findings,
            uninspected: &item.uninspected,
        };
        self.line(body, &judgement)
    }

    /// Returns the line of an inspected text that is not a message.
    pub(super) fn judged_text_line(
        &self,
        body: &Body<'_>,
        bytes: usize,
        verdict: &'static str,
        outcome: &'static str,
        findings: &[Finding],
    ) -> String {
        let findings: Vec<&Finding> = findings.iter().collect();
        let uninspected: Vec<&Uninspected> = body.coverage.uninspected.iter().collect();
        let findings = &*findings;
        let uninspected = &*uninspected;
        self.line(
            body,
            &Judgement {
                item: None,
                kind: "text",
                bytes,
                verdict,
                outcome,
                findings,
                uninspected,
            },
        )
    }

    fn line(&self, body: &Body<'_>, judgement: &Judgement<'_, '_>) -> String {
        let Judgement {
            item,
            verdict: wanted,
            outcome: done,
            findings,
            uninspected,
            ..
        } = *judgement;
        let object_name = |member: &str| {
            let (_, name) = item?.object.as_ref().filter(|(kind, _)| *kind == member)?;
            Some(self.name(name))
        };
        let tool = object_name(member::tool::NAME);
        let failure = item.and_then(|item| self.failure(item));
        let agent_content = item.and_then(|item| self.agent_content(body, item));
        let result = item
            .filter(|item| item.is_answer && body.direction == Direction::Inbound)
            .and_then(|item| item.body);
        let truncation = body.delivery.filter(|delivery| delivery.cut_bytes > 0);
        let broken = body
            .delivery
            .map(|delivery| &*delivery.broken_digests)
            .filter(|broken| !broken.is_empty());
        let broken_digests = |list: &mut List<'_, Text>| {
            broken
                .unwrap_or_default()
                .iter()
                .for_each(|at| list.add(self.name(at)));
        };
        event::Judged {
            audit: body.audit,
            item: item.filter(|_| body.is_batch).map(|item| item.index as u64),
            who: caller_identity(body.context),
            direction: body.direction.name(),
            kind: judgement.kind,
            method: item
                .and_then(|item| item.method)
                .map(|method| self.name(method)),
            operation: tool.as_ref().map(|_| "execute_tool"),
            tool,
            prompt: object_name(member::prompt::NAME),
            resource: object_name(member::resource::NAME),
            request: item
                .and_then(|item| item.id)
                .map(|id| self.name(id.trim_matches('"'))),
            status: failure.clone().and_then(|(status, _)| status),
            error: failure.map(|(_, error)| error),
            mode: body.mode.name(),
            verdict: done,
            would: (body.mode == Mode::Observe).then_some(wanted),
            disposition: disposition(done, wanted, findings),
            rule: item
                .and_then(|item| item.refused_by)
                .map(|rule| rule.as_str().into()),
            bytes: judgement.bytes as u64,
            sent_left_out: agent_content
                .as_ref()
                .map(|sent| sent.left_out as u64)
                .filter(|left_out| *left_out > 0),
            sent_sha256: agent_content.as_ref().map(|sent| sent.sha256),
            arguments: agent_content
                .as_ref()
                .and_then(|sent| sent.arguments.as_deref()),
            sent: agent_content
                .as_ref()
                .and_then(|sent| sent.other.as_deref()),
            result_bytes: result.map(|result| result.raw().len() as u64),
            result_tokens: result.map(|_| body.delivery.map_or(0, ResultSize::tokens) as u64),
            cut_bytes: truncation.map(|delivery| delivery.cut_bytes as u64),
            kept_rests: truncation.map(|delivery| delivery.remainders.len() as u64),
            broken_digests: broken.map(|_| &broken_digests as Fill<'_, Text>),
            classifier: item
                .and(body.classified)
                .map(|classified| self.classifier(classified)),
            inspect_us: body
                .inspection_time
                .map(|took| u64::try_from(took.as_micros()).unwrap_or(u64::MAX)),
            upstream_ms: body.response_time,
            rule_set: body.rules.into(),
            coverage: if uninspected.is_empty() {
                "full"
            } else {
                "partial"
            },
            clean: uninspected.is_empty() && findings.is_empty(),
            findings: &|list| {
                findings
                    .iter()
                    .take(MAX_FINDINGS)
                    .for_each(|finding| self.finding(finding, list))
            },
            findings_left_out: left_out(findings.len(), MAX_FINDINGS),
            inspected_strings: body.coverage.strings as u64,
            inspected_bytes: body.coverage.bytes as u64,
            recognized_strings: Some(body.coverage.recognized_strings as u64)
                .filter(|strings| *strings > 0),
            inspected_readings: &|list| list.texts(&body.coverage.readings),
            uninspected: &|list| {
                uninspected
                    .iter()
                    .take(MAX_UNINSPECTED)
                    .for_each(|part| list.add(self.uninspected(part)))
            },
            uninspected_left_out: left_out(uninspected.len(), MAX_UNINSPECTED),
        }
        .line(severity(findings))
    }

    /// Returns the error that a message reports: the code of a JSON-RPC error, and its class.
    fn failure<'i>(&self, item: &Item<'i>) -> Option<(Option<Cow<'i, str>>, Cow<'i, str>)> {
        let body = item.body.filter(|_| item.is_answer)?;
        if item.kind == "error" {
            let code = body.get("code").map(|code| self.name(code.raw()));
            return Some((code.clone(), code.unwrap_or(Cow::Borrowed("_OTHER"))));
        }
        body.get("isError")
            .filter(|value| value.raw() == "true")
            .map(|_| (None, "tool_error".into()))
    }

    fn agent_content(&self, body: &Body<'_>, item: &Item<'_>) -> Option<AgentContent> {
        let (value, at) = item.arguments(body.direction)?;
        let is_arguments = at.ends_with("/params/arguments");
        let at = if body.is_batch {
            format!("/{}{at}", item.index).into()
        } else {
            Cow::Borrowed(at)
        };
        // All other findings in content from an agent are shown, so that they can be explained and
        // inspected again.
        let shows_values =
            body.direction == Direction::Outbound && body.evidence != EvidenceLevel::None;
        let masked = item
            .findings
            .iter()
            .filter(|finding| finding.private || !shows_values);
        let places: Vec<&str> = masked.map(|finding| finding.at.as_str()).collect();
        let redacted = self.redactor.value(value, &at, &places);
        let (arguments, other) = if is_arguments {
            (Some(redacted.json), None)
        } else {
            (None, Some(redacted.json))
        };
        Some(AgentContent {
            sha256: sha(value.raw().as_bytes()),
            arguments,
            other,
            left_out: redacted.left_out,
        })
    }

    fn classifier<'c>(&self, classified: &'c Classified) -> object::Classifier<'c> {
        let scores = classified.scores.as_ref();
        object::Classifier {
            name: scores.ok().map(|_| self.name(&classified.name)),
            version: scores
                .ok()
                .and(classified.version.as_deref())
                .map(|version| self.name(version)),
            texts: scores.ok().map(|scores| scores.len() as u64),
            highest: scores
                .ok()
                .map(|_| classified.highest().unwrap_or_default()),
            failed: scores.err().map(|failure| failure.name()),
            ms: classified.duration,
        }
    }

    fn finding(&self, finding: &Finding, list: &mut List<'_, object::finding::Object>) {
        let suppressed = finding.suppressed.as_ref();
        let mut score = None;
        let mut source = None;
        match &finding.detail {
            Some(Detail::Score {
                score: value,
                classifier: by,
            }) => score = Some((*value, by)),
            Some(Detail::Source(from)) => source = Some(from),
            None => {}
        }
        let servers = |list: &mut List<'_, Text>| {
            source
                .into_iter()
                .flat_map(|from| &from.servers)
                .for_each(|server| list.add(server.to_string().into()));
        };
        list.add(object::Finding {
            rule: finding.rule.as_str().into(),
            severity: caption(finding.severity),
            action: finding.action.name(),
            suppressed: suppressed.map(|_| ()),
            suppressed_action: suppressed.map(|suppressed| suppressed.action.name()),
            suppressed_reason: suppressed
                .map(|suppressed| self.name(&suppressed.suppression.reason)),
            suppressed_until: suppressed
                .map(|suppressed| Cow::from(&*suppressed.suppression.until.text)),
            surface: finding.surface.name(),
            at: self.name(&finding.at),
            reading: finding.reading,
            evidence: object::Evidence {
                sha256: Cow::from(&*finding.evidence.sha256),
                length: finding.evidence.length as u64,
            },
            score: score.map(|(score, _)| score),
            by: score.map(|(_, by)| self.name(by)),
            source: source.map(|_| &servers as Fill<'_, Text>),
            source_age: source.and_then(|from| from.age).map(|age| age.as_secs()),
        });
    }

    fn uninspected<'p>(&self, part: &'p Uninspected) -> object::Uninspected<'p> {
        object::Uninspected {
            at: self.name(&part.at),
            reason: part.reason.name(),
            bytes: part.bytes as u64,
        }
    }

    /// Returns an error with all its causes. Parts of it may be text from a peer.
    pub(super) fn describe_error(&self, error: &dyn std::error::Error) -> String {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause.filter(|_| message.len() < super::redact::MAX_TEXT_BYTES) {
            let text = error.to_string();
            if !message.ends_with(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        self.redactor
            .text(&message, super::redact::MAX_TEXT_BYTES)
            .into_owned()
    }

    /// Returns text from a peer for display: limited in length, with secrets masked.
    pub(super) fn name<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.text(text, MAX_NAME_BYTES)
    }
}

/// Returns the caller, session and upstream of a call.
pub(super) fn caller_identity(context: &Context) -> Who<'_> {
    Who {
        agent: Cow::from(&*context.agent.0),
        user: context.caller.user.as_deref().map(Cow::from),
        session: context
            .session
            .as_ref()
            .map(|session| session.digest().into()),
        upstream: Cow::from(&*context.upstream.0),
        era: context.era.name(),
        revision: context.wire.revision.as_deref().map(Cow::from),
        transport: context.wire.transport.map(|carrier| carrier.transport()),
        trace: context
            .trace
            .as_ref()
            .map(|trace| trace.id.to_string().into()),
        span: context
            .trace
            .as_ref()
            .map(|trace| trace.span.to_string().into()),
    }
}

/// Returns how many of `count` entries a line with at most `limit` omits, if any.
fn left_out(count: usize, limit: usize) -> Option<u64> {
    (count > limit).then(|| (count - limit) as u64)
}

/// Returns what was done, as an OCSF disposition (1.6, `disposition_id`).
fn disposition(outcome: &str, verdict: &str, findings: &[&Finding]) -> &'static str {
    let is_removed =
        |finding: &&Finding| matches!(finding.action, Action::Quarantine | Action::Withhold);
    match outcome {
        "block" => "Blocked",
        "ask" => "Delayed",
        "rewrite" if findings.iter().any(is_removed) => "Quarantined",
        "rewrite" => "Corrected",
        _ if verdict != "pass" => "Detected",
        _ if !findings.is_empty() => "Logged",
        _ => "Allowed",
    }
}

/// Returns the highest severity of the findings that are not suppressed.
fn severity(findings: &[&Finding]) -> Severity {
    findings
        .iter()
        .filter(|finding| finding.suppressed.is_none())
        .map(|finding| finding.severity)
        .max()
        .unwrap_or(Severity::Info)
}
