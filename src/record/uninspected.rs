//! Counters of content that was not inspected.

use prometheus::Error;

use super::label::{Counters, Maker};
use super::table;
use crate::inspect::Coverage;

/// The counters of content that was not inspected, one for each reason.
pub(super) struct UninspectedCounters(Counters);

impl UninspectedCounters {
    /// Creates the counters, all at zero.
    pub(super) fn new(maker: &Maker) -> Result<Self, Error> {
        maker.counters(table::UNINSPECTED).map(Self)
    }

    /// Counts the parts of a body that were not inspected.
    pub(super) fn count(&self, coverage: &Coverage) {
        for part in &coverage.uninspected {
            self.0.with(&[part.reason.name()]).inc_by(part.bytes as u64);
        }
    }
}
