//! What was not looked at, counted.

use prometheus::Error;

use super::label::{Counters, Maker};
use super::table;
use crate::inspect::Coverage;

/// The counters of what was not looked at, one for each reason.
pub(super) struct UninspectedCounters(Counters);

impl UninspectedCounters {
    /// All of them, at zero.
    pub(super) fn new(made: &Maker) -> Result<Self, Error> {
        made.counters(table::UNINSPECTED).map(Self)
    }

    /// Counts what was not looked at of a body.
    pub(super) fn count(&self, coverage: &Coverage) {
        for part in &coverage.uninspected {
            self.0.with(&[part.reason.name()]).inc_by(part.bytes as u64);
        }
    }
}
