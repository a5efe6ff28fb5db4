//! Searches for all signals at once, in every reading of a text, and adds them up.

mod around_anchors;

use std::ops::Range;

use super::negation::{has_near, is_negated, is_reported};
use super::reachable::ReachableSums;
use super::window::{Event, sort, windows};
use super::wording::{Model, is_english};
use super::{Spec, Sum, ordered};
use crate::detect::search::{Class, Engine, Phrase, Scan};
use crate::detect::{Match, Place};
use crate::message::{Direction, Role};
use crate::text::{QuotedMentions, REJOINED, Reading, Suspicion, Text};

/// Minimum length of a key that is examined.
const KEY_BYTES: usize = 40;
/// Maps a part of a reading to its place in the text.
type Locate<'l> = &'l dyn Fn(Range<usize>) -> Option<Range<usize>>;

/// All signal rules of a rule set, without the search for their anchors.
#[derive(Debug)]
pub(in crate::detect) struct Signals {
    /// The search for all phrases that are not anchors. Most texts have no anchor and no need of it.
    others: Engine,
    /// For each phrase: its rule, the number of its intent, and its weight.
    weights: Vec<(usize, u32, i32)>,
    /// Number of intents.
    intents: usize,
    /// Phrases that count depending on the command after them.
    command_phrases: Vec<usize>,
    /// Phrases that begin where a command is marked, and count only if it is harmful.
    harmful_phrases: Vec<usize>,
    /// Phrases that do not count after a negation.
    negatable_phrases: Vec<usize>,
    /// Phrases that do not count beside certain words, and these words.
    excluding_words: Vec<(usize, Vec<String>)>,
    sums: Vec<SumRule>,
    /// The model of wording, if a rule uses it.
    wording: Option<Wording>,
}

/// The model of wording and the rules that use it.
#[derive(Debug)]
struct Wording {
    model: Model,
    rules: Vec<WordingRule>,
}

/// A rule that uses the model of wording. It counts as a phrase.
#[derive(Debug)]
struct WordingRule {
    phrase: usize,
    /// Minimum scores of passages in English and in other languages.
    min_score: i32,
    min_score_not_english: i32,
}

/// A rule that adds up signals.
#[derive(Debug)]
pub(super) struct SumRule {
    rule: usize,
    pub(super) sum: Sum,
    /// For the number of each intent, whether the intent counts.
    counted_intents: Vec<bool>,
}

impl SumRule {
    pub(super) fn new(rule: usize, sum: Sum, counted_intents: Vec<bool>) -> Self {
        Self {
            rule,
            sum,
            counted_intents,
        }
    }

    /// Reports whether an event counts. Events that indicate a mention always do.
    fn counts(&self, event: &Event) -> bool {
        event.weight < 0 || self.counts_intent(event.intent)
    }

    /// Reports whether signals of an intent count.
    pub(super) fn counts_intent(&self, intent: u32) -> bool {
        self.counted_intents
            .get(intent as usize)
            .copied()
            .unwrap_or_default()
    }

    /// Returns the points that are added for a reading and a place.
    fn extra_points(&self, way: Option<Suspicion>, place: &Place<'_>) -> i32 {
        let reading = match way {
            None => 0,
            Some(Suspicion::Usual) => self.sum.encoded,
            Some(Suspicion::Odd) => self.sum.odd,
            Some(Suspicion::Disguise) => self.sum.disguise,
        };
        let hidden = if place.inbound().hidden {
            self.sum.hidden
        } else {
            0
        };
        reading + hidden
    }
}

impl Signals {
    /// Prepares the rules and adds their anchors to the phrases that are searched for in all texts.
    pub(in crate::detect) fn new<'s>(
        rules: &[(usize, &'s Spec)],
        phrases: &mut Vec<Phrase<'s>>,
    ) -> Self {
        let mut others = Vec::new();
        let mut weights = Vec::new();
        let mut command_phrases = Vec::new();
        let mut harmful_phrases = Vec::new();
        let mut negatable_phrases = Vec::new();
        let mut excluding_words = Vec::new();
        let mut wording_specs = Vec::new();
        let mut sum_specs: Vec<(usize, &Sum)> = Vec::new();
        let mut intents: Vec<&'s str> = Vec::new();
        let mut intent_number = |intent: &'s str| {
            let at = intents
                .iter()
                .position(|other| *other == intent)
                .unwrap_or(intents.len());
            if at == intents.len() {
                intents.push(intent);
            }
            u32::try_from(at).unwrap_or(u32::MAX)
        };
        for (rule, spec) in rules {
            match spec {
                Spec::Sum(sum) => sum_specs.push((*rule, sum)),
                Spec::Wording(wording) => {
                    wording_specs.push((wording, weights.len()));
                    weights.push((*rule, intent_number(&wording.intent), wording.weight));
                }
                Spec::Phrase(phrase) => {
                    let intent = intent_number(&phrase.intent);
                    let class = Class::of_signal(phrase.weight, phrase.orders_command);
                    if phrase.orders_command {
                        command_phrases.push(weights.len());
                    }
                    if phrase.harmful_command {
                        harmful_phrases.push(weights.len());
                    }
                    if phrase.negatable {
                        negatable_phrases.push(weights.len());
                    }
                    if !phrase.without.is_empty() {
                        excluding_words.push((weights.len(), phrase.without.clone()));
                    }
                    let phrases = if class == Class::Anchor {
                        &mut *phrases
                    } else {
                        &mut others
                    };
                    phrases.push(Phrase {
                        number: weights.len(),
                        class,
                        spec: &phrase.search,
                    });
                    weights.push((*rule, intent, phrase.weight));
                }
            }
        }
        let counts = |sum: &Sum, intent: &str| {
            let is_in = |list: &[String]| list.iter().any(|listed| listed == intent);
            (sum.intents.is_empty() || is_in(&sum.intents)) && !is_in(&sum.except)
        };
        let sums = sum_specs.into_iter().map(|(rule, sum)| {
            let counted_intents = intents.iter().map(|intent| counts(sum, intent)).collect();
            SumRule::new(rule, sum.clone(), counted_intents)
        });
        let sums = sums.collect();
        let model = Model::builtin().filter(|_| !wording_specs.is_empty());
        let wording = model.map(|model| {
            let rules = wording_specs
                .into_iter()
                .map(|(spec, phrase)| WordingRule {
                    phrase,
                    min_score: model.threshold(spec.per_100k),
                    min_score_not_english: model.threshold(spec.per_100k_not_english),
                })
                .collect();
            Wording { model, rules }
        });
        Self {
            others: Engine::new(&others),
            weights,
            intents: intents.len(),
            command_phrases,
            harmful_phrases,
            negatable_phrases,
            excluding_words,
            sums,
            wording,
        }
    }

    /// Returns the rule of a phrase.
    pub(in crate::detect) fn rule(&self, phrase: usize) -> Option<usize> {
        self.weights.get(phrase).map(|(rule, ..)| *rule)
    }

    /// Returns the signals of a text, sorted. Signals that cannot contribute to a sum may be
    /// missing.
    fn events(
        &self,
        searched: &SearchedText<'_>,
        place: &Place<'_>,
        way: Option<Suspicion>,
    ) -> Vec<Event> {
        let text = searched.scan.text;
        let mut events = Vec::new();
        self.find_anchors(searched, place, &mut events);
        if let Some(wording) = &self.wording {
            self.add_wording_events(wording, text, &mut events);
        }
        if place.trial {
            self.find_all_others(text, &(0..text.len()), place, &mut events);
        } else {
            self.find_others(text, place, way, &mut events);
        }
        sort(&mut events);
        events
    }

    fn add_wording_events(&self, wording: &Wording, text: &str, events: &mut Vec<Event>) {
        let min_score = wording.rules.iter().map(|rule| rule.min_score).min();
        let not_english = wording.rules.iter().map(|rule| rule.min_score_not_english);
        let Some((min_score, not_english)) = min_score.zip(not_english.min()) else {
            return;
        };
        for (span, score) in wording.model.windows(text, min_score, not_english) {
            let is_english = text.get(span.clone()).is_some_and(is_english);
            for rule in &wording.rules {
                let min_score = if is_english {
                    rule.min_score
                } else {
                    rule.min_score_not_english
                };
                let Some((_, intent, weight)) = self.weights.get(rule.phrase) else {
                    continue;
                };
                if score < min_score {
                    continue;
                }
                let number = u32::try_from(rule.phrase).unwrap_or(u32::MAX);
                let mut event = Event::new(span.clone(), number, (*intent, *weight), false);
                event.is_estimate = true;
                events.push(event);
            }
        }
    }

    /// Adds all anchors of a text.
    fn find_anchors(
        &self,
        SearchedText { scan, engine }: &SearchedText<'_>,
        place: &Place<'_>,
        events: &mut Vec<Event>,
    ) {
        let text = scan.text;
        engine.search(scan, Class::Anchor, |phrase, span| {
            events.extend(self.event(text, phrase, span, &(0..text.len()), place));
        });
    }

    /// Returns the signal of a phrase that was found in a region; `None` if the phrase requires a
    /// command that it does not order, or is negated. A phrase without a span, whose search could not be
    /// completed, counts everywhere.
    fn event(
        &self,
        text: &str,
        phrase: usize,
        span: Option<Range<usize>>,
        region: &Range<usize>,
        place: &Place<'_>,
    ) -> Option<Event> {
        let (_, intent, weight) = self.weights.get(phrase)?;
        let everywhere = span.is_none() && *weight > 0;
        let mut span = span.unwrap_or_else(|| region.clone());
        if self.negatable_phrases.contains(&phrase) && !everywhere && is_negated(text, span.start) {
            return None;
        }
        if *weight > 0 && !everywhere && is_reported(text, span.start) {
            return None;
        }
        let words = self
            .excluding_words
            .iter()
            .find(|(excluding, _)| *excluding == phrase);
        if words.is_some_and(|(_, words)| !everywhere && has_near(text, &span, words)) {
            return None;
        }
        let must_be_harmful = self.harmful_phrases.contains(&phrase);
        if must_be_harmful || self.command_phrases.contains(&phrase) {
            let command = if must_be_harmful {
                ordered::marked_command(text, span.start)
            } else {
                ordered::command(text, span.end)
            };
            let (ordered_command, rules) = text
                .get(command.clone())
                .zip(place.inbound().ordered_commands)
                .filter(|_| !everywhere)?;
            let counts = if must_be_harmful {
                rules.is_harmful(ordered_command)
            } else {
                rules.refusing_rule(ordered_command).is_some()
            };
            if !counts {
                return None;
            }
            span.end = command.end;
        }
        let number = u32::try_from(phrase).unwrap_or(u32::MAX);
        Some(Event::new(span, number, (*intent, *weight), everywhere))
    }
}

/// A text in which anchors have been searched for.
pub(in crate::detect) struct SearchedText<'s> {
    pub(in crate::detect) scan: &'s Scan<'s>,
    pub(in crate::detect) engine: &'s Engine,
}

impl Signals {
    /// Reports whether signals are searched for in a text at all.
    pub(in crate::detect) fn applies_to(&self, text: &Text<'_>, place: &Place<'_>) -> bool {
        place.direction() == Direction::Inbound
            && (place.role != Role::Key || text.raw().len() >= KEY_BYTES)
    }

    /// Adds the sums that the plain reading of a text reaches.
    pub(in crate::detect) fn judge_plain(
        &self,
        searched: &SearchedText<'_>,
        text: &Text<'_>,
        place: &Place<'_>,
        matches: &mut Vec<Match>,
    ) {
        self.judge(
            searched,
            text,
            place,
            (None, &|part| Some(text.locate(part))),
            &|part| Some(text.locate(part)),
            matches,
        );
    }

    /// Adds the sums that another reading of a text reaches.
    pub(in crate::detect) fn judge_reading(
        &self,
        searched: &SearchedText<'_>,
        (text, reading): (&Text<'_>, &Reading),
        place: &Place<'_>,
        matches: &mut Vec<Match>,
    ) {
        // A reading that only removes marks is not a disguise.
        let way = Some(reading.suspicion).filter(|_| !REJOINED.contains(&reading.path));
        let mut reading_matches = Vec::new();
        self.judge(
            searched,
            text,
            place,
            (way, &|part| text.locate_in(reading, &part)),
            &|part| text.source_in(reading, &part),
            &mut reading_matches,
        );
        reading_matches.dedup_by(|a, b| a.rule == b.rule && a.span == b.span);
        matches.extend(reading_matches.into_iter().map(|told| Match {
            reading: reading.path,
            ..told
        }));
    }

    /// Adds the sums that a reading reaches. `locate` maps a part of the reading to its place in
    /// the text, or returns `None` if it does not differ from the text itself; `source` maps each
    /// part whose place is known.
    fn judge(
        &self,
        searched: &SearchedText<'_>,
        text: &Text<'_>,
        place: &Place<'_>,
        (way, locate): (Option<Suspicion>, Locate<'_>),
        source: Locate<'_>,
        matches: &mut Vec<Match>,
    ) {
        let mut events = self.events(searched, place, way);
        if events.is_empty() {
            return;
        }
        if place.trial {
            matches.extend(events.iter().filter_map(|event| {
                let span = locate(event.span())?;
                Some(Match::new(
                    self.rule(event.phrase as usize)?,
                    Some(span),
                    "plain",
                ))
            }));
        }
        let before = matches.len();
        self.match_all_sums(
            searched.scan.text,
            &mut events,
            place,
            (way, locate),
            matches,
        );
        if matches.len() == before || place.trial || place.inbound().hidden {
            return;
        }
        // Samples of attacks are excluded before anything is added up, so that they do not mask
        // signals next to them.
        let is_read_by_people = way.is_none_or(|way| way == Suspicion::Usual);
        let quoted = QuotedMentions::new(searched.scan.text);
        let quoted_as_received = QuotedMentions::new(text.raw());
        let is_raw = std::ptr::eq(searched.scan.text, text.raw());
        let is_mention = |quoted: &QuotedMentions<'_>, event: &Event, span: &Range<usize>| {
            quoted.contains(span) || event.is_estimate && quoted.fills(span)
        };
        let is_sample = |event: &Event| {
            if event.everywhere {
                return false;
            }
            let span = source(event.span());
            span.as_ref()
                .is_some_and(|span| text.is_attack_sample(span))
                || is_read_by_people
                    && (is_mention(&quoted, event, &event.span())
                        || !is_raw
                            && span
                                .is_some_and(|span| is_mention(&quoted_as_received, event, &span)))
        };
        let count = events.len();
        events.retain(|event| event.weight < 0 || !is_sample(event));
        if events.len() < count {
            matches.truncate(before);
            events
                .iter_mut()
                .for_each(|event| event.is_reported = false);
            self.match_all_sums(
                searched.scan.text,
                &mut events,
                place,
                (way, locate),
                matches,
            );
        }
    }

    fn match_all_sums(
        &self,
        text: &str,
        events: &mut [Event],
        place: &Place<'_>,
        (way, locate): (Option<Suspicion>, Locate<'_>),
        matches: &mut Vec<Match>,
    ) {
        for sums in self
            .sums
            .chunk_by(|a, b| a.counted_intents == b.counted_intents)
        {
            self.match_sums(sums, text, events, place, (way, locate), matches);
        }
    }

    /// Adds the sums that windows reach. All of `sums` count the same events.
    fn match_sums(
        &self,
        sums: &[SumRule],
        text: &str,
        events: &mut [Event],
        place: &Place<'_>,
        (way, locate): (Option<Suspicion>, Locate<'_>),
        matches: &mut Vec<Match>,
    ) {
        let Some(first) = sums.first() else { return };
        let new_match = |rule: usize, span| Match::new(rule, span, "plain");
        let longest = events
            .iter()
            .map(|event| event.span().len())
            .max()
            .unwrap_or_default();
        for window in windows(text, events, |event| first.counts(event)) {
            let begin =
                events.partition_point(|event| event.span().start + longest <= window.span.start);
            let end = events.partition_point(|event| event.span().start < window.span.end);
            let Some(nearby) = events.get_mut(begin..end) else {
                continue;
            };
            let is_part = |event: &Event| {
                event.span().end > window.span.start && event.weight > 0 && first.counts(event)
            };
            let is_located = |event: &Event| is_part(event) && locate(event.span()).is_some();
            let Some(span) = locate(window.span.clone()).filter(|_| nearby.iter().any(is_located))
            else {
                continue;
            };
            let mut fired = false;
            for sum in sums {
                if window.points + sum.extra_points(way, place) >= sum.sum.points {
                    fired = true;
                    matches.push(new_match(sum.rule, Some(span.clone())));
                }
            }
            if fired && !place.trial {
                // Report the signals that contributed, so that a person can see the reason. Each is
                // reported once, whichever sum it contributes to.
                for event in nearby
                    .iter_mut()
                    .filter(|event| is_part(event) && !event.is_reported)
                {
                    let Some(rule) = self.rule(event.phrase as usize) else {
                        continue;
                    };
                    event.is_reported = true;
                    matches.push(new_match(
                        rule,
                        locate(event.span()).or_else(|| Some(span.clone())),
                    ));
                }
            }
        }
    }
}
