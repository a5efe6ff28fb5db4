//! Counters of the notifications that people get of approval requests.

use prometheus::{Error, IntCounter};

use super::label::{Counters, Maker};
use super::{Recorder, table};

/// Counts what becomes of the notifications of one way.
#[derive(Clone)]
pub struct NotificationCounts {
    /// Delivered.
    pub sent: IntCounter,
    /// Not delivered, after all attempts.
    pub failed: IntCounter,
    /// Not tried, because too many others waited.
    pub dropped: IntCounter,
}

/// The counters of all ways.
pub(super) struct NotificationCounters(Counters);

impl NotificationCounters {
    /// All at zero.
    pub(super) fn new(made: &Maker) -> Result<Self, Error> {
        let counters = Self(made.counters(table::NOTIFICATIONS)?);
        ["command", "webhook"]
            .into_iter()
            .for_each(|way| drop(counters.of(way)));
        Ok(counters)
    }

    fn of(&self, way: &str) -> NotificationCounts {
        let count = |outcome| self.0.with(&[way, outcome]);
        NotificationCounts {
            sent: count("sent"),
            failed: count("failed"),
            dropped: count("dropped"),
        }
    }
}

impl Recorder {
    /// Counts what becomes of the notifications that go out by `command` or by `webhook`.
    pub fn notification_counts(&self, way: &str) -> NotificationCounts {
        self.metrics.notifications.of(way)
    }
}
