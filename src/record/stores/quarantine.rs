//! The quarantine: messages that content was removed from, one sealed file each.
//!
//! ```text
//! ID.item               information about the message and the message, sealed separately
//! released/ID.RELEASE   waits for its agent; exactly one process moves it to `delivered/`
//! notes/                actions of operators, which a running gate writes to the audit log
//! ```
//!
//! A list opens only the information. The process that moves a release delivers the message.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::error::{self, StoreError};
use super::ledger::{Actor, QuarantineAction};
use super::release::parse_name;
use super::stored_message::{MessageInfo, StoredMessage};
use crate::config::QuarantineConfig;
use crate::protocol::AuditId;
use crate::seal::{
    self, FileEntry, Keychain, Keys, OVERHEAD_BYTES, Purpose, SealError, SealedFolder, Sources,
    UnsealError,
};

/// The purpose for which the information about a message is sealed; `MESSAGE` is that of the
/// message.
const INFO: Purpose = Purpose {
    mark: *b"lgq",
    label: b"lychgate quarantine: key of what is known",
};
const MESSAGE: Purpose = Purpose {
    mark: *b"lgm",
    label: b"lychgate quarantine: key of a message",
};
/// Suffix of the file name of an item.
const ITEM_SUFFIX: &str = ".item";
/// Maximum length of the sealed information about a message, in bytes.
const MAX_INFO_BYTES: u64 = 256 << 10;
/// Maximum number of messages of one upstream that are stored per minute. Without it, an upstream
/// that sends nothing else would displace the messages of all others and delay all callers that
/// wait for the disk.
const PER_MINUTE: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);
/// Maximum number of files that are read from one folder; the limits do not allow more.
const MAX_FILES: usize = 200_000;
/// Maximum length of a note or release, in bytes.
const MAX_SMALL_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub struct Quarantine {
    pub(super) items: SealedFolder,
    pub(super) released: SealedFolder,
    pub(super) delivered: SealedFolder,
    pub(super) notes: SealedFolder,
    keys: Keychain,
    max_items: usize,
    bytes: u64,
    age: Duration,
    pub(super) release: Duration,
    /// Number of messages stored for each upstream in the current minute; locked while room is
    /// made.
    intake: Mutex<RecentIntake>,
}

/// Number of messages of each upstream that were stored since a point in time.
#[derive(Debug, Default)]
struct RecentIntake {
    since: Option<Instant>,
    counts: HashMap<String, u32>,
}

/// The state of a message in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is stored.
    Stored,
    /// It is released and waits for its agent.
    Released {
        /// When the release expires.
        until: SystemTime,
    },
    /// It was delivered at least once.
    Delivered,
}

/// A message in quarantine as it appears in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub info: MessageInfo,
    pub state: State,
}

/// The contents of the quarantine.
#[derive(Debug, Default)]
pub struct Listing {
    /// All messages that can be opened, newest first.
    pub items: Vec<Item>,
    /// The errors of the messages that cannot be opened.
    pub faults: Vec<StoreError>,
}

impl Quarantine {
    /// Opens the quarantine that the config names; `None` if it is off or names no folder. Creates
    /// nothing on disk until a message is stored.
    ///
    /// # Errors
    /// Other users have access to the folder, or the key exists and cannot be used.
    pub fn open(config: &QuarantineConfig) -> Result<Option<Self>, StoreError> {
        let Some(folder) = config.folder.as_ref().filter(|_| config.enabled) else {
            return Ok(None);
        };
        let [items, released, delivered, notes] =
            ["", "released", "delivered", "notes"].map(|name| {
                SealedFolder::new(if name.is_empty() {
                    folder.clone()
                } else {
                    folder.join(name)
                })
            });
        items.exists().map_err(store_error)?;
        let sources =
            Sources::new(super::QUARANTINE, &config.key, &[], folder).map_err(store_error)?;
        sources.check().map_err(store_error)?;
        let keys = Keychain::new(sources);
        let intake = Mutex::default();
        let QuarantineConfig {
            items: max_items,
            bytes,
            age,
            release,
            ..
        } = *config;
        Ok(Some(Self {
            items,
            released,
            delivered,
            notes,
            keys,
            max_items,
            bytes,
            age,
            release,
            intake,
        }))
    }

    pub fn path(&self) -> &Path {
        self.items.path()
    }

    /// Stores a message; it is on disk when this returns. Returns the number of older messages that
    /// were removed to make room.
    ///
    /// # Errors
    /// The message is too long, its upstream has reached the limit per minute, or it cannot be
    /// written.
    pub fn store(&self, stored: &StoredMessage) -> Result<usize, StoreError> {
        let info = stored
            .info
            .to_json()
            .ok_or_else(|| self.damaged(&item_name(stored.audit)))?;
        let bytes = (4 + info.len() + stored.message.len() + 2 * OVERHEAD_BYTES) as u64;
        if bytes > self.bytes {
            return Err(StoreError::TooLong {
                bytes,
                limit: self.bytes,
            });
        }
        let mut intake = self.intake.lock();
        intake.count(&stored.upstream)?;
        let removed = self.make_room(1, bytes)?;
        let sealed_info = self.seal(INFO, &stored.audit.to_string(), info)?;
        let message = self.seal(
            MESSAGE,
            &stored.audit.to_string(),
            Zeroizing::new(stored.message.to_vec()),
        )?;
        let length = u32::try_from(sealed_info.len()).unwrap_or(u32::MAX);
        let file = [&length.to_be_bytes(), &*sealed_info, &*message].concat();
        self.items
            .write(&item_name(stored.audit), &file)
            .map_err(store_error)?;
        Ok(removed)
    }

    /// Returns all messages, and the errors of those that cannot be opened.
    ///
    /// # Errors
    /// The folder cannot be read, or the key is not available.
    pub fn list(&self) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        let released = self.releases()?;
        let delivered = self.delivered.files(MAX_FILES).map_err(store_error)?;
        for file in self.files()?.iter().rev() {
            let Some(audit) = item_id(&file.name) else {
                continue;
            };
            match self.info(audit) {
                Ok(Some(info)) => {
                    let pending = released
                        .iter()
                        .find(|release| release.audit == audit && !release.is_over());
                    let was_delivered = delivered
                        .iter()
                        .any(|file| parse_name(&file.name).is_some_and(|(of, _)| of == audit));
                    let state = match pending {
                        Some(release) => State::Released {
                            until: release.until,
                        },
                        None if was_delivered => State::Delivered,
                        None => State::Stored,
                    };
                    listing.items.push(Item { info, state });
                }
                Ok(None) => {}
                Err(error) => listing.faults.push(error),
            }
        }
        Ok(listing)
    }

    /// Returns the ids of all messages, including those that cannot be opened.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn ids(&self) -> Result<Vec<AuditId>, StoreError> {
        Ok(self
            .files()?
            .iter()
            .filter_map(|file| item_id(&file.name))
            .collect())
    }

    /// Returns the information about the message with this id, if it is stored.
    ///
    /// # Errors
    /// It cannot be read or opened.
    pub fn info(&self, audit: AuditId) -> Result<Option<MessageInfo>, StoreError> {
        let Some(start) = self
            .items
            .read(&item_name(audit), MAX_INFO_BYTES + 4)
            .map_err(store_error)?
        else {
            return Ok(None);
        };
        self.open_info(audit, &start).map(Some)
    }

    /// Returns the message with this id, if it is stored.
    ///
    /// # Errors
    /// It cannot be read or opened.
    pub fn get(&self, audit: AuditId) -> Result<Option<StoredMessage>, StoreError> {
        let most = self.bytes.saturating_add(MAX_INFO_BYTES);
        let Some(file) = self
            .items
            .read(&item_name(audit), most)
            .map_err(store_error)?
        else {
            return Ok(None);
        };
        let info = self.open_info(audit, &file)?;
        let (_, sealed) = split_item(&file).ok_or_else(|| self.damaged(&item_name(audit)))?;
        let text = self.open_sealed(
            &self.items,
            &item_name(audit),
            MESSAGE,
            &audit.to_string(),
            sealed.to_vec(),
        )?;
        Ok(Some(StoredMessage {
            info,
            message: Bytes::copy_from_slice(&text),
        }))
    }

    /// Deletes the message with this id, even if it cannot be opened. Returns whether it existed.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn delete(&self, audit: AuditId, by: Actor) -> Result<bool, StoreError> {
        let info = self.info(audit).ok().flatten();
        if !self.forget(audit)? {
            return Ok(false);
        }
        self.note(QuarantineAction::Deleted, audit, by, info.as_ref())?;
        Ok(true)
    }

    /// Removes messages that have exceeded their maximum age and returns their number. Must be
    /// called periodically, since otherwise they are removed only when a new message is stored.
    ///
    /// # Errors
    /// The folder cannot be read, or a file cannot be removed.
    pub fn forget_old(&self) -> Result<usize, StoreError> {
        let _keeping = self.intake.lock();
        self.make_room(0, 0)
    }

    /// Removes messages that are too old, and then the oldest until there is room for `more`
    /// messages with `room` bytes in total. Returns the number of removed messages.
    fn make_room(&self, more: usize, room: u64) -> Result<usize, StoreError> {
        let files = self.files()?;
        let (mut count, mut bytes) = (
            files.len(),
            files.iter().map(|file| file.bytes).sum::<u64>(),
        );
        let mut removed = 0;
        for file in &files {
            if file.age < self.age && count + more <= self.max_items && bytes + room <= self.bytes {
                continue;
            }
            if let Some(audit) = item_id(&file.name)
                && self.forget(audit)?
            {
                removed += 1;
            }
            (count, bytes) = (count - 1, bytes - file.bytes);
        }
        Ok(removed)
    }

    /// Removes a message and its releases. Returns whether it existed.
    fn forget(&self, audit: AuditId) -> Result<bool, StoreError> {
        for place in [&self.released, &self.delivered] {
            for file in place.files(MAX_FILES).map_err(store_error)? {
                if parse_name(&file.name).is_some_and(|(of, _)| of == audit) {
                    place.remove(&file.name).map_err(store_error)?;
                }
            }
        }
        self.items.remove(&item_name(audit)).map_err(store_error)
    }

    /// Returns the files of all messages, oldest first: their names contain the time (UUID version
    /// 7, RFC 9562).
    fn files(&self) -> Result<Vec<FileEntry>, StoreError> {
        let mut files = self.items.files(MAX_FILES).map_err(store_error)?;
        files.retain(|file| item_id(&file.name).is_some());
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    fn open_info(&self, audit: AuditId, file: &[u8]) -> Result<MessageInfo, StoreError> {
        let name = item_name(audit);
        let (sealed_info, _) = split_item(file).ok_or_else(|| self.damaged(&name))?;
        let text = self.open_sealed(
            &self.items,
            &name,
            INFO,
            &audit.to_string(),
            sealed_info.to_vec(),
        )?;
        serde_json::from_slice::<MessageInfo>(&text)
            .ok()
            .filter(|about| about.audit == audit)
            .ok_or_else(|| self.damaged(&name))
    }

    /// Reads a note or a release; one that cannot be read is logged and ignored.
    pub(super) fn read_small<T: DeserializeOwned>(
        &self,
        place: &SealedFolder,
        file: &str,
        purpose: Purpose,
    ) -> Option<T> {
        let sealed = place
            .read(file, MAX_SMALL_BYTES)
            .map_err(store_error)
            .transpose()?;
        let opened = sealed.and_then(|sealed| self.open_sealed(place, file, purpose, file, sealed));
        let result =
            opened.and_then(|text| serde_json::from_slice(&text).map_err(|_| self.damaged(file)));
        result
            .map_err(|error| tracing::warn!(%error, "unreadable quarantine item ignored"))
            .ok()
    }

    fn open_sealed(
        &self,
        place: &SealedFolder,
        file: &str,
        purpose: Purpose,
        name: &str,
        sealed: Vec<u8>,
    ) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let keys = self.keys.keys_to_open(&sealed).map_err(store_error)?;
        let wrong = |why| error::sealed_error(place.path().join(file), why, &keys, &self.keys);
        seal::open(keys.all(), purpose, name.as_bytes(), sealed).map_err(wrong)
    }

    pub(super) fn seal(
        &self,
        purpose: Purpose,
        name: &str,
        text: Zeroizing<Vec<u8>>,
    ) -> Result<Vec<u8>, StoreError> {
        self.items.create().map_err(store_error)?;
        let check = |keys: &Keys| self.check_key(keys);
        let keys = self
            .keys
            .keys_to_seal(|| Ok::<_, SealError>(()), check)
            .map_err(store_error)?;
        let key = keys.sealing_key(self.keys.sources()).map_err(store_error)?;
        seal::seal(key, purpose, name.as_bytes(), text)
            .map_err(|error| store_error(SealError::at(self.path())(error)))
    }

    /// Checks that a new key would not replace a missing one that stored messages are sealed with.
    fn check_key(&self, keys: &Keys) -> Result<(), SealError> {
        for file in self
            .items
            .files(MAX_FILES)?
            .iter()
            .filter(|file| item_id(&file.name).is_some())
        {
            let start = self
                .items
                .read(&file.name, 4 + OVERHEAD_BYTES as u64)?
                .unwrap_or_default();
            if !keys.has_key_for(start.get(4..).unwrap_or_default()) {
                let at = self.keys.sources().describe_first();
                let hint = "restore the key, or move the folder away";
                let message = format!(
                    "not found in {at}, but `{}` is encrypted\n  hint: {hint}",
                    file.name
                );
                return Err(SealError::Key(message));
            }
        }
        Ok(())
    }

    fn damaged(&self, file: &str) -> StoreError {
        StoreError::Sealed {
            file: self.path().join(file),
            why: UnsealError::Damaged,
        }
    }
}

impl RecentIntake {
    /// Counts a message of this upstream, unless its limit is reached.
    fn count(&mut self, upstream: &str) -> Result<(), StoreError> {
        if self.since.is_none_or(|since| since.elapsed() >= MINUTE) {
            // The map is bounded, since all upstreams are from the config.
            *self = Self {
                since: Some(Instant::now()),
                counts: HashMap::new(),
            };
        }
        let count = self.counts.entry(upstream.to_owned()).or_default();
        if *count >= PER_MINUTE {
            return Err(StoreError::TooOften { limit: PER_MINUTE });
        }
        *count += 1;
        Ok(())
    }
}

pub(super) fn store_error(error: SealError) -> StoreError {
    error::at_store(super::QUARANTINE.store_name)(error)
}

fn item_name(audit: AuditId) -> String {
    format!("{audit}{ITEM_SUFFIX}")
}

fn item_id(file: &str) -> Option<AuditId> {
    Uuid::try_parse(file.strip_suffix(ITEM_SUFFIX)?)
        .ok()
        .map(AuditId)
}

/// Returns the two sealed parts of an item's file.
fn split_item(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = file.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

pub(super) fn to_json<T: Serialize>(value: &T) -> Zeroizing<Vec<u8>> {
    // These types are plain data and always serialize.
    Zeroizing::new(serde_json::to_vec(value).unwrap_or_default())
}
