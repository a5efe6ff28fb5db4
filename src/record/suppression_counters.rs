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
    expiry_times: Mutex<Vec<SystemTime>>,
}

impl SuppressionCounters {
    pub(super) fn new(maker: &Maker) -> Result<Self, Error> {
        Ok(Self {
            findings: maker.counters(table::SUPPRESSED)?,
            states: maker.gauges(table::SUPPRESSIONS)?,
            expiry_times: Mutex::default(),
        })
    }

    /// Sets the suppressions, which are in force or expired.
    pub(super) fn announce(&self, all: &[Arc<Suppression>]) {
        all.iter()
            .flat_map(|one| &one.rules)
            .for_each(|rule| drop(self.findings.with(&[rule])));
        *self.expiry_times.lock() = all.iter().map(|one| one.until.end).collect();
    }

    /// Counts a suppressed match of this rule.
    pub(super) fn count(&self, rule: &str) {
        self.findings.with(&[rule]).inc();
    }

    /// Sets the numbers of active and expired suppressions.
    pub(super) fn refresh(&self) {
        let now = SystemTime::now();
        let expiry_times = self.expiry_times.lock();
        let expired = expiry_times.iter().filter(|ends| **ends <= now).count();
        for (state, count) in [
            ("active", expiry_times.len() - expired),
            ("expired", expired),
        ] {
            self.states
                .with(&[state])
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}
