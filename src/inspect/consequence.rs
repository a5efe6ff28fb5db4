//! The consequence of the findings in one item of a message: a refusal, or a request for approval.

use crate::message::Direction;
use crate::rules::{Action, Find, Rule, RuleSet};

use super::{Detail, Finding, Policy, Question, Refusal};

/// Returns the refusal that the findings of one item require: that of the most severe rule that
/// blocks.
pub(super) fn refusal(rules: &RuleSet, findings: &[Finding], item: usize) -> Option<Refusal> {
    let rule = gravest(rules, findings, Action::Block)?;
    let why = match rules.direction() {
        Direction::Outbound if matches!(*rule.find, Find::Flow(_)) => {
            // The agent may not recognize data that it received: the refusal names the place.
            let finding = findings.iter().find(|finding| finding.rule == rule.id);
            let at = finding.map_or("", |finding| finding.at.as_str());
            let source = finding
                .and_then(|finding| finding.detail.as_ref())
                .map(Detail::describe)
                .unwrap_or_default();
            format!("{} It was found in `{at}`.{source}", rule.why)
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

/// Returns the request for approval that the findings of one item require: that of the most severe
/// rule that asks.
pub(super) fn question(
    rules: &RuleSet,
    findings: &[Finding],
    item: usize,
    policy: &Policy,
) -> Option<Question> {
    let rule = gravest(rules, findings, Action::Ask)?;
    let mut rule_ids = vec![rule.id.clone()];
    for finding in findings
        .iter()
        .filter(|finding| finding.action == Action::Ask)
    {
        if !rule_ids.contains(&finding.rule) {
            rule_ids.push(finding.rule.clone());
        }
    }
    let title = rule.title.clone();
    let why = rule.why.clone();
    Some(Question {
        item,
        rules: rule_ids,
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

/// Returns the most severe of the rules whose findings have this `action`.
fn gravest<'r>(rules: &'r RuleSet, findings: &[Finding], action: Action) -> Option<&'r Rule> {
    let candidates = findings.iter().filter(|finding| finding.action == action);
    // Of equally severe rules, the first: rule files begin with the clearest ones.
    let gravest = candidates.min_by_key(|finding| std::cmp::Reverse(finding.severity))?;
    rules
        .rules()
        .iter()
        .find(|rule| rule.id == gravest.rule)
        .map(AsRef::as_ref)
}
