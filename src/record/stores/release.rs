//! Releases from quarantine: each permits one delivery to one agent within a limited time.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::StoreError;
use super::ledger::{Actor, LedgerEntry, NOTE, QuarantineAction};
use super::quarantine::{Quarantine, store_error, to_json};
use super::stored_message::{MessageInfo, StoredMessage, as_millis, as_uuid, at_millis, millis};
use crate::protocol::AuditId;
use crate::seal::{FileEntry, Purpose};

/// The purpose for which a release is sealed.
pub(super) const RELEASE: Purpose = Purpose {
    mark: *b"lgr",
    label: b"lychgate quarantine: key of a release",
};

/// Maximum number of notes or releases that are read at once.
const MAX_READ: usize = 1000;

/// A release that waits for its agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The id of the release, and part of the name of the file that exactly one delivery moves
    /// away.
    pub id: String,
    #[serde(with = "as_uuid")]
    pub audit: AuditId,
    /// Who released the message, and why.
    pub by: Actor,
    #[serde(with = "as_millis", rename = "at_unix_ms")]
    pub at: SystemTime,
    /// When the release expires.
    #[serde(with = "as_millis", rename = "until_unix_ms")]
    pub until: SystemTime,
    /// The agent that the message is for and the call that it answers.
    pub about: MessageInfo,
}

impl Release {
    /// Creates a release that expires at `until`.
    pub(super) fn new(about: MessageInfo, by: Actor, at: SystemTime, until: SystemTime) -> Self {
        // In whole milliseconds, as they are stored.
        let [at, until] = [at, until].map(|time| at_millis(millis(time)));
        Self {
            id: Uuid::new_v4().simple().to_string(),
            audit: about.audit,
            by,
            at,
            until,
            about,
        }
    }

    /// Reports whether the release has expired.
    pub fn is_over(&self) -> bool {
        SystemTime::now() >= self.until
    }

    /// Returns the name of the release's file.
    pub(super) fn file(&self) -> String {
        format!("{}.{}", self.audit, self.id)
    }
}

impl Quarantine {
    /// Releases the message with this id for one delivery to its agent, if the agent asks for it in
    /// time. `None` if the message is not stored.
    ///
    /// # Errors
    /// The message cannot be opened, or the release cannot be written.
    pub fn release(&self, audit: AuditId, by: Actor) -> Result<Option<Release>, StoreError> {
        // The whole message is opened, so that a damaged one is not released.
        let Some(stored) = self.get(audit)? else {
            return Ok(None);
        };
        let now = SystemTime::now();
        let release = Release::new(stored.info, by.clone(), now, now + self.release);
        let file = release.file();
        // The note is written first, so that there is a note for every release.
        self.note(QuarantineAction::Released, audit, by, Some(&release.about))?;
        for earlier in self
            .releases()?
            .iter()
            .filter(|earlier| earlier.audit == audit)
        {
            self.released.remove(&earlier.file()).map_err(store_error)?;
        }
        let sealed = self.seal(RELEASE, &file, to_json(&release))?;
        self.released.write(&file, &sealed).map_err(store_error)?;
        Ok(Some(release))
    }

    /// Records that a message was displayed in cleartext.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn note_shown(&self, about: &MessageInfo, by: Actor) -> Result<(), StoreError> {
        self.note(QuarantineAction::Shown, about.audit, by, Some(about))
    }

    /// Claims a release and returns its message. `None` if another caller was first, the release
    /// has expired, or the message is gone.
    ///
    /// # Errors
    /// The message cannot be opened; the release remains in place.
    pub fn take(&self, release: &Release) -> Result<Option<StoredMessage>, StoreError> {
        if release.is_over() {
            return Ok(None);
        }
        let Some(stored) = self.get(release.audit)? else {
            return Ok(None);
        };
        self.delivered.create().map_err(store_error)?;
        let file = release.file();
        let is_taken = self
            .released
            .move_to(&file, &self.delivered, &file)
            .map_err(store_error)?;
        Ok(is_taken.then_some(stored))
    }

    /// Returns the releases that wait for their agents. Should be called periodically.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn releases(&self) -> Result<Vec<Release>, StoreError> {
        let files = self.released.files(MAX_READ).map_err(store_error)?;
        let read_release =
            |file: &FileEntry| self.read_small::<Release>(&self.released, &file.name, RELEASE);
        Ok(files
            .iter()
            .filter_map(read_release)
            .filter(|release| release.about.audit == release.audit)
            .collect())
    }

    /// Removes an expired release. Returns whether this call removed it.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn expire(&self, release: &Release) -> Result<bool, StoreError> {
        if !release.is_over() {
            return Ok(false);
        }
        self.released.remove(&release.file()).map_err(store_error)
    }

    /// Returns the notes that are not yet in the audit log.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn notes(&self) -> Result<Vec<LedgerEntry>, StoreError> {
        let mut files = self.notes.files(MAX_READ).map_err(store_error)?;
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let read_note = |file: &FileEntry| {
            let note = self.read_small::<LedgerEntry>(&self.notes, &file.name, NOTE)?;
            Some(LedgerEntry {
                file: file.name.clone(),
                ..note
            })
        };
        Ok(files.iter().filter_map(read_note).collect())
    }

    /// Removes a note that is in the audit log.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove_note(&self, note: &LedgerEntry) -> Result<(), StoreError> {
        self.notes
            .remove(&note.file)
            .map_err(store_error)
            .map(|_| ())
    }

    pub(super) fn note(
        &self,
        act: QuarantineAction,
        audit: AuditId,
        by: Actor,
        about: Option<&MessageInfo>,
    ) -> Result<(), StoreError> {
        let agent = about.map(|about| about.agent.clone());
        let upstream = about.map(|about| about.upstream.clone());
        let file = Uuid::now_v7().simple().to_string();
        let note = LedgerEntry {
            act,
            audit,
            by,
            at: SystemTime::now(),
            agent,
            upstream,
            file: String::new(),
        };
        let sealed = self.seal(NOTE, &file, to_json(&note))?;
        self.notes.write(&file, &sealed).map_err(store_error)
    }
}

/// Parses the name of a release's file into the id of the message and that of the release.
pub(super) fn parse_name(file: &str) -> Option<(AuditId, &str)> {
    let (audit, id) = file.split_once('.')?;
    Some((AuditId(Uuid::try_parse(audit).ok()?), id))
}
