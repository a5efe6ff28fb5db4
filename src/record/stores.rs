//! What is kept of messages, sealed: whole ones as evidence, and those that something was taken out of, in quarantine.
//!
//! Nothing of a payload stands on disk in clear, nor in a log, a metric or an error. Both stores may be shared by several
//! processes, and read while a gate writes them.

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

/// What the keys of the quarantine are for.
const QUARANTINE: KeyUse = KeyUse {
    of: "the quarantine",
    option: "`key` under `[quarantine]`",
    file: "quarantine.key",
};
/// What the keys of the evidence store are for.
const EVIDENCE: KeyUse = KeyUse {
    of: "the evidence store",
    option: "`key` under `[evidence]`",
    file: "evidence.key",
};

/// How long the evidence store has for what is left at the end.
const FLUSH: Duration = Duration::from_secs(5);

/// The stores that a gate has.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    /// Messages that something was taken out of.
    pub quarantine: Option<Arc<Quarantine>>,
    /// Messages kept whole.
    pub evidence: Option<Arc<Evidence>>,
}

impl Stores {
    /// Those that the config names a folder for.
    ///
    /// # Errors
    /// One of them cannot be used as it is.
    pub fn open(
        quarantine: &QuarantineConfig,
        evidence: &EvidenceConfig,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            quarantine: Quarantine::open(quarantine)?.map(Arc::new),
            evidence: Evidence::open(evidence)?.map(Arc::new),
        })
    }

    /// Waits until what was offered is written.
    pub(super) fn flush(&self) {
        if let Some(evidence) = &self.evidence {
            evidence.flush(FLUSH);
        }
    }
}
