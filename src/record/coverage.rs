//! Counters of what was not inspected, or not inspected again.

use prometheus::Error;

use super::label::{Counters, Maker};
use super::table;
use crate::inspect::Coverage;

/// The counters of the coverage of inspections.
pub(super) struct CoverageCounters {
    /// By reason.
    uninspected: Counters,
    recognized: Counters,
}

impl CoverageCounters {
    /// Creates the counters, all at zero.
    pub(super) fn new(maker: &Maker) -> Result<Self, Error> {
        let counters = Self {
            uninspected: maker.counters(table::UNINSPECTED)?,
            recognized: maker.counters(table::RECOGNIZED)?,
        };
        counters.recognized.with(&[]).inc_by(0);
        Ok(counters)
    }

    /// Counts what was not inspected in a body, or recognized.
    pub(super) fn count(&self, coverage: &Coverage) {
        for part in &coverage.uninspected {
            let reason = part.reason.name();
            self.uninspected.with(&[reason]).inc_by(part.bytes as u64);
        }
        if coverage.recognized_strings > 0 {
            let recognized = coverage.recognized_strings as u64;
            self.recognized.with(&[]).inc_by(recognized);
        }
    }
}
