//! Judges a text that contains tags and is not rendered: source code, Markdown, XML, mail, a page
//! that a file tool returns. The text that a person would see and the text that markup hides are
//! judged as readings; what is found there is cut out of the text as received, and nothing else
//! changes.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::detect::{Match, Place, work};
use crate::rules::Action;
use crate::text::{Page, Text};

use super::hit::Hit;
use super::rewrite::Outcome;
use super::string::{Judge, Site};

impl<'p> Judge<'p, '_> {
    /// Judges the readings of such a text in addition to the `hits` in the text as received, and
    /// returns the outcome.
    pub(super) fn judge_fragment(
        &mut self,
        raw: &str,
        page: &Page,
        mut hits: Vec<Hit<'p>>,
        place: &Place<'_>,
        site: &Site<'_>,
    ) -> Outcome {
        // Nothing is rendered, so there is nothing to report.
        hits.retain(|hit| !self.is_markup(hit) || self.action(hit) != Action::Strip);
        self.add_hits_of_parts(raw, page, place, site, &mut hits);
        self.record_findings(&hits, raw, place, site, false);
        self.record_withheld(&hits, raw, None, place);
        self.rewrite(raw, place, site, hits, true)
    }

    /// Adds the findings in the readings of a text, at their positions in the text.
    pub(super) fn add_hits_of_parts(
        &self,
        text: &str,
        page: &Page,
        place: &Place<'_>,
        site: &Site<'_>,
        hits: &mut Vec<Hit<'p>>,
    ) {
        let known_rules: Vec<usize> = hits.iter().map(Hit::rule).collect();
        // The evidence is for what matched, so that a suppression by its digest applies, and not
        // for everything that is hidden there.
        let widened = std::mem::take(hits).into_iter().map(|hit| {
            let span = hit
                .span
                .as_ref()
                .filter(|_| self.action(&hit) == Action::Quarantine);
            match span.and_then(|span| page.hidden_group(span)) {
                Some(group) => Hit {
                    span: Some(group),
                    hidden: true,
                    ..self.with_evidence(hit, text, place)
                },
                None => hit,
            }
        });
        hits.extend(widened.collect::<Vec<_>>());
        for hit in self.hits_in(&page.visible, place, site, "markup") {
            match &hit.span {
                Some(span) => hits.push(Hit {
                    span: page.locate_visible(span),
                    ..hit
                }),
                // The rule has already matched the text as a whole.
                None if known_rules.contains(&hit.rule()) => {}
                None => hits.push(hit),
            }
        }
        if page.hidden.is_empty() {
            return;
        }
        let mut cuts = Vec::new();
        let mut by_part = BTreeMap::new();
        for hit in self.hits_in(&page.hidden, &place.with_hidden(true), site, "hidden") {
            let range = hit.span.clone().unwrap_or(0..page.hidden.len());
            let parts = page
                .hidden_parts(&range)
                .filter(|_| self.action(&hit) != Action::Redact);
            let Some(mut parts) = parts else {
                hits.push(Hit {
                    span: page.locate_hidden(&range),
                    ..hit
                });
                continue;
            };
            if parts.len() > 1 {
                // A rule is applied to a window of text: hidden parts in it that have no finding of
                // their own are kept.
                let mut has_match = |part: &Range<usize>| {
                    *by_part
                        .entry(part.start)
                        .or_insert_with(|| self.matches_alone(text, part, place))
                };
                let matching_parts: Vec<Range<usize>> = parts
                    .iter()
                    .filter(|part| has_match(part))
                    .cloned()
                    .collect();
                parts = if matching_parts.is_empty() {
                    parts
                } else {
                    matching_parts
                };
            }
            let quarantined = self.action(&hit) == Action::Quarantine;
            let Hit {
                rule,
                reading,
                extras: rare,
                ..
            } = hit;
            let mut extras = rare;
            cuts.extend(parts.iter().filter(|_| quarantined).cloned());
            for part in parts {
                hits.push(Hit {
                    rule,
                    reading,
                    span: Some(part),
                    hidden: true,
                    extras: extras.take(),
                });
            }
        }
        cuts.sort_unstable_by_key(|cut| cut.start);
        let meets_cut = |span: &Range<usize>| {
            let after = cuts.partition_point(|cut| cut.start < span.end);
            after
                .checked_sub(1)
                .and_then(|last| cuts.get(last))
                .is_some_and(|cut| cut.end > span.start)
        };
        // A hit that extends over a hidden part is judged again once that part has been removed.
        hits.retain(|hit| {
            hit.hidden
                || self.action(hit) != Action::Quarantine
                || !hit.span.as_ref().is_some_and(meets_cut)
        });
    }

    /// Returns whether a hidden part of a text has a finding of its own, including one that is only
    /// recorded.
    fn matches_alone(&self, text: &str, part: &Range<usize>, place: &Place<'_>) -> bool {
        let mut matches = Vec::new();
        let place = place.with_hidden(true);
        self.rules.scan(
            &Text::new(text.get(part.clone()).unwrap_or_default()),
            &place,
            &mut matches,
        );
        matches.iter().any(|found| !self.is_markup_rule(found.rule))
    }

    fn hits_in(
        &self,
        reading: &str,
        place: &Place<'_>,
        site: &Site<'_>,
        name: &'static str,
    ) -> Vec<Hit<'p>> {
        let mut matches = Vec::new();
        self.rules.scan(&Text::new(reading), place, &mut matches);
        let hits = matches
            .into_iter()
            .filter(|found| !self.is_markup_rule(found.rule))
            .map(|found| {
                let reading_name = if work::ALL.contains(&found.reading) {
                    found.reading
                } else {
                    name
                };
                let hit = self.hit(
                    Match {
                        reading: reading_name,
                        ..found
                    },
                    reading,
                    place,
                    site,
                );
                self.with_evidence(hit, reading, place)
            });
        hits.collect()
    }
}

#[cfg(test)]
mod tests;
