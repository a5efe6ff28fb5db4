//! Verifies that an audit log was not modified: each line against the next one, the whole log
//! against its signed checkpoints, and these against checkpoints that were kept elsewhere
//! (anchors).
//!
//! Without the signing key, nobody can change, remove, reorder or insert a line before the last
//! checkpoint undetected. Anchors, which have left the machine, also detect changes by someone who
//! has the key, and a log that was cut back together with its checkpoints to the same point.

mod notes;
mod parts;
mod report;
mod walk;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use super::chain::PublicKey;
use super::chain::files::{self, Lines};
use super::chain::{Link, sha};
use notes::KnownDigests;
pub use parts::{Chain, Continuity, LogPart};
pub use report::{FileSummary, Flaw, Kind, Report, TornLine};
use walk::Walk;

/// Number of attempts to open the files, since one may be compressed or removed in the meantime.
const MAX_ATTEMPTS: usize = 5;

/// What a log is verified against.
#[derive(Debug, Default)]
pub struct TrustAnchors {
    /// Keys that its checkpoints may be signed with. If empty, signatures are not checked.
    pub keys: Vec<PublicKey>,
    /// Checkpoints that were kept elsewhere: files with one per line.
    pub anchors: Vec<PathBuf>,
}

/// Verifies a log with all files that it was rotated to.
///
/// # Errors
/// A file cannot be read.
pub fn verify(log: &Path, trust_anchors: &TrustAnchors) -> io::Result<Report> {
    if log.is_dir() {
        let message = format!(
            "`{}` is a folder; pass the path of the log in it",
            log.display()
        );
        return Err(io::Error::new(io::ErrorKind::IsADirectory, message));
    }
    // Checkpoints are read first: a log that is being written can then only have more lines than
    // they cover.
    let mut report = Report::default();
    let digests = KnownDigests::read(log, trust_anchors, &mut report)?;
    let mut walk = Walk::new(digests, report);
    let mut files = open_all(log)?;
    files.sort_by_key(|(first, ..)| *first);
    for (_, path, mut lines) in files {
        walk.file(&path, &mut lines)?;
    }
    Ok(walk.finish(log))
}

/// Opens all files of the log and determines where in the chain each one begins. Files without a
/// link are not part of it, except for the log itself.
fn open_all(log: &Path) -> io::Result<Vec<(u64, PathBuf, Lines)>> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match try_open_all(log) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && attempts < MAX_ATTEMPTS
                    && log.exists() => {}
            opened => return opened,
        }
    }
}

fn try_open_all(log: &Path) -> io::Result<Vec<(u64, PathBuf, Lines)>> {
    let mut files = Vec::new();
    for path in rotated_files(log)? {
        if let Some(first) = first_seq(&path)? {
            files.push((first, path.clone(), Lines::open(&path)?));
        }
    }
    if log.exists() {
        let last = u64::MAX;
        files.push((
            first_seq(log)?.unwrap_or(last),
            log.to_owned(),
            Lines::open(log)?,
        ));
    }
    if files.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("no audit log at `{}`", log.display()),
        ));
    }
    Ok(files)
}

/// Returns the files that the log was rotated to, by the gate or another program. A file that is
/// being compressed exists twice; the plain one is complete.
fn rotated_files(log: &Path) -> io::Result<Vec<PathBuf>> {
    let all = files::siblings(log)?;
    let is_duplicate = |path: &PathBuf| {
        let plain = path
            .to_string_lossy()
            .strip_suffix(files::GZ_SUFFIX)
            .map(PathBuf::from);
        plain.is_some_and(|plain| all.contains(&plain))
    };
    Ok(all
        .iter()
        .filter(|path| !is_duplicate(path))
        .cloned()
        .collect())
}

/// Returns the number of the first line in a file that has one.
fn first_seq(path: &Path) -> io::Result<Option<u64>> {
    let mut lines = Lines::open(path)?;
    loop {
        match lines.next() {
            Ok(Some(files::Piece::Whole(line))) => {
                if let Some(link) = Link::parse(&line) {
                    return Ok(Some(link.seq));
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(error) if is_unreadable(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// Reports whether an error means that a compressed file is not, or no longer, valid gzip.
fn is_unreadable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
    )
}

fn digest(line: &[u8]) -> super::chain::Sha {
    sha(line)
}
