//! A log for who reads it: its files in their order, and its lines as they follow from each other.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{digest, first_seq, rotated_files};
use crate::record::chain::files::put_aside_at;
use crate::record::chain::{Head, Link};

/// A file that the log was put aside as, by the gate or by others (logrotate). In the order of their lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPart {
    /// Number of its first line; zero where lines have none.
    pub first: u64,
    /// When it was put aside, or last written: no line in it is younger.
    pub until: SystemTime,
    pub path: PathBuf,
}

impl LogPart {
    /// What the log was put aside as, the oldest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn of(log: &Path) -> io::Result<Vec<Self>> {
        let mut parts = Vec::new();
        for path in rotated_files(log)? {
            // One that is gone by now was packed or removed; one that cannot be read is told of by who reads it.
            let Ok(metadata) = std::fs::metadata(&path) else {
                continue;
            };
            let first = first_seq(&path).ok().flatten().unwrap_or_default();
            let until = match put_aside_at(log, &path) {
                Some(at) => at,
                None => metadata.modified()?,
            };
            parts.push(Self { first, until, path });
        }
        parts.sort();
        Ok(parts)
    }
}

/// Lines as they are read one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Chain(Option<Head>);

/// How a line hangs together with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continuity {
    /// It follows from it, or there is none to follow from.
    Well,
    /// It has no number and no digest, and the one before has: the gate did not write it.
    Not,
    /// Lines are missing before it, or one of the two is not as it was written.
    Badly,
}

impl Chain {
    /// How the next line hangs together with the one before; without its line feed.
    pub fn next(&mut self, line: &[u8]) -> Continuity {
        let Some(link) = Link::of(line) else {
            return if self.0.is_some() {
                Continuity::Not
            } else {
                Continuity::Well
            };
        };
        let well = self.0.is_none_or(|last| last.leads_to(&link));
        self.0 = Some(Head {
            seq: link.seq,
            sha: digest(line),
        });
        if well {
            Continuity::Well
        } else {
            Continuity::Badly
        }
    }
}
