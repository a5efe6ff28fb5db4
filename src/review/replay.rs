//! Judges recorded traffic with candidate rules.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::Serialize;

use crate::inspect::{Inspection, Mode};
use crate::record::entry::member;
use crate::text::{cut, escape_invisible};

use super::rejudge::{RecordedMessage, recorded_rules_verdict};
use super::{Entry, Limitation, PolicySet};

/// Maximum number of examples per class.
const MAX_EXAMPLES: usize = 5;
/// The verdict on a message without findings, and the effective verdict of a policy in observe
/// mode.
const PASS: &str = "pass";
/// Maximum length of the excerpt of a message, in bytes.
const MAX_EXCERPT_BYTES: usize = 200;

enum_with_names! {
    /// How the outcome for a recorded message differs under the candidate rules. Named as in the
    /// report, and in its order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Class {
        /// The message was not blocked, though possibly rewritten or held for approval, and would
        /// be blocked.
        NewlyBlocked = "newly blocked",
        /// The message was blocked, rewritten or held for approval, and would pass unchanged: there
        /// are no findings, or the policy only observes.
        NewlyPassed = "newly passed",
        /// The message would be treated differently in another way, or for other reasons.
        Changed = "other changes",
        /// The same verdict, for the same reasons.
        Unchanged = "unchanged",
        /// The current rules do not produce the recorded verdict either, and the candidate agrees
        /// with them: the verdict depended on something that is not in the log, or on rules that
        /// have changed since.
        NotByCandidate = "differs from the record, but not because of the candidate",
    }
}

/// The number of hits of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HitCounts {
    /// The number of hits with the current rules.
    pub before: u64,
    /// The number of hits with the candidate.
    pub after: u64,
}

/// A message that would be treated differently.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    pub class: Class,
    /// The audit id of the line, for `lychgate explain`.
    pub audit: String,
    /// The time when the message was judged.
    pub time: String,
    /// The agent that sent or received the message.
    pub agent: String,
    pub upstream: String,
    pub tool: Option<String>,
    /// The verdict that was recorded, or that would have applied.
    pub recorded: String,
    /// The verdict of the current rules.
    pub before: String,
    /// The verdict of the candidate.
    pub after: String,
    /// The rules that only the candidate hits, with `+`, and those that it no longer hits, with
    /// `-`.
    pub rules: Vec<String>,
    /// The beginning of the message as the log shows it.
    pub shown: String,
}

/// The result of a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The number of lines of judged messages.
    pub messages: u64,
    /// The number of those that were judged again.
    pub replayed: u64,
    /// The number of lines that cannot be read.
    pub bad_lines: u64,
    /// The number of messages in each class.
    pub classes: BTreeMap<Class, u64>,
    /// The number of newly passed messages that pass only because the candidate is in observe mode.
    pub only_observed: u64,
    /// The number of messages that could not be judged again, by reason.
    pub not_replayed: BTreeMap<Limitation, u64>,
    /// The hits of each rule among the messages that were judged again.
    pub rules: BTreeMap<String, HitCounts>,
    /// A few examples of each class other than unchanged.
    pub examples: Vec<Example>,
}

impl Report {
    /// Returns the number of messages in a class.
    pub fn count(&self, class: Class) -> u64 {
        self.classes.get(&class).copied().unwrap_or(0)
    }

    /// Reports whether every message that could be judged again has the same outcome.
    pub fn is_unchanged(&self) -> bool {
        [Class::NewlyBlocked, Class::NewlyPassed, Class::Changed]
            .iter()
            .all(|class| self.count(*class) == 0)
    }
}

/// Judges recorded messages with the current rules and with a candidate, one message at a time.
/// Stores only a few examples and counts.
pub struct Replay<'j> {
    current: &'j PolicySet,
    candidate: &'j PolicySet,
    report: Report,
}

impl<'j> Replay<'j> {
    /// Creates an empty replay.
    pub fn new(current: &'j PolicySet, candidate: &'j PolicySet) -> Self {
        let classes = Class::ALL.map(|class| (class, 0)).into();
        Self {
            current,
            candidate,
            report: Report {
                classes,
                ..Report::default()
            },
        }
    }

    /// Counts a line that cannot be read.
    pub fn count_bad_line(&mut self) {
        self.report.bad_lines += 1;
    }

    /// Judges the message of a line; lines of other events have none. `stored_message` is the
    /// message itself, if it was stored as evidence.
    pub fn add(&mut self, entry: &Entry, stored_message: Option<&Bytes>) {
        if entry.event() != "judged" {
            return;
        }
        self.report.messages += 1;
        if let Err(missing) = self.judge(entry, stored_message) {
            *self.report.not_replayed.entry(missing).or_default() += 1;
        }
    }

    /// Returns the result.
    pub fn report(self) -> Report {
        self.report
    }

    fn judge(&mut self, entry: &Entry, stored_message: Option<&Bytes>) -> Result<(), Limitation> {
        let upstream = entry.get(member::upstream).unwrap_or_default();
        let current = self.current.policy(&upstream);
        let candidate = self.candidate.policy(&upstream);
        let (current, candidate) = current.zip(candidate).ok_or(Limitation::NoPolicy)?;
        let message = RecordedMessage::from_entry(entry, stored_message)?;
        // A masked or truncated message cannot be judged: finding nothing in it would prove
        // nothing.
        if let Some(lacks) = message.limitation {
            return Err(lacks);
        }
        let before = message.judge(&current, false);
        let after = message.judge(&candidate, false);
        self.report.replayed += 1;
        let hits_before = rule_actions(&before.inspection);
        let hits_after = rule_actions(&after.inspection);
        for rule in hits_before
            .keys()
            .chain(hits_after.keys())
            .collect::<BTreeSet<_>>()
        {
            let hits = self.report.rules.entry((*rule).to_owned()).or_default();
            hits.before += u64::from(hits_before.contains_key(rule));
            hits.after += u64::from(hits_after.contains_key(rule));
        }
        let observes = [&current, &candidate].map(|policy| policy.mode == Mode::Observe);
        let recorded = if observes == [true, false] {
            recorded_verdict(entry)
        } else {
            recorded_rules_verdict(entry)
        };
        let class = match observes {
            // Policies in observe mode are compared by what their rules would have done, unless the
            // other policy enforces.
            [true, true] | [false, false] => classify(
                &recorded,
                before.verdict,
                after.verdict,
                hits_before == hits_after,
            ),
            [true, false] => classify(&recorded, PASS, after.verdict, hits_before == hits_after),
            [false, true] if before.verdict != PASS => Class::NewlyPassed,
            [false, true] => classify(&recorded, before.verdict, PASS, hits_before == hits_after),
        };
        let only_observed =
            observes == [false, true] && class == Class::NewlyPassed && after.verdict != PASS;
        self.report.only_observed += u64::from(only_observed);
        *self.report.classes.entry(class).or_default() += 1;
        let example_count = self
            .report
            .examples
            .iter()
            .filter(|example| example.class == class)
            .count();
        if class != Class::Unchanged && example_count < MAX_EXAMPLES {
            let added = hits_after
                .keys()
                .filter(|rule| !hits_before.contains_key(*rule))
                .map(|rule| format!("+{rule}"));
            let removed = hits_before
                .keys()
                .filter(|rule| !hits_after.contains_key(*rule))
                .map(|rule| format!("-{rule}"));
            let rules = added.chain(removed).collect();
            let [before, after] = match observes {
                [true, false] => [PASS, after.verdict],
                [false, true] => [before.verdict, PASS],
                _ => [before.verdict, after.verdict],
            };
            self.report
                .examples
                .push(build_example(entry, class, recorded, before, after, rules));
        }
        Ok(())
    }
}

/// Returns the verdict that was applied at the time.
fn recorded_verdict(entry: &Entry) -> String {
    entry.get(member::verdict).unwrap_or_default().into_owned()
}

/// Classifies a message. A difference that the current rules cause as well is not attributed to the
/// candidate.
fn classify(recorded: &str, before: &str, after: &str, same_findings: bool) -> Class {
    if before == after {
        return match (recorded == after, same_findings) {
            (true, true) => Class::Unchanged,
            (false, true) => Class::NotByCandidate,
            (_, false) => Class::Changed,
        };
    }
    match (recorded, after) {
        // The current rules now differ from the record, and the candidate matches it.
        (recorded, after) if recorded == after => Class::Changed,
        (_, "block") => Class::NewlyBlocked,
        (_, "pass") => Class::NewlyPassed,
        _ => Class::Changed,
    }
}

/// Returns the rules that hit, each with its strongest action.
fn rule_actions(inspection: &Inspection) -> BTreeMap<&str, &'static str> {
    // The strongest findings come first.
    inspection
        .findings
        .iter()
        .rev()
        .map(|finding| (finding.rule.as_str(), finding.action.name()))
        .collect()
}

fn build_example(
    entry: &Entry,
    class: Class,
    recorded: String,
    before: &str,
    after: &str,
    rules: Vec<String>,
) -> Example {
    let text = |name: &str| entry.text(name).map(|text| escape_invisible(&text));
    let content = entry.arguments().map_or("", |shown| shown.raw());
    let mut excerpt = escape_invisible(cut(content, MAX_EXCERPT_BYTES));
    if content.len() > MAX_EXCERPT_BYTES {
        excerpt.push('…');
    }
    Example {
        class,
        audit: text(member::audit::NAME).unwrap_or_default(),
        time: text(member::time::NAME).unwrap_or_default(),
        agent: text(member::agent::NAME).unwrap_or_default(),
        upstream: text(member::upstream::NAME).unwrap_or_default(),
        tool: text(member::tool::NAME),
        recorded,
        before: before.to_owned(),
        after: after.to_owned(),
        rules,
        shown: excerpt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_rules_in_force_do_as_well_is_not_the_candidates() {
        for (recorded, before, after, same_findings, class) in [
            ("pass", "pass", "pass", true, Class::Unchanged),
            ("pass", "pass", "pass", false, Class::Changed),
            ("block", "pass", "pass", true, Class::NotByCandidate),
            ("pass", "pass", "block", false, Class::NewlyBlocked),
            ("ask", "ask", "block", false, Class::NewlyBlocked),
            ("block", "block", "pass", false, Class::NewlyPassed),
            ("rewrite", "rewrite", "pass", false, Class::NewlyPassed),
            ("pass", "pass", "rewrite", false, Class::Changed),
            ("pass", "block", "pass", false, Class::Changed),
        ] {
            assert_eq!(
                classify(recorded, before, after, same_findings),
                class,
                "{recorded} {before} {after}"
            );
        }
    }
}
