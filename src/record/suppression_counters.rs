//! What policies suppress, and how it is counted.

use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use prometheus::Error;

use super::label::{Counters, Gauges, Maker};
use super::table;
use crate::config::Suppression;

pub(super) struct SuppressionCounters {
    findings: Counters,
    states: Gauges,
    /// When each of them ends.
    ends: Mutex<Vec<SystemTime>>,
}

impl SuppressionCounters {
    pub(super) fn new(made: &Maker) -> Result<Self, Error> {
        Ok(Self {
            findings: made.counters(table::SUPPRESSED)?,
            states: made.gauges(table::SUPPRESSIONS)?,
            ends: Mutex::default(),
        })
    }

    /// These are in force, or were.
    pub(super) fn announce(&self, all: &[Arc<Suppression>]) {
        all.iter()
            .flat_map(|one| &one.rules)
            .for_each(|rule| drop(self.findings.with(&[rule])));
        *self.ends.lock() = all.iter().map(|one| one.until.ends).collect();
    }

    /// A match of this rule has no consequence.
    pub(super) fn count(&self, rule: &str) {
        self.findings.with(&[rule]).inc();
    }

    /// Counts which are over by now.
    pub(super) fn refresh(&self) {
        let now = SystemTime::now();
        let ends = self.ends.lock();
        let expired = ends.iter().filter(|ends| **ends <= now).count();
        for (state, count) in [("active", ends.len() - expired), ("expired", expired)] {
            self.states
                .with(&[state])
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}
