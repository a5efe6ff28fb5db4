//! The counters of the audit log.

use prometheus::IntCounter;

use super::log::Tampering;
use crate::record::label::Maker;
use crate::record::table;

/// Counters for lines, checkpoints and files.
#[derive(Clone)]
pub(in crate::record) struct Counts {
    /// Lines handed to the operating system.
    pub(in crate::record) written: IntCounter,
    /// Lines dropped because the queue was full.
    pub(in crate::record) dropped: IntCounter,
    /// Lines refused by the operating system.
    pub(in crate::record) failed: IntCounter,
    /// Checkpoints written.
    pub(in crate::record) checkpoints_written: IntCounter,
    /// Checkpoints that could not be written.
    pub(in crate::record) checkpoints_failed: IntCounter,
    /// Checkpoints that were sent to the anchors.
    pub(in crate::record) anchored: IntCounter,
    /// Checkpoints that could not be sent.
    pub(in crate::record) anchors_failed: IntCounter,
    /// Times that lines were found missing or modified.
    pub(in crate::record) cut: IntCounter,
    /// Times that lines of another program were found.
    pub(in crate::record) foreign: IntCounter,
    /// Times that the log was found deleted.
    pub(in crate::record) deleted: IntCounter,
    /// Files rotated.
    pub(in crate::record) rotated: IntCounter,
    /// Files removed by retention.
    pub(in crate::record) removed: IntCounter,
}

impl Counts {
    /// Creates all counters, at zero.
    pub(in crate::record) fn new(maker: &Maker) -> prometheus::Result<Self> {
        let lines = maker.counters(table::AUDIT_LINES)?;
        let checkpoints = maker.counters(table::AUDIT_CHECKPOINTS)?;
        let tampered = maker.counters(table::AUDIT_TAMPERED)?;
        let anchors = maker.counters(table::AUDIT_ANCHORS)?;
        let files = maker.counters(table::AUDIT_FILES)?;
        Ok(Self {
            written: lines.with(&["written"]),
            dropped: lines.with(&["dropped"]),
            failed: lines.with(&["failed"]),
            checkpoints_written: checkpoints.with(&["written"]),
            checkpoints_failed: checkpoints.with(&["failed"]),
            anchored: anchors.with(&["told"]),
            anchors_failed: anchors.with(&["failed"]),
            cut: tampered.with(&["cut"]),
            foreign: tampered.with(&["foreign"]),
            deleted: tampered.with(&["deleted"]),
            rotated: files.with(&["rotated"]),
            removed: files.with(&["removed"]),
        })
    }

    /// Counts detected tampering.
    pub(super) fn count_tampering(&self, tampering: Tampering) {
        match tampering {
            Tampering::Cut => self.cut.inc(),
            Tampering::Foreign => self.foreign.inc(),
            Tampering::Deleted => self.deleted.inc(),
        }
    }
}
