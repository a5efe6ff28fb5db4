//! What is counted of the audit log.

use prometheus::IntCounter;

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
    /// Files put aside.
    pub(in crate::record) rotated: IntCounter,
    /// Files removed.
    pub(in crate::record) removed: IntCounter,
}

impl Counts {
    /// All of them, at zero.
    pub(in crate::record) fn new(made: &Maker) -> prometheus::Result<Self> {
        let (lines, checkpoints) = (made.counters(table::AUDIT_LINES)?, made.counters(table::AUDIT_CHECKPOINTS)?);
        let (anchors, files) = (made.counters(table::AUDIT_ANCHORS)?, made.counters(table::AUDIT_FILES)?);
        Ok(Self {
            written: lines.with(&["written"]),
            dropped: lines.with(&["dropped"]),
            failed: lines.with(&["failed"]),
            noted: checkpoints.with(&["written"]),
            not_noted: checkpoints.with(&["failed"]),
            anchored: anchors.with(&["told"]),
            anchors_failed: anchors.with(&["failed"]),
            rotated: files.with(&["rotated"]),
            removed: files.with(&["removed"]),
        })
    }
}
