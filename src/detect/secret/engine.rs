//! Searches for all secret rules of a rule set in one pass, in a text and in the data encoded in
//! it.

mod search;

use std::sync::Arc;

use super::mirror::MIRRORED;
use super::name::ROOTS;
use super::pieces;
use super::shape::Shape;
use super::sieve::{Meaning, Sieve};
use super::{Detector, Match, Place, Spec};
use crate::detect::Details;
use crate::text::{Facts, Text};

use search::Search;

/// All secret rules of a rule set.
#[derive(Debug)]
pub(super) struct Secrets {
    /// The shapes, each with the number of its rule.
    shapes: Vec<(usize, Arc<Shape>)>,
    sieve: Sieve,
    /// The shapes that are tried on anything that looks random.
    loose: Vec<usize>,
    named: Option<usize>,
    guarded: Option<usize>,
    from_other_server: Option<usize>,
    returned: Option<usize>,
    host_label: Option<usize>,
    unread: Option<usize>,
}

impl Secrets {
    pub(super) fn new(rules: &[(usize, &Spec)]) -> Result<Self, Vec<(usize, String)>> {
        let rule_where = |predicate: fn(&Spec) -> bool| {
            rules
                .iter()
                .find(|(_, spec)| predicate(spec))
                .map(|(rule, _)| *rule)
        };
        let shapes: Vec<(usize, Arc<Shape>)> = rules
            .iter()
            .flat_map(|(rule, spec)| spec.shapes.iter().map(|shape| (*rule, shape.clone())))
            .collect();
        let mut literals: Vec<(String, Meaning)> = Vec::new();
        for (index, (_, shape)) in (0_u32..).zip(&shapes) {
            for literal in shape.literals() {
                literals.push((literal.clone(), Meaning::Shape(index)));
                let reversed: String = literal.chars().rev().collect();
                let is_rare =
                    literal.len() >= 4 || !literal.bytes().all(|byte| byte.is_ascii_alphanumeric());
                if is_rare && reversed != *literal {
                    literals.push((reversed, Meaning::Reversed(index)));
                }
            }
            literals.extend(
                shape
                    .name_words
                    .iter()
                    .map(|word| (word.clone(), Meaning::Near(index))),
            );
        }
        let named = rule_where(|spec| spec.named);
        if named.is_some() {
            literals.extend(ROOTS.iter().map(|root| ((*root).to_owned(), Meaning::Name)));
        }
        if !shapes.is_empty() || named.is_some() {
            literals.extend(
                MIRRORED
                    .iter()
                    .map(|literal| ((*literal).to_owned(), Meaning::Mirrored)),
            );
        }
        let fault = |error: String| vec![(rules.first().map_or(0, |(rule, _)| *rule), error)];
        Ok(Self {
            sieve: Sieve::new(literals.into_iter()).map_err(fault)?,
            loose: (0..shapes.len())
                .filter(|index| {
                    shapes
                        .get(*index)
                        .is_some_and(|(_, shape)| shape.is_loose())
                })
                .collect(),
            shapes,
            named,
            guarded: rule_where(|spec| spec.guarded),
            from_other_server: rule_where(|spec| spec.from_other_server),
            returned: rule_where(|spec| spec.returned),
            host_label: rule_where(|spec| spec.host_label),
            unread: rule_where(|spec| spec.unread),
        })
    }
}

impl Detector for Secrets {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, matches: &mut Vec<Match>) {
        let plain = text.plain();
        let raw = text.raw();
        let mut search = Search::new(self, place, raw.len(), matches);
        search.scan_reading(plain, text.plain_facts(), "plain", &|span| {
            Some(text.locate(span))
        });
        if !std::ptr::eq(plain, raw) {
            search.scan_reading(raw, text.raw_facts(), "raw", &Some);
        }
        for script_text in place
            .outbound()
            .script
            .into_iter()
            .flat_map(|script| script.texts())
        {
            search.scan_reading(script_text, &Facts::new(script_text), "script", &|_| None);
        }
        if let Some(name) = place.outbound().argument {
            search.check_argument(name, plain, |span| Some(text.locate(span)));
        }
    }

    fn learn(&self, text: &Text<'_>, place: &Place<'_>) {
        self.scan(
            text,
            &Place {
                details: Details::default(),
                ..*place
            },
            &mut Vec::new(),
        );
    }

    fn scan_pieces(&self, parts: &[&str], place: &Place<'_>, matches: &mut Vec<Match>) {
        let Some(assembled) = pieces::join_arguments(parts) else {
            return;
        };
        let mut search = Search::new(self, place, assembled.text.len(), matches);
        search.scan_assembled(&assembled);
    }
}

#[cfg(test)]
mod tests;
