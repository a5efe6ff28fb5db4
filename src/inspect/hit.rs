//! A match of a rule in a string, before it becomes a finding.

use std::ops::Range;
use std::sync::Arc;

use super::{Evidence, Trace};
use crate::config::Suppression;
use crate::detect::Match;
use crate::rules::{Find, Rule};

/// A match in the current text.
pub(super) struct Hit<'p> {
    /// Index of the rule in its set: a short type, so that it shares one word with `hidden`.
    pub(super) rule: u32,
    /// The span in the current text; `None` for all of it.
    pub(super) span: Option<Range<usize>>,
    pub(super) reading: &'static str,
    /// Whether it is in text that markup hides: nothing of the visible text has to be removed.
    pub(super) hidden: bool,
    /// Data that few hits have. A hostile text can cause tens of thousands of hits, so each of them
    /// is kept small.
    pub(super) extras: Option<Box<HitExtras<'p>>>,
}

/// Additional data of some hits.
#[derive(Default)]
pub(super) struct HitExtras<'p> {
    /// The evidence from another reading than the current text, if the match was found in one.
    pub(super) evidence: Option<Evidence>,
    pub(super) trace: Option<Box<Trace>>,
    /// The suppression that removes its consequence, if any.
    pub(super) suppression: Option<&'p Arc<Suppression>>,
}

impl<'p> Hit<'p> {
    /// Creates a hit for a visible match.
    pub(super) fn new(found: Match, extras: Option<Box<HitExtras<'p>>>) -> Self {
        let rule = u32::try_from(found.rule).unwrap_or(u32::MAX);
        Self {
            rule,
            span: found.span,
            reading: found.reading,
            hidden: false,
            extras,
        }
    }

    /// Returns the index of the rule in its set.
    pub(super) fn rule(&self) -> usize {
        usize::try_from(self.rule).unwrap_or(usize::MAX)
    }

    /// Returns the suppression that removes its consequence, if any.
    pub(super) fn suppression(&self) -> Option<&'p Arc<Suppression>> {
        self.extras.as_ref()?.suppression
    }
}

/// Returns the evidence that is reported for a match.
pub(super) fn evidence(rule: &Rule, matched: &str) -> Evidence {
    let is_secret = is_private(rule) || matches!(*rule.find, Find::Flow(_));
    if is_secret {
        Evidence::of_secret(matched)
    } else {
        Evidence::new(matched)
    }
}

/// Returns whether what a rule finds is itself confidential.
pub(super) fn is_private(rule: &Rule) -> bool {
    matches!(*rule.find, Find::Secret(_) | Find::Personal(_))
}
