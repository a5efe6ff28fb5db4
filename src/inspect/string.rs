//! Judges one string: scans every reading of it, then decides what happens to it.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::detect::work::{self, Budget};
use crate::detect::{Match, Place, signal};
use crate::message::Direction;
use crate::protocol::AuditId;
use crate::rules::{Action, Find, Rule, RuleSet};
use crate::text::{Page, Text};

use super::hit::{Hit, HitExtras, evidence, is_private};
use super::nested::is_json;
use super::rewrite::{Outcome, WithheldPassages, passage, render_notice};
use super::{Detail, Finding, SuppressedAction, Suppressions, Trace};

/// Maximum number of findings reported for one message; further ones still take effect.
const FINDINGS: usize = 500;

/// Judges the strings of one item of a message.
pub(super) struct Judge<'p, 'f> {
    pub(super) rules: &'p RuleSet,
    pub(super) suppressions: &'p Suppressions,
    pub(super) audit: AuditId,
    pub(super) item: usize,
    pub(super) findings: &'f mut Vec<Finding>,
    /// Names of the readings that were made.
    pub(super) readings: &'f mut BTreeSet<&'static str>,
    /// Buffer for matches, reused from string to string.
    pub(super) matches: Vec<Match>,
    /// Whether numbers are treated as texts, because a rule searches for data that is written as
    /// numbers.
    pub(super) numbers: bool,
    /// Whether findings contain the text in which they were found.
    pub(super) trace: bool,
    /// The remaining work of the message.
    pub(super) budget: &'p Budget,
}

/// The location of a string, for its findings and its rewriting. Computed only when something is
/// found.
pub(super) struct Site<'s> {
    /// The JSON pointer of the string.
    pub(super) at: &'s dyn Fn() -> String,
    /// Whether the string must not be edited.
    pub(super) opaque: &'s dyn Fn() -> bool,
    /// Whether the string is in a block that can be removed whole: then a string that must not be
    /// edited is withheld with its block.
    pub(super) in_block: bool,
}

impl<'s> Site<'s> {
    /// Returns the location of a string that must not be edited, and is in no block.
    pub(super) fn opaque(at: &'s dyn Fn() -> String) -> Self {
        Self {
            at,
            opaque: &|| true,
            in_block: false,
        }
    }
}

/// A match that exists only in several texts taken together.
pub(super) struct CrossBlockMatch<'r> {
    /// The span in all texts together.
    pub(super) span: Range<usize>,
    /// The notice that it was withheld.
    pub(super) notice: String,
    /// Set if the match is kept and each text that contains it is wrapped because of these rules.
    pub(super) wrap_rules: Option<BTreeSet<&'r str>>,
}

impl<'p> Judge<'p, '_> {
    /// Judges a string and returns what happens to it; findings are recorded. A string that must
    /// not be edited is withheld with its block, or kept, and an action that would have changed it
    /// is recorded as a refusal.
    pub(super) fn judge_string(
        &mut self,
        text: &Text<'_>,
        place: &Place<'_>,
        site: &Site<'_>,
    ) -> Outcome {
        self.judge(text, place, site, true)
    }

    /// Judges several strings as their receiver may combine them; findings are recorded at a place
    /// that contains all of them.
    pub(super) fn judge_pieces(&mut self, parts: &[&str], place: &Place<'_>, site: &Site<'_>) {
        let mut matches = std::mem::take(&mut self.matches);
        matches.clear();
        if parts.len() > 1 {
            self.rules.scan_pieces(parts, place, &mut matches);
        }
        if !matches.is_empty() {
            let found = std::mem::take(&mut matches);
            self.record_matches(found, &parts.concat(), place, site);
        }
        self.matches = matches;
    }

    /// Records matches in a call as a whole, or in the code that it writes to a file.
    pub(super) fn record_matches(
        &mut self,
        found: Vec<Match>,
        text: &str,
        place: &Place<'_>,
        site: &Site<'_>,
    ) {
        let hits: Vec<Hit<'_>> = found
            .into_iter()
            .map(|found| self.hit(found, text, place, site))
            .collect();
        self.record_findings(&hits, text, place, site, (site.opaque)());
    }

    /// Judges several consecutive texts, joined in `text`; matches `inside` one of them are not
    /// reported again. Findings are recorded. Returns the part that has to be removed or wrapped,
    /// with its notice.
    pub(super) fn judge_joined(
        &mut self,
        text: &str,
        inside: &dyn Fn(&Range<usize>) -> bool,
        place: &Place<'_>,
        site: &Site<'_>,
    ) -> Option<CrossBlockMatch<'p>> {
        let mut matches = Vec::new();
        self.rules.scan(&Text::new(text), place, &mut matches);
        matches.retain(|found| {
            !self.is_markup_rule(found.rule)
                && found.span.as_ref().is_some_and(|span| !inside(span))
        });
        let hits: Vec<Hit<'_>> = matches
            .into_iter()
            .map(|found| self.hit(found, text, place, site))
            .collect();
        let is_removed = |hit: &&Hit<'_>| {
            matches!(
                self.action(hit),
                Action::Redact | Action::Quarantine | Action::Withhold
            )
        };
        let (removed, wrapped): (Vec<&Hit<'_>>, Vec<&Hit<'_>>) = hits
            .iter()
            .filter(|hit| is_removed(hit) || self.action(hit) == Action::Wrap)
            .partition(is_removed);
        let effective = if removed.is_empty() { wrapped } else { removed };
        let is_wrap = effective
            .first()
            .is_some_and(|hit| self.action(hit) == Action::Wrap);
        let span = effective
            .iter()
            .filter_map(|hit| hit.span.clone())
            .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        let mut withheld = WithheldPassages {
            passages: 1,
            ..WithheldPassages::default()
        };
        withheld.rules.extend(
            effective
                .iter()
                .filter_map(|hit| self.rule(hit))
                .map(|rule| rule.id.as_str()),
        );
        self.record_findings(&hits, text, place, site, false);
        self.record_withheld(&hits, text, None, place);
        Some(CrossBlockMatch {
            span: span?,
            notice: withheld.notice(place.surface, self.audit),
            wrap_rules: is_wrap.then_some(withheld.rules),
        })
    }

    pub(super) fn judge(
        &mut self,
        text: &Text<'_>,
        place: &Place<'_>,
        site: &Site<'_>,
        whole: bool,
    ) -> Outcome {
        if self.rules.rules().is_empty() {
            return Outcome::Keep;
        }
        let mut matches = std::mem::take(&mut self.matches);
        matches.clear();
        let excused = self.rules.scan(text, place, &mut matches);
        let outcome = self.weigh(text, place, site, whole, excused, &mut matches);
        self.matches = matches;
        text.collect_reading_names(self.readings);
        self.readings.extend(place.outbound().read_as.name());
        outcome
    }

    fn weigh(
        &mut self,
        text: &Text<'_>,
        place: &Place<'_>,
        site: &Site<'_>,
        whole: bool,
        excused: bool,
        matches: &mut Vec<Match>,
    ) -> Outcome {
        let page = if place.direction() == Direction::Inbound {
            text.page()
        } else {
            None
        };
        let json = whole && is_json(text.raw());
        // Quotation marks of JSON do not quote anything, and text in one string does not exclude a
        // match in another.
        let judges_inside = json && (self.numbers || excused || text.raw().contains('\\'));
        if matches.is_empty() && page.is_none() && text.bare().is_none() && !judges_inside {
            return Outcome::Keep;
        }
        let opaque = (site.opaque)();
        if json
            && !opaque
            && let Some(outcome) = self.judge_nested(text.raw(), place, site)
        {
            return outcome;
        }
        let mut hits: Vec<Hit<'_>> = matches
            .drain(..)
            .map(|found| self.hit(found, text.raw(), place, site))
            .collect();
        if let Some(bare) = text.bare() {
            self.scan_more(&Text::new(bare), place, site, "bare", &mut hits);
        }
        // Markup in a name or an address is not a page, and strips to nothing useful.
        let page = page.filter(|_| !opaque);
        let markup = hits
            .iter()
            .filter(|hit| self.is_markup(hit))
            .map(|hit| self.action(hit))
            .max();
        // An operator may require a stronger action on markup than rendering it.
        let renders = page.is_some_and(|page| {
            place.inbound().render.renders(page.is_document) || markup > Some(Action::Strip)
        });
        let strips = renders && markup >= Some(Action::Strip);
        if strips || opaque {
            // The text that is left after stripping, and the text that was removed, are judged
            // separately.
            hits.retain(|hit| self.is_markup(hit) == strips);
        }
        if let Some(page) = page.filter(|_| !strips) {
            let page_parts = page.is_document.then(|| text.fragment_page()).flatten();
            return self.judge_fragment(
                text.raw(),
                page_parts.as_ref().unwrap_or(page),
                hits,
                place,
                site,
            );
        }
        if strips {
            // A markup finding reports what it matched, not what is left: a suppression is compared
            // with the same.
            for hit in &mut hits {
                let matched = hit
                    .span
                    .clone()
                    .and_then(|span| text.raw().get(span))
                    .unwrap_or(text.raw());
                let match_evidence = self.rule(hit).map(|rule| evidence(rule, matched));
                let extras = hit.extras.get_or_insert_default();
                extras.evidence = extras.evidence.take().or(match_evidence);
            }
        }
        let stripped;
        let mut base = text.raw();
        let mut folded = None;
        if let Some(page) = page {
            if !page.hidden.is_empty() {
                let place = place.with_hidden(true);
                self.scan_more(
                    &Text::new(page.hidden.as_str()),
                    &place,
                    site,
                    "hidden",
                    &mut hits,
                );
            }
            if page.folded
                && hits
                    .iter()
                    .any(|hit| hit.hidden && self.action(hit) >= Action::Redact)
            {
                // Text that a person would have to unfold is not shown then.
                folded = text.folded_page();
            }
            if strips {
                stripped = folded.as_ref().unwrap_or(page).visible_text();
                base = &stripped;
                let visible = Text::new(base);
                self.rules.scan(&visible, place, matches);
                let further = matches
                    .drain(..)
                    .filter(|found| !self.is_markup_rule(found.rule));
                hits.extend(further.map(|found| self.hit(found, base, place, site)));
            }
        }
        let page = folded.as_ref().or(page);
        self.record_findings(&hits, base, place, site, opaque);
        self.record_withheld(&hits, base, page, place);
        if opaque {
            let rewriting: Vec<&Hit<'_>> = hits
                .iter()
                .filter(|hit| self.action(hit).rewrites())
                .collect();
            return if site.in_block && !rewriting.is_empty() {
                self.without_block(rewriting.into_iter(), place)
            } else {
                Outcome::Keep
            };
        }
        let notice = page.filter(|_| strips).map(|_| {
            let rules = hits
                .iter()
                .filter(|hit| self.is_markup(hit))
                .filter_map(|hit| self.rule(hit));
            render_notice(
                rules.map(|rule| rule.id.as_str()).collect(),
                text.raw().len(),
                self.audit,
            )
        });
        match (self.rewrite(base, place, site, hits, false), notice) {
            (Outcome::Keep, Some(notice)) => page.map_or(Outcome::Keep, |page| {
                Outcome::Replace(format!("{notice}{}", page.visible_text()))
            }),
            (Outcome::Replace(left), Some(notice)) => Outcome::Replace(format!("{notice}{left}")),
            (outcome, _) => outcome,
        }
    }

    /// Scans a further reading for rules that have not matched yet.
    fn scan_more(
        &self,
        text: &Text<'_>,
        place: &Place<'_>,
        site: &Site<'_>,
        reading: &'static str,
        hits: &mut Vec<Hit<'p>>,
    ) {
        let mut matches = Vec::new();
        self.rules.scan(text, place, &mut matches);
        let unsuppressed = hits.iter().filter(|hit| hit.suppression().is_none());
        let mut matched_rules: BTreeSet<usize> = unsuppressed.map(Hit::rule).collect();
        let mut suppressed_rules: BTreeSet<usize> = BTreeSet::new();
        for found in matches {
            if !self.is_markup_rule(found.rule) && !matched_rules.contains(&found.rule) {
                let reading = if work::ALL.contains(&found.reading) {
                    found.reading
                } else {
                    reading
                };
                let hit = self.hit(Match { reading, ..found }, text.raw(), place, site);
                // Once for each rule: its other matches are examined only because they may not be
                // suppressed.
                let reported_rules = if hit.suppression().is_some() {
                    &mut suppressed_rules
                } else {
                    &mut matched_rules
                };
                if !reported_rules.insert(hit.rule()) {
                    continue;
                }
                let hit = self.with_evidence(hit, text.raw(), place);
                hits.push(Hit {
                    span: None,
                    hidden: place.inbound().hidden,
                    ..hit
                });
            }
        }
    }

    /// Returns a hit in another reading than the current text, with the evidence from that reading.
    pub(super) fn with_evidence(&self, hit: Hit<'p>, text: &str, place: &Place<'_>) -> Hit<'p> {
        let matched = hit
            .span
            .clone()
            .and_then(|span| text.get(span))
            .unwrap_or(text);
        let evidence = self.rule(&hit).map(|rule| evidence(rule, matched));
        let trace = self.trace_match(text, hit.span.clone(), place);
        let extras = Some(Box::new(HitExtras {
            evidence,
            trace,
            suppression: hit.suppression(),
        }));
        Hit { extras, ..hit }
    }

    /// Creates the hit for a match in `text`.
    pub(super) fn hit(
        &self,
        found: Match,
        text: &str,
        place: &Place<'_>,
        site: &Site<'_>,
    ) -> Hit<'p> {
        let suppression = self
            .rules
            .rules()
            .get(found.rule)
            .filter(|_| !self.suppressions.is_empty())
            .and_then(|rule| {
                let span = found.span.clone();
                let evidence = || {
                    evidence(
                        rule,
                        span.clone().and_then(|span| text.get(span)).unwrap_or(text),
                    )
                };
                self.suppressions
                    .find(rule, place, found.reading, self.audit, site.at, &evidence)
            });
        let extras = suppression.map(|suppressed| {
            Box::new(HitExtras {
                suppression: Some(suppressed),
                ..HitExtras::default()
            })
        });
        Hit::new(found, extras)
    }

    fn trace_match(
        &self,
        text: &str,
        span: Option<Range<usize>>,
        place: &Place<'_>,
    ) -> Option<Box<Trace>> {
        let read_as = place.outbound().read_as;
        let hidden = place.inbound().hidden;
        self.trace.then(|| {
            Box::new(Trace {
                text: text.to_owned(),
                span,
                read_as,
                hidden,
            })
        })
    }

    pub(super) fn rule(&self, hit: &Hit<'_>) -> Option<&'p Rule> {
        self.rules.rules().get(hit.rule()).map(AsRef::as_ref)
    }

    /// Returns the action that is taken on a hit.
    pub(super) fn action(&self, hit: &Hit<'_>) -> Action {
        if hit.suppression().is_some() {
            Action::Log
        } else {
            self.rule(hit).map_or(Action::Block, |rule| rule.action)
        }
    }

    pub(super) fn is_markup(&self, hit: &Hit<'_>) -> bool {
        self.is_markup_rule(hit.rule())
    }

    pub(super) fn is_markup_rule(&self, rule: usize) -> bool {
        self.rules
            .rules()
            .get(rule)
            .is_some_and(|rule| matches!(*rule.find, Find::Markup(_)))
    }

    pub(super) fn record_findings(
        &mut self,
        hits: &[Hit<'_>],
        base: &str,
        place: &Place<'_>,
        site: &Site<'_>,
        opaque: bool,
    ) {
        for (n, hit) in hits.iter().enumerate() {
            let earlier = hits.get(..n).unwrap_or_default();
            let is_same =
                |other: &Hit<'_>| (other.rule(), other.hidden) == (hit.rule(), hit.hidden);
            if earlier.iter().any(|other| {
                is_same(other) && other.suppression().is_some() == hit.suppression().is_some()
            }) {
                continue;
            }
            let Some(rule) = self.rule(hit) else { continue };
            let fallback_action = if site.in_block {
                Action::Withhold
            } else {
                Action::Block
            };
            let extras = hit.extras.as_deref();
            let action = match self.action(hit) {
                // Cursors and ids are for programs, and look random: no model reads them.
                Action::Redact if opaque && !site.in_block && is_private(rule) => Action::Log,
                action if opaque && action.rewrites() => fallback_action,
                action => action,
            };
            let decides = matches!(action, Action::Ask | Action::Block);
            let is_first = decides && self.findings.iter().all(|finding| finding.action != action);
            if self.findings.len() >= FINDINGS && !is_first {
                continue;
            }
            // An exceeded limit is reported even if the rule has matched before.
            let unread_reading =
                matches!(&*rule.find, Find::Secret(spec) if spec.unread).then_some(work::SECRET);
            let mut other_readings = hits
                .iter()
                .filter(|other| other.rule() == hit.rule())
                .map(|other| other.reading);
            let matched = hit
                .span
                .clone()
                .and_then(|span| base.get(span))
                .unwrap_or(base);
            // The rule that refuses the command that a text orders.
            let orders_command = matches!(&*rule.find, Find::Signal(signal::Spec::Phrase(phrase)) if phrase.orders_command || phrase.harmful_command);
            let refusing_rule = place
                .inbound()
                .ordered_commands
                .filter(|_| orders_command)
                .and_then(|ordered| ordered.refusing_rule_at_end(matched));
            self.findings.push(Finding {
                rule: rule.id.clone(),
                title: refusing_rule.map_or_else(
                    || rule.title.clone(),
                    |refusing_rule| format!("{} (`{refusing_rule}`)", rule.title),
                ),
                severity: rule.severity,
                action,
                surface: place.surface,
                at: (site.at)(),
                item: self.item,
                reading: other_readings
                    .find(|reading| work::ALL.contains(reading))
                    .or(unread_reading)
                    .unwrap_or(hit.reading),
                evidence: extras
                    .and_then(|rare| rare.evidence.clone())
                    .unwrap_or_else(|| evidence(rule, matched)),
                detail: place
                    .flow
                    .and_then(|here| here.session.source(hit.rule()))
                    .map(Detail::Source),
                argument: place.outbound().argument.map(Into::into),
                private: is_private(rule) || matches!(*rule.find, Find::Flow(_)),
                trace: extras
                    .and_then(|rare| rare.trace.clone())
                    .or_else(|| self.trace_match(base, hit.span.clone(), place)),
                suppressed: hit.suppression().map(|suppression| SuppressedAction {
                    suppression: suppression.clone(),
                    action: rule.action,
                }),
            });
        }
    }

    /// For data flow rules, records passages with instructions that the agent does not receive, or
    /// receives marked.
    pub(super) fn record_withheld(
        &self,
        hits: &[Hit<'_>],
        base: &str,
        page: Option<&Page>,
        place: &Place<'_>,
    ) {
        let Some(flow) = place
            .flow
            .filter(|_| place.direction() == Direction::Inbound)
        else {
            return;
        };
        let mut recorded = BTreeSet::new();
        for hit in hits.iter().filter(|hit| !self.is_markup(hit)) {
            let span = match (self.action(hit), &hit.span) {
                (Action::Log | Action::Strip | Action::Redact | Action::Ask, _) => continue,
                (Action::Quarantine | Action::Wrap | Action::Block, Some(span)) if !hit.hidden => {
                    passage(base, span)
                }
                // Text that markup hides in a text that is not rendered.
                (_, Some(span)) => span.clone(),
                _ => 0..base.len(),
            };
            if recorded.insert((hit.hidden, span.start, span.end)) {
                let hidden = page.filter(|_| hit.hidden).map(|page| page.hidden.as_str());
                flow.session
                    .record_withheld(hidden.unwrap_or(base.get(span).unwrap_or(base)));
            }
        }
    }
}
