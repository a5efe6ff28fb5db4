//! Counters of suppressed findings, and gauges of suppressions.

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
    /// When each suppression expires.
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

    /// Sets the suppressions, which are in force or expired.
    pub(super) fn announce(&self, all: &[Arc<Suppression>]) {
        all.iter()
            .flat_map(|one| &one.rules)
            .for_each(|rule| drop(self.findings.with(&[rule])));
        *self.ends.lock() = all.iter().map(|one| one.until.ends).collect();
    }

    /// Counts a suppressed match of this rule.
    pub(super) fn count(&self, rule: &str) {
        self.findings.with(&[rule]).inc();
    }

    /// Sets the numbers of active and expired suppressions.
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
