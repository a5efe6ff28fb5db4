//! What people have done, written down for the audit log: a running gate tells of it, whichever process it was done in.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::stored_message::{as_millis, as_uuid};
use crate::protocol::AuditId;
use crate::seal::Purpose;

/// What a note is sealed for.
pub(super) const NOTE: Purpose = Purpose {
    mark: *b"lgn",
    label: b"lychgate quarantine: key of a note",
};

/// Who did something, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// A name that people know.
    pub who: String,
    /// In their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What can be done with a message in quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuarantineAction {
    /// It was read in clear.
    Shown,
    /// It was released to its agent.
    Released,
    Deleted,
}

impl QuarantineAction {
    /// The word of the audit log and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Released => "released",
            Self::Deleted => "deleted",
        }
    }
}

/// Something that a person has done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    pub act: QuarantineAction,
    /// With which message.
    #[serde(with = "as_uuid")]
    pub audit: AuditId,
    pub by: Actor,
    #[serde(with = "as_millis", rename = "at_unix_ms")]
    pub at: SystemTime,
    /// Whose message it was; not known of one that cannot be opened.
    #[serde(default)]
    pub agent: Option<String>,
    /// From which server.
    #[serde(default)]
    pub upstream: Option<String>,
    /// The name of its file, for who has told of it.
    #[serde(skip)]
    pub(super) file: String,
}
