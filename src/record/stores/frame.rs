//! Reads the records of a segment, which follow one another.
//!
//! ```text
//! 4 bytes   length of the sealed record, big-endian
//! 16 bytes  audit id
//! n bytes   the record, sealed for this segment, its offset and this id
//! ```

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use uuid::Uuid;

use super::error::StoreError;
use crate::protocol::AuditId;
use crate::seal::{OVERHEAD_BYTES, Purpose, SealError};

/// The purpose for which a record is sealed.
pub(super) const RECORD: Purpose = Purpose {
    mark: *b"lge",
    label: b"lychgate evidence: key of a record",
};
/// Length of the fields before the sealed record.
pub(super) const HEAD_BYTES: u64 = 20;
/// Maximum length of a record, in bytes: longer than any message that is read.
const MAX_RECORD_BYTES: u64 = (1 << 31) + (1 << 20);

/// Returns the name that a record is sealed under. It binds the record to its segment, offset and
/// id: it cannot be opened anywhere else.
pub(super) fn name(segment: &str, offset: u64, audit: AuditId) -> Vec<u8> {
    [
        segment.as_bytes(),
        &offset.to_be_bytes(),
        audit.0.as_bytes(),
    ]
    .concat()
}

/// The position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) audit: AuditId,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl Frame {
    /// Reads the frame that begins at `offset`; `None` at `end`, the length of the segment.
    ///
    /// # Errors
    /// The segment ends within the frame, or there is no valid frame at `offset`.
    pub(super) fn read(
        source: &mut (impl Read + Seek),
        path: &Path,
        offset: u64,
        end: u64,
    ) -> Result<Option<Self>, StoreError> {
        if offset >= end {
            return Ok(None);
        }
        let torn_error = || StoreError::Torn {
            file: path.to_owned(),
            offset,
        };
        let io_error =
            |error| super::error::at_store(super::EVIDENCE.store_name)(SealError::at(path)(error));
        let mut head = [0; HEAD_BYTES as usize];
        source.seek(SeekFrom::Start(offset)).map_err(io_error)?;
        match source.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Err(torn_error()),
            read => read.map_err(io_error)?,
        }
        let (length, id) = head.split_first_chunk::<4>().ok_or_else(torn_error)?;
        let length = u64::from(u32::from_be_bytes(*length));
        let audit = AuditId(Uuid::from_slice(id).map_err(|_| torn_error())?);
        let is_valid = (OVERHEAD_BYTES as u64..=MAX_RECORD_BYTES).contains(&length)
            && offset + HEAD_BYTES + length <= end;
        if is_valid {
            Ok(Some(Self {
                audit,
                offset,
                length,
            }))
        } else {
            Err(torn_error())
        }
    }

    /// Returns the offset of the next frame.
    pub(super) fn next(&self) -> u64 {
        self.offset + HEAD_BYTES + self.length
    }
}
