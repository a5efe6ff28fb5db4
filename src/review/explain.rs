//! Why a message was judged as it was.

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
use crate::text::visible;

use super::rejudge::{NewJudgement, RecordedMessage};
use super::{Entry, Limitation, PolicySet};

pub use again::{RepeatedRefusal, may_be_earlier, repeated};
use passage::Proposals;
use rows::Row;
pub(in crate::review) use snippet::quoted;
pub use snippet::written;
pub use steps::{Part, Step};

/// Why a message was judged as it was. Every text of a stranger's in it is harmless to show: what a terminal obeys and what
/// nobody sees are escapes, and of secrets there is the shape only.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The line's id.
    pub audit: String,
    /// Which message of its batch, from 0, if it was one of a batch.
    pub item: Option<u64>,
    pub time: String,
    pub agent: String,
    pub user: Option<String>,
    /// To or from which server.
    pub upstream: String,
    /// `outbound` or `inbound`.
    pub direction: String,
    /// What it called.
    pub method: Option<String>,
    pub tool: Option<String>,
    /// What was done.
    pub verdict: String,
    /// What would have been done, had the policy not only observed.
    pub would: Option<String>,
    /// Which text could be had: `whole`, `redacted` (as the audit log shows it) or `none`.
    pub had: &'static str,
    pub lacks: Option<&'static str>,
    /// Whether the rules in force are those that judged it.
    pub same_rules: bool,
    /// What the rules in force make of the text that could be had.
    pub verdict_now: Option<String>,
    /// The policy that judges it.
    pub policy: String,
    /// The passages in which something was found, the strongest finding first.
    pub findings: Vec<FindingExplanation>,
    /// Whether the message passes with all suppressions that are proposed; `None` if none are, or it cannot be tried.
    pub suppressed_passes: Option<bool>,
}

/// A passage, by the strongest finding in it.
#[derive(Clone, Debug, Serialize)]
pub struct FindingExplanation {
    /// The rule's id.
    pub id: String,
    /// The place, as a JSON pointer.
    pub at: String,
    /// The argument of a call.
    pub argument: Option<String>,
    /// What was done about it.
    pub action: String,
    /// By which reading it was found.
    pub reading: String,
    /// Whether it stands in the line.
    pub recorded: bool,
    /// Whether it is another match of a rule that the line names at this place already.
    pub further: bool,
    /// Whether the rules in force find it in the text that could be had.
    pub found_again: bool,
    /// What the text looked like, from how it came to how it was found.
    pub steps: Vec<Step>,
    /// Of a secret: its shape.
    pub shape: Option<String>,
    /// The rule, if the set in force has it.
    pub rule: Option<RuleInfo>,
    /// What the agent was told, if this is what refused the message.
    pub told: Option<String>,
    /// Other findings of the passage, the strongest first.
    pub also: Vec<OverlappingFinding>,
    /// Suppressions of the whole passage, to be pasted into the config.
    pub suppression: Option<String>,
    /// The same as data.
    #[serde(skip)]
    pub tables: Vec<Suppression>,
    /// Whether they cover more than the passage: no digest fits.
    pub wide: bool,
    /// What else passes with them.
    pub covers: Option<String>,
    /// Why there is none, or what is to be known of it.
    pub note: Option<String>,
}

/// Another finding of a passage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OverlappingFinding {
    /// The rule's id.
    pub id: String,
    /// Its title, if the set in force has it.
    pub title: Option<String>,
    /// How bad it is, if the set in force has it.
    pub severity: Option<&'static str>,
    /// What was done about it.
    pub action: String,
    /// The place, as a JSON pointer.
    pub at: String,
    /// By which reading it was found.
    pub reading: String,
}

/// A rule, as its file has it.
#[derive(Clone, Debug, Serialize)]
pub struct RuleInfo {
    /// What it catches.
    pub title: String,
    /// Why that is dangerous, and what would be acceptable.
    pub why: String,
    /// How bad.
    pub severity: &'static str,
    /// What is done about it.
    pub action: &'static str,
    pub kind: &'static str,
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Whether it is part of the binary.
    pub builtin: bool,
    /// Texts that it must catch.
    pub catches: Vec<String>,
    /// Texts that it must spare.
    pub spares: Vec<String>,
}

/// Explains a line of event `judged`. `whole` is the message as it was kept, if it was.
///
/// # Errors
/// The line has no judged message, or there is no policy for its upstream.
pub fn explain(
    entry: &Entry,
    whole: Option<&Bytes>,
    judges: &PolicySet,
) -> Result<Explanation, Limitation> {
    let upstream = entry.get(member::upstream).unwrap_or_default();
    let policy = judges.of(&upstream).ok_or(Limitation::NoPolicy)?;
    let direction = match entry.get(member::direction).as_deref() {
        Some("outbound") => Direction::Outbound,
        Some("inbound") => Direction::Inbound,
        _ => return Err(Limitation::NoMessage),
    };
    let rebuilt = RecordedMessage::of(entry, whole);
    let again = rebuilt
        .as_ref()
        .ok()
        .map(|rebuilt| rebuilt.judge(&policy, true));
    let text = |name: &str| entry.text(name).map(|text| visible(&text));
    let mut made = Explanation {
        audit: text(member::audit::NAME).unwrap_or_default(),
        item: entry.get(member::item),
        time: text(member::time::NAME).unwrap_or_default(),
        agent: text(member::agent::NAME).unwrap_or_default(),
        user: text(member::user::NAME),
        upstream: visible(&upstream),
        direction: direction.name().to_owned(),
        method: text(member::method::NAME),
        tool: text(member::tool::NAME),
        verdict: text(member::verdict::NAME).unwrap_or_default(),
        would: text(member::would::NAME),
        had: rebuilt.as_ref().map_or(
            "none",
            |rebuilt| if rebuilt.whole { "whole" } else { "redacted" },
        ),
        lacks: rebuilt
            .as_ref()
            .map_or_else(|missing| Some(*missing), |rebuilt| rebuilt.lacks)
            .map(Limitation::words),
        same_rules: entry.get(member::rule_set).as_deref() == Some(policy.rules_digest(direction)),
        verdict_now: again.as_ref().map(|again| again.verdict.to_owned()),
        policy: policy.name.to_string(),
        findings: Vec::new(),
        suppressed_passes: None,
    };
    let rebuilt = rebuilt.as_ref().ok();
    let again = again.as_ref();
    let blank = snippet::empty_suppression();
    let proposals = rebuilt.zip(blank.as_ref()).map(|(rebuilt, blank)| {
        Proposals::new(rebuilt, &policy, policy.rules(direction), entry, blank)
    });
    let proposals = proposals.unwrap_or_default();
    let teller = Explainer {
        entry,
        policy: &policy,
        direction,
        rebuilt,
        again,
        proposals: &proposals,
        blank: blank.as_ref(),
    };
    made.findings = teller.passages();
    made.suppressed_passes = teller.passes_with_proposals(&made.findings);
    Ok(made)
}

/// What the text `raw`, which stands at `place`, looked like on the way to where each of the findings is; they were judged with
/// [`InspectContext::trace`](crate::inspect::InspectContext::trace). Nothing is shown of what is private.
pub fn readings(
    (place, raw): (&str, &str),
    rules: &RuleSet,
    findings: &[Finding],
) -> Vec<Vec<Step>> {
    let secrets = steps::secrets(rules, findings);
    let private = |finding: &Finding| {
        rules
            .rules()
            .iter()
            .any(|rule| rule.id == finding.rule && is_private(rule))
    };
    let of = |finding: &Finding| {
        let trace = finding.trace.as_deref().filter(|_| !private(finding));
        let raw = Some(raw).filter(|_| finding.at.starts_with(place));
        trace
            .map(|trace| steps::steps(raw, finding, trace, &secrets, rules.programs()))
            .unwrap_or_default()
    };
    findings.iter().map(of).collect()
}

/// Everything that is known of a line.
struct Explainer<'a> {
    entry: &'a Entry,
    policy: &'a Policy,
    direction: Direction,
    rebuilt: Option<&'a RecordedMessage>,
    again: Option<&'a NewJudgement>,
    proposals: &'a Proposals,
    /// The end and the reason of what is proposed.
    blank: Option<&'a Suppression>,
}

impl Explainer<'_> {
    fn rule(&self, id: &str) -> Option<&Rule> {
        self.policy
            .rules(self.direction)
            .rules()
            .iter()
            .find(|rule| rule.id.as_str() == id)
            .map(AsRef::as_ref)
    }

    /// The passages, the strongest first.
    fn passages(&self) -> Vec<FindingExplanation> {
        let now: &[Finding] = self.again.map_or(&[], |again| &again.inspection.findings);
        let secrets = steps::secrets(self.policy.rules(self.direction), now);
        let rows = rows::rows(self.entry, now, self.proposals);
        let rows = rows::by_passage(rows, |id| self.rule(id).map(|rule| rule.severity));
        rows.iter()
            .filter_map(|passage| self.passage(passage, &secrets))
            .collect()
    }

    fn passage(&self, passage: &[Row<'_>], secrets: &[String]) -> Option<FindingExplanation> {
        let (row, others) = passage.split_first()?;
        let rule = self.rule(&row.id);
        let trace = row.now.and_then(|finding| finding.trace.as_deref());
        let private = rule.is_some_and(is_private);
        let tables = self.tables(passage);
        let is_left_out = |other: &Finding| {
            passage.iter().any(|row| {
                row.id == other.rule.as_str() && row.now.is_some_and(|now| now.at == other.at)
            })
        };
        let more = self.proposals.left_out.iter().any(is_left_out);
        let lacks = self.rebuilt.is_some_and(|rebuilt| rebuilt.lacks.is_some());
        let raw = self.rebuilt.and_then(|rebuilt| rebuilt.text_at(&row.at));
        let steps = match (trace, row.now) {
            (Some(trace), Some(finding)) if !private => steps::steps(
                raw.as_deref(),
                finding,
                trace,
                secrets,
                self.policy.rules(self.direction).programs(),
            ),
            _ => Vec::new(),
        };
        Some(FindingExplanation {
            id: visible(&row.id),
            at: visible(&row.at),
            argument: row
                .now
                .and_then(|finding| finding.argument.as_deref())
                .map(visible),
            action: visible(&row.action),
            reading: visible(&row.reading),
            recorded: row.recorded,
            further: row.further,
            found_again: row.now.is_some(),
            steps,
            shape: trace
                .filter(|_| private)
                .map(|trace| steps::shape(matched(trace))),
            told: passage.iter().find_map(|row| self.refusal(&row.id)),
            rule: rule.map(rule_info),
            also: others.iter().map(|other| self.overlapping(other)).collect(),
            suppression: (!tables.is_empty()).then(|| snippet::written(&self.policy.name, &tables)),
            wide: tables.iter().any(|table| table.sha256.is_empty()),
            covers: (!tables.is_empty()).then(|| snippet::covers(&tables, more, lacks)),
            note: tables.is_empty().then(|| self.note(row)),
            tables,
        })
    }

    fn overlapping(&self, row: &Row<'_>) -> OverlappingFinding {
        let rule = self.rule(&row.id);
        OverlappingFinding {
            id: visible(&row.id),
            title: rule.map(|rule| rule.title.clone()),
            severity: rule.map(|rule| rule.severity.name()),
            action: visible(&row.action),
            at: visible(&row.at),
            reading: visible(&row.reading),
        }
    }

    /// What the agent was told, if this rule refused the message.
    fn refusal(&self, id: &str) -> Option<String> {
        self.entry.get(member::rule).filter(|rule| rule == id)?;
        let inspection: Option<&Inspection> = self.again.map(|again| &again.inspection);
        let refusals = match inspection.map(|inspection| &inspection.verdict) {
            Some(Verdict::Block(refusals)) => refusals.as_slice(),
            _ => &[],
        };
        let refusal = refusals.iter().find(|refusal| refusal.rule.as_str() == id);
        let refusal = refusal.map(|refusal| format!("{}. {}", refusal.title, refusal.why));
        refusal.or_else(|| {
            self.rule(id)
                .map(|rule| format!("{}. {}", rule.title, rule.why))
        })
    }

    /// The suppressions of a passage.
    fn tables(&self, passage: &[Row<'_>]) -> Vec<Suppression> {
        let is_of = |finding: &Finding| {
            passage
                .iter()
                .any(|row| row.now.is_some_and(|now| passage::is_same(now, finding)))
        };
        let matches = self
            .proposals
            .matches
            .iter()
            .filter(|one| is_of(&one.finding));
        self.blank
            .map(|blank| passage::merged(matches, self.entry, blank))
            .unwrap_or_default()
    }

    /// Why there is no suppression of a finding.
    fn note(&self, row: &Row<'_>) -> String {
        if self.rule(&row.id).is_none() {
            return "The rules in force have no such rule: it was switched off or removed since, or the gate itself reported \
                    this (a schema, a limit, a pin), which its own section of the config changes."
                .to_owned();
        }
        let Some(finding) = row.now else {
            return "The rule does not match the text that is available: it depends on what the log does not hold (what the \
                    session saw before, or what is masked)."
                .to_owned();
        };
        if work::ALL.contains(&row.reading.as_str()) || work::ALL.contains(&finding.reading) {
            return "Content that exceeds the work limits cannot be suppressed. Send smaller messages.".to_owned();
        }
        match &finding.suppressed {
            Some(suppressed) => {
                let by = &suppressed.by;
                format!(
                    "Suppressed until {}: {}",
                    by.until.written,
                    visible(&by.reason)
                )
            }
            None if finding.action == Action::Log => {
                "The finding was only logged; there is no effect to suppress.".to_owned()
            }
            None => "A suppression of this rule alone would not let the message pass.".to_owned(),
        }
    }

    /// Whether it passes with all that is proposed.
    fn passes_with_proposals(&self, told: &[FindingExplanation]) -> Option<bool> {
        let all: Vec<Suppression> = told.iter().flat_map(|one| &one.tables).cloned().collect();
        let rebuilt = self.rebuilt.filter(|_| !all.is_empty())?;
        Some(rebuilt.judge(&self.policy.suppressing(all), false).verdict == "pass")
    }
}

/// Whether what a rule finds is itself what nobody may see.
fn is_private(rule: &Rule) -> bool {
    matches!(*rule.find, Find::Secret(_) | Find::Personal(_))
}

fn matched(trace: &Trace) -> &str {
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
            .map(|case| visible(&case.text))
            .collect(),
        spares: rule
            .cases()
            .spares
            .iter()
            .map(|case| visible(&case.text))
            .collect(),
    }
}
