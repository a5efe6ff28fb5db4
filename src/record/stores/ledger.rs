//! Notes of what operators did with messages in quarantine. They may be written by any process; a
//! running gate reads them and writes them to the audit log.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::stored_message::{as_millis, as_uuid};
use crate::protocol::AuditId;
use crate::seal::Purpose;

/// The purpose for which a note is sealed.
pub(super) const NOTE: Purpose = Purpose {
    mark: *b"lgn",
    label: b"lychgate quarantine: key of a note",
};

/// Who performed an action, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// The name of a person.
    pub who: String,
    /// The reason in the person's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

enum_with_names! {
    /// An action on a message in quarantine. Named as in the audit log and in metrics.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum QuarantineAction {
        /// The message was displayed in cleartext.
        Shown = "shown",
        /// The message was released to its agent.
        Released = "released",
        Deleted = "deleted",
    }
}

/// An action that a person performed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    pub act: QuarantineAction,
    /// The message that was acted on.
    #[serde(with = "as_uuid")]
    pub audit: AuditId,
    pub by: Actor,
    #[serde(with = "as_millis", rename = "at_unix_ms")]
    pub at: SystemTime,
    /// The agent that the message is for; unknown if the message cannot be opened.
    #[serde(default)]
    pub agent: Option<String>,
    /// The upstream that sent it.
    #[serde(default)]
    pub upstream: Option<String>,
    /// The name of the note's file, for its removal once it is in the audit log.
    #[serde(skip)]
    pub(super) file: String,
}
