//! A kept message and what is known of it.

use std::fmt;
use std::ops::Deref;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::message::Direction;
use crate::protocol::AuditId;

/// What is known of a kept message. May hold words of an agent or a server (tools, pointers): harmless only where it is made so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageInfo {
    /// Its line in the audit log.
    #[serde(with = "as_uuid")]
    pub audit: AuditId,
    /// When it was judged.
    #[serde(with = "as_millis", rename = "at_unix_ms")]
    pub at: SystemTime,
    /// Which way it went.
    #[serde(with = "as_word")]
    pub direction: Direction,
    /// The agent on the one side.
    pub agent: String,
    /// Its user, where its credential names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The server on the other.
    pub upstream: String,
    /// The method; of an answer, that of its request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The tool, prompt or resource that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The policy that judged it.
    pub policy: String,
    /// How the agent speaks: `legacy` or `modern`.
    pub era: String,
    /// What the call was that it answers, as a digest: equal for calls that ask the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Where something was taken out, as JSON pointers; empty where nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// The rules for which it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// Length of the message in bytes.
    #[serde(default)]
    pub bytes: u64,
}

/// A message that is kept, as it came.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// What is known of it.
    pub info: MessageInfo,
    /// Its bytes.
    pub message: Bytes,
}

impl Deref for StoredMessage {
    type Target = MessageInfo;

    fn deref(&self) -> &MessageInfo {
        &self.info
    }
}

/// Never the message itself.
impl fmt::Debug for StoredMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("about", &self.info)
            .finish_non_exhaustive()
    }
}

impl MessageInfo {
    /// As JSON, to be sealed.
    pub(super) fn to_json(&self) -> Option<Zeroizing<Vec<u8>>> {
        serde_json::to_vec(self).ok().map(Zeroizing::new)
    }
}

impl StoredMessage {
    /// As bytes to be sealed: the length of what is known of it, that as JSON, and the message.
    pub(super) fn to_bytes(&self) -> Option<Zeroizing<Vec<u8>>> {
        let about = serde_json::to_vec(&self.info).ok()?;
        let length = u32::try_from(about.len()).ok()?;
        let mut out = Zeroizing::new(Vec::with_capacity(4 + about.len() + self.message.len()));
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&about);
        out.extend_from_slice(&self.message);
        Some(out)
    }

    /// From such bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (about, message) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        Some(Self {
            info: serde_json::from_slice(about).ok()?,
            message: Bytes::copy_from_slice(message),
        })
    }
}

/// Times as milliseconds since 1970.
pub(super) fn millis(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The other way round.
pub(super) fn at_millis(millis: u64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_millis(millis))
        .unwrap_or(UNIX_EPOCH)
}

/// An id as its text.
pub(super) mod as_uuid {
    use serde::{Deserializer, Serializer, de};

    use super::{AuditId, Deserialize, Uuid};

    pub(in crate::record::stores) fn serialize<S: Serializer>(
        id: &AuditId,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    pub(in crate::record::stores) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<AuditId, D::Error> {
        let text = String::deserialize(from)?;
        Uuid::try_parse(&text)
            .map(AuditId)
            .map_err(|_| de::Error::custom("no id"))
    }
}

/// A time as milliseconds since 1970.
pub(super) mod as_millis {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, SystemTime, at_millis, millis};

    pub(in crate::record::stores) fn serialize<S: Serializer>(
        at: &SystemTime,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_u64(millis(*at))
    }

    pub(in crate::record::stores) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<SystemTime, D::Error> {
        u64::deserialize(from).map(at_millis)
    }
}

/// A direction as its word.
mod as_word {
    use serde::{Deserializer, Serializer};

    use super::{Deserialize, Direction};

    pub(super) fn serialize<S: Serializer>(
        direction: &Direction,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.serialize_str(direction.name())
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Direction, D::Error> {
        let word = String::deserialize(from)?;
        Ok(if word == Direction::Outbound.name() {
            Direction::Outbound
        } else {
            Direction::Inbound
        })
    }
}
