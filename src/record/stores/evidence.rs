//! The evidence store: whole messages, sealed, in append-only segments.
//!
//! Each process writes its own segments, so that none continues a file that another has written or
//! left incomplete. A record can be opened only at its original position: not if it was moved,
//! swapped or changed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::error::{self, StoreError};
use super::frame::{self, Frame, HEAD_BYTES, RECORD};
use super::stored_message::StoredMessage;
use super::writer::{EvidenceCounts, Writer};
use crate::config::EvidenceConfig;
use crate::protocol::AuditId;
use crate::seal::{self, FileEntry, Keychain, Keys, SealError, SealedFolder, Sources};

/// Suffix of the file name of a segment.
const SEGMENT_SUFFIX: &str = ".evidence";
/// Maximum number of bytes of a segment. A store has at least `SEGMENTS` of them, so that the
/// limits of bytes and age remove only a part of it.
const SEGMENT_BYTES: u64 = 64 << 20;
const SEGMENTS: u32 = 8;
/// Maximum number of files that are read; the limits do not allow more.
const MAX_FILES: usize = 200_000;
/// A segment modified within this time may end within a record, since it is still being written.
const FRESH_AGE: Duration = Duration::from_secs(5);

/// The evidence store.
#[derive(Debug)]
pub struct Evidence {
    store: Arc<Store>,
    writer: OnceLock<Option<Writer>>,
    counts: OnceLock<EvidenceCounts>,
}

/// The files on disk and the keys to open them.
#[derive(Debug)]
pub(super) struct Store {
    place: SealedFolder,
    keys: Keychain,
    bytes: u64,
    age: Duration,
}

/// A segment that records are appended to.
pub(super) struct Segment {
    name: String,
    file: File,
    length: u64,
    started: Instant,
}

impl Evidence {
    /// Opens the store that the config names; `None` if it names no folder. Creates nothing on disk
    /// until a message is stored.
    ///
    /// # Errors
    /// Other users have access to the folder, or the key exists and cannot be used.
    pub fn open(config: &EvidenceConfig) -> Result<Option<Self>, StoreError> {
        let Some(folder) = &config.folder else {
            return Ok(None);
        };
        let place = SealedFolder::new(folder.clone());
        place.exists().map_err(store_error)?;
        let sources =
            Sources::new(super::EVIDENCE, &config.key, &[], folder).map_err(store_error)?;
        sources.check().map_err(store_error)?;
        let store = Store {
            place,
            keys: Keychain::new(sources),
            bytes: config.bytes,
            age: config.age,
        };
        Ok(Some(Self {
            store: Arc::new(store),
            writer: OnceLock::new(),
            counts: OnceLock::new(),
        }))
    }

    pub fn path(&self) -> &std::path::Path {
        self.store.place.path()
    }

    /// Sets the counters for records. Must be called before the first one is offered.
    pub fn count(&self, counts: EvidenceCounts) {
        self.counts.set(counts).unwrap_or_default();
    }

    /// Queues a message to be written by another thread. If the queue is full, the message is
    /// dropped and counted.
    pub fn offer(&self, message: StoredMessage) {
        let start = || {
            let result = Writer::start(self.store.clone(), self.counts.get().cloned());
            result.map_err(|error| tracing::error!(%error, "evidence store disabled: cannot start its thread")).ok()
        };
        if let Some(writer) = self.writer.get_or_init(start) {
            writer.offer(message);
        }
    }

    /// Removes segments that have exceeded their maximum age. Must be called periodically, since
    /// otherwise they are removed only when a new message is stored.
    ///
    /// # Errors
    /// The folder cannot be read, or a segment cannot be removed.
    pub fn forget_old(&self) -> Result<(), StoreError> {
        let removed = self.store.forget_old(0)?;
        if let Some(counts) = self.counts.get() {
            counts.removed.inc_by(removed as u64);
        }
        Ok(())
    }

    /// Waits until all messages offered so far are written, for at most `timeout`.
    pub fn flush(&self, timeout: Duration) {
        if let Some(Some(writer)) = self.writer.get() {
            writer.flush(timeout);
        }
    }

    /// Returns the message with this id, if it is stored. If there are several (a batch has one
    /// id), returns the first.
    ///
    /// # Errors
    /// It cannot be read or opened.
    pub fn get(&self, audit: AuditId) -> Result<Option<StoredMessage>, StoreError> {
        // An incomplete segment does not affect the records in others.
        let is_whole = |read: &Result<StoredMessage, StoreError>| {
            !matches!(read, Err(StoreError::Torn { .. }))
        };
        self.records(Some(audit))?.find(is_whole).transpose()
    }

    /// Returns all messages, oldest first. A record that cannot be opened yields an error, and
    /// reading continues.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn iter(&self) -> Result<Records<'_>, StoreError> {
        self.records(None)
    }

    fn records(&self, only: Option<AuditId>) -> Result<Records<'_>, StoreError> {
        Ok(Records {
            store: &self.store,
            remaining: self.store.segments()?.into(),
            open: None,
            only,
        })
    }
}

/// The messages of an evidence store.
pub struct Records<'s> {
    store: &'s Store,
    remaining: VecDeque<FileEntry>,
    open: Option<OpenSegment>,
    only: Option<AuditId>,
}

struct OpenSegment {
    segment: FileEntry,
    path: PathBuf,
    file: BufReader<File>,
    offset: u64,
}

impl Iterator for Records<'_> {
    type Item = Result<StoredMessage, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some(reading) = &mut self.open else {
                let segment = self.remaining.pop_front()?;
                let path = self.store.place.path().join(&segment.name);
                match File::open(&path) {
                    Ok(file) => {
                        self.open = Some(OpenSegment {
                            segment,
                            path,
                            file: BufReader::new(file),
                            offset: 0,
                        })
                    }
                    // The oldest segments may be removed while others are read.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => {
                        return Some(Err(store_error(SealError::at(&path)(error))));
                    }
                }
                continue;
            };
            match Frame::read(
                &mut reading.file,
                &reading.path,
                reading.offset,
                reading.segment.bytes,
            ) {
                Ok(None) => self.open = None,
                Ok(Some(frame)) => {
                    reading.offset = frame.next();
                    if self.only.is_none_or(|only| only == frame.audit) {
                        return Some(self.store.open_record(reading, frame));
                    }
                }
                Err(error) => {
                    let is_fresh = reading.segment.age < FRESH_AGE;
                    self.open = None;
                    if !is_fresh {
                        return Some(Err(error));
                    }
                }
            }
        }
    }
}

impl Store {
    /// Returns all segments, oldest first.
    fn segments(&self) -> Result<Vec<FileEntry>, StoreError> {
        let mut files = self.place.files(MAX_FILES).map_err(store_error)?;
        files.retain(|file| {
            file.name
                .strip_suffix(SEGMENT_SUFFIX)
                .is_some_and(|id| Uuid::try_parse(id).is_ok())
        });
        // Their names contain the time (UUID version 7, RFC 9562).
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    fn open_record(
        &self,
        reading: &mut OpenSegment,
        frame: Frame,
    ) -> Result<StoredMessage, StoreError> {
        let io = |error| store_error(SealError::at(&reading.path)(error));
        let mut sealed = Vec::new();
        reading
            .file
            .seek(SeekFrom::Start(frame.offset + HEAD_BYTES))
            .map_err(io)?;
        reading
            .file
            .by_ref()
            .take(frame.length)
            .read_to_end(&mut sealed)
            .map_err(io)?;
        let keys = self.keys.keys_to_open(&sealed).map_err(store_error)?;
        let name = frame::name(&reading.segment.name, frame.offset, frame.audit);
        let wrong = |why| error::sealed_error(reading.path.clone(), why, &keys, &self.keys);
        let text = seal::open(keys.all(), RECORD, &name, sealed).map_err(wrong)?;
        StoredMessage::from_bytes(&text).ok_or(wrong(seal::UnsealError::Damaged))
    }

    /// Appends a record to the open segment, or to a new one if none is open or the open one is too
    /// long or too old. Returns the number of old segments that were removed to make room. After a
    /// failure, the segment is not written to any more.
    pub(super) fn append(
        &self,
        open: &mut Option<Segment>,
        message: &StoredMessage,
    ) -> Result<usize, StoreError> {
        let limit = SEGMENT_BYTES.min(self.bytes / u64::from(SEGMENTS));
        let mut removed = 0;
        let mut segment = match open.take() {
            // A segment is removed as a whole, so one that grows for too long would keep its
            // records beyond their maximum age.
            Some(segment)
                if segment.length < limit && segment.started.elapsed() < self.age / SEGMENTS =>
            {
                segment
            }
            full => {
                if let Some(full) = full {
                    full.file
                        .sync_data()
                        .map_err(|error| store_error(SealError::at(self.place.path())(error)))?;
                }
                removed = self.forget_old(limit)?;
                let name = format!("{}{SEGMENT_SUFFIX}", Uuid::now_v7().simple());
                let file = self.place.begin(&name).map_err(store_error)?;
                Segment {
                    name,
                    file,
                    length: 0,
                    started: Instant::now(),
                }
            }
        };
        let check = |keys: &Keys| self.check_key(keys);
        let keys = self
            .keys
            .keys_to_seal(|| Ok::<_, SealError>(()), check)
            .map_err(store_error)?;
        let key = keys.sealing_key(self.keys.sources()).map_err(store_error)?;
        let path = self.place.path().join(&segment.name);
        let io = |error| store_error(SealError::at(&path)(error));
        let text = message
            .to_bytes()
            .ok_or_else(|| io(std::io::Error::other("it is too long")))?;
        let name = frame::name(&segment.name, segment.length, message.audit);
        let sealed = seal::seal(key, RECORD, &name, text).map_err(io)?;
        let length =
            u32::try_from(sealed.len()).map_err(|_| io(std::io::Error::other("it is too long")))?;
        let bytes = [
            &length.to_be_bytes(),
            message.audit.0.as_bytes().as_slice(),
            &sealed,
        ]
        .concat();
        segment.file.write_all(&bytes).map_err(io)?;
        segment.length += bytes.len() as u64;
        *open = Some(segment);
        Ok(removed)
    }

    /// Syncs the open segment to disk.
    pub(super) fn sync(open: Option<&Segment>) -> std::io::Result<()> {
        open.map_or(Ok(()), |segment| segment.file.sync_data())
    }

    /// Checks that a new key would not replace a missing one that stored records are sealed with.
    fn check_key(&self, keys: &Keys) -> Result<(), SealError> {
        let segments = self.segments().unwrap_or_default();
        for segment in segments.iter().rev() {
            let start = self
                .place
                .read(&segment.name, HEAD_BYTES + seal::OVERHEAD_BYTES as u64)?
                .unwrap_or_default();
            let sealed = start.get(HEAD_BYTES as usize..).unwrap_or_default();
            if !sealed.is_empty() && !keys.has_key_for(sealed) {
                let at = self.keys.sources().describe_first();
                let hint = "restore the key, or move the folder away";
                return Err(SealError::Key(format!(
                    "not found in {at}, but `{}` is encrypted\n  hint: {hint}",
                    segment.name
                )));
            }
        }
        Ok(())
    }

    /// Removes segments that are too old, and then the oldest until there is room for `room` more
    /// bytes. Returns the number of removed segments.
    fn forget_old(&self, room: u64) -> Result<usize, StoreError> {
        let segments = self.segments()?;
        let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        let mut removed = 0;
        for segment in segments {
            if segment.age < self.age && bytes + room <= self.bytes {
                continue;
            }
            if self.place.remove(&segment.name).map_err(store_error)? {
                removed += 1;
            }
            bytes -= segment.bytes;
        }
        Ok(removed)
    }
}

fn store_error(error: SealError) -> StoreError {
    error::at_store(super::EVIDENCE.store_name)(error)
}
