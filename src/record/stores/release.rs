//! What a person has released: good for one delivery, to one agent, for a while.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::StoreError;
use super::ledger::{Actor, LedgerEntry, NOTE, QuarantineAction};
use super::quarantine::{Quarantine, failed, json};
use super::stored_message::{MessageInfo, StoredMessage, as_millis, as_uuid, at_millis, millis};
use crate::protocol::AuditId;
use crate::seal::{Listed, Purpose};

/// What a release is sealed for.
pub(super) const RELEASE: Purpose = Purpose {
    mark: *b"lgr",
    label: b"lychgate quarantine: key of a release",
};

/// Maximum number of notes and releases that are looked at in one go.
const LOOKED: usize = 1000;

/// A release that waits for its agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// Names it, and the file that exactly one delivery takes away.
    pub id: String,
    #[serde(with = "as_uuid")]
    pub audit: AuditId,
    /// Who released it, and why.
    pub by: Actor,
    #[serde(with = "as_millis", rename = "at_unix_ms")]
    pub at: SystemTime,
    /// Until when it waits.
    #[serde(with = "as_millis", rename = "until_unix_ms")]
    pub until: SystemTime,
    /// Whose it is, and what was asked.
    pub about: MessageInfo,
}

impl Release {
    /// A new one, that ends then.
    pub(super) fn new(about: MessageInfo, by: Actor, at: SystemTime, until: SystemTime) -> Self {
        // As they are written down.
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

    /// Whether its time is over.
    pub fn is_over(&self) -> bool {
        SystemTime::now() >= self.until
    }

    /// The name of its file.
    pub(super) fn file(&self) -> String {
        format!("{}.{}", self.audit, self.id)
    }
}

impl Quarantine {
    /// Releases the message of this id: one delivery to its agent, if that asks in time. `None` if it is not kept.
    ///
    /// # Errors
    /// It cannot be opened, or the release cannot be written.
    pub fn release(&self, audit: AuditId, by: Actor) -> Result<Option<Release>, StoreError> {
        // Opened whole: what is damaged is not released.
        let Some(kept) = self.get(audit)? else {
            return Ok(None);
        };
        let now = SystemTime::now();
        let release = Release::new(kept.info, by.clone(), now, now + self.release);
        let file = release.file();
        // Who finds the release finds the note.
        self.note(QuarantineAction::Released, audit, by, Some(&release.about))?;
        for earlier in self
            .releases()?
            .iter()
            .filter(|earlier| earlier.audit == audit)
        {
            self.released.remove(&earlier.file()).map_err(failed)?;
        }
        let sealed = self.seal(RELEASE, &file, json(&release))?;
        self.released.write(&file, &sealed).map_err(failed)?;
        Ok(Some(release))
    }

    /// Notes that a message was read in clear.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn shown(&self, about: &MessageInfo, by: Actor) -> Result<(), StoreError> {
        self.note(QuarantineAction::Shown, about.audit, by, Some(about))
    }

    /// Gives up what is released to whoever asks first: the message, if this was it. `None` where another was faster, its time
    /// is over, or it is gone.
    ///
    /// # Errors
    /// It cannot be opened: then it still waits.
    pub fn take(&self, release: &Release) -> Result<Option<StoredMessage>, StoreError> {
        if release.is_over() {
            return Ok(None);
        }
        let Some(kept) = self.get(release.audit)? else {
            return Ok(None);
        };
        self.delivered.create().map_err(failed)?;
        let file = release.file();
        let taken = self
            .released
            .hand_over(&file, &self.delivered, &file)
            .map_err(failed)?;
        Ok(taken.then_some(kept))
    }

    /// What waits for its agents. To be looked at now and then.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn releases(&self) -> Result<Vec<Release>, StoreError> {
        let files = self.released.files(LOOKED).map_err(failed)?;
        let read = |file: &Listed| self.small::<Release>(&self.released, &file.name, RELEASE);
        Ok(files
            .iter()
            .filter_map(read)
            .filter(|release| release.about.audit == release.audit)
            .collect())
    }

    /// Removes a release whose time is over; whether it was this that did.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn expire(&self, release: &Release) -> Result<bool, StoreError> {
        if !release.is_over() {
            return Ok(false);
        }
        self.released.remove(&release.file()).map_err(failed)
    }

    /// What people have done that nobody has told of yet.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn notes(&self) -> Result<Vec<LedgerEntry>, StoreError> {
        let mut files = self.notes.files(LOOKED).map_err(failed)?;
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let read = |file: &Listed| {
            let note = self.small::<LedgerEntry>(&self.notes, &file.name, NOTE)?;
            Some(LedgerEntry {
                file: file.name.clone(),
                ..note
            })
        };
        Ok(files.iter().filter_map(read).collect())
    }

    /// Removes a note that was told of.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn told(&self, note: &LedgerEntry) -> Result<(), StoreError> {
        self.notes.remove(&note.file).map_err(failed).map(|_| ())
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
        let sealed = self.seal(NOTE, &file, json(&note))?;
        self.notes.write(&file, &sealed).map_err(failed)
    }
}

/// What the name of a release's file says: which message, and which release.
pub(super) fn named(file: &str) -> Option<(AuditId, &str)> {
    let (audit, id) = file.split_once('.')?;
    Some((AuditId(Uuid::try_parse(audit).ok()?), id))
}
