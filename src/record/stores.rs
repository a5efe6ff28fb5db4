//! Stores of sealed messages: the evidence store, which holds whole messages, and the quarantine,
//! which holds messages that content was removed from.
//!
//! No part of a payload is written to disk, a log, a metric or an error in cleartext. Both stores
//! may be shared by several processes and read while a gate writes them.

mod error;
mod evidence;
mod frame;
mod ledger;
mod quarantine;
mod release;
mod stored_message;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use crate::config::{EvidenceConfig, QuarantineConfig};
use crate::seal::KeyUse;

pub use error::StoreError;
pub use evidence::{Evidence, Records};
pub use ledger::{Actor, LedgerEntry, QuarantineAction};
pub use quarantine::{Item, Listing, Quarantine, State};
pub use release::Release;
pub use stored_message::{MessageInfo, StoredMessage};
pub use writer::EvidenceCounts;

/// What the keys of the quarantine are used for.
const QUARANTINE: KeyUse = KeyUse {
    store_name: "the quarantine",
    option: "`key` under `[quarantine]`",
    file: "quarantine.key",
};
/// What the keys of the evidence store are used for.
const EVIDENCE: KeyUse = KeyUse {
    store_name: "the evidence store",
    option: "`key` under `[evidence]`",
    file: "evidence.key",
};

/// Maximum time to write the rest of the evidence when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The stores of a gate.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    /// Messages that content was removed from.
    pub quarantine: Option<Arc<Quarantine>>,
    /// Whole messages.
    pub evidence: Option<Arc<Evidence>>,
}

impl Stores {
    /// Opens the stores that the config names a folder for.
    ///
    /// # Errors
    /// A store cannot be used.
    pub fn open(
        quarantine: &QuarantineConfig,
        evidence: &EvidenceConfig,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            quarantine: Quarantine::open(quarantine)?.map(Arc::new),
            evidence: Evidence::open(evidence)?.map(Arc::new),
        })
    }

    /// Waits until all offered messages are written.
    pub(super) fn flush(&self) {
        if let Some(evidence) = &self.evidence {
            evidence.flush(FLUSH_TIMEOUT);
        }
    }
}
