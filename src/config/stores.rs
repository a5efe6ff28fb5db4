//! What is kept of messages, sealed: `[quarantine]`, `[evidence]`, and `evidence` of a policy.

use std::path::PathBuf;
use std::time::Duration;

use super::VaultKey;

/// Where messages are kept that something was taken out of: `[quarantine]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineConfig {
    /// Whether they are kept at all: `enabled`.
    pub enabled: bool,
    /// The folder; none are kept without one: `folder`. `run` and `wrap` take [`Self::of_user`] where the config names none.
    pub folder: Option<PathBuf>,
    /// Where the key is: `key`.
    pub key: VaultKey,
    /// Maximum number of messages; the oldest goes first: `max_items`.
    pub items: usize,
    /// Maximum number of bytes of all of them: `max_bytes`.
    pub bytes: u64,
    /// For how long: `max_age_days`.
    pub age: Duration,
    /// How long what was released waits for its agent: `release_seconds`.
    pub release: Duration,
}

/// Where whole messages are kept, for policies that want that: `[evidence]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceConfig {
    /// The folder: `folder`. `run` and `wrap` take [`Self::of_user`] where the config names none.
    pub folder: Option<PathBuf>,
    /// Where the key is: `key`.
    pub key: VaultKey,
    /// Maximum number of bytes; the oldest segment goes first: `max_bytes`.
    pub bytes: u64,
    /// For how long: `max_age_days`.
    pub age: Duration,
}

/// What is kept of messages for later: `evidence` of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeps {
    /// Text in the audit log, with secrets masked.
    #[default]
    Redacted,
    /// The same, and every message whole, sealed.
    Sealed,
    /// Digests at the most.
    None,
}

impl Keeps {
    /// Words of the config file.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("redacted", Self::Redacted),
        ("sealed", Self::Sealed),
        ("none", Self::None),
    ];
}

const DAY: Duration = Duration::from_secs(86_400);

impl Default for QuarantineConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            folder: None,
            key: VaultKey::OfUser,
            items: 1000,
            bytes: 256 << 20,
            age: DAY * 30,
            release: Duration::from_secs(3600),
        }
    }
}

impl Default for EvidenceConfig {
    fn default() -> Self {
        Self {
            folder: None,
            key: VaultKey::OfUser,
            bytes: 1 << 30,
            age: DAY * 30,
        }
    }
}

impl QuarantineConfig {
    /// With the folder in the user's folder for `state` where none is named, if there is one.
    #[must_use]
    pub fn of_user(self, state: Option<PathBuf>) -> Self {
        let folder = self.folder.or_else(|| Some(state?.join("quarantine")));
        Self { folder, ..self }
    }

    /// Whether this is what `old` was made of.
    pub fn is_as(&self, old: &Self) -> bool {
        Self {
            folder: self.folder.clone().or_else(|| old.folder.clone()),
            ..self.clone()
        } == *old
    }
}

impl EvidenceConfig {
    /// With the folder in the user's folder for `state` where none is named, if there is one.
    #[must_use]
    pub fn of_user(self, state: Option<PathBuf>) -> Self {
        let folder = self.folder.or_else(|| Some(state?.join("evidence")));
        Self { folder, ..self }
    }

    /// Whether this is what `old` was made of.
    pub fn is_as(&self, old: &Self) -> bool {
        Self {
            folder: self.folder.clone().or_else(|| old.folder.clone()),
            ..self.clone()
        } == *old
    }
}
