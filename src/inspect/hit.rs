//! A match of a rule in a string, until it is told of.

use std::ops::Range;
use std::sync::Arc;

use super::{Evidence, Trace};
use crate::config::Suppression;
use crate::detect::Match;
use crate::rules::{Find, Rule};

/// A match in a text at hand.
pub(super) struct Hit<'p> {
    /// Index of the rule in its set: short, so that it goes with `hidden` into one word.
    pub(super) rule: u32,
    /// Within the text at hand; `None` for all of it.
    pub(super) span: Option<Range<usize>>,
    pub(super) reading: &'static str,
    /// In what markup hides: nothing of what is left need go.
    pub(super) hidden: bool,
    /// What few have. A hostile text can make tens of thousands of hits, so that each is kept small.
    pub(super) rare: Option<Box<Rare<'p>>>,
}

/// What is to be kept of some hits besides.
#[derive(Default)]
pub(super) struct Rare<'p> {
    /// What another reading than the text at hand holds there, if it was found in one.
    pub(super) evidence: Option<Evidence>,
    pub(super) trace: Option<Box<Trace>>,
    /// Why it has no consequence, if it has none.
    pub(super) suppressed: Option<&'p Arc<Suppression>>,
}

impl<'p> Hit<'p> {
    /// A match that shows.
    pub(super) fn of(found: Match, rare: Option<Box<Rare<'p>>>) -> Self {
        let rule = u32::try_from(found.rule).unwrap_or(u32::MAX);
        Self {
            rule,
            span: found.span,
            reading: found.reading,
            hidden: false,
            rare,
        }
    }

    /// Index of the rule in its set.
    pub(super) fn rule(&self) -> usize {
        usize::try_from(self.rule).unwrap_or(usize::MAX)
    }

    /// Why it has no consequence, if it has none.
    pub(super) fn suppressed(&self) -> Option<&'p Arc<Suppression>> {
        self.rare.as_ref()?.suppressed
    }
}

/// What is told of a match.
pub(super) fn evidence(rule: &Rule, matched: &str) -> Evidence {
    let secret = is_private(rule) || matches!(*rule.find, Find::Flow(_));
    if secret {
        Evidence::of_secret(matched)
    } else {
        Evidence::of(matched)
    }
}

/// Whether what a rule finds is itself what nobody may see.
pub(super) fn is_private(rule: &Rule) -> bool {
    matches!(*rule.find, Find::Secret(_) | Find::Personal(_))
}
