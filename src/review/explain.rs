//! Explains why a message received its verdict.

mod again;
mod passage;
mod rows;
mod snippet;
mod steps;

use bytes::Bytes;
use serde::Serialize;

use crate::config::Suppression;
use crate::detect::work;
use crate::inspect::{Finding, Inspection, Policy, Trace, Verdict};
use crate::message::Direction;
use crate::record::entry::member;
use crate::rules::{Action, Find, Rule, RuleSet};
use crate::text::escape_invisible;

use super::rejudge::{NewJudgement, RecordedMessage};
use super::{Entry, Limitation, PolicySet};

pub use again::{RepeatedRefusal, describe_repeated, may_be_earlier};
use passage::Proposals;
use rows::Row;
pub use snippet::format_tables;
pub(in crate::review) use snippet::quote;
pub use steps::{Part, Step};

/// Why a message received its verdict. All untrusted text in it is safe to display: terminal
/// control sequences and invisible characters are escaped, and secrets are reduced to their shape.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The audit id of the line.
    pub audit: String,
    /// The index of the message in its batch, from 0, if it was part of a batch.
    pub item: Option<u64>,
    pub time: String,
    pub agent: String,
    pub user: Option<String>,
    /// The upstream that sent or received the message.
    pub upstream: String,
    /// `outbound` or `inbound`.
    pub direction: String,
    /// The JSON-RPC method.
    pub method: Option<String>,
    pub tool: Option<String>,
    pub verdict: String,
    /// The verdict that the policy would have applied if it were not in observe mode.
    pub would: Option<String>,
    /// How much of the text was available: `whole`, `redacted` (as the audit log shows it) or
    /// `none`.
    pub had: &'static str,
    pub lacks: Option<&'static str>,
    /// Whether the current rules are the ones that judged the message.
    pub same_rules: bool,
    /// The verdict of the current rules on the text that was available.
    pub verdict_now: Option<String>,
    /// The policy that judges the message.
    pub policy: String,
    /// The passages that have findings, the strongest finding first.
    pub findings: Vec<FindingExplanation>,
    /// Whether the message passes with all proposed suppressions; `None` if there are none, or if
    /// the message cannot be judged again.
    pub suppressed_passes: Option<bool>,
}

/// A passage, identified by its strongest finding.
#[derive(Clone, Debug, Serialize)]
pub struct FindingExplanation {
    /// The id of the rule.
    pub id: String,
    /// The place, as a JSON pointer.
    pub at: String,
    /// The argument of the call that contains the passage.
    pub argument: Option<String>,
    /// The action that was taken.
    pub action: String,
    /// The reading in which it was found.
    pub reading: String,
    /// Whether the finding is recorded in the line.
    pub recorded: bool,
    /// Whether this is another match of a rule that the line already names at this place.
    pub further: bool,
    /// Whether the current rules find it in the text that was available.
    pub found_again: bool,
    /// The forms of the text, from the one received to the one that matched.
    pub steps: Vec<Step>,
    /// The shape of the match, if it is a secret.
    pub shape: Option<String>,
    /// The rule, if the current rule set has it.
    pub rule: Option<RuleInfo>,
    /// The refusal text that the agent received, if this passage caused the refusal.
    pub told: Option<String>,
    /// The other findings of the passage, the strongest first.
    pub also: Vec<OverlappingFinding>,
    /// Suppressions of the whole passage, ready to paste into the config.
    pub suppression: Option<String>,
    /// The same suppressions as data.
    #[serde(skip)]
    pub tables: Vec<Suppression>,
    /// Whether the suppressions cover more than the passage because no digest fits.
    pub wide: bool,
    /// A description of what else passes with the suppressions.
    pub covers: Option<String>,
    /// The reason why there is no suppression, or a remark about it.
    pub note: Option<String>,
}

/// Another finding of a passage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OverlappingFinding {
    /// The id of the rule.
    pub id: String,
    /// The title of the rule, if the current rule set has it.
    pub title: Option<String>,
    /// The severity, if the current rule set has the rule.
    pub severity: Option<&'static str>,
    /// The action that was taken.
    pub action: String,
    /// The place, as a JSON pointer.
    pub at: String,
    /// The reading in which it was found.
    pub reading: String,
}

/// A rule, as defined in its file.
#[derive(Clone, Debug, Serialize)]
pub struct RuleInfo {
    /// What the rule detects.
    pub title: String,
    /// Why the match is dangerous, and what would be acceptable.
    pub why: String,
    pub severity: &'static str,
    pub action: &'static str,
    pub kind: &'static str,
    pub file: String,
    /// The line number, from 1.
    pub line: usize,
    /// Whether the rule is built into the binary.
    pub builtin: bool,
    /// Texts that the rule must match.
    pub catches: Vec<String>,
    /// Texts that the rule must not match.
    pub spares: Vec<String>,
}

/// Explains a line with the event `judged`. `stored_message` is the message itself, if it was
/// stored as evidence.
///
/// # Errors
/// The line contains no judged message, or its upstream has no policy.
pub fn explain(
    entry: &Entry,
    stored_message: Option<&Bytes>,
    policies: &PolicySet,
) -> Result<Explanation, Limitation> {
    let upstream = entry.get(member::upstream).unwrap_or_default();
    let policy = policies.policy(&upstream).ok_or(Limitation::NoPolicy)?;
    let direction = entry.direction().ok_or(Limitation::NoMessage)?;
    let message = RecordedMessage::from_entry(entry, stored_message);
    let judgement = message
        .as_ref()
        .ok()
        .map(|rebuilt| rebuilt.judge(&policy, true));
    let text = |name: &str| entry.text(name).map(|text| escape_invisible(&text));
    let mut explanation = Explanation {
        audit: text(member::audit::NAME).unwrap_or_default(),
        item: entry.get(member::item),
        time: text(member::time::NAME).unwrap_or_default(),
        agent: text(member::agent::NAME).unwrap_or_default(),
        user: text(member::user::NAME),
        upstream: escape_invisible(&upstream),
        direction: direction.name().to_owned(),
        method: text(member::method::NAME),
        tool: text(member::tool::NAME),
        verdict: text(member::verdict::NAME).unwrap_or_default(),
        would: text(member::would::NAME),
        had: message.as_ref().map_or("none", |rebuilt| {
            if rebuilt.is_complete {
                "whole"
            } else {
                "redacted"
            }
        }),
        lacks: message
            .as_ref()
            .map_or_else(|missing| Some(*missing), |rebuilt| rebuilt.limitation)
            .map(Limitation::words),
        same_rules: entry.get(member::rule_set).as_deref() == Some(policy.rules_digest(direction)),
        verdict_now: judgement.as_ref().map(|again| again.verdict.to_owned()),
        policy: policy.name.to_string(),
        findings: Vec::new(),
        suppressed_passes: None,
    };
    let message = message.as_ref().ok();
    let judgement = judgement.as_ref();
    let template = snippet::empty_suppression();
    let proposals = message.zip(template.as_ref()).map(|(rebuilt, blank)| {
        Proposals::new(rebuilt, &policy, policy.rules(direction), entry, blank)
    });
    let proposals = proposals.unwrap_or_default();
    let explainer = Explainer {
        entry,
        policy: &policy,
        direction,
        message,
        judgement,
        proposals: &proposals,
        template: template.as_ref(),
    };
    explanation.findings = explainer.passages();
    explanation.suppressed_passes = explainer.passes_with_proposals(&explanation.findings);
    Ok(explanation)
}

/// Returns, for each finding, the forms of the text `raw` at `place` up to the one that matched.
/// The findings must have been made with
/// [`InspectContext::trace`](crate::inspect::InspectContext::trace). Private matches are not shown.
pub fn readings(place: &str, raw: &str, rules: &RuleSet, findings: &[Finding]) -> Vec<Vec<Step>> {
    let secrets = steps::secrets(rules, findings);
    let is_secret = |finding: &Finding| {
        rules
            .rules()
            .iter()
            .any(|rule| rule.id == finding.rule && is_private(rule))
    };
    let readings_of = |finding: &Finding| {
        let trace = finding.trace.as_deref().filter(|_| !is_secret(finding));
        let raw = Some(raw).filter(|_| finding.at.starts_with(place));
        trace
            .map(|trace| steps::steps(raw, finding, trace, &secrets, rules.programs()))
            .unwrap_or_default()
    };
    findings.iter().map(readings_of).collect()
}

/// Everything that is known about a line.
struct Explainer<'a> {
    entry: &'a Entry,
    policy: &'a Policy,
    direction: Direction,
    message: Option<&'a RecordedMessage>,
    judgement: Option<&'a NewJudgement>,
    proposals: &'a Proposals,
    /// A template with the expiry date and the reason of the proposals.
    template: Option<&'a Suppression>,
}

impl Explainer<'_> {
    fn find_rule(&self, id: &str) -> Option<&Rule> {
        self.policy
            .rules(self.direction)
            .rules()
            .iter()
            .find(|rule| rule.id.as_str() == id)
            .map(AsRef::as_ref)
    }

    /// Returns the passages, the strongest first.
    fn passages(&self) -> Vec<FindingExplanation> {
        let findings: &[Finding] = self
            .judgement
            .map_or(&[], |again| &again.inspection.findings);
        let secrets = steps::secrets(self.policy.rules(self.direction), findings);
        let rows = rows::rows(self.entry, findings, self.proposals);
        let rows = rows::group_by_passage(rows, |id| self.find_rule(id).map(|rule| rule.severity));
        rows.iter()
            .filter_map(|passage| self.passage(passage, &secrets))
            .collect()
    }

    fn passage(&self, passage: &[Row<'_>], secrets: &[String]) -> Option<FindingExplanation> {
        let (row, others) = passage.split_first()?;
        let rule = self.find_rule(&row.id);
        let trace = row.current.and_then(|finding| finding.trace.as_deref());
        let is_secret = rule.is_some_and(is_private);
        let tables = self.tables(passage);
        let is_left_out = |other: &Finding| {
            passage.iter().any(|row| {
                row.id == other.rule.as_str() && row.current.is_some_and(|now| now.at == other.at)
            })
        };
        let has_more = self.proposals.left_out.iter().any(is_left_out);
        let is_incomplete = self
            .message
            .is_some_and(|rebuilt| rebuilt.limitation.is_some());
        let raw = self.message.and_then(|rebuilt| rebuilt.text_at(&row.at));
        let steps = match (trace, row.current) {
            (Some(trace), Some(finding)) if !is_secret => steps::steps(
                raw.as_deref(),
                finding,
                trace,
                secrets,
                self.policy.rules(self.direction).programs(),
            ),
            _ => Vec::new(),
        };
        Some(FindingExplanation {
            id: escape_invisible(&row.id),
            at: escape_invisible(&row.at),
            argument: row
                .current
                .and_then(|finding| finding.argument.as_deref())
                .map(escape_invisible),
            action: escape_invisible(&row.action),
            reading: escape_invisible(&row.reading),
            recorded: row.recorded,
            further: row.further,
            found_again: row.current.is_some(),
            steps,
            shape: trace
                .filter(|_| is_secret)
                .map(|trace| steps::describe_shape(matched_text(trace))),
            told: passage.iter().find_map(|row| self.refusal(&row.id)),
            rule: rule.map(rule_info),
            also: others.iter().map(|other| self.overlapping(other)).collect(),
            suppression: (!tables.is_empty())
                .then(|| snippet::format_tables(&self.policy.name, &tables)),
            wide: tables.iter().any(|table| table.sha256.is_empty()),
            covers: (!tables.is_empty())
                .then(|| snippet::describe_coverage(&tables, has_more, is_incomplete)),
            note: tables.is_empty().then(|| self.note(row)),
            tables,
        })
    }

    fn overlapping(&self, row: &Row<'_>) -> OverlappingFinding {
        let rule = self.find_rule(&row.id);
        OverlappingFinding {
            id: escape_invisible(&row.id),
            title: rule.map(|rule| rule.title.clone()),
            severity: rule.map(|rule| rule.severity.name()),
            action: escape_invisible(&row.action),
            at: escape_invisible(&row.at),
            reading: escape_invisible(&row.reading),
        }
    }

    /// Returns the refusal text that the agent received, if this rule refused the message.
    fn refusal(&self, id: &str) -> Option<String> {
        self.entry.get(member::rule).filter(|rule| rule == id)?;
        let inspection: Option<&Inspection> = self.judgement.map(|again| &again.inspection);
        let refusals = match inspection.map(|inspection| &inspection.verdict) {
            Some(Verdict::Block(refusals)) => refusals.as_slice(),
            _ => &[],
        };
        let refusal = refusals.iter().find(|refusal| refusal.rule.as_str() == id);
        let refusal = refusal.map(|refusal| format!("{}. {}", refusal.title, refusal.why));
        refusal.or_else(|| {
            self.find_rule(id)
                .map(|rule| format!("{}. {}", rule.title, rule.why))
        })
    }

    /// Returns the suppressions of a passage.
    fn tables(&self, passage: &[Row<'_>]) -> Vec<Suppression> {
        let is_in_passage = |finding: &Finding| {
            passage.iter().any(|row| {
                row.current
                    .is_some_and(|now| passage::is_same(now, finding))
            })
        };
        let matches = self
            .proposals
            .matches
            .iter()
            .filter(|one| is_in_passage(&one.finding));
        self.template
            .map(|blank| passage::merge_suppressions(matches, self.entry, blank))
            .unwrap_or_default()
    }

    /// Explains why a finding has no suppression.
    fn note(&self, row: &Row<'_>) -> String {
        if self.find_rule(&row.id).is_none() {
            return "The rules in force have no such rule: it was switched off or removed since, or the gate itself reported \
                    this (a schema, a limit, a pin), which its own section of the config changes."
                .to_owned();
        }
        let Some(finding) = row.current else {
            return "The rule does not match the text that is available: it depends on what the log does not hold (what the \
                    session saw before, or what is masked)."
                .to_owned();
        };
        if work::ALL.contains(&row.reading.as_str()) || work::ALL.contains(&finding.reading) {
            return "Content that exceeds the work limits cannot be suppressed. Send smaller messages.".to_owned();
        }
        match &finding.suppressed {
            Some(suppressed) => {
                let matched_suppression = &suppressed.suppression;
                format!(
                    "Suppressed until {}: {}",
                    matched_suppression.until.text,
                    escape_invisible(&matched_suppression.reason)
                )
            }
            None if finding.action == Action::Log => {
                "The finding was only logged; there is no effect to suppress.".to_owned()
            }
            None => "A suppression of this rule alone would not let the message pass.".to_owned(),
        }
    }

    /// Reports whether the message passes with all proposed suppressions.
    fn passes_with_proposals(&self, passages: &[FindingExplanation]) -> Option<bool> {
        let all: Vec<Suppression> = passages
            .iter()
            .flat_map(|passage| &passage.tables)
            .cloned()
            .collect();
        let message = self.message.filter(|_| !all.is_empty())?;
        Some(
            message
                .judge(&self.policy.with_suppressions(all), false)
                .verdict
                == "pass",
        )
    }
}

/// Reports whether the matches of a rule are themselves confidential: secrets and personal data.
fn is_private(rule: &Rule) -> bool {
    matches!(*rule.find, Find::Secret(_) | Find::Personal(_))
}

fn matched_text(trace: &Trace) -> &str {
    trace
        .span
        .clone()
        .and_then(|span| trace.text.get(span))
        .unwrap_or(&trace.text)
}

fn rule_info(rule: &Rule) -> RuleInfo {
    RuleInfo {
        title: rule.title.clone(),
        why: rule.why.clone(),
        severity: rule.severity.name(),
        action: rule.action.name(),
        kind: rule.find.word(),
        file: rule.file.to_string(),
        line: rule.line,
        builtin: rule.builtin,
        catches: rule
            .cases()
            .catches
            .iter()
            .map(|case| escape_invisible(&case.text))
            .collect(),
        spares: rule
            .cases()
            .spares
            .iter()
            .map(|case| escape_invisible(&case.text))
            .collect(),
    }
}
