//! Counters of the notifications of approval requests.

use prometheus::{Error, IntCounter};

use super::label::{Counters, Maker};
use super::{Recorder, table};

/// Counters for the notifications of one channel.
#[derive(Clone)]
pub struct NotificationCounts {
    /// Notifications delivered.
    pub sent: IntCounter,
    /// Notifications not delivered after all attempts.
    pub failed: IntCounter,
    /// Notifications dropped because too many others were queued.
    pub dropped: IntCounter,
}

/// The counters of all channels.
pub(super) struct NotificationCounters(Counters);

impl NotificationCounters {
    /// Creates the counters, all at zero.
    pub(super) fn new(maker: &Maker) -> Result<Self, Error> {
        let counters = Self(maker.counters(table::NOTIFICATIONS)?);
        ["command", "webhook"]
            .into_iter()
            .for_each(|way| drop(counters.for_channel(way)));
        Ok(counters)
    }

    fn for_channel(&self, way: &str) -> NotificationCounts {
        let count = |outcome| self.0.with(&[way, outcome]);
        NotificationCounts {
            sent: count("sent"),
            failed: count("failed"),
            dropped: count("dropped"),
        }
    }
}

impl Recorder {
    /// Returns the counters for notifications by `command` or `webhook`.
    pub fn notification_counts(&self, way: &str) -> NotificationCounts {
        self.metrics.notifications.for_channel(way)
    }
}
