//! The compiled rules in force for one direction.

use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::detect::command::{ProgramTable, Programs};
use crate::detect::{Cost, Detector, Match, Place};
use crate::document::Fault;
use crate::message::{Direction, hex};
use crate::text::{QuotedMentions, REJOINED, Text};

use super::{Only, Rule, kinds};

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
        let faults = |wrong: Vec<(usize, String)>| {
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
            wrong.into_iter().map(fault).collect::<Vec<_>>()
        };
        let numbered = rules.iter().map(Arc::as_ref).enumerate();
        let detectors = kinds::detectors(numbered).map_err(faults)?;
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
    pub fn scan(&self, text: &Text<'_>, place: &Place<'_>, found: &mut Vec<Match>) -> bool {
        let before = found.len();
        for detector in &self.0.detectors {
            detector.scan(text, place, found);
        }
        add_repeats(before, text, found);
        self.drop_excluded(before, text, place, found)
    }

    /// Adds every match of a rule in force at `place` that exists only in several strings of a call
    /// taken together.
    pub fn scan_pieces(&self, parts: &[&str], place: &Place<'_>, found: &mut Vec<Match>) {
        let before = found.len();
        for detector in &self.0.detectors {
            detector.scan_pieces(parts, place, found);
        }
        if found.len() > before {
            self.drop_excluded(before, &Text::new(parts.concat()), place, found);
        }
    }

    /// Adds every match of a rule in force for the call as a whole.
    pub fn scan_call(&self, place: &Place<'_>, found: &mut Vec<Match>) {
        let before = found.len();
        for detector in &self.0.detectors {
            detector.scan_call(place, found);
        }
        self.drop_excluded(before, &Text::new(""), place, found);
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
        found: &mut Vec<Match>,
    ) -> bool {
        if found.len() == before {
            return false;
        }
        let quoted = QuotedMentions::new(text.raw());
        let mut index = 0;
        let mut excused = false;
        found.retain(|hit| {
            index += 1;
            let Some(rule) = self.0.rules.get(hit.rule).filter(|_| index > before) else {
                return true;
            };
            let open = !place.inbound().hidden
                && (matches!(hit.reading, "plain" | "raw") || REJOINED.contains(&hit.reading));
            if !rule.only.admits(place, open) {
                return false;
            }
            let mentions = || {
                open && is_mention(rule, &quoted, hit)
                    || !place.inbound().hidden && is_sample(rule, text, hit)
            };
            let excuses = is_excused(rule, text, hit.span.as_ref()) || mentions();
            excused |= excuses;
            !excuses
        });
        excused
    }

    /// Computes the digest of rules in this order and of tables of programs in addition to the
    /// built-in ones.
    pub(super) fn digest_of<'p>(
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

/// Copies each new match in a reading to the other spans that have the same reading.
fn add_repeats(before: usize, text: &Text<'_>, found: &mut Vec<Match>) {
    let mut repeated = Vec::new();
    for reading in text.repeated_readings() {
        let is_within = |hit: &&Match| {
            hit.span.as_ref() == Some(&reading.span) && hit.reading.starts_with(reading.path)
        };
        for hit in found.iter().skip(before).filter(is_within) {
            repeated.extend(reading.repeats.iter().map(|span| Match {
                span: Some(span.clone()),
                ..hit.clone()
            }));
        }
    }
    found.append(&mut repeated);
}

/// Returns whether a rule excludes quotations in texts about attacks and the match is such a
/// quotation.
fn is_mention(rule: &Rule, quoted: &QuotedMentions<'_>, hit: &Match) -> bool {
    rule.spares_quotes && hit.span.as_ref().is_some_and(|span| quoted.hold(span))
}

/// Returns whether a rule excludes samples of attacks and the match is in one.
fn is_sample(rule: &Rule, text: &Text<'_>, hit: &Match) -> bool {
    rule.spares_quotes
        && hit
            .span
            .as_ref()
            .is_some_and(|span| text.is_attack_sample(span))
}

/// Returns whether the text around a match excludes it.
fn is_excused(rule: &Rule, text: &Text<'_>, span: Option<&Range<usize>>) -> bool {
    if rule.unless.is_empty() {
        return false;
    }
    let around = span.map_or(text.raw(), |span| around(text.raw(), span));
    let around = Text::new(around);
    rule.unless
        .iter()
        .any(|regex| regex.is_match(around.plain()) || regex.is_match(around.raw()))
}

fn around<'t>(text: &'t str, span: &Range<usize>) -> &'t str {
    let start = text.floor_char_boundary(span.start.saturating_sub(UNLESS_BYTES));
    let end = text.ceil_char_boundary(span.end.saturating_add(UNLESS_BYTES));
    text.get(start..end).unwrap_or(text)
}

/// Describes, in sentences, how a change of rules reduces protection: rules removed or disabled,
/// actions and severities lowered.
pub fn weakened(old: &RuleSet, new: &RuleSet) -> Vec<String> {
    let mut told = Vec::new();
    for rule in old.rules() {
        let id = &rule.id;
        let now = new
            .rules()
            .iter()
            .find(|now| now.id == *id || now.was.contains(id));
        let Some(now) = now else {
            told.push(format!(
                "{} rule `{id}` is no longer in force",
                old.direction().name()
            ));
            continue;
        };
        if now.action < rule.action {
            told.push(format!(
                "rule `{id}` has the action `{}`, was `{}`",
                now.action.name(),
                rule.action.name()
            ));
        }
        if now.severity < rule.severity {
            told.push(format!(
                "rule `{id}` has the severity `{}`, was `{}`",
                now.severity.name(),
                rule.severity.name()
            ));
        }
        if now.only != rule.only && now.only != Only::default() {
            told.push(format!(
                "rule `{id}` applies elsewhere: its `only` has changed"
            ));
        }
        if now.unless.iter().any(|spare| {
            rule.unless
                .iter()
                .all(|before| before.source() != spare.source())
        }) {
            told.push(format!("rule `{id}` excludes more: its `unless` has grown"));
        }
        if now.spares_quotes && !rule.spares_quotes {
            told.push(format!(
                "rule `{id}` excludes more: passages that texts about attacks quote"
            ));
        }
    }
    told
}
