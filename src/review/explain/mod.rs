//! Why a message was judged as it was.

mod again;
mod snippet;
mod steps;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use crate::detect::work;
use crate::inspect::{Finding, Inspection, Policy, Trace, Verdict};
use crate::message::Direction;
use crate::record::names;
use crate::rules::{Find, Rule, RuleSet};
use crate::text::visible;

use super::rebuilt::{Again, Rebuilt};
use super::{Entry, Judges, Missing};

pub use again::{Repeated, may_be_earlier, repeated};
use snippet::Proposed;
pub use steps::{Part, Step};

/// Why a message was judged as it was. Every text of a stranger's in it is harmless to show: what a terminal obeys and what
/// nobody sees are escapes, and of secrets there is the shape only.
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    /// The line's id.
    pub audit: String,
    /// Which message of its batch, from 0, if it was one of a batch.
    pub item: Option<u64>,
    /// When.
    pub time: String,
    /// Who.
    pub agent: String,
    /// For which user.
    pub user: Option<String>,
    /// To or from which server.
    pub upstream: String,
    /// `outbound` or `inbound`.
    pub direction: String,
    /// What it called.
    pub method: Option<String>,
    /// Which tool.
    pub tool: Option<String>,
    /// What was done.
    pub verdict: String,
    /// What would have been done, had the policy not only observed.
    pub would: Option<String>,
    /// Which text could be had: `whole`, `redacted` (as the audit log shows it) or `none`.
    pub had: &'static str,
    /// What it lacks.
    pub lacks: Option<&'static str>,
    /// Whether the rules in force are those that judged it.
    pub same_rules: bool,
    /// What the rules in force make of the text that could be had.
    pub verdict_now: Option<String>,
    /// The findings, the strongest first.
    pub findings: Vec<Told>,
    /// Whether the message passes with all suppressions that are proposed; `None` if none are, or it cannot be tried.
    pub suppressed_passes: Option<bool>,
}

/// One finding.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
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
    /// Whether the rules in force find it in the text that could be had.
    pub found_again: bool,
    /// What the text looked like, from how it came to how it was found.
    pub steps: Vec<Step>,
    /// Of a secret: its shape.
    pub shape: Option<String>,
    /// The rule, if the set in force has it.
    pub rule: Option<About>,
    /// What the agent was told, if this is what refused the message.
    pub told: Option<String>,
    /// Suppressions that can be pasted into the config: a table for each passage that the rule matched at the place.
    pub suppression: Option<String>,
    /// What else would pass with them.
    pub covers: Option<String>,
    /// Why there is none, or what is to be known of it.
    pub note: Option<String>,
}

/// A rule, as its file has it.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// What it catches.
    pub title: String,
    /// Why that is dangerous, and what would be acceptable.
    pub why: String,
    /// How bad.
    pub severity: &'static str,
    /// What is done about it.
    pub action: &'static str,
    /// Which kind of rule it is.
    pub kind: &'static str,
    /// The file.
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
/// The line tells of no judged message, or there is no policy for its upstream.
pub fn explain(entry: &Entry, whole: Option<&Bytes>, judges: &Judges) -> Result<Explained, Missing> {
    let upstream = entry.upstream().unwrap_or_default();
    let policy = judges.of(&upstream).ok_or(Missing::NoPolicy)?;
    let direction = match entry.direction().as_deref() {
        Some("outbound") => Direction::Outbound,
        Some("inbound") => Direction::Inbound,
        _ => return Err(Missing::NoMessage),
    };
    let rebuilt = Rebuilt::of(entry, whole);
    let again = rebuilt.as_ref().ok().map(|rebuilt| rebuilt.judge(&policy, true));
    let text = |name: &str| entry.text(name).map(|text| visible(&text));
    let mut made = Explained {
        audit: text(names::AUDIT).unwrap_or_default(),
        item: entry.number(names::ITEM),
        time: text(names::TIME).unwrap_or_default(),
        agent: text(names::AGENT).unwrap_or_default(),
        user: text(names::USER),
        upstream: visible(&upstream),
        direction: direction.name().to_owned(),
        method: text(names::METHOD),
        tool: text(names::TOOL),
        verdict: text(names::VERDICT).unwrap_or_default(),
        would: text(names::WOULD),
        had: rebuilt.as_ref().map_or("none", |rebuilt| if rebuilt.whole { "whole" } else { "redacted" }),
        lacks: rebuilt.as_ref().map_or_else(|missing| Some(*missing), |rebuilt| rebuilt.lacks).map(Missing::words),
        same_rules: entry.text(names::RULE_SET).as_deref() == Some(policy.rules_digest(direction)),
        verdict_now: again.as_ref().map(|again| again.verdict.to_owned()),
        findings: Vec::new(),
        suppressed_passes: None,
    };
    let (rebuilt, again) = (rebuilt.as_ref().ok(), again.as_ref());
    let mut teller = Teller { entry, policy: &policy, direction, rebuilt, again, proposed: BTreeMap::new() };
    teller.propose();
    made.findings = teller.findings();
    made.suppressed_passes = teller.passes(&made.findings);
    Ok(made)
}

/// What the text `raw`, which stands at `place`, looked like on the way to where each of the findings is; they were judged with
/// [`Known::trace`](crate::inspect::Known::trace). Nothing is shown of what is private.
pub fn readings((place, raw): (&str, &str), rules: &RuleSet, findings: &[Finding]) -> Vec<Vec<Step>> {
    let secrets = steps::secrets(rules, findings);
    let private = |finding: &Finding| rules.rules().iter().any(|rule| rule.id == finding.rule && is_private(rule));
    let of = |finding: &Finding| {
        let trace = finding.trace.as_deref().filter(|_| !private(finding));
        let raw = Some(raw).filter(|_| finding.at.starts_with(place));
        trace.map(|trace| steps::steps(raw, finding, trace, &secrets)).unwrap_or_default()
    };
    findings.iter().map(of).collect()
}

/// Everything that is known of a line.
struct Teller<'a> {
    entry: &'a Entry,
    policy: &'a Policy,
    direction: Direction,
    rebuilt: Option<&'a Rebuilt>,
    again: Option<&'a Again>,
    /// What is proposed, by rule and place: findings of one rule at one place share it.
    proposed: BTreeMap<(String, String), Proposed>,
}

impl Teller<'_> {
    fn propose(&mut self) {
        let (Some(rebuilt), Some(again)) = (self.rebuilt, self.again) else { return };
        for finding in again.inspection.findings.iter().filter(|finding| finding.suppressed.is_none()) {
            let key = of(finding);
            let rule = self.rule(finding.rule.as_str());
            if !self.proposed.contains_key(&key)
                && let Some(one) = rule.and_then(|rule| snippet::narrowest(rebuilt, self.policy, self.entry, rule, finding))
            {
                self.proposed.insert(key, one);
            }
        }
    }

    fn rule(&self, id: &str) -> Option<&Rule> {
        self.policy.rules(self.direction).rules().iter().find(|rule| rule.id.as_str() == id).map(AsRef::as_ref)
    }

    /// The recorded findings, with what is found again, and what is found now only.
    fn findings(&self) -> Vec<Told> {
        let now: &[Finding] = self.again.map_or(&[], |again| &again.inspection.findings);
        let secrets = steps::secrets(self.policy.rules(self.direction), now);
        let mut used = vec![false; now.len()];
        let mut out = Vec::new();
        for found in self.entry.findings() {
            let at = self.within_item(&found.at());
            let same = |(n, finding): &(usize, &Finding)| {
                !used.get(*n).copied().unwrap_or(true) && finding.rule.as_str() == found.rule() && finding.at == at
            };
            let again = now.iter().enumerate().find(same);
            if let Some((n, _)) = again
                && let Some(used) = used.get_mut(n)
            {
                *used = true;
            }
            let (action, reading) = (found.action().into_owned(), found.reading().into_owned());
            out.push(self.told((&found.rule(), &at, &action, &reading), true, again.map(|(_, finding)| finding), &secrets));
        }
        for (finding, _) in now.iter().zip(used).filter(|(_, used)| !used) {
            let names = (finding.rule.as_str(), finding.at.as_str(), finding.action.name(), finding.reading);
            out.push(self.told(names, false, Some(finding), &secrets));
        }
        out
    }

    /// A pointer without the number of the message in its batch: that is judged by itself here.
    fn within_item(&self, at: &str) -> String {
        let item = self.entry.number(names::ITEM).map(|item| format!("/{item}"));
        item.and_then(|item| at.strip_prefix(item.as_str())).unwrap_or(at).to_owned()
    }

    fn told(
        &self,
        (id, at, action, reading): (&str, &str, &str, &str),
        recorded: bool,
        now: Option<&Finding>,
        secrets: &[String],
    ) -> Told {
        let rule = self.rule(id);
        let trace = now.and_then(|finding| finding.trace.as_deref());
        let private = rule.is_some_and(is_private);
        let (suppression, note) = match self.suppression(rule, now, reading) {
            Ok(proposed) => (Some(proposed), None),
            Err(note) => (None, Some(note)),
        };
        let raw = self.rebuilt.and_then(|rebuilt| rebuilt.text_at(at));
        let steps = match (trace, now) {
            (Some(trace), Some(finding)) if !private => steps::steps(raw.as_deref(), finding, trace, secrets),
            _ => Vec::new(),
        };
        let refused = self.entry.rule().as_deref() == Some(id);
        Told {
            id: visible(id),
            at: visible(at),
            argument: now.and_then(|finding| finding.argument.as_deref()).map(visible),
            action: visible(action),
            reading: visible(reading),
            recorded,
            found_again: now.is_some(),
            steps,
            shape: trace.filter(|_| private).map(|trace| steps::shape(matched(trace))),
            told: if refused {
                self.refusal(id).or_else(|| rule.map(|rule| format!("{}. {}", rule.title, rule.why)))
            } else {
                None
            },
            rule: rule.map(about),
            suppression: suppression.map(|proposed| snippet::written(&self.policy.name, proposed)),
            covers: suppression.map(|proposed| proposed.covers(self.rebuilt.is_some_and(|rebuilt| rebuilt.lacks.is_some()))),
            note,
        }
    }

    fn refusal(&self, id: &str) -> Option<String> {
        let inspection: &Inspection = &self.again?.inspection;
        match &inspection.verdict {
            Verdict::Block(refusals) => {
                let refusal = refusals.iter().find(|refusal| refusal.rule.as_str() == id)?;
                Some(format!("{}. {}", refusal.title, refusal.why))
            }
            _ => None,
        }
    }

    /// Suppressions of a finding as narrow as works, or why there is none.
    fn suppression(&self, rule: Option<&Rule>, now: Option<&Finding>, reading: &str) -> Result<&Proposed, String> {
        let none = |why: &str| Err(why.to_owned());
        if rule.is_none() {
            return none(
                "the rules in force have no such rule: it was switched off or taken out since, or it is the gate's own word (a schema, a limit, a pin), which its own section of the config changes",
            );
        }
        let Some(finding) = now else {
            return none(
                "it is not found in the text that could be had: it hangs on what the log does not hold (what the session saw before, or what is masked)",
            );
        };
        if work::ALL.contains(&reading) || work::ALL.contains(&finding.reading) {
            return none("what was too much to judge cannot be suppressed: send less of it at once");
        }
        if let Some(suppressed) = &finding.suppressed {
            let by = &suppressed.by;
            return Err(format!("it is suppressed until {}: {}", by.until.written, visible(&by.reason)));
        }
        let proposed = self.proposed.get(&of(finding));
        proposed.ok_or_else(|| "no suppression of this rule alone would let it pass".to_owned())
    }

    /// Whether it passes with all that is proposed.
    fn passes(&self, told: &[Told]) -> Option<bool> {
        if told.iter().all(|one| one.suppression.is_none()) {
            return None;
        }
        let all = self.proposed.values().flat_map(|proposed| &proposed.all);
        let policy = all.fold(self.policy.clone(), |policy, one| policy.suppressing(one.clone()));
        Some(self.rebuilt?.judge(&policy, false).verdict == "pass")
    }
}

/// What tells the rule and the place.
fn of(finding: &Finding) -> (String, String) {
    (finding.rule.as_str().to_owned(), finding.at.clone())
}

/// Whether what a rule finds is itself what nobody may see.
fn is_private(rule: &Rule) -> bool {
    matches!(*rule.find, Find::Secret(_) | Find::Personal(_))
}

/// What matched.
fn matched(trace: &Trace) -> &str {
    trace.span.clone().and_then(|span| trace.text.get(span)).unwrap_or(&trace.text)
}

fn about(rule: &Rule) -> About {
    About {
        title: rule.title.clone(),
        why: rule.why.clone(),
        severity: rule.severity.name(),
        action: rule.action.name(),
        kind: rule.find.word(),
        file: rule.file.to_string(),
        line: rule.line,
        builtin: rule.builtin,
        catches: rule.catches.iter().map(|case| visible(&case.text)).collect(),
        spares: rule.spares.iter().map(|case| visible(&case.text)).collect(),
    }
}
