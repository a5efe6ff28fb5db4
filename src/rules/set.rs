//! The compiled rules in force for one direction.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::detect::command::{ProgramTable, Programs, Script};
use crate::detect::{Cost, Detector, Match, Place};
use crate::document::Fault;
use crate::message::{Direction, hex};
use crate::text::{QuotedMentions, REJOINED, Text};

use super::{Action, Find, Only, Rule, kinds};

/// Number of bytes on each side of a match that `unless` is applied to, together with the match.
const UNLESS_BYTES: usize = 256;

/// The rules in force for one direction. Cheap to clone; equal sets of a library share their
/// automata.
#[derive(Clone, Debug)]
pub struct RuleSet(Arc<Compiled>);

#[derive(Debug)]
pub(super) struct Compiled {
    direction: Direction,
    rules: Vec<Arc<Rule>>,
    detectors: Vec<Box<dyn Detector>>,
    programs: Arc<Programs>,
    digest: String,
}

impl Compiled {
    /// Compiles rules of one direction.
    pub(super) fn new(
        direction: Direction,
        rules: Vec<Arc<Rule>>,
        programs: Arc<Programs>,
        digest: String,
    ) -> Result<Self, Vec<Fault>> {
        let faults = |rule_faults: Vec<(usize, String)>| {
            let fault = |(index, message): (usize, String)| {
                let rule = rules.get(index);
                let (file, line) = rule.map_or((String::new(), 0), |rule| {
                    (rule.file.to_string(), rule.line)
                });
                let message = format!("`{}`: {message}", rule.map_or("", |rule| rule.id.as_str()));
                Fault {
                    file,
                    line,
                    column: 1,
                    message,
                    hint: None,
                }
            };
            rule_faults.into_iter().map(fault).collect::<Vec<_>>()
        };
        let indexed = rules.iter().map(Arc::as_ref).enumerate();
        let detectors = kinds::detectors(indexed).map_err(faults)?;
        Ok(Self {
            direction,
            rules,
            detectors,
            programs,
            digest,
        })
    }
}

impl From<Arc<Compiled>> for RuleSet {
    fn from(compiled: Arc<Compiled>) -> Self {
        Self(compiled)
    }
}

impl RuleSet {
    /// Returns the rules, indexed by [`Match::rule`].
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.0.rules
    }

    /// Returns the direction of the messages that these rules apply to.
    pub fn direction(&self) -> Direction {
        self.0.direction
    }

    /// Returns the SHA-256 digest of everything in the rules that determines what they find and the
    /// action they take, in hex.
    pub fn digest(&self) -> &str {
        &self.0.digest
    }

    /// Returns the tables of programs, for parsers of commands.
    pub fn programs(&self) -> &Programs {
        &self.0.programs
    }

    /// Returns the cost of searching a text for each rule, if nothing matches.
    pub fn costs(&self, text: &str) -> impl Iterator<Item = (&Rule, Cost)> {
        let costs = self
            .0
            .detectors
            .iter()
            .flat_map(|detector| detector.costs(text));
        costs.filter_map(|(index, cost)| Some((&**self.rules().get(index)?, cost)))
    }

    /// Adds every match of a rule in force at `place`. Returns whether other matches were excluded
    /// because of the text around them.
    pub fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) -> bool {
        let before = matches.len();
        let any_excluded = self.find(text, place, matches);
        self.drop_quoted(before, text, place, matches) || any_excluded
    }

    /// Adds every match of a rule in force at `place`, quoted or not.
    fn find(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) -> bool {
        let before = matches.len();
        for detector in &self.0.detectors {
            detector.scan(text, place, matches);
        }
        add_repeats(before, text, matches);
        self.drop_excluded(before, text, place, matches)
    }

    /// Removes new matches of rules that spare quotations if they are not found in the text without
    /// its quotations, and adds those that are only found there; returns whether it has any. Words
    /// of a quotation can be a part of a sum, of a decoded reading and of what the model of wording
    /// scores.
    fn drop_quoted(
        &self,
        before: usize,
        text: &Text<'_>,
        place: &Place<'_>,
        matches: &mut Vec<Match>,
    ) -> bool {
        let rule = |hit: &Match| self.0.rules.get(hit.rule);
        let spares = |hit: &Match| rule(hit).is_some_and(|rule| rule.spares_quotes);
        if place.direction() != Direction::Inbound
            || place.inbound().hidden
            || !matches.iter().skip(before).any(spares)
        {
            return false;
        }
        let Some(unquoted) = QuotedMentions::new(text.raw()).without_mentions() else {
            return false;
        };
        let mut unquoted_matches = Vec::new();
        let unquoted = Text::new(unquoted);
        self.find(&unquoted, place, &mut unquoted_matches);
        let is_signal =
            |hit: &Match| rule(hit).is_some_and(|rule| matches!(*rule.find, Find::Signal(_)));
        // An order to say what a quotation says begins before it.
        let begins_before = |hit: &Match| {
            let is_plain = matches!(hit.reading, "plain" | "raw");
            let span = hit.span.as_ref().filter(|_| is_plain && !is_signal(hit));
            span.is_some_and(|span| begins_alike(text.raw(), unquoted.raw(), span))
        };
        // Signals are only reported beside the sums that they contribute to.
        let may_be_quoted = |hit: &Match| {
            spares(hit)
                || is_signal(hit) && rule(hit).is_some_and(|rule| rule.action == Action::Log)
        };
        let mut index = 0;
        matches.retain(|hit| {
            index += 1;
            index <= before || !may_be_quoted(hit) || begins_before(hit)
        });
        let kept: HashSet<(usize, Option<Range<usize>>)> = matches
            .iter()
            .skip(before)
            .map(|hit| (hit.rule, hit.span.clone()))
            .collect();
        let is_new = |hit: &Match| !kept.contains(&(hit.rule, hit.span.clone()));
        matches.extend(
            unquoted_matches
                .into_iter()
                .filter(|hit| may_be_quoted(hit) && is_new(hit)),
        );
        true
    }

    /// Adds every match of a rule in force at `place` that exists only in several strings of a call
    /// taken together.
    pub fn scan_pieces(&self, parts: &[&str], place: &Place<'_>, matches: &mut Vec<Match>) {
        let before = matches.len();
        for detector in &self.0.detectors {
            detector.scan_pieces(parts, place, matches);
        }
        if matches.len() > before {
            self.drop_excluded(before, &Text::new(parts.concat()), place, matches);
        }
    }

    /// Adds every match of a rule in force that also judges what a call writes to files, in a script
    /// that the call at `place` writes.
    pub fn scan_written(&self, script: &Script<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        let mut found = Vec::new();
        for detector in &self.0.detectors {
            detector.scan_script(script, &mut found);
        }
        found.retain(|hit| self.rules().get(hit.rule).is_some_and(|rule| rule.written));
        self.drop_excluded(0, &Text::new(""), place, &mut found);
        matches.append(&mut found);
    }

    /// Adds every match of a rule in force for the call as a whole.
    pub fn scan_call(&self, place: &Place<'_>, matches: &mut Vec<Match>) {
        let before = matches.len();
        for detector in &self.0.detectors {
            detector.scan_call(place, matches);
        }
        self.drop_excluded(before, &Text::new(""), place, matches);
    }

    /// Records the parts of `text`, which came from a server, that later checks depend on.
    pub fn learn(&self, text: &Text<'_>, place: &Place<'_>) {
        self.0
            .detectors
            .iter()
            .for_each(|detector| detector.learn(text, place));
    }

    /// Removes new matches in places where their rule does not apply, and those that their rule
    /// excludes; returns whether any were excluded.
    fn drop_excluded(
        &self,
        before: usize,
        text: &Text<'_>,
        place: &Place<'_>,
        matches: &mut Vec<Match>,
    ) -> bool {
        if matches.len() == before {
            return false;
        }
        let quoted = QuotedMentions::new(text.raw());
        let mut index = 0;
        let mut any_excluded = false;
        matches.retain(|hit| {
            index += 1;
            let Some(rule) = self.0.rules.get(hit.rule).filter(|_| index > before) else {
                return true;
            };
            let open = !place.inbound().hidden
                && (matches!(hit.reading, "plain" | "raw") || REJOINED.contains(&hit.reading));
            if !rule.only.admits(place, open) {
                return false;
            }
            let is_mention = || {
                let span = hit.span.as_ref();
                hit.is_quoted
                    || place.inbound().labelled_sample
                    || span.is_some_and(|span| text.is_attack_sample(span))
                    || open && span.is_some_and(|span| quoted.contains(span))
            };
            let excluded = is_excluded(rule, text, hit.span.as_ref())
                || rule.spares_quotes && !place.inbound().hidden && is_mention();
            any_excluded |= excluded;
            !excluded
        });
        any_excluded
    }

    /// Computes the digest of rules in this order and of tables of programs in addition to the
    /// built-in ones.
    pub(super) fn compute_digest<'p>(
        direction: Direction,
        rules: &[Arc<Rule>],
        programs: impl Iterator<Item = &'p ProgramTable>,
    ) -> String {
        let mut hash = Sha256::new();
        hash.update(direction.name());
        for rule in rules {
            let Rule {
                id,
                severity,
                action,
                only,
                digest,
                ..
            } = rule.as_ref();
            for part in [id.as_str(), severity.name(), action.name(), digest] {
                hash.update(part);
                hash.update("\n");
            }
            if *only != Only::default() {
                hash.update(format!("{only:?}\n"));
            }
        }
        programs.for_each(|table| hash.update(format!("{table:?}")));
        hex(&hash.finalize())
    }
}

/// Reports whether the first letter of a part is the same in two texts.
fn begins_alike(text: &str, other: &str, span: &Range<usize>) -> bool {
    let part = text.get(span.clone()).unwrap_or_default();
    let at = span.start + part.find(char::is_alphanumeric).unwrap_or_default();
    text.as_bytes().get(at) == other.as_bytes().get(at)
}

/// Copies each new match in a reading to the other spans that have the same reading.
fn add_repeats(before: usize, text: &Text<'_>, matches: &mut Vec<Match>) {
    let mut repeated = Vec::new();
    for reading in text.repeated_readings() {
        let is_within = |hit: &&Match| {
            hit.span.as_ref() == Some(&reading.span) && hit.reading.starts_with(reading.path)
        };
        for hit in matches.iter().skip(before).filter(is_within) {
            repeated.extend(reading.repeats.iter().map(|span| Match {
                span: Some(span.clone()),
                ..hit.clone()
            }));
        }
    }
    matches.append(&mut repeated);
}

/// Returns whether the text around a match excludes it.
fn is_excluded(rule: &Rule, text: &Text<'_>, span: Option<&Range<usize>>) -> bool {
    if rule.unless.is_empty() {
        return false;
    }
    let context = span.map_or(text.raw(), |span| surrounding_text(text.raw(), span));
    let context = Text::new(context);
    rule.unless
        .iter()
        .any(|regex| regex.is_match(context.plain()) || regex.is_match(context.raw()))
}

fn surrounding_text<'t>(text: &'t str, span: &Range<usize>) -> &'t str {
    let start = text.floor_char_boundary(span.start.saturating_sub(UNLESS_BYTES));
    let end = text.ceil_char_boundary(span.end.saturating_add(UNLESS_BYTES));
    text.get(start..end).unwrap_or(text)
}

/// Describes, in sentences, how a change of rules reduces protection: rules removed or disabled,
/// actions and severities lowered.
pub fn describe_weakening(old: &RuleSet, new: &RuleSet) -> Vec<String> {
    let mut changes = Vec::new();
    for rule in old.rules() {
        let id = &rule.id;
        let current = new
            .rules()
            .iter()
            .find(|current| current.id == *id || current.former_ids.contains(id));
        let Some(current) = current else {
            changes.push(format!(
                "{} rule `{id}` is no longer in force",
                old.direction().name()
            ));
            continue;
        };
        if current.action < rule.action {
            changes.push(format!(
                "rule `{id}` has the action `{}`, was `{}`",
                current.action.name(),
                rule.action.name()
            ));
        }
        if current.severity < rule.severity {
            changes.push(format!(
                "rule `{id}` has the severity `{}`, was `{}`",
                current.severity.name(),
                rule.severity.name()
            ));
        }
        if current.only != rule.only && current.only != Only::default() {
            changes.push(format!(
                "rule `{id}` applies elsewhere: its `only` has changed"
            ));
        }
        if current.unless.iter().any(|regex| {
            rule.unless
                .iter()
                .all(|other| other.source() != regex.source())
        }) {
            changes.push(format!("rule `{id}` excludes more: its `unless` has grown"));
        }
        if rule.written && !current.written {
            changes.push(format!("rule `{id}` no longer judges written files"));
        }
        if current.spares_quotes && !rule.spares_quotes {
            changes.push(format!(
                "rule `{id}` excludes more: passages that texts about attacks quote"
            ));
        }
    }
    changes
}
