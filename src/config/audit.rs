//! The audit log: `[audit]`.

use std::path::PathBuf;
use std::time::Duration;

/// The audit log. In the file each bound has its unit in its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// Where lines go; nowhere if not set.
    pub to: Option<AuditTo>,
    /// No audit, no traffic: a line is on the disk before its message goes on.
    pub required: bool,
    /// The key that checkpoints are signed with; beside the log if not set.
    pub key_file: Option<PathBuf>,
    /// A checkpoint is written after so many lines.
    pub checkpoint_lines: u64,
    /// And after so much time, if there are new lines: `checkpoint_seconds`.
    pub checkpoint_time: Duration,
    /// Destinations of each checkpoint.
    pub anchor: Anchor,
    /// When the file is put aside, and what becomes of it.
    pub rotation: Rotation,
}

/// Destinations of each checkpoint outside of this machine's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// A program and its arguments; it gets the checkpoint, one line of JSON, on its standard input. Empty for none.
    pub command: Vec<String>,
    /// An address that the checkpoint is sent to with POST.
    pub url: Option<String>,
    /// Longest time for one of these: `anchor_seconds`.
    pub timeout: Duration,
}

/// When the file is put aside, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Longest file; zero for no bound: `rotate_bytes`.
    pub bytes: u64,
    /// Oldest file; zero for no bound: `rotate_hours`.
    pub age: Duration,
    /// Whether files that were put aside are packed with gzip.
    pub compress: bool,
    /// How many of them are kept: `keep_files`.
    pub keep_files: Option<u64>,
    /// How old they may get: `keep_days`.
    pub keep_age: Option<Duration>,
    /// How large they may get together: `keep_bytes`.
    pub keep_bytes: Option<u64>,
}

/// Where audit lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTo {
    /// Appended to a file.
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
    /// The file that the key is in: the one that is named, or the one beside the log.
    pub fn key(&self) -> Option<PathBuf> {
        let beside = |to: &AuditTo| match to {
            AuditTo::File(log) => Some(Self::key_beside(log)),
            AuditTo::Stdout => None,
        };
        self.key_file
            .clone()
            .or_else(|| self.to.as_ref().and_then(beside))
    }

    /// Where the key of a log is if the config names no other place.
    pub fn key_beside(log: &std::path::Path) -> PathBuf {
        let mut name = log.as_os_str().to_owned();
        name.push(".key");
        name.into()
    }
}
