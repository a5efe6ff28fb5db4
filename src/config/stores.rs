//! Encrypted stores for messages: `[quarantine]`, `[evidence]`, and `evidence` of a policy.

use std::path::PathBuf;
use std::time::Duration;

use super::VaultKey;

/// The store for messages from which content was removed: `[quarantine]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantineConfig {
    /// Whether such messages are stored: `enabled`.
    pub enabled: bool,
    /// The folder: `folder`. Without one, nothing is stored. `run` and `wrap` use
    /// [`Self::with_default_folder`] if the config names none.
    pub folder: Option<PathBuf>,
    /// The source of the key: `key`.
    pub key: VaultKey,
    /// Maximum number of messages; the oldest is removed first: `max_items`.
    pub items: usize,
    /// Maximum total size of the messages, in bytes: `max_bytes`.
    pub bytes: u64,
    /// Maximum age of a message: `max_age_days`.
    pub age: Duration,
    /// How long released content remains available to its agent: `release_seconds`.
    pub release: Duration,
}

/// The store for complete messages, for policies that require it: `[evidence]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceConfig {
    /// The folder: `folder`. `run` and `wrap` use [`Self::with_default_folder`] if the config names
    /// none.
    pub folder: Option<PathBuf>,
    /// The source of the key: `key`.
    pub key: VaultKey,
    /// Maximum number of bytes; the oldest segment is removed first: `max_bytes`.
    pub bytes: u64,
    /// Maximum age of a message: `max_age_days`.
    pub age: Duration,
}

enum_with_names! {
    /// What is stored of messages for later: `evidence` of a policy. Named as in the config file.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum EvidenceLevel {
        /// Text in the audit log, with secrets masked.
        #[default]
        Redacted = "redacted",
        /// The same, and in addition every complete message, encrypted.
        Sealed = "sealed",
        /// At most digests.
        None = "none",
    }
}

const DAY: Duration = Duration::from_secs(86_400);

impl Default for QuarantineConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            folder: None,
            key: VaultKey::UserDefault,
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
            key: VaultKey::UserDefault,
            bytes: 1 << 30,
            age: DAY * 30,
        }
    }
}

impl QuarantineConfig {
    /// Fills in a folder below the user's `state` folder, if there is one and no folder is named.
    #[must_use]
    pub fn with_default_folder(self, state: Option<PathBuf>) -> Self {
        let folder = self.folder.or_else(|| Some(state?.join("quarantine")));
        Self { folder, ..self }
    }

    /// Reports whether this is the config that `old` was derived from, where `old` may have the
    /// default folder filled in.
    pub fn is_same_config(&self, old: &Self) -> bool {
        Self {
            folder: self.folder.clone().or_else(|| old.folder.clone()),
            ..self.clone()
        } == *old
    }
}

impl EvidenceConfig {
    /// Fills in a folder below the user's `state` folder, if there is one and no folder is named.
    #[must_use]
    pub fn with_default_folder(self, state: Option<PathBuf>) -> Self {
        let folder = self.folder.or_else(|| Some(state?.join("evidence")));
        Self { folder, ..self }
    }

    /// Reports whether this is the config that `old` was derived from, where `old` may have the
    /// default folder filled in.
    pub fn is_same_config(&self, old: &Self) -> bool {
        Self {
            folder: self.folder.clone().or_else(|| old.folder.clone()),
            ..self.clone()
        } == *old
    }
}
