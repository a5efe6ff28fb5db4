//! A stored message and the information about it.

use std::fmt;
use std::ops::Deref;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::message::Direction;
use crate::protocol::AuditId;

/// Information about a stored message. May contain text of an agent or an upstream (names of tools,
/// JSON pointers), which is unsafe until it is sanitized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageInfo {
    /// The id of its line in the audit log.
    #[serde(with = "as_uuid")]
    pub audit: AuditId,
    /// When it was inspected.
    #[serde(with = "as_millis", rename = "at_unix_ms")]
    pub at: SystemTime,
    /// The direction of the message.
    #[serde(with = "as_word")]
    pub direction: Direction,
    /// The agent that sent or receives it.
    pub agent: String,
    /// The user of the agent, if its credential names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The upstream that sent or receives it.
    pub upstream: String,
    /// The method; for an answer, that of its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The tool, prompt or resource that it concerns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The policy under which it was inspected.
    pub policy: String,
    /// The protocol era of the agent: `legacy` or `modern`.
    pub era: String,
    /// A digest of the call that it answers; the same for calls with the same request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// JSON pointers to the places that content was removed from; empty if none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// The rules that caused the removal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// Length of the message in bytes.
    #[serde(default)]
    pub bytes: u64,
}

/// A stored message, as received.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredMessage {
    pub info: MessageInfo,
    /// The bytes of the message.
    pub message: Bytes,
}

impl Deref for StoredMessage {
    type Target = MessageInfo;

    fn deref(&self) -> &MessageInfo {
        &self.info
    }
}

/// Omits the message itself.
impl fmt::Debug for StoredMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("about", &self.info)
            .finish_non_exhaustive()
    }
}

impl MessageInfo {
    /// Serializes it as JSON, to be sealed.
    pub(super) fn to_json(&self) -> Option<Zeroizing<Vec<u8>>> {
        serde_json::to_vec(self).ok().map(Zeroizing::new)
    }
}

impl StoredMessage {
    /// Serializes it as bytes, to be sealed: the length of the information, the information as
    /// JSON, and the message.
    pub(super) fn to_bytes(&self) -> Option<Zeroizing<Vec<u8>>> {
        let info = serde_json::to_vec(&self.info).ok()?;
        let length = u32::try_from(info.len()).ok()?;
        let mut out = Zeroizing::new(Vec::with_capacity(4 + info.len() + self.message.len()));
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&info);
        out.extend_from_slice(&self.message);
        Some(out)
    }

    /// Parses the bytes that [`Self::to_bytes`] returns.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (info, message) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        Some(Self {
            info: serde_json::from_slice(info).ok()?,
            message: Bytes::copy_from_slice(message),
        })
    }
}

/// Converts a time to milliseconds since 1970.
pub(super) fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Converts milliseconds since 1970 to a time.
pub(super) fn at_millis(millis: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_millis(millis))
        .unwrap_or(UNIX_EPOCH)
}

/// Serializes an id as text.
pub(super) mod as_uuid {
    use serde::{Deserializer, Serializer, de};

    use super::{AuditId, Deserialize, Uuid};

    pub(in crate::record::stores) fn serialize<S: Serializer>(
        id: &AuditId,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(in crate::record::stores) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<AuditId, D::Error> {
        let text = String::deserialize(deserializer)?;
        Uuid::try_parse(&text)
            .map(AuditId)
            .map_err(|_| de::Error::custom("no id"))
    }
}

/// Serializes a time as milliseconds since 1970.
pub(super) mod as_millis {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, SystemTime, at_millis, millis};

    pub(in crate::record::stores) fn serialize<S: Serializer>(
        at: &SystemTime,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(millis(*at))
    }

    pub(in crate::record::stores) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<SystemTime, D::Error> {
        u64::deserialize(deserializer).map(at_millis)
    }
}

/// Serializes a direction as a word.
mod as_word {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, Direction};

    pub(super) fn serialize<S: Serializer>(
        direction: &Direction,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(direction.name())
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Direction, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(if word == Direction::Outbound.name() {
            Direction::Outbound
        } else {
            Direction::Inbound
        })
    }
}
