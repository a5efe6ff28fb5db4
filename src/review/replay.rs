//! Recorded traffic, judged by candidate rules.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::Serialize;

use crate::inspect::{Inspection, Mode};
use crate::record::entry::member;
use crate::text::{cut, visible};

use super::rejudge::{RecordedMessage, recorded};
use super::{Entry, Limitation, PolicySet};

/// Examples kept of each class.
const EXAMPLES: usize = 5;
/// The verdict of what is found to have nothing, and what is done where a policy only observes.
const PASS: &str = "pass";
/// What is shown of a message, in bytes.
const SHOWN_BYTES: usize = 200;

/// What becomes of a recorded message under the candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It passed, in whatever form, and would be refused.
    NewlyBlocked,
    /// It was refused, edited or asked about, and would pass as it is: nothing is found, or it is only observed.
    NewlyPassed,
    /// It would be treated otherwise in another way, or for other reasons.
    Changed,
    /// The same verdict, for the same reasons.
    Unchanged,
    /// The rules in force do not come to the recorded verdict either, and the candidate does as they do: it hangs on what
    /// the log does not hold, or on rules that were changed since.
    NotByCandidate,
}

impl Class {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 5] = [
        Self::NewlyBlocked,
        Self::NewlyPassed,
        Self::Changed,
        Self::Unchanged,
        Self::NotByCandidate,
    ];

    pub fn words(self) -> &'static str {
        match self {
            Self::NewlyBlocked => "newly blocked",
            Self::NewlyPassed => "newly passed",
            Self::Changed => "other changes",
            Self::Unchanged => "unchanged",
            Self::NotByCandidate => "differs from the record, but not because of the candidate",
        }
    }
}

/// How often a rule hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HitCounts {
    /// By the rules in force.
    pub before: u64,
    /// By the candidate.
    pub after: u64,
}

/// A message that would be treated otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// What becomes of it.
    pub class: Class,
    /// Its line's id, for `lychgate explain`.
    pub audit: String,
    /// When it was judged.
    pub time: String,
    /// Who sent it or got it.
    pub agent: String,
    /// Whose server it was.
    pub upstream: String,
    pub tool: Option<String>,
    /// What was done then, or would have been.
    pub recorded: String,
    /// What the rules in force make of it.
    pub before: String,
    /// What the candidate makes of it.
    pub after: String,
    /// The rules of the candidate that hit and did not, with `+`, and those that no longer do, with `-`.
    pub rules: Vec<String>,
    /// The beginning of what the log shows of it.
    pub shown: String,
}

/// What came of replaying.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Lines of judged messages.
    pub messages: u64,
    /// Of these, judged again.
    pub replayed: u64,
    /// Lines that cannot be read.
    pub bad_lines: u64,
    /// How many messages are of each class.
    pub classes: BTreeMap<Class, u64>,
    /// How many of the newly passed pass for no other reason than that the candidate only observes.
    pub only_observed: u64,
    /// How many messages could not be judged again, and why.
    pub not_replayed: BTreeMap<Limitation, u64>,
    /// Hits of each rule among those that were.
    pub rules: BTreeMap<String, HitCounts>,
    /// A few of each class that is not as before.
    pub examples: Vec<Example>,
}

impl Report {
    /// How many messages are of a class.
    pub fn count(&self, class: Class) -> u64 {
        self.classes.get(&class).copied().unwrap_or(0)
    }

    /// Whether every message comes out as before, as far as it could be told.
    pub fn is_unchanged(&self) -> bool {
        [Class::NewlyBlocked, Class::NewlyPassed, Class::Changed]
            .iter()
            .all(|class| self.count(*class) == 0)
    }
}

/// Judges recorded messages by the rules in force and by a candidate, one after the other. Holds a few examples and counts.
pub struct Replay<'j> {
    current: &'j PolicySet,
    candidate: &'j PolicySet,
    report: Report,
}

impl<'j> Replay<'j> {
    /// Nothing is judged yet.
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

    /// A line that cannot be read.
    pub fn bad(&mut self) {
        self.report.bad_lines += 1;
    }

    /// Judges the message of a line; lines of other events have none. `whole` is the message as it was kept, if it was.
    pub fn add(&mut self, entry: &Entry, whole: Option<&Bytes>) {
        if entry.event() != "judged" {
            return;
        }
        self.report.messages += 1;
        if let Err(missing) = self.judge(entry, whole) {
            *self.report.not_replayed.entry(missing).or_default() += 1;
        }
    }

    /// What came of it.
    pub fn report(self) -> Report {
        self.report
    }

    fn judge(&mut self, entry: &Entry, whole: Option<&Bytes>) -> Result<(), Limitation> {
        let upstream = entry.get(member::upstream).unwrap_or_default();
        let current = self.current.of(&upstream);
        let candidate = self.candidate.of(&upstream);
        let (current, candidate) = current.zip(candidate).ok_or(Limitation::NoPolicy)?;
        let rebuilt = RecordedMessage::of(entry, whole)?;
        // What is masked cannot be judged: that nothing is found in it would say nothing.
        if let Some(lacks) = rebuilt.lacks {
            return Err(lacks);
        }
        let before = rebuilt.judge(&current, false);
        let after = rebuilt.judge(&candidate, false);
        self.report.replayed += 1;
        let had = rules(&before.inspection);
        let has = rules(&after.inspection);
        for rule in had.keys().chain(has.keys()).collect::<BTreeSet<_>>() {
            let hits = self.report.rules.entry((*rule).to_owned()).or_default();
            hits.before += u64::from(had.contains_key(rule));
            hits.after += u64::from(has.contains_key(rule));
        }
        let observes = [&current, &candidate].map(|policy| policy.mode == Mode::Observe);
        let recorded = if observes == [true, false] {
            recorded_verdict(entry)
        } else {
            recorded(entry)
        };
        let class = match observes {
            // Whoever observes is tried by what the rules would have done, unless it is the other who enforces.
            [true, true] | [false, false] => {
                class(&recorded, before.verdict, after.verdict, had == has)
            }
            [true, false] => class(&recorded, PASS, after.verdict, had == has),
            [false, true] if before.verdict != PASS => Class::NewlyPassed,
            [false, true] => class(&recorded, before.verdict, PASS, had == has),
        };
        let only_observed =
            observes == [false, true] && class == Class::NewlyPassed && after.verdict != PASS;
        self.report.only_observed += u64::from(only_observed);
        *self.report.classes.entry(class).or_default() += 1;
        let of_class = self
            .report
            .examples
            .iter()
            .filter(|example| example.class == class)
            .count();
        if class != Class::Unchanged && of_class < EXAMPLES {
            let more = has
                .keys()
                .filter(|rule| !had.contains_key(*rule))
                .map(|rule| format!("+{rule}"));
            let fewer = had
                .keys()
                .filter(|rule| !has.contains_key(*rule))
                .map(|rule| format!("-{rule}"));
            let rules = more.chain(fewer).collect();
            let [before, after] = match observes {
                [true, false] => [PASS, after.verdict],
                [false, true] => [before.verdict, PASS],
                _ => [before.verdict, after.verdict],
            };
            self.report
                .examples
                .push(example(entry, class, recorded, (before, after), rules));
        }
        Ok(())
    }
}

/// What was done then with a message.
fn recorded_verdict(entry: &Entry) -> String {
    entry.get(member::verdict).unwrap_or_default().into_owned()
}

/// What becomes of a message. A difference that the rules in force make as well is not the candidate's.
fn class(recorded: &str, before: &str, after: &str, same_findings: bool) -> Class {
    if before == after {
        return match (recorded == after, same_findings) {
            (true, true) => Class::Unchanged,
            (false, true) => Class::NotByCandidate,
            (_, false) => Class::Changed,
        };
    }
    match (recorded, after) {
        // The rules in force would do otherwise by now, and the candidate does as was done.
        (recorded, after) if recorded == after => Class::Changed,
        (_, "block") => Class::NewlyBlocked,
        (_, "pass") => Class::NewlyPassed,
        _ => Class::Changed,
    }
}

/// The rules that hit, and what each does: the strongest of it.
fn rules(inspection: &Inspection) -> BTreeMap<&str, &'static str> {
    // The strongest come first.
    inspection
        .findings
        .iter()
        .rev()
        .map(|finding| (finding.rule.as_str(), finding.action.name()))
        .collect()
}

fn example(
    entry: &Entry,
    class: Class,
    recorded: String,
    (before, after): (&str, &str),
    rules: Vec<String>,
) -> Example {
    let text = |name: &str| entry.text(name).map(|text| visible(&text));
    let shown = entry.arguments().map_or("", |shown| shown.raw());
    let mut start = visible(cut(shown, SHOWN_BYTES));
    if shown.len() > SHOWN_BYTES {
        start.push('…');
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
        shown: start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_rules_in_force_do_as_well_is_not_the_candidates() {
        assert_eq!(class("pass", "pass", "pass", true), Class::Unchanged);
        assert_eq!(class("pass", "pass", "pass", false), Class::Changed);
        assert_eq!(class("block", "pass", "pass", true), Class::NotByCandidate);
        assert_eq!(class("pass", "pass", "block", false), Class::NewlyBlocked);
        assert_eq!(class("ask", "ask", "block", false), Class::NewlyBlocked);
        assert_eq!(class("block", "block", "pass", false), Class::NewlyPassed);
        assert_eq!(
            class("rewrite", "rewrite", "pass", false),
            Class::NewlyPassed
        );
        assert_eq!(class("pass", "pass", "rewrite", false), Class::Changed);
        assert_eq!(class("pass", "block", "pass", false), Class::Changed);
    }
}
