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
    own: Option<usize>,
    elsewhere: Option<usize>,
    returned: Option<usize>,
    unread: Option<usize>,
}

impl Secrets {
    pub(super) fn new(rules: &[(usize, &Spec)]) -> Result<Self, Vec<(usize, String)>> {
        let way = |is: fn(&Spec) -> bool| {
            rules
                .iter()
                .find(|(_, spec)| is(spec))
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
                let backwards: String = literal.chars().rev().collect();
                let rare =
                    literal.len() >= 4 || !literal.bytes().all(|byte| byte.is_ascii_alphanumeric());
                if rare && backwards != *literal {
                    literals.push((backwards, Meaning::Backwards(index)));
                }
            }
            literals.extend(
                shape
                    .near
                    .iter()
                    .map(|word| (word.clone(), Meaning::Near(index))),
            );
        }
        let named = way(|spec| spec.named);
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
            own: way(|spec| spec.own),
            elsewhere: way(|spec| spec.elsewhere),
            returned: way(|spec| spec.returned),
            unread: way(|spec| spec.unread),
        })
    }
}

impl Detector for Secrets {
    fn scan(&self, text: &Text<'_>, place: &Place<'_>, found: &mut Vec<Match>) {
        let plain = text.plain();
        let raw = text.raw();
        let mut search = Search::new(self, place, raw.len(), found);
        search.through(plain, text.plain_facts(), "plain", &|span| {
            Some(text.locate(span))
        });
        if !std::ptr::eq(plain, raw) {
            search.through(raw, text.raw_facts(), "raw", &Some);
        }
        for opened in place
            .outbound()
            .script
            .into_iter()
            .flat_map(|script| script.texts())
        {
            search.through(opened, &Facts::new(opened), "script", &|_| None);
        }
        if let Some(name) = place.outbound().argument {
            search.argument(name, plain, |span| Some(text.locate(span)));
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

    fn scan_pieces(&self, parts: &[&str], place: &Place<'_>, found: &mut Vec<Match>) {
        let Some(joined) = pieces::join(parts) else {
            return;
        };
        let mut search = Search::new(self, place, joined.text.len(), found);
        search.joined(&joined);
    }
}

#[cfg(test)]
mod tests;
