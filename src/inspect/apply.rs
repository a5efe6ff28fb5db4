//! Applies the actions of rules to a string.

use std::collections::BTreeSet;

use crate::detect::Place;
use crate::rules::Action;
use crate::text::Text;
use crate::text::strip_invisible;

use super::hit::Hit;
use super::rewrite::{
    Cut, MARK, Outcome, WithheldPassages, carry_out, passage, redaction_mark, redaction_notice,
    removal_notice,
};
use super::string::{Judge, Site};
use super::wrap::wrap_text;

/// Maximum number of rounds of cuts; a text that still has something to cut after them is withheld
/// whole.
const ROUNDS: usize = 4;

impl<'p> Judge<'p, '_> {
    /// Returns the outcome that withholds the whole block because of findings in it.
    pub(super) fn without_block<'h>(
        &self,
        hits: impl Iterator<Item = &'h Hit<'p>>,
        place: &Place<'_>,
    ) -> Outcome
    where
        'p: 'h,
    {
        let mut withheld = WithheldPassages::default();
        withheld.rules.extend(
            hits.filter_map(|hit| self.rule(hit))
                .map(|rule| rule.id.as_str()),
        );
        Outcome::Withhold(withheld.block_notice(place.surface, self.audit))
    }

    /// Rewrites a text according to its hits. `fragment` is set if the text contains tags that are
    /// not rendered.
    pub(super) fn rewrite(
        &self,
        base: &str,
        place: &Place<'_>,
        site: &Site<'_>,
        mut hits: Vec<Hit<'p>>,
        fragment: bool,
    ) -> Outcome {
        let withholds = |hit: &&Hit<'_>| self.action(hit) == Action::Withhold;
        if hits.iter().any(|hit| withholds(&hit)) {
            return self.without_block(hits.iter().filter(withholds), place);
        }
        let mut withheld = WithheldPassages::default();
        let rules_with = |is_included: &dyn Fn(&Hit<'_>) -> bool| -> BTreeSet<&str> {
            hits.iter()
                .filter(|hit| is_included(hit))
                .filter_map(|hit| self.rule(hit))
                .map(|rule| rule.id.as_str())
                .collect()
        };
        let wrap_rules = rules_with(&|hit| self.action(hit) == Action::Wrap);
        // Text that a page hides is already removed by rendering, however many rules match it.
        let hides = |hit: &Hit<'_>| hit.hidden && self.action(hit) == Action::Quarantine;
        withheld.passages = usize::from(!fragment && hits.iter().any(hides));
        let mut text = base.to_owned();
        let strip_rules =
            rules_with(&|hit| !self.is_markup(hit) && self.action(hit) == Action::Strip);
        let mut redact_rules: BTreeSet<&str> = BTreeSet::new();
        for round in 0.. {
            let mut cuts = Vec::new();
            for hit in &hits {
                let Some(rule) = self.rule(hit) else { continue };
                let span = hit.span.clone().unwrap_or(0..text.len());
                match self.action(hit) {
                    Action::Quarantine => {
                        withheld.rules.insert(rule.id.as_str());
                        if !hit.hidden || fragment {
                            let span = match &hit.span {
                                Some(span) if hit.hidden && round < ROUNDS => span.clone(),
                                Some(span) if round < ROUNDS => passage(&text, span),
                                _ => 0..text.len(),
                            };
                            cuts.push(Cut {
                                span,
                                mark: MARK.into(),
                            });
                        }
                    }
                    Action::Redact if !hit.hidden => {
                        redact_rules.insert(rule.id.as_str());
                        cuts.push(Cut {
                            span,
                            mark: redaction_mark(rule.id.as_str()),
                        });
                    }
                    Action::Withhold if round > 0 => cuts.push(Cut {
                        span: 0..text.len(),
                        mark: MARK.into(),
                    }),
                    _ => {}
                }
            }
            if cuts.is_empty() {
                break;
            }
            let mark_count = text.matches(MARK).count();
            text = carry_out(&text, cuts);
            withheld.passages += text.matches(MARK).count().saturating_sub(mark_count);
            if round >= ROUNDS {
                break;
            }
            let mut matches = Vec::new();
            let remaining = Text::new(text.as_str());
            self.rules.scan(&remaining, place, &mut matches);
            let relevant = matches
                .into_iter()
                .filter(|found| !self.is_markup_rule(found.rule));
            hits = relevant
                .map(|found| self.hit(found, &text, place, site))
                .collect();
            if let Some(page) = remaining.fragment_page().filter(|_| fragment) {
                self.add_hits_of_parts(&text, &page, place, site, &mut hits);
            }
        }
        let redaction = redaction_notice(base, &text, &redact_rules, self.audit);
        if !strip_rules.is_empty() {
            let stripped = strip_invisible(&text);
            if stripped != text {
                text = format!(
                    "{}{stripped}",
                    removal_notice(
                        &strip_rules,
                        text.chars().count().abs_diff(stripped.chars().count()),
                        self.audit
                    )
                );
            }
        }
        if let Some(notice) = redaction {
            text.insert_str(0, &notice);
        }
        if !wrap_rules.is_empty() {
            match wrap_text(&text, &wrap_rules, self.audit) {
                Some(wrapped) => text = wrapped,
                None => return self.without_block(std::iter::empty(), place),
            }
        }
        if withheld.passages > 0 {
            text.insert_str(0, &withheld.notice(place.surface, self.audit));
        }
        if text == base {
            Outcome::Keep
        } else {
            Outcome::Replace(text)
        }
    }
}
