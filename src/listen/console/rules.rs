//! The rules in force, with how often they have matched.

use std::collections::BTreeMap;

use http::{Response, StatusCode};
use serde::Serialize;

use super::page::{json, refuse};
use crate::listen::Body;
use crate::message::Direction;
use crate::proxy::Gate;
use crate::record::RuleHits;
use crate::rules::{Case, Rule};

/// A rule in the list. Policies may take different actions on its findings.
#[derive(Serialize)]
pub(super) struct RuleSummary {
    id: String,
    title: String,
    direction: &'static str,
    severity: &'static str,
    /// The action on its findings, by policy.
    actions: BTreeMap<String, &'static str>,
    pack: Option<String>,
    #[serde(flatten)]
    hits: RuleHits,
}

/// All details of a rule.
#[derive(Serialize)]
struct RuleDetail {
    #[serde(flatten)]
    listed: RuleSummary,
    why: String,
    file: String,
    line: usize,
    builtin: bool,
    packs: Vec<String>,
    catches: Vec<RuleCase>,
    spares: Vec<RuleCase>,
    references: Vec<String>,
    was: Vec<String>,
    /// The rule's own table in its file, if the file is part of the binary.
    source: Option<&'static str>,
}

#[derive(Serialize)]
struct RuleCase {
    text: String,
    line: usize,
}

/// Returns every rule in force in any policy, by direction and name.
pub(super) fn list(gate: &Gate) -> Vec<RuleSummary> {
    let hits = gate.recorder().rule_hits();
    rules_in_force(gate)
        .into_values()
        .map(|(rule, actions)| summary(&rule, actions, &hits))
        .collect()
}

/// Returns one of them.
pub(super) fn detail(gate: &Gate, id: &str) -> Response<Body> {
    let Some((rule, actions)) = rules_in_force(gate)
        .into_iter()
        .find(|((_, name), _)| name == id)
        .map(|(_, found)| found)
    else {
        return refuse(StatusCode::NOT_FOUND, "no such rule in force");
    };
    let cases = |cases: &[Case]| {
        cases
            .iter()
            .map(|case| RuleCase {
                text: case.text.clone(),
                line: case.line,
            })
            .collect()
    };
    let rule_detail = RuleDetail {
        listed: summary(&rule, actions, &gate.recorder().rule_hits()),
        why: rule.why.clone(),
        file: rule.file.to_string(),
        line: rule.line,
        builtin: rule.builtin,
        packs: rule.packs.clone(),
        catches: cases(&rule.cases().catches),
        spares: cases(&rule.cases().spares),
        references: rule.references.clone(),
        was: rule.former_ids.iter().map(ToString::to_string).collect(),
        source: source(&rule),
    };
    json(StatusCode::OK, &rule_detail)
}

type UpstreamRules =
    BTreeMap<(&'static str, String), (std::sync::Arc<Rule>, BTreeMap<String, &'static str>)>;

fn rules_in_force(gate: &Gate) -> UpstreamRules {
    let mut rules = UpstreamRules::new();
    for policy in gate.policies().values() {
        for direction in [Direction::Outbound, Direction::Inbound] {
            for rule in policy.rules(direction).rules() {
                let key = (direction.name(), rule.id.to_string());
                let (_, actions) = rules
                    .entry(key)
                    .or_insert_with(|| (rule.clone(), BTreeMap::new()));
                actions.insert(policy.name.to_string(), rule.action.name());
            }
        }
    }
    rules
}

fn summary(
    rule: &Rule,
    actions: BTreeMap<String, &'static str>,
    hits: &BTreeMap<Box<str>, RuleHits>,
) -> RuleSummary {
    RuleSummary {
        id: rule.id.to_string(),
        title: rule.title.clone(),
        direction: rule.direction.name(),
        severity: rule.severity.name(),
        actions,
        pack: rule.packs.last().cloned(),
        hits: hits.get(rule.id.as_str()).copied().unwrap_or_default(),
    }
}

/// Returns the part of a built-in file that belongs to the rule.
fn source(rule: &Rule) -> Option<&'static str> {
    let (_, text) = crate::rules::BUILTIN_FILES
        .iter()
        .find(|(name, _)| rule.builtin && rule.file.ends_with(name))?;
    let start: usize = text
        .split_inclusive('\n')
        .take(rule.line.checked_sub(1)?)
        .map(str::len)
        .sum();
    let from = text.get(start..)?;
    // The first line may be the rule's own heading.
    let end = from
        .get(1..)?
        .find("\n[[rule]]")
        .map_or(from.len(), |end| end + 2);
    from.get(..end).map(str::trim_end)
}
