//! What is counted of the audit log.

use prometheus::IntCounter;

use super::log::Tampering;
use crate::record::label::Maker;
use crate::record::table;

/// What became of lines, checkpoints and files.
#[derive(Clone)]
pub(in crate::record) struct Counts {
    /// Lines handed to the operating system.
    pub(in crate::record) written: IntCounter,
    /// Lines given up because the queue was full.
    pub(in crate::record) dropped: IntCounter,
    /// Lines refused by the operating system.
    pub(in crate::record) failed: IntCounter,
    /// Checkpoints written.
    pub(in crate::record) noted: IntCounter,
    /// Checkpoints that could not be written.
    pub(in crate::record) not_noted: IntCounter,
    /// Checkpoints that were told elsewhere.
    pub(in crate::record) anchored: IntCounter,
    /// Checkpoints that were not.
    pub(in crate::record) anchors_failed: IntCounter,
    /// The log was found with lines missing or changed.
    pub(in crate::record) cut: IntCounter,
    /// It was found with what somebody else had written.
    pub(in crate::record) foreign: IntCounter,
    /// It was found deleted.
    pub(in crate::record) deleted: IntCounter,
    /// Files put aside.
    pub(in crate::record) rotated: IntCounter,
    /// Files removed.
    pub(in crate::record) removed: IntCounter,
}

impl Counts {
    /// All of them, at zero.
    pub(in crate::record) fn new(made: &Maker) -> prometheus::Result<Self> {
        let lines = made.counters(table::AUDIT_LINES)?;
        let checkpoints = made.counters(table::AUDIT_CHECKPOINTS)?;
        let tampered = made.counters(table::AUDIT_TAMPERED)?;
        let anchors = made.counters(table::AUDIT_ANCHORS)?;
        let files = made.counters(table::AUDIT_FILES)?;
        Ok(Self {
            written: lines.with(&["written"]),
            dropped: lines.with(&["dropped"]),
            failed: lines.with(&["failed"]),
            noted: checkpoints.with(&["written"]),
            not_noted: checkpoints.with(&["failed"]),
            anchored: anchors.with(&["told"]),
            anchors_failed: anchors.with(&["failed"]),
            cut: tampered.with(&["cut"]),
            foreign: tampered.with(&["foreign"]),
            deleted: tampered.with(&["deleted"]),
            rotated: files.with(&["rotated"]),
            removed: files.with(&["removed"]),
        })
    }

    /// Counts how the log was found.
    pub(super) fn found(&self, found: Tampering) {
        match found {
            Tampering::Cut => self.cut.inc(),
            Tampering::Foreign => self.foreign.inc(),
            Tampering::Deleted => self.deleted.inc(),
        }
    }
}
