//! What the findings of one item of a message call for: its refusal, or a question to a person.

use crate::message::Direction;
use crate::rules::{Action, Find, Rule, RuleSet};

use super::{Detail, Finding, Policy, Question, Refusal};

/// The refusal that the findings of one item call for: that of the gravest rule that blocks.
pub(super) fn refusal(rules: &RuleSet, findings: &[Finding], item: usize) -> Option<Refusal> {
    let rule = gravest(rules, findings, Action::Block)?;
    let why = match rules.direction() {
        Direction::Outbound if matches!(*rule.find, Find::Flow(_)) => {
            // The agent may not recognize data that it was given: the refusal names the place.
            let finding = findings.iter().find(|finding| finding.rule == rule.id);
            let at = finding.map_or("", |finding| finding.at.as_str());
            let source = finding
                .and_then(|finding| finding.detail.as_ref())
                .map(Detail::words)
                .unwrap_or_default();
            format!("{} It stands in `{at}`.{source}", rule.why)
        }
        Direction::Outbound => format!(
            "{} Send the call without that, or ask the user to do it.",
            rule.why
        ),
        Direction::Inbound => format!(
            "{} Go on without this answer, or ask the user to look at it.",
            rule.why
        ),
    };
    Some(Refusal {
        item,
        rule: rule.id.clone(),
        title: rule.title.clone(),
        why,
    })
}

/// The question that the findings of one item call for: that of the gravest rule that has a person asked.
pub(super) fn question(
    rules: &RuleSet,
    findings: &[Finding],
    item: usize,
    policy: &Policy,
) -> Option<Question> {
    let rule = gravest(rules, findings, Action::Ask)?;
    let mut asking = vec![rule.id.clone()];
    for finding in findings
        .iter()
        .filter(|finding| finding.action == Action::Ask)
    {
        if !asking.contains(&finding.rule) {
            asking.push(finding.rule.clone());
        }
    }
    let title = rule.title.clone();
    let why = rule.why.clone();
    Some(Question {
        item,
        rules: asking,
        title,
        why,
        severity: rule.severity,
        scopes: policy.scopes.clone(),
        through_agent: policy.through_agent,
        private: findings
            .iter()
            .filter(|finding| finding.private)
            .map(|finding| finding.at.clone())
            .collect(),
    })
}

/// The gravest rule among those whose findings call for `action`.
fn gravest<'r>(rules: &'r RuleSet, findings: &[Finding], action: Action) -> Option<&'r Rule> {
    let calling = findings.iter().filter(|finding| finding.action == action);
    // Of those that are as grave, the first: rule files begin with what is plainest.
    let gravest = calling.min_by_key(|finding| std::cmp::Reverse(finding.severity))?;
    rules
        .rules()
        .iter()
        .find(|rule| rule.id == gravest.rule)
        .map(AsRef::as_ref)
}
