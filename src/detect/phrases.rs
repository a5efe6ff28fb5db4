//! The detector of the kinds `pattern` and `signal`: one pass over each reading of a text for the
//! rules of both.

use std::collections::HashSet;
use std::ops::Range;

use super::search::{Class, Cost, Engine, Phrase, Scan, Spec};
use super::signal::{self, SearchedText, Signals};
use super::{Detector, Match, Place, Surface, work};
use crate::message::Direction;
use crate::text::{QuotedMentions, Suspicion, Text};

/// A pattern rule: its number, its regexes, and the surfaces that it is limited to, if any.
pub(crate) type PatternRule<'s> = (usize, &'s Spec, &'s [Surface]);

/// All rules of both kinds in a rule set.
#[derive(Debug)]
pub(crate) struct Phrases {
    tables: Vec<Table>,
}

/// The rules that apply to the same surfaces. Separate tables keep rules for definitions from
/// costing time on other texts.
#[derive(Debug)]
struct Table {
    /// The surfaces; empty for all of them.
    surfaces: Vec<Surface>,
    engine: Engine,
    /// The signals. All of them are in the table for all surfaces, since a signal can add up with
    /// any other.
    signals: Option<Signals>,
}

impl Phrases {
    /// Prepares the rules for searching.
    pub(crate) fn new(patterns: Vec<PatternRule<'_>>, signals: &[(usize, &signal::Spec)]) -> Self {
        let mut places: Vec<&[Surface]> = vec![&[]];
        for (_, _, surfaces) in &patterns {
            if !places.contains(surfaces) {
                places.push(surfaces);
            }
        }
        let tables = places.into_iter().map(|place| {
            let table_patterns = patterns
                .iter()
                .filter(|(_, _, surfaces)| *surfaces == place);
            let mut phrases: Vec<Phrase<'_>> = table_patterns
                .map(|(number, spec, _)| Phrase {
                    number: *number,
                    class: Class::Pattern,
                    spec,
                })
                .collect();
            let signals = (place.is_empty() && !signals.is_empty())
                .then(|| Signals::new(signals, &mut phrases));
            Table {
                surfaces: place.to_vec(),
                engine: Engine::new(&phrases),
                signals,
            }
        });
        Self {
            tables: tables.collect(),
        }
    }
}

impl Detector for Phrases {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        for table in &self.tables {
            if table.surfaces.is_empty() || table.surfaces.contains(&place.surface) {
                table.scan(text, place, matches);
            }
        }
    }

    fn costs(&self, text: &str) -> Vec<(usize, Cost)> {
        self.tables
            .iter()
            .flat_map(|table| table.costs(text))
            .collect()
    }
}

impl Table {
    fn costs(&self, text: &str) -> impl Iterator<Item = (usize, Cost)> {
        let scan = self.engine.scan(text);
        let patterns = self.engine.costs(&scan, Class::Pattern);
        let signals = self.signals.iter().flat_map(move |signals| {
            let anchors = self.engine.costs(&scan, Class::Anchor);
            let costs = anchors.into_iter().chain(signals.costs_of_others(text));
            costs.filter_map(|(number, cost)| Some((signals.rule(number)?, cost)))
        });
        patterns.into_iter().chain(signals)
    }

    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        let signals = self
            .signals
            .as_ref()
            .filter(|signals| signals.applies_to(text, place));
        let mut signal_matches = Vec::new();
        let scan = self.engine.scan(text.plain());
        self.match_plain(text, &scan, matches);
        if let Some(signals) = signals {
            signals.judge_plain(&self.searched_text(&scan), text, place, &mut signal_matches);
        }
        drop(scan);
        if place.direction() == Direction::Inbound {
            for reading in text.readings() {
                let scan = self.engine.scan(&reading.text);
                let mut reported = HashSet::new();
                let quoted = QuotedMentions::new(&reading.text);
                self.engine.search(&scan, Class::Pattern, |rule, part| {
                    let part = part.unwrap_or(0..reading.text.len());
                    let span = text.locate_in(reading, &part);
                    let is_quoted = reading.suspicion == Suspicion::Usual
                        && span.as_ref() == Some(&reading.span)
                        && quoted.contains(&part);
                    if span.is_some() && reported.insert((rule, span.clone(), is_quoted)) {
                        matches.push(Match {
                            is_quoted,
                            ..Match::new(rule, span, reading.path)
                        });
                    }
                });
                if let Some(signals) = signals {
                    signals.judge_reading(
                        &self.searched_text(&scan),
                        (text, reading),
                        place,
                        &mut signal_matches,
                    );
                }
            }
        }
        self.match_raw(text, matches);
        matches.append(&mut signal_matches);
    }

    fn searched_text<'s>(&'s self, scan: &'s Scan<'s>) -> SearchedText<'s> {
        SearchedText {
            scan,
            engine: &self.engine,
        }
    }

    fn match_plain(&self, text: &Text<'_>, scan: &Scan<'_>, matches: &mut Vec<Match>) {
        self.engine.search(scan, Class::Pattern, |rule, span| {
            let reading = reading_name(&span, "plain");
            let span = span.map(|span| text.locate(span));
            matches.push(Match::new(rule, span, reading));
        });
    }

    /// Reports matches that are only found in the text as received.
    fn match_raw(&self, text: &Text<'_>, matches: &mut Vec<Match>) {
        let raw = text.raw();
        if std::ptr::eq(text.plain(), raw) {
            return;
        }
        let mut reported: HashSet<(usize, Option<Range<usize>>)> = matches
            .iter()
            .map(|hit| (hit.rule, hit.span.clone()))
            .collect();
        self.search(raw, |rule, span| {
            if reported.insert((rule, span.clone())) {
                matches.push(Match::new(rule, span.clone(), reading_name(&span, "raw")));
            }
        });
        if let Some(bare) = text.bare() {
            self.search(bare, |rule, span| {
                if reported.insert((rule, None)) {
                    matches.push(Match::new(rule, None, reading_name(&span, "bare")));
                }
            });
        }
    }

    fn search(&self, text: &str, report: impl FnMut(usize, Option<Range<usize>>)) {
        self.engine
            .search(&self.engine.scan(text), Class::Pattern, report);
    }
}

/// Returns the reading to report: a match without a span means that the text exceeded the work
/// limit.
fn reading_name(span: &Option<Range<usize>>, default: &'static str) -> &'static str {
    if span.is_some() {
        default
    } else {
        work::PATTERN
    }
}
