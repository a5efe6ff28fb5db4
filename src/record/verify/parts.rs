//! A log for its readers: its files in order, and the continuity of its lines.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{digest, first_seq, rotated_files};
use crate::record::chain::files::rotation_time;
use crate::record::chain::{Head, Link};

/// A file that the log was rotated to, by the gate or by another program (logrotate). Ordered by
/// lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPart {
    /// Number of its first line; zero if lines have no number.
    pub first: u64,
    /// When it was rotated, or last modified: no line in it is newer.
    pub until: SystemTime,
    pub path: PathBuf,
}

impl LogPart {
    /// Returns the files that the log was rotated to, oldest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(log: &Path) -> io::Result<Vec<Self>> {
        let mut parts = Vec::new();
        for path in rotated_files(log)? {
            // A file that is gone was compressed or removed; one that cannot be read is reported by
            // its reader.
            let Ok(metadata) = std::fs::metadata(&path) else {
                continue;
            };
            let first = first_seq(&path).ok().flatten().unwrap_or_default();
            let until = match rotation_time(log, &path) {
                Some(at) => at,
                None => metadata.modified()?,
            };
            parts.push(Self { first, until, path });
        }
        parts.sort();
        Ok(parts)
    }
}

/// Checks lines that are read in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chain(Option<Head>);

/// How a line relates to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// It follows that line, or there is no earlier line in the chain.
    Linked,
    /// It has no number and digest, unlike the line before it: the gate did not write it.
    Unlinked,
    /// Lines are missing before it, or one of the two was modified.
    Broken,
}

impl Chain {
    /// Returns how the next line, given without its line feed, relates to the one before it.
    pub fn next(&mut self, line: &[u8]) -> Continuity {
        let Some(link) = Link::parse(line) else {
            return if self.0.is_some() {
                Continuity::Unlinked
            } else {
                Continuity::Linked
            };
        };
        let is_linked = self.0.is_none_or(|last| last.leads_to(&link));
        self.0 = Some(Head {
            seq: link.seq,
            sha: digest(line),
        });
        if is_linked {
            Continuity::Linked
        } else {
            Continuity::Broken
        }
    }
}
