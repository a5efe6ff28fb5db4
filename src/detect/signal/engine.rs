//! Looks for all signals at once, in every reading of a text, and adds them up.

use std::ops::Range;

use super::window::{Event, Window, windows};
use super::{Spec, Sum, ordered};
use crate::detect::search::{Class, Engine, Phrase, Scan};
use crate::detect::{Match, Place};
use crate::message::{Direction, Role};
use crate::text::{REJOINED, Reading, Text, Way};

/// Phrases worth so much are anchors: nothing adds up without one of them, so the others are looked for around them only.
const ANCHOR: i32 = 32;
/// Shorter keys are not looked at.
const KEY_BYTES: usize = 40;
/// How far around.
const AROUND_BYTES: usize = 700;

/// The place in a text of a part of one of its readings.
type Locate<'l> = &'l dyn Fn(Range<usize>) -> Option<Range<usize>>;

/// All signal rules of a set, without what finds their phrases.
#[derive(Debug)]
pub(in crate::detect) struct Signals {
    /// For each phrase: the rule, the number of its intent, its weight.
    weights: Vec<(usize, usize, i32)>,
    /// Phrases that count with the command after them.
    ordering: Vec<usize>,
    sums: Vec<SumRule>,
}

/// A rule that adds up signals.
#[derive(Debug)]
struct SumRule {
    rule: usize,
    sum: Sum,
    /// The numbers of the intents that count; all, if there are none.
    intents: Vec<usize>,
    /// The numbers of those that do not.
    except: Vec<usize>,
}

impl Signals {
    /// Adds the phrases to those that are searched for.
    pub(in crate::detect) fn new<'s>(rules: &[(usize, &'s Spec)], phrases: &mut Vec<Phrase<'s>>) -> Self {
        let (mut weights, mut sums, mut ordering) = (Vec::new(), Vec::new(), Vec::new());
        let mut intents: Vec<&'s str> = Vec::new();
        let mut number = |intent: &'s str| {
            intents.iter().position(|known| *known == intent).unwrap_or_else(|| {
                intents.push(intent);
                intents.len() - 1
            })
        };
        for (rule, spec) in rules {
            match spec {
                Spec::Sum(sum) => {
                    let intents = sum.intents.iter().map(|intent| number(intent)).collect();
                    let except = sum.except.iter().map(|intent| number(intent)).collect();
                    sums.push(SumRule { rule: *rule, sum: sum.clone(), intents, except });
                }
                Spec::Phrase(phrase) => {
                    let intent = number(&phrase.intent);
                    // Texts are full of commands to run: only those beside other signals are looked at.
                    let is_anchor = phrase.weight >= ANCHOR && !phrase.orders_command;
                    let class = if is_anchor { Class::Anchor } else { Class::Other };
                    if phrase.orders_command {
                        ordering.push(weights.len());
                    }
                    phrases.push(Phrase { number: weights.len(), class, spec: &phrase.search });
                    weights.push((*rule, intent, phrase.weight));
                }
            }
        }
        Self { weights, ordering, sums }
    }

    /// The rule of a phrase.
    pub(in crate::detect) fn rule(&self, phrase: usize) -> Option<usize> {
        self.weights.get(phrase).map(|(rule, ..)| *rule)
    }

    /// The windows of a text that come to something.
    fn windows(&self, searched: &Searched<'_>, place: &Place<'_>) -> (Vec<Event>, Vec<Window>) {
        let text = searched.text;
        let mut events = Vec::new();
        self.find(searched, Class::Anchor, 0..text.len(), place, &mut events);
        let regions = if place.trial { std::iter::once(0..text.len()).collect() } else { around(text, &events) };
        for region in regions {
            self.find(searched, Class::Other, region, place, &mut events);
        }
        let windows = windows(text, &mut events);
        (events, windows)
    }

    fn find(&self, searched: &Searched<'_>, class: Class, region: Range<usize>, place: &Place<'_>, events: &mut Vec<Event>) {
        searched.engine.search(searched.scan, class, searched.text, region.clone(), |phrase, span| {
            let Some((_, intent, weight)) = self.weights.get(phrase) else { return };
            // What could not be followed to its end counts everywhere.
            let everywhere = span.is_none() && *weight > 0;
            let mut span = span.unwrap_or_else(|| region.clone());
            if self.ordering.contains(&phrase) {
                let command = ordered::command(searched.text, span.end);
                let judged = searched.text.get(command.clone()).zip(place.ordered).filter(|_| !everywhere);
                if judged.is_none_or(|(command, rules)| rules.refused_by(command).is_none()) {
                    return;
                }
                span.end = command.end;
            }
            events.push(Event { span, phrase, intent: *intent, weight: *weight, everywhere });
        });
    }
}

/// A text in which phrases have been looked for.
pub(in crate::detect) struct Searched<'s> {
    pub(in crate::detect) text: &'s str,
    pub(in crate::detect) scan: &'s Scan,
    pub(in crate::detect) engine: &'s Engine,
}

/// The parts of a text around signals, whole characters.
fn around(text: &str, events: &[Event]) -> Vec<Range<usize>> {
    let mut spans: Vec<&Range<usize>> = events.iter().map(|event| &event.span).collect();
    spans.sort_by_key(|span| span.start);
    let mut regions: Vec<Range<usize>> = Vec::new();
    for span in spans {
        let start = text.floor_char_boundary(span.start.saturating_sub(AROUND_BYTES));
        let end = text.floor_char_boundary(span.end.saturating_add(AROUND_BYTES));
        match regions.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(end),
            _ => regions.push(start..end),
        }
    }
    regions
}

impl Signals {
    /// Whether signals are looked for in a text at all.
    pub(in crate::detect) fn look_at(&self, text: &Text<'_>, place: &Place<'_>) -> bool {
        place.direction == Direction::Inbound && (place.role != Role::Key || text.raw().len() >= KEY_BYTES)
    }

    /// Adds what adds up in the plain reading of a text.
    pub(in crate::detect) fn judge_plain(
        &self,
        searched: &Searched<'_>,
        text: &Text<'_>,
        place: &Place<'_>,
        found: &mut Vec<Match>,
    ) {
        let before = found.len();
        self.judge(searched, place, (None, &Some), found);
        for told in found.iter_mut().skip(before) {
            told.span = told.span.take().map(|span| text.locate(span));
        }
    }

    /// Adds what adds up in another reading of a text.
    pub(in crate::detect) fn judge_reading(
        &self,
        searched: &Searched<'_>,
        (text, reading): (&Text<'_>, &Reading),
        place: &Place<'_>,
        found: &mut Vec<Match>,
    ) {
        // A reading that only leaves marks out is no disguise.
        let way = Some(reading.way).filter(|_| !REJOINED.contains(&reading.path));
        let mut told = Vec::new();
        self.judge(searched, place, (way, &|part| text.locate_in(reading, &part)), &mut told);
        told.dedup_by(|a, b| a.rule == b.rule && a.span == b.span);
        found.extend(told.into_iter().map(|told| Match { reading: reading.path, ..told }));
    }

    /// `locate` gives the place in the text of a part of this reading; `None` where it is no other than in the text itself.
    fn judge(&self, searched: &Searched<'_>, place: &Place<'_>, (way, locate): (Option<Way>, Locate<'_>), told: &mut Vec<Match>) {
        let (events, windows) = self.windows(searched, place);
        let found = |rule: usize, span| Match { rule, span, reading: "plain" };
        if place.trial {
            told.extend(events.iter().filter_map(|event| {
                let (rule, ..) = self.weights.get(event.phrase)?;
                Some(found(*rule, Some(locate(event.span.clone())?)))
            }));
        }
        for sums in self.sums.chunk_by(|a, b| (&a.intents, &a.except) == (&b.intents, &b.except)) {
            let Some(SumRule { intents, except, .. }) = sums.first() else { continue };
            let counts = |event: &Event| {
                let named = intents.is_empty() || intents.contains(&event.intent);
                event.weight < 0 || named && !except.contains(&event.intent)
            };
            if events.iter().all(counts) {
                self.add_up(sums, (&events, &windows), place, (way, locate), told);
            } else {
                let mut events: Vec<Event> = events.iter().filter(|event| counts(event)).cloned().collect();
                let windows = super::window::windows(searched.text, &mut events);
                self.add_up(sums, (&events, &windows), place, (way, locate), told);
            }
        }
    }

    /// Adds the sums that windows reach.
    fn add_up(
        &self,
        sums: &[SumRule],
        (events, windows): (&[Event], &[Window]),
        place: &Place<'_>,
        (way, locate): (Option<Way>, Locate<'_>),
        told: &mut Vec<Match>,
    ) {
        let found = |rule: usize, span| Match { rule, span, reading: "plain" };
        for window in windows {
            let within = |event: &&Event| event.span.start < window.span.end && event.span.end > window.span.start;
            let mut parts = events.iter().filter(within).filter(|event| event.weight > 0);
            let span = locate(window.span.clone()).filter(|_| parts.any(|event| locate(event.span.clone()).is_some()));
            if span.is_none() {
                continue;
            }
            let mut fired = false;
            for SumRule { rule, sum, .. } in sums {
                let extra = match way {
                    None => 0,
                    Some(Way::Usual) => sum.encoded,
                    Some(Way::Odd) => sum.odd,
                    Some(Way::Disguise) => sum.disguise,
                } + if place.hidden { sum.hidden } else { 0 };
                if window.points + extra >= sum.points {
                    fired = true;
                    told.push(found(*rule, span.clone()));
                }
            }
            if fired && !place.trial {
                // What added up, so that a person knows why.
                told.extend(events.iter().filter(within).filter(|event| event.weight > 0).filter_map(|event| {
                    let (rule, ..) = self.weights.get(event.phrase)?;
                    Some(found(*rule, locate(event.span.clone()).or_else(|| span.clone())))
                }));
            }
        }
    }
}
