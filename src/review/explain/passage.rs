//! Passages: matches that overlap or that are the same text in several places, and the suppressions
//! that cover them.

use crate::config::Suppression;
use crate::detect::work;
use crate::inspect::{Finding, Policy};
use crate::record::entry::member;
use crate::rules::{Action, Find, Rule, RuleSet};

use crate::review::Entry;
use crate::review::rejudge::RecordedMessage;

use super::matched;

/// Maximum number of matches of one rule at one place for which suppressions are proposed.
const MATCHES: usize = 8;
/// Maximum number of times that the message is judged to find the suppressions.
const ROUNDS: usize = 24;
/// Minimum length of a text, in bytes, by which a passage is recognized within another text.
const RECOGNIZED_BYTES: usize = 8;

/// A match that has an effect, and the narrowest suppression that removes the effect.
pub(super) struct Match {
    pub(super) finding: Finding,
    way: SuppressionScope,
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
        Self::ALL.into_iter().find(|way| *way > self)
    }
}

/// The suppressions proposed for a message.
#[derive(Default)]
pub(super) struct Proposals {
    pub(super) matches: Vec<Match>,
    /// Matches that are not covered because their rule has more than [`MATCHES`] at the place.
    pub(super) left_out: Vec<Finding>,
}

impl Proposals {
    /// Finds the narrowest suppressions with which no rule has an effect on the message, by judging
    /// it again with them. A finding names only the first match of its rule in a text; further
    /// matches appear once that one is suppressed.
    pub(super) fn new(
        rebuilt: &RecordedMessage,
        policy: &Policy,
        rules: &RuleSet,
        entry: &Entry,
        blank: &Suppression,
    ) -> Self {
        let mut made = Self::default();
        let mut hopeless: Vec<Finding> = Vec::new();
        for _ in 0..ROUNDS {
            let more = made.matches.iter().map(|one| one.suppression(entry, blank));
            let left = rebuilt
                .judge(&policy.suppressing(more), true)
                .inspection
                .findings;
            let mut changed = false;
            for finding in left {
                let Some(rule) = rules.rules().iter().find(|rule| rule.id == finding.rule) else {
                    continue;
                };
                if !is_suppressible(&finding)
                    || hopeless.iter().any(|other| is_same(other, &finding))
                {
                    continue;
                }
                let of_rule = |one: &&Match| {
                    (&one.finding.rule, &one.finding.at) == (&finding.rule, &finding.at)
                };
                let count = made.matches.iter().filter(of_rule).count();
                match made
                    .matches
                    .iter()
                    .position(|one| is_same(&one.finding, &finding))
                {
                    Some(at) => {
                        changed = true;
                        let one = made.matches.remove(at);
                        match one.way.next_wider() {
                            Some(way) => made.matches.insert(at, Match { way, ..one }),
                            None => hopeless.push(one.finding),
                        }
                    }
                    None if count >= MATCHES => {
                        if !made.left_out.iter().any(|other| is_same(other, &finding)) {
                            made.left_out.push(finding);
                        }
                    }
                    None => {
                        changed = true;
                        let way = if has_digest(rule) {
                            SuppressionScope::Digest
                        } else {
                            SuppressionScope::Place
                        };
                        made.matches.push(Match { finding, way });
                    }
                }
            }
            if !changed {
                break;
            }
        }
        made
    }
}

impl Match {
    /// Returns the suppression of this match alone. `blank` provides the reason and the expiry
    /// date.
    fn suppression(&self, entry: &Entry, blank: &Suppression) -> Suppression {
        let Self { finding, way } = self;
        let tool = !matches!(
            way,
            SuppressionScope::DigestAtAnyTool
                | SuppressionScope::DigestAnywhere
                | SuppressionScope::PlaceAtAnyTool
                | SuppressionScope::Anywhere
        );
        let place = !matches!(
            way,
            SuppressionScope::DigestAnywhere | SuppressionScope::Anywhere
        );
        let at = (place && finding.argument.is_none()).then(|| stars(&finding.at).into());
        let sha256 = (*way <= SuppressionScope::DigestAnywhere)
            .then(|| finding.evidence.sha256.as_str().into());
        Suppression {
            rules: [finding.rule.as_str().into()].into(),
            upstream: entry.get(member::upstream).map(|name| name.as_ref().into()),
            tool: entry
                .get(member::tool)
                .filter(|_| tool)
                .map(|name| name.as_ref().into()),
            argument: finding.argument.clone().filter(|_| place),
            at: at.into_iter().collect(),
            sha256: sha256.into_iter().collect(),
            ..blank.clone()
        }
    }
}

/// Merges the suppressions of matches: those that differ only in rule, place and digest become one.
pub(super) fn merged<'m>(
    matches: impl IntoIterator<Item = &'m Match>,
    entry: &Entry,
    blank: &Suppression,
) -> Vec<Suppression> {
    let mut made: Vec<Suppression> = Vec::new();
    for one in matches {
        let single = one.suppression(entry, blank);
        let fits = |other: &&mut Suppression| {
            (&other.tool, &other.argument) == (&single.tool, &single.argument)
                && other.at.is_empty() == single.at.is_empty()
                && other.sha256.is_empty() == single.sha256.is_empty()
        };
        match made.iter_mut().find(fits) {
            Some(other) => {
                add(&mut other.rules, &single.rules);
                add(&mut other.at, &single.at);
                add(&mut other.sha256, &single.sha256);
            }
            None => made.push(single),
        }
    }
    made
}

fn add(names: &mut Box<[Box<str>]>, more: &[Box<str>]) {
    let new = more.iter().filter(|name| !names.contains(name));
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
    let a = matched(a);
    let b = matched(b);
    let (longer, shorter) = if a.len() < b.len() { (b, a) } else { (a, b) };
    longer == shorter || (shorter.len() >= RECOGNIZED_BYTES && longer.contains(shorter))
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
fn stars(at: &str) -> String {
    let step = |step: &str| {
        if !step.is_empty() && step.bytes().all(|b| b.is_ascii_digit()) {
            "*".to_owned()
        } else {
            step.to_owned()
        }
    };
    at.split('/').map(step).collect::<Vec<_>>().join("/")
}
