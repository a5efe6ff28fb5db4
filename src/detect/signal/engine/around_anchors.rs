//! The search for signals that are not anchors, around the anchors of a text.

use std::ops::Range;

use super::{ReachableSums, Signals};
use crate::detect::Place;
use crate::detect::search::{ANCHOR_WEIGHT, Class, Cost, RulePlaces, Scan, TextSearch};
use crate::detect::signal::window::{Event, WINDOW_BYTES_WIDE};
use crate::text::Suspicion;

/// Distance around an anchor in which other phrases are searched for.
const AROUND_BYTES: usize = 700;

impl Signals {
    /// Adds the signals of the class [`Class::Other`] that could contribute to a sum.
    pub(super) fn find_others(
        &self,
        text: &str,
        place: &Place<'_>,
        way: Option<Suspicion>,
        events: &mut Vec<Event>,
    ) {
        let anchors = events.len();
        let regions = anchor_regions(text, events);
        // Signals of regions with a smaller distance may be in one window.
        let is_near = |a: &Range<usize>, b: &Range<usize>| b.start < a.end + WINDOW_BYTES_WIDE;
        for group in regions.chunk_by(is_near) {
            self.find_in_group(group, text, place, way, events);
        }
        // A search that was not completed counts everywhere, so that sums can be reached where none
        // could before.
        if events.iter().skip(anchors).any(|event| event.everywhere) {
            events.truncate(anchors);
            for region in regions {
                self.find_all_others(text, &region, place, events);
            }
        }
    }

    /// Adds the signals in regions that are close together, as long as a sum that counts them can
    /// be reached.
    fn find_in_group(
        &self,
        group: &[Range<usize>],
        text: &str,
        place: &Place<'_>,
        way: Option<Suspicion>,
        events: &mut Vec<Event>,
    ) {
        let Some((first, last)) = group.first().zip(group.last()) else {
            return;
        };
        let surroundings = first.start.saturating_sub(WINDOW_BYTES_WIDE)
            ..last.end.saturating_add(WINDOW_BYTES_WIDE);
        let mut sums =
            ReachableSums::new(&self.sums, self.intents, |sum| sum.extra_points(way, place));
        events
            .iter()
            .filter(|event| event.everywhere || overlap(&event.span(), &surroundings))
            .for_each(|event| sums.add_signal(event.intent, event.weight));
        let scans: Vec<Scan<'_>> = group
            .iter()
            .map(|region| self.others.scan(part(text, region)))
            .collect();
        let rules_of = |scan| self.others.rule_places(scan, Class::Other);
        let rules_by_scan: Vec<Vec<RulePlaces<'_>>> = scans.iter().map(rules_of).collect();
        rules_by_scan
            .iter()
            .flatten()
            .filter_map(|rule| self.weights.get(rule.number()))
            .for_each(|(_, intent, weight)| sums.add_phrase(*intent, *weight));
        for ((region, scan), rules) in group.iter().zip(&scans).zip(rules_by_scan) {
            let mut search = TextSearch::new(Class::Other, scan);
            for rule in rules {
                let phrase = rule.number();
                let Some((_, intent, weight)) = self.weights.get(phrase).copied() else {
                    continue;
                };
                let matters = sums.matters(intent, weight);
                sums.remove_phrase(intent, weight);
                if !matters {
                    continue;
                }
                search.run(rule, |span| {
                    let span = span.map(|span| shift(span, region.start));
                    let event = self.event(text, phrase, span, region, place);
                    events.extend(event.inspect(|event| sums.add_signal(intent, event.weight)));
                });
            }
        }
    }

    /// Adds all other signals of a region of a text.
    pub(super) fn find_all_others(
        &self,
        text: &str,
        region: &Range<usize>,
        place: &Place<'_>,
        events: &mut Vec<Event>,
    ) {
        let scan = self.others.scan(part(text, region));
        self.others.search(&scan, Class::Other, |phrase, span| {
            let span = span.map(|span| shift(span, region.start));
            events.extend(self.event(text, phrase, span, region, place));
        });
    }

    /// Returns the cost of the search for phrases that are not anchors, by the numbers of the
    /// phrases.
    pub(in crate::detect) fn costs_of_others(&self, text: &str) -> Vec<(usize, Cost)> {
        self.others.costs(&self.others.scan(text), Class::Other)
    }
}

/// Returns the parts of a text around signals, in whole characters.
fn anchor_regions(text: &str, events: &[Event]) -> Vec<Range<usize>> {
    // Weak signals of the model of wording do not open regions: up to one text in fifty has one.
    let anchors = events.iter().filter(|event| event.weight >= ANCHOR_WEIGHT);
    let mut spans: Vec<Range<usize>> = anchors.map(Event::span).collect();
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

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Returns a part of a text that consists of whole characters.
fn part<'t>(text: &'t str, part: &Range<usize>) -> &'t str {
    text.get(part.clone()).unwrap_or_default()
}

fn shift(span: Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Find, Library};

    /// Choosing the bytes by which words are found takes a tenth of a start.
    #[test]
    fn the_build_prepared_all_words_of_built_in_signals() {
        let library = Library::builtin();
        let finds = library.rules().iter().map(|rule| rule.find.as_ref());
        let specs: Vec<_> = finds
            .filter_map(|find| match find {
                Find::Signal(spec) => Some(spec),
                _ => None,
            })
            .enumerate()
            .collect();
        let mut anchors = Vec::new();
        let signals = Signals::new(&specs, &mut anchors);
        assert!(anchors.len() > 100, "{}", anchors.len());
        assert!(signals.others.has_shared_words_only());
        assert!(crate::detect::search::Engine::new(&anchors).has_shared_words_only());
    }
}
