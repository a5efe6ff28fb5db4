//! The audit log: `[audit]`.

use std::path::PathBuf;
use std::time::Duration;

/// The audit log. In the file, the name of each limit includes its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// The destination of audit lines; none are written if not set.
    pub to: Option<AuditTo>,
    /// Whether a message is held until its audit line is on disk; if it cannot be written, the
    /// message is refused.
    pub required: bool,
    /// The file of the key that checkpoints are signed with; beside the log if not set.
    pub key_file: Option<PathBuf>,
    /// Number of lines after which a checkpoint is written.
    pub checkpoint_lines: u64,
    /// Time after which a checkpoint is written, if there are new lines: `checkpoint_seconds`.
    pub checkpoint_time: Duration,
    /// Destinations of each checkpoint.
    pub anchor: Anchor,
    /// When the file is rotated, and what is done with rotated files.
    pub rotation: Rotation,
}

/// Destinations of each checkpoint outside of this machine's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// A program and its arguments, which receives the checkpoint as one line of JSON on its
    /// standard input. Empty for none.
    pub command: Vec<String>,
    /// A URL that the checkpoint is sent to with POST.
    pub url: Option<String>,
    /// Maximum time for each of these: `anchor_seconds`.
    pub timeout: Duration,
}

/// When the file is rotated, and what is done with rotated files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Maximum size of the file; zero for no limit: `rotate_bytes`.
    pub bytes: u64,
    /// Maximum age of the file; zero for no limit: `rotate_hours`.
    pub age: Duration,
    /// Whether rotated files are compressed with gzip.
    pub compress: bool,
    /// Maximum number of rotated files: `keep_files`.
    pub keep_files: Option<u64>,
    /// Maximum age of rotated files: `keep_days`.
    pub keep_age: Option<Duration>,
    /// Maximum total size of rotated files: `keep_bytes`.
    pub keep_bytes: Option<u64>,
}

/// The destination of audit lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTo {
    /// A file to which lines are appended.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            to: None,
            required: false,
            key_file: None,
            checkpoint_lines: 1000,
            checkpoint_time: Duration::from_secs(60),
            anchor: Anchor {
                command: Vec::new(),
                url: None,
                timeout: Duration::from_secs(10),
            },
            rotation: Rotation {
                bytes: 256 << 20,
                age: Duration::ZERO,
                compress: true,
                keep_files: None,
                keep_age: None,
                keep_bytes: None,
            },
        }
    }
}

impl AuditConfig {
    /// Returns the file of the signing key: the configured one, or the one beside the log.
    pub fn key(&self) -> Option<PathBuf> {
        let beside = |to: &AuditTo| match to {
            AuditTo::File(log) => Some(Self::key_beside(log)),
            AuditTo::Stdout => None,
        };
        self.key_file
            .clone()
            .or_else(|| self.to.as_ref().and_then(beside))
    }

    /// Returns the file of a log's signing key for configs that name no other.
    pub fn key_beside(log: &std::path::Path) -> PathBuf {
        let mut name = log.as_os_str().to_owned();
        name.push(".key");
        name.into()
    }
}
