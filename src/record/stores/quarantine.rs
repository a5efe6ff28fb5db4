//! The quarantine: messages that something was taken out of, one sealed file each.
//!
//! ```text
//! ID.item               what is known of it and the message, each sealed by itself: a list opens the first only
//! released/ID.RELEASE   waits for its agent; who moves it to `delivered/` delivers, so that exactly one does
//! notes/                what people did, for a running gate to tell the audit log
//! ```

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
use super::release::named;
use super::stored_message::{MessageInfo, StoredMessage};
use crate::config::QuarantineConfig;
use crate::protocol::AuditId;
use crate::seal::{
    self, Keychain, Keys, Listed, OVERHEAD_BYTES, Purpose, SealError, Sealed, SealedFolder, Sources,
};

/// What is known of a message is sealed for this, and the message for that.
const ABOUT: Purpose = Purpose {
    mark: *b"lgq",
    label: b"lychgate quarantine: key of what is known",
};
const MESSAGE: Purpose = Purpose {
    mark: *b"lgm",
    label: b"lychgate quarantine: key of a message",
};
/// Ends the name of an item.
const ITEM: &str = ".item";
/// Maximum number of bytes of what is known of a message, sealed.
const ABOUT_BYTES: u64 = 256 << 10;
/// Maximum number of messages of one server that are kept in a minute: a server that sends nothing else would drive out all
/// others' and hold up whoever waits for the disk.
const PER_MINUTE: u32 = 60;
const MINUTE: Duration = Duration::from_secs(60);
/// Maximum number of files that are looked at in one folder: more cannot come of the limits.
const FILES: usize = 200_000;
/// Longest note or release, in bytes.
const SMALL_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub struct Quarantine {
    pub(super) items: SealedFolder,
    pub(super) released: SealedFolder,
    pub(super) delivered: SealedFolder,
    pub(super) notes: SealedFolder,
    keys: Keychain,
    most: usize,
    bytes: u64,
    age: Duration,
    pub(super) release: Duration,
    /// Held while room is made: how many of each server were kept in this minute.
    keeping: Mutex<RecentIntake>,
}

/// How many messages of each server were kept since then.
#[derive(Debug, Default)]
struct RecentIntake {
    since: Option<Instant>,
    kept: HashMap<String, u32>,
}

/// What has become of a message in quarantine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It lies there.
    Kept,
    /// It waits for its agent.
    Released {
        /// Until then.
        until: SystemTime,
    },
    /// It was delivered, once or more often.
    Delivered,
}

/// A message in quarantine, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What is known of it.
    pub about: MessageInfo,
    /// What has become of it.
    pub state: State,
}

/// What is in the quarantine.
#[derive(Debug, Default)]
pub struct Listing {
    /// All that can be opened, newest first.
    pub items: Vec<Item>,
    /// Why others cannot.
    pub faults: Vec<StoreError>,
}

impl Quarantine {
    /// The quarantine that the config names; `None` if it is off or names no folder. Makes nothing on disk until something is
    /// kept.
    ///
    /// # Errors
    /// Others can look into the folder, or the key is there and cannot be used.
    pub fn open(config: &QuarantineConfig) -> Result<Option<Self>, StoreError> {
        let Some(folder) = config.folder.as_ref().filter(|_| config.enabled) else {
            return Ok(None);
        };
        let of = error::of(super::QUARANTINE.of);
        let [items, released, delivered, notes] =
            ["", "released", "delivered", "notes"].map(|name| {
                SealedFolder::new(if name.is_empty() {
                    folder.clone()
                } else {
                    folder.join(name)
                })
            });
        items.exists().map_err(&of)?;
        let sources = Sources::new(super::QUARANTINE, &config.key, &[], folder).map_err(&of)?;
        sources.check().map_err(&of)?;
        let keys = Keychain::new(sources);
        let keeping = Mutex::default();
        let QuarantineConfig {
            items: most,
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
            most,
            bytes,
            age,
            release,
            keeping,
        }))
    }

    pub fn path(&self) -> &Path {
        self.items.path()
    }

    /// Keeps a message; once this returns it is on the disk. Gives how many older ones had to go for it.
    ///
    /// # Errors
    /// It is too long, or cannot be written.
    pub fn keep(&self, kept: &StoredMessage) -> Result<usize, StoreError> {
        let about = kept
            .info
            .to_json()
            .ok_or_else(|| self.damaged(&item(kept.audit)))?;
        let bytes = (4 + about.len() + kept.message.len() + 2 * OVERHEAD_BYTES) as u64;
        if bytes > self.bytes {
            return Err(StoreError::TooLong {
                bytes,
                limit: self.bytes,
            });
        }
        let mut lately = self.keeping.lock();
        lately.count(&kept.upstream)?;
        let gone = self.make_room(1, bytes)?;
        let about = self.seal(ABOUT, &kept.audit.to_string(), about)?;
        let message = self.seal(
            MESSAGE,
            &kept.audit.to_string(),
            Zeroizing::new(kept.message.to_vec()),
        )?;
        let length = u32::try_from(about.len()).unwrap_or(u32::MAX);
        let file = [&length.to_be_bytes(), &*about, &*message].concat();
        self.items.write(&item(kept.audit), &file).map_err(failed)?;
        Ok(gone)
    }

    /// All items, and the faults of those that cannot be opened.
    ///
    /// # Errors
    /// The folder cannot be read, or the key cannot be had.
    pub fn list(&self) -> Result<Listing, StoreError> {
        let mut listing = Listing::default();
        let released = self.releases()?;
        let delivered = self.delivered.files(FILES).map_err(failed)?;
        for file in self.files()?.iter().rev() {
            let Some(audit) = id(&file.name) else {
                continue;
            };
            match self.about(audit) {
                Ok(Some(about)) => {
                    let waits = released
                        .iter()
                        .find(|release| release.audit == audit && !release.is_over());
                    let was = delivered
                        .iter()
                        .any(|file| named(&file.name).is_some_and(|(of, _)| of == audit));
                    let state = match waits {
                        Some(release) => State::Released {
                            until: release.until,
                        },
                        None if was => State::Delivered,
                        None => State::Kept,
                    };
                    listing.items.push(Item { about, state });
                }
                Ok(None) => {}
                Err(error) => listing.faults.push(error),
            }
        }
        Ok(listing)
    }

    /// The ids of all messages, also of those that cannot be opened.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn ids(&self) -> Result<Vec<AuditId>, StoreError> {
        Ok(self
            .files()?
            .iter()
            .filter_map(|file| id(&file.name))
            .collect())
    }

    /// What is known of the message of this id, if it is kept.
    ///
    /// # Errors
    /// It cannot be read or opened.
    pub fn about(&self, audit: AuditId) -> Result<Option<MessageInfo>, StoreError> {
        let Some(start) = self
            .items
            .read(&item(audit), ABOUT_BYTES + 4)
            .map_err(failed)?
        else {
            return Ok(None);
        };
        self.opened_about(audit, &start).map(Some)
    }

    /// The message of this id, if it is kept.
    ///
    /// # Errors
    /// It cannot be read or opened.
    pub fn get(&self, audit: AuditId) -> Result<Option<StoredMessage>, StoreError> {
        let most = self.bytes.saturating_add(ABOUT_BYTES);
        let Some(file) = self.items.read(&item(audit), most).map_err(failed)? else {
            return Ok(None);
        };
        let about = self.opened_about(audit, &file)?;
        let (_, sealed) = parts(&file).ok_or_else(|| self.damaged(&item(audit)))?;
        let text = self.open_sealed(
            &self.items,
            &item(audit),
            MESSAGE,
            &audit.to_string(),
            sealed.to_vec(),
        )?;
        Ok(Some(StoredMessage {
            info: about,
            message: Bytes::copy_from_slice(&text),
        }))
    }

    /// Deletes the message of this id, also one that cannot be opened; whether there was one.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn delete(&self, audit: AuditId, by: Actor) -> Result<bool, StoreError> {
        let about = self.about(audit).ok().flatten();
        if !self.forget(audit)? {
            return Ok(false);
        }
        self.note(QuarantineAction::Deleted, audit, by, about.as_ref())?;
        Ok(true)
    }

    /// Removes what is older than it may be kept. To be called now and then: where nothing new is kept, nothing else does. How
    /// many.
    ///
    /// # Errors
    /// The folder cannot be read, or a file not be removed.
    pub fn forget_old(&self) -> Result<usize, StoreError> {
        let _keeping = self.keeping.lock();
        self.make_room(0, 0)
    }

    /// Removes what is too old, and the oldest until there is room for so many more with so many bytes. How many.
    fn make_room(&self, more: usize, room: u64) -> Result<usize, StoreError> {
        let files = self.files()?;
        let (mut count, mut bytes) = (
            files.len(),
            files.iter().map(|file| file.bytes).sum::<u64>(),
        );
        let mut gone = 0;
        for file in &files {
            if file.age < self.age && count + more <= self.most && bytes + room <= self.bytes {
                continue;
            }
            if let Some(audit) = id(&file.name)
                && self.forget(audit)?
            {
                gone += 1;
            }
            (count, bytes) = (count - 1, bytes - file.bytes);
        }
        Ok(gone)
    }

    /// Removes a message and what was said of it; whether it was there.
    fn forget(&self, audit: AuditId) -> Result<bool, StoreError> {
        for place in [&self.released, &self.delivered] {
            for file in place.files(FILES).map_err(failed)? {
                if named(&file.name).is_some_and(|(of, _)| of == audit) {
                    place.remove(&file.name).map_err(failed)?;
                }
            }
        }
        self.items.remove(&item(audit)).map_err(failed)
    }

    /// The files of all messages, oldest first: their names are made of the time (RFC 9562, version 7).
    fn files(&self) -> Result<Vec<Listed>, StoreError> {
        let mut files = self.items.files(FILES).map_err(failed)?;
        files.retain(|file| id(&file.name).is_some());
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    fn opened_about(&self, audit: AuditId, file: &[u8]) -> Result<MessageInfo, StoreError> {
        let name = item(audit);
        let (about, _) = parts(file).ok_or_else(|| self.damaged(&name))?;
        let text = self.open_sealed(
            &self.items,
            &name,
            ABOUT,
            &audit.to_string(),
            about.to_vec(),
        )?;
        serde_json::from_slice::<MessageInfo>(&text)
            .ok()
            .filter(|about| about.audit == audit)
            .ok_or_else(|| self.damaged(&name))
    }

    /// A note or a release; what is none is passed over, and told of.
    pub(super) fn small<T: DeserializeOwned>(
        &self,
        place: &SealedFolder,
        file: &str,
        purpose: Purpose,
    ) -> Option<T> {
        let sealed = place.read(file, SMALL_BYTES).map_err(failed).transpose()?;
        let opened = sealed.and_then(|sealed| self.open_sealed(place, file, purpose, file, sealed));
        let read =
            opened.and_then(|text| serde_json::from_slice(&text).map_err(|_| self.damaged(file)));
        read.map_err(|error| tracing::warn!(%error, "unreadable quarantine item ignored"))
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
        let keys = self.keys.to_open(&sealed).map_err(failed)?;
        let wrong = |why| error::closed(place.path().join(file), why, &keys, &self.keys);
        seal::open(keys.all(), purpose, name.as_bytes(), sealed).map_err(wrong)
    }

    pub(super) fn seal(
        &self,
        purpose: Purpose,
        name: &str,
        text: Zeroizing<Vec<u8>>,
    ) -> Result<Vec<u8>, StoreError> {
        self.items.create().map_err(failed)?;
        let spares = |keys: &Keys| self.check_key(keys);
        let keys = self
            .keys
            .to_seal(|| Ok::<_, SealError>(()), spares)
            .map_err(failed)?;
        let key = keys.seals(self.keys.sources()).map_err(failed)?;
        seal::seal(key, purpose, name.as_bytes(), text)
            .map_err(|error| failed(SealError::of(self.path())(error)))
    }

    /// Whether nothing is lost by a new key.
    fn check_key(&self, keys: &Keys) -> Result<(), SealError> {
        for file in self
            .items
            .files(FILES)?
            .iter()
            .filter(|file| id(&file.name).is_some())
        {
            let start = self
                .items
                .read(&file.name, 4 + OVERHEAD_BYTES as u64)?
                .unwrap_or_default();
            if !keys.fit(start.get(4..).unwrap_or_default()) {
                let at = self.keys.sources().first_named();
                let hint = "restore the key, or move the folder away";
                let told = format!(
                    "not found in {at}, but `{}` is encrypted\n  hint: {hint}",
                    file.name
                );
                return Err(SealError::Key(told));
            }
        }
        Ok(())
    }

    fn damaged(&self, file: &str) -> StoreError {
        StoreError::Sealed {
            file: self.path().join(file),
            why: Sealed::Damaged,
        }
    }
}

impl RecentIntake {
    /// Counts a message of this server, unless there were too many.
    fn count(&mut self, upstream: &str) -> Result<(), StoreError> {
        if self.since.is_none_or(|since| since.elapsed() >= MINUTE) {
            // Servers are those of the config: there are no more of them than that.
            *self = Self {
                since: Some(Instant::now()),
                kept: HashMap::new(),
            };
        }
        let kept = self.kept.entry(upstream.to_owned()).or_default();
        if *kept >= PER_MINUTE {
            return Err(StoreError::TooOften { limit: PER_MINUTE });
        }
        *kept += 1;
        Ok(())
    }
}

pub(super) fn failed(error: SealError) -> StoreError {
    error::of(super::QUARANTINE.of)(error)
}

fn item(audit: AuditId) -> String {
    format!("{audit}{ITEM}")
}

fn id(file: &str) -> Option<AuditId> {
    Uuid::try_parse(file.strip_suffix(ITEM)?).ok().map(AuditId)
}

/// The two sealed parts of an item's file.
fn parts(file: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = file.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

pub(super) fn json<T: Serialize>(what: &T) -> Zeroizing<Vec<u8>> {
    // These are plain data of ours.
    Zeroizing::new(serde_json::to_vec(what).unwrap_or_default())
}
