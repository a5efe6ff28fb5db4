//! Events and counters of the stores, and the retention of stored messages.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus::{Error, IntCounter};

use super::label::{Counters, Maker};
use super::stores::{Evidence, EvidenceCounts, Quarantine, StoreError, StoredMessage, Stores};
use super::{Recorder, table};
use crate::protocol::AuditId;

/// A change of the state of a message in quarantine.
#[derive(Clone, Copy, Debug)]
pub struct QuarantineEvent<'a> {
    /// The id of the message's audit line.
    pub audit: AuditId,
    /// One of [`QUARANTINE_OUTCOMES`].
    pub outcome: &'static str,
    /// The agent that the message is for; unknown if the message could not be opened.
    pub agent: Option<&'a str>,
    /// The upstream that sent the message.
    pub upstream: Option<&'a str>,
    /// The person who caused the change, if a person did.
    pub person: Option<&'a str>,
    /// The reason, in that person's words.
    pub reason: Option<&'a str>,
    /// How it was delivered: in response to the same `call`, or as a `resource`.
    pub delivery: Option<&'static str>,
}

/// Outcomes of a message in quarantine.
pub const QUARANTINE_OUTCOMES: [&str; 9] = [
    "kept",
    "skipped",
    "failed",
    "dropped",
    "shown",
    "released",
    "deleted",
    "delivered",
    "expired",
];

/// Interval at which the stores are checked for expired messages.
const RETENTION_INTERVAL: Duration = Duration::from_secs(60);

/// The counters of the stores.
pub(super) struct StoreCounters {
    items: Counters,
    records: Counters,
    forgotten: IntCounter,
    /// When the stores were last checked for expired messages.
    last_retention: Mutex<Option<Instant>>,
}

impl StoreCounters {
    pub(super) fn new(maker: &Maker) -> Result<Self, Error> {
        Ok(Self {
            items: maker.counters(table::QUARANTINE_ITEMS)?,
            records: maker.counters(table::EVIDENCE_RECORDS)?,
            forgotten: maker.counters(table::EVIDENCE_FORGOTTEN)?.with(&[]),
            last_retention: Mutex::default(),
        })
    }

    pub(super) fn count(&self, outcome: &str, amount: usize) {
        self.items.with(&[outcome]).inc_by(amount as u64);
    }

    /// Reports whether it is time to check for expired messages again.
    fn is_due(&self) -> bool {
        let mut last = self.last_retention.lock();
        let due = last.is_none_or(|at| at.elapsed() >= RETENTION_INTERVAL);
        if due {
            *last = Some(Instant::now());
        }
        due
    }

    pub(super) fn evidence(&self) -> EvidenceCounts {
        let count = |outcome| self.records.with(&[outcome]);
        let forgotten = self.forgotten.clone();
        EvidenceCounts {
            stored: count("kept"),
            dropped: count("dropped"),
            failed: count("failed"),
            removed: forgotten,
        }
    }
}

impl Recorder {
    /// Returns the recorder with these stores for messages.
    #[must_use]
    pub fn with_stores(self, stores: Stores) -> Self {
        if let Some(evidence) = &stores.evidence {
            evidence.count(self.metrics.stores.evidence());
        }
        Self { stores, ..self }
    }

    /// Returns the store of messages that content was removed from, if there is one.
    pub fn quarantine(&self) -> Option<&Arc<Quarantine>> {
        self.stores.quarantine.as_ref()
    }

    /// Returns the store of whole messages, if there is one.
    pub fn evidence(&self) -> Option<&Arc<Evidence>> {
        self.stores.evidence.as_ref()
    }

    /// Stores a message in quarantine. Returns whether it is stored now. May wait for the disk.
    pub fn quarantine_message(&self, message: &StoredMessage) -> bool {
        let Some(quarantine) = &self.stores.quarantine else {
            return false;
        };
        match quarantine.store(message) {
            Ok(dropped) => {
                self.metrics.stores.count("kept", 1);
                self.metrics.stores.count("dropped", dropped);
                true
            }
            Err(StoreError::TooOften { .. }) => {
                self.metrics.stores.count("skipped", 1);
                false
            }
            Err(error) => {
                self.metrics.stores.count("failed", 1);
                tracing::error!(audit = %message.audit, %error, "cannot store withheld content");
                false
            }
        }
    }

    /// Removes messages that have exceeded their maximum age, at most once a minute. Must be called
    /// periodically; may wait for the disk.
    pub fn apply_retention(&self) {
        if !self.metrics.stores.is_due() {
            return;
        }
        if let Some(quarantine) = &self.stores.quarantine {
            match quarantine.forget_old() {
                Ok(removed) => self.metrics.stores.count("dropped", removed),
                Err(error) => tracing::warn!(%error, "cannot remove expired quarantine items"),
            }
        }
        if let Some(Err(error)) = self
            .stores
            .evidence
            .as_ref()
            .map(|evidence| evidence.forget_old())
        {
            tracing::warn!(%error, "cannot remove expired evidence");
        }
    }
}
