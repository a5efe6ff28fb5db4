//! Suppressions: findings that have no consequence, by an operator's decision and for a limited
//! time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::config::Suppression;
use crate::detect::{Place, work};
use crate::document::Fault;
use crate::protocol::AuditId;
use crate::rules::{Action, Find, Library, Rule, RuleId};

use super::{Evidence, Policy};

/// The hint for an id that no rule has.
const OWN: &str = "`lychgate rules list` names the rules; what the gate refuses by itself is changed where its config says so";

/// The consequence that a finding would have had without a suppression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppressedAction {
    /// The suppression.
    pub suppression: Arc<Suppression>,
    /// The action that would have been taken.
    pub action: Action,
}

/// The suppressions of a policy.
#[derive(Clone, Debug, Default)]
pub struct Suppressions {
    /// As configured, each with the current ids of its rules.
    all: Arc<[(Vec<RuleId>, Arc<Suppression>)]>,
    /// Those that apply to the current upstream, by rule.
    by_rule: HashMap<RuleId, Vec<Arc<Suppression>>>,
}

impl Suppressions {
    /// Resolves the rules.
    ///
    /// # Errors
    /// Every suppression that could never apply.
    pub(super) fn new(
        configured: &[Arc<Suppression>],
        library: &Library,
    ) -> Result<Self, Vec<Fault>> {
        let mut all = Vec::new();
        let mut faults = Vec::new();
        for suppression in configured {
            let mut rules = Vec::new();
            for rule in &suppression.rules {
                match resolve(rule, suppression, library) {
                    Ok(rule) => rules.push(rule),
                    Err((message, hint)) => {
                        let (file, line, column) = suppression.place.clone();
                        faults.push(Fault {
                            file: file.into(),
                            line,
                            column,
                            message,
                            hint: Some(hint),
                        });
                    }
                }
            }
            all.push((rules, suppression.clone()));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self {
            all: all.into(),
            by_rule: HashMap::new(),
        }
        .at(None))
    }

    /// Returns the same suppressions for messages to and from one upstream; `None` for an upstream
    /// that has no name.
    pub(super) fn at(&self, upstream: Option<&str>) -> Self {
        let mut by_rule: HashMap<RuleId, Vec<Arc<Suppression>>> = HashMap::new();
        for (rules, suppression) in self
            .all
            .iter()
            .filter(|(_, one)| one.upstream.is_none() || one.upstream.as_deref() == upstream)
        {
            for rule in rules {
                by_rule
                    .entry(rule.clone())
                    .or_default()
                    .push(suppression.clone());
            }
        }
        Self {
            all: self.all.clone(),
            by_rule,
        }
    }

    /// Returns the same suppressions with additional ones.
    pub(super) fn with_added(&self, added: impl IntoIterator<Item = Suppression>) -> Self {
        let mut result = self.clone();
        for suppression in added.into_iter().map(Arc::new) {
            for rule in &suppression.rules {
                result
                    .by_rule
                    .entry(RuleId::new(rule))
                    .or_default()
                    .push(suppression.clone());
            }
        }
        result
    }

    /// Returns the suppressions that apply to the current upstream, whether or not they have
    /// expired. One that names several rules is returned once.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Suppression>> {
        let mut all: Vec<&Arc<Suppression>> = self.by_rule.values().flatten().collect();
        all.sort_by_key(|one| Arc::as_ptr(one).addr());
        all.dedup_by(|one, other| Arc::ptr_eq(one, other));
        all.into_iter()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_rule.is_empty()
    }

    /// Returns the suppression of a match of `rule` at `place`, if there is one. A finding that
    /// there was too much to inspect is never suppressed: its content is unknown. The current time
    /// is taken from `audit`.
    pub(super) fn find(
        &self,
        rule: &Rule,
        place: &Place<'_>,
        reading: &str,
        audit: AuditId,
        at: &dyn Fn() -> String,
        evidence: &dyn Fn() -> Evidence,
    ) -> Option<&Arc<Suppression>> {
        let candidates = self.by_rule.get(&rule.id)?;
        if work::ALL.contains(&reading) || reports_limits(rule) {
            return None;
        }
        let now = creation_time(audit)?;
        let matches_name = |expected: &Option<Box<str>>, name: Option<&str>| {
            expected.is_none() || expected.as_deref() == name
        };
        candidates.iter().find(|one| {
            now < one.until.end
                && matches_name(&one.tool, place.tool)
                && matches_name(&one.argument, place.outbound().argument)
                && is_one_of(&one.at, at, |wanted, at: &String| leads_to(wanted, at))
                && is_one_of(&one.sha256, evidence, |wanted, found: &Evidence| {
                    *wanted == *found.sha256
                })
        })
    }
}

impl Policy {
    /// Returns the same rules for messages to and from this upstream.
    pub fn at(&self, upstream: &str) -> Self {
        let mut policy = self.clone();
        policy.suppressions = self.suppressions.at(Some(upstream));
        policy
    }

    /// Returns the same rules with additional suppressions.
    pub fn with_suppressions(&self, more: impl IntoIterator<Item = Suppression>) -> Self {
        let mut policy = self.clone();
        policy.suppressions = self.suppressions.with_added(more);
        policy
    }

    /// Returns the suppressions.
    pub fn suppressions(&self) -> &Suppressions {
        &self.suppressions
    }
}

/// Returns whether what was found is one of the values that a suppression names. It is computed
/// only if there are any.
fn is_one_of<T>(
    expected: &[Box<str>],
    found: &dyn Fn() -> T,
    is: impl Fn(&str, &T) -> bool,
) -> bool {
    if expected.is_empty() {
        return true;
    }
    let found = found();
    expected.iter().any(|wanted| is(wanted, &found))
}

/// Returns when an audit line was created: its id begins with the time (UUID version 7, RFC 9562).
fn creation_time(audit: AuditId) -> Option<SystemTime> {
    let (seconds, nanos) = audit.0.get_timestamp()?.to_unix();
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
}

/// Returns whether a pointer matches one with stars. The index of a message in its batch is
/// ignored.
fn leads_to(pattern: &str, at: &str) -> bool {
    let fits = |at: &str| {
        let mut pattern_steps = pattern.split('/');
        let mut steps = at.split('/');
        loop {
            match (pattern_steps.next(), steps.next()) {
                (None, None) => return true,
                (Some(wanted), Some(at)) if wanted == "*" || wanted == at => {}
                _ => return false,
            }
        }
    };
    let in_batch = at
        .strip_prefix('/')
        .and_then(|rest| rest.find('/').map(|end| rest.split_at(end)));
    fits(at)
        || in_batch
            .is_some_and(|(first, rest)| first.bytes().all(|b| b.is_ascii_digit()) && fits(rest))
}

/// Returns whether a rule only ever reports that something could not be judged.
fn reports_limits(rule: &Rule) -> bool {
    match rule.find.as_ref() {
        Find::Secret(spec) => spec.unread,
        Find::Command(spec) => spec.is_unreadable(),
        _ => false,
    }
}

fn resolve(
    name: &str,
    suppression: &Suppression,
    library: &Library,
) -> Result<RuleId, (String, String)> {
    let Some(rule) = library.find(name) else {
        let hint = library.nearest(name);
        let hint = if hint.starts_with("did you mean") {
            hint
        } else {
            OWN.to_owned()
        };
        return Err((format!("there is no rule `{name}` to suppress"), hint));
    };
    if reports_limits(rule) {
        let message = format!(
            "`{}` cannot be suppressed: it tells of what could not be judged",
            rule.id
        );
        return Err((
            message,
            "what cannot be judged is not passed on: send less of it at once".to_owned(),
        ));
    }
    if !suppression.sha256.is_empty()
        && matches!(
            *rule.find,
            Find::Secret(_) | Find::Personal(_) | Find::Flow(_)
        )
    {
        let message = format!("what `{}` finds has no digest that lasts", rule.id);
        return Err((
            message,
            "leave `sha256` out, and name `tool` and `argument` (or `at`)".to_owned(),
        ));
    }
    Ok(rule.id.clone())
}

/// Describes, in sentences, how a change of suppressions reduces protection: new ones, wider ones,
/// later ends.
pub fn describe_suppression_changes(
    old: &Suppressions,
    new: &Suppressions,
    now: SystemTime,
) -> Vec<String> {
    let mut sentences: Vec<String> = new
        .iter()
        .filter(|one| now < one.until.end)
        .filter(|one| {
            old.iter()
                .all(|before| !before.covers_same(one) || before.until.end < one.until.end)
        })
        .map(|one| format!("suppressed until {}: {}", one.until.text, one.describe()))
        .collect();
    sentences.sort();
    sentences
}

#[cfg(test)]
mod tests;
