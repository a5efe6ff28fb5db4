//! Passages: matches that overlap or that are the same text in several places, and the suppressions
//! that cover them.

use crate::config::Suppression;
use crate::detect::work;
use crate::inspect::{Finding, Policy};
use crate::record::entry::member;
use crate::rules::{Action, Find, Rule, RuleSet};

use crate::review::Entry;
use crate::review::rejudge::RecordedMessage;

use super::matched_text;

/// Maximum number of matches of one rule at one place for which suppressions are proposed.
const MAX_MATCHES: usize = 8;
/// Maximum number of times that the message is judged to find the suppressions.
const MAX_ROUNDS: usize = 24;
/// Minimum length of a text, in bytes, by which a passage is recognized within another text.
const MIN_RECOGNIZED_BYTES: usize = 8;

/// A match that has an effect, and the narrowest suppression that removes the effect.
pub(super) struct Match {
    pub(super) finding: Finding,
    scope: SuppressionScope,
}

/// The scopes of a suppression, from narrow to wide. The message is judged with each one before the
/// next is tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SuppressionScope {
    Digest,
    DigestAtAnyTool,
    DigestAnywhere,
    Place,
    PlaceAtAnyTool,
    Anywhere,
}

impl SuppressionScope {
    const ALL: [Self; 6] = [
        Self::Digest,
        Self::DigestAtAnyTool,
        Self::DigestAnywhere,
        Self::Place,
        Self::PlaceAtAnyTool,
        Self::Anywhere,
    ];

    fn next_wider(self) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| *scope > self)
    }
}

/// The suppressions proposed for a message.
#[derive(Default)]
pub(super) struct Proposals {
    pub(super) matches: Vec<Match>,
    /// Matches that are not covered because their rule has more than [`MAX_MATCHES`] at the place.
    pub(super) left_out: Vec<Finding>,
}

impl Proposals {
    /// Finds the narrowest suppressions with which no rule has an effect on the message, by judging
    /// it again with them. A finding names only the first match of its rule in a text; further
    /// matches appear once that one is suppressed.
    pub(super) fn new(
        message: &RecordedMessage,
        policy: &Policy,
        rules: &RuleSet,
        entry: &Entry,
        template: &Suppression,
    ) -> Self {
        let mut proposals = Self::default();
        let mut unsuppressible: Vec<Finding> = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let suppressions = proposals
                .matches
                .iter()
                .map(|one| one.suppression(entry, template));
            let remaining = message
                .judge(&policy.with_suppressions(suppressions), true)
                .inspection
                .findings;
            let mut changed = false;
            for finding in remaining {
                let Some(rule) = rules.rules().iter().find(|rule| rule.id == finding.rule) else {
                    continue;
                };
                if !is_suppressible(&finding)
                    || unsuppressible.iter().any(|other| is_same(other, &finding))
                {
                    continue;
                }
                let of_rule = |one: &&Match| {
                    (&one.finding.rule, &one.finding.at) == (&finding.rule, &finding.at)
                };
                let count = proposals.matches.iter().filter(of_rule).count();
                match proposals
                    .matches
                    .iter()
                    .position(|one| is_same(&one.finding, &finding))
                {
                    Some(at) => {
                        changed = true;
                        let matched = proposals.matches.remove(at);
                        match matched.scope.next_wider() {
                            Some(scope) => proposals.matches.insert(at, Match { scope, ..matched }),
                            None => unsuppressible.push(matched.finding),
                        }
                    }
                    None if count >= MAX_MATCHES => {
                        if !proposals
                            .left_out
                            .iter()
                            .any(|other| is_same(other, &finding))
                        {
                            proposals.left_out.push(finding);
                        }
                    }
                    None => {
                        changed = true;
                        let scope = if has_digest(rule) {
                            SuppressionScope::Digest
                        } else {
                            SuppressionScope::Place
                        };
                        proposals.matches.push(Match { finding, scope });
                    }
                }
            }
            if !changed {
                break;
            }
        }
        proposals
    }
}

impl Match {
    /// Returns the suppression of this match alone. `template` provides the reason and the expiry
    /// date.
    fn suppression(&self, entry: &Entry, template: &Suppression) -> Suppression {
        let Self {
            finding,
            scope: way,
        } = self;
        let has_tool = !matches!(
            way,
            SuppressionScope::DigestAtAnyTool
                | SuppressionScope::DigestAnywhere
                | SuppressionScope::PlaceAtAnyTool
                | SuppressionScope::Anywhere
        );
        let has_place = !matches!(
            way,
            SuppressionScope::DigestAnywhere | SuppressionScope::Anywhere
        );
        let at =
            (has_place && finding.argument.is_none()).then(|| star_indices(&finding.at).into());
        let sha256 = (*way <= SuppressionScope::DigestAnywhere)
            .then(|| finding.evidence.sha256.as_str().into());
        Suppression {
            rules: [finding.rule.as_str().into()].into(),
            upstream: entry.get(member::upstream).map(|name| name.as_ref().into()),
            tool: entry
                .get(member::tool)
                .filter(|_| has_tool)
                .map(|name| name.as_ref().into()),
            argument: finding.argument.clone().filter(|_| has_place),
            at: at.into_iter().collect(),
            sha256: sha256.into_iter().collect(),
            ..template.clone()
        }
    }
}

/// Merges the suppressions of matches: those that differ only in rule, place and digest become one.
pub(super) fn merge_suppressions<'m>(
    matches: impl IntoIterator<Item = &'m Match>,
    entry: &Entry,
    template: &Suppression,
) -> Vec<Suppression> {
    let mut result: Vec<Suppression> = Vec::new();
    for item in matches {
        let single = item.suppression(entry, template);
        let is_mergeable = |other: &&mut Suppression| {
            (&other.tool, &other.argument) == (&single.tool, &single.argument)
                && other.at.is_empty() == single.at.is_empty()
                && other.sha256.is_empty() == single.sha256.is_empty()
        };
        match result.iter_mut().find(is_mergeable) {
            Some(other) => {
                add(&mut other.rules, &single.rules);
                add(&mut other.at, &single.at);
                add(&mut other.sha256, &single.sha256);
            }
            None => result.push(single),
        }
    }
    result
}

fn add(names: &mut Box<[Box<str>]>, additions: &[Box<str>]) {
    let new = additions.iter().filter(|name| !names.contains(name));
    *names = names.iter().chain(new).cloned().collect();
}

/// Reports whether two findings belong to the same passage.
pub(super) fn overlap(one: &Finding, other: &Finding) -> bool {
    if one.argument != other.argument {
        return false;
    }
    let (Some(a), Some(b)) = (one.trace.as_deref(), other.trace.as_deref()) else {
        return one.at == other.at && one.evidence == other.evidence;
    };
    if a.text == b.text {
        let span =
            |trace: &crate::inspect::Trace| trace.span.clone().unwrap_or(0..trace.text.len());
        let a = span(a);
        let b = span(b);
        return a.start < b.end && b.start < a.end || a == b;
    }
    let a = matched_text(a);
    let b = matched_text(b);
    let (longer, shorter) = if a.len() < b.len() { (b, a) } else { (a, b) };
    longer == shorter || (shorter.len() >= MIN_RECOGNIZED_BYTES && longer.contains(shorter))
}

/// Reports whether two findings are the same match.
pub(super) fn is_same(one: &Finding, other: &Finding) -> bool {
    one.rule == other.rule && one.at == other.at && one.evidence == other.evidence
}

/// Reports whether a finding has an effect that a suppression can remove.
fn is_suppressible(finding: &Finding) -> bool {
    finding.action > Action::Log
        && finding.suppressed.is_none()
        && !work::ALL.contains(&finding.reading)
}

/// Reports whether the digest of the rule's matches is the same in another process.
fn has_digest(rule: &Rule) -> bool {
    !matches!(
        *rule.find,
        Find::Secret(_) | Find::Personal(_) | Find::Flow(_)
    )
}

/// Returns the pointer with each number replaced by a star.
fn star_indices(at: &str) -> String {
    let step = |step: &str| {
        if !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()) {
            "*".to_owned()
        } else {
            step.to_owned()
        }
    };
    at.split('/').map(step).collect::<Vec<_>>().join("/")
}
