//! Counters of the notifications that people get of approval requests.

use prometheus::{Error, IntCounter};

use super::label::{Counters, Maker};
use super::{Recorder, table};

/// Counts what becomes of the notifications of one way.
#[derive(Clone)]
pub struct Notified {
    /// Delivered.
    pub sent: IntCounter,
    /// Not delivered, after all attempts.
    pub failed: IntCounter,
    /// Not tried, because too many others waited.
    pub dropped: IntCounter,
}

/// The counters of all ways.
pub(super) struct Notifications(Counters);

impl Notifications {
    /// All at zero.
    pub(super) fn new(made: &Maker) -> Result<Self, Error> {
        let counters = Self(made.counters(table::NOTIFICATIONS)?);
        ["command", "webhook"].into_iter().for_each(|way| drop(counters.of(way)));
        Ok(counters)
    }

    fn of(&self, way: &str) -> Notified {
        let count = |outcome| self.0.with(&[way, outcome]);
        Notified { sent: count("sent"), failed: count("failed"), dropped: count("dropped") }
    }
}

impl Recorder {
    /// Counts what becomes of the notifications that go out by `command` or by `webhook`.
    pub fn notified(&self, way: &str) -> Notified {
        self.metrics.notifications.of(way)
    }
}
