//! Whether an audit log is as it was written: each line against the next, all of it against its signed checkpoints, and
//! these against what was kept elsewhere.
//!
//! Without the signing key nobody can change, remove, reorder or insert a line before the last checkpoint unnoticed. Who has
//! the key, or cuts log and checkpoints back to the same point, is found out by anchors, which have left the machine.

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

/// A file that is packed or removed while it is looked at is looked for again so often.
const TRIES: usize = 5;

/// What a log is checked against.
#[derive(Debug, Default)]
pub struct TrustAnchors {
    /// Keys that its checkpoints may be signed with. Without one no signature is checked.
    pub keys: Vec<PublicKey>,
    /// Checkpoints that were kept elsewhere: files with one on each line.
    pub anchors: Vec<PathBuf>,
}

/// Checks a log with all files that it was put aside as.
///
/// # Errors
/// Something cannot be read.
pub fn verify(log: &Path, against: &TrustAnchors) -> io::Result<Report> {
    if log.is_dir() {
        let told = format!(
            "`{}` is a folder; pass the path of the log in it",
            log.display()
        );
        return Err(io::Error::new(io::ErrorKind::IsADirectory, told));
    }
    // Checkpoints first: a log that is being written may only have more lines than they say.
    let mut report = Report::default();
    let noted = KnownDigests::read(log, against, &mut report)?;
    let mut walk = Walk::new(noted, report);
    let mut files = open_all(log)?;
    files.sort_by_key(|(first, ..)| *first);
    for (_, path, mut lines) in files {
        walk.file(&path, &mut lines)?;
    }
    Ok(walk.end(log))
}

/// Opens every file of the log and finds out where in the chain it begins; files without a link are none of it, unless it is
/// the log itself.
fn open_all(log: &Path) -> io::Result<Vec<(u64, PathBuf, Lines)>> {
    let mut tries = 0;
    loop {
        tries += 1;
        match try_open_all(log) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && tries < TRIES && log.exists() => {}
            opened => return opened,
        }
    }
}

fn try_open_all(log: &Path) -> io::Result<Vec<(u64, PathBuf, Lines)>> {
    let mut all = Vec::new();
    for path in rotated_files(log)? {
        if let Some(first) = first_seq(&path)? {
            all.push((first, path.clone(), Lines::open(&path)?));
        }
    }
    if log.exists() {
        let last = u64::MAX;
        all.push((
            first_seq(log)?.unwrap_or(last),
            log.to_owned(),
            Lines::open(log)?,
        ));
    }
    if all.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("no audit log at `{}`", log.display()),
        ));
    }
    Ok(all)
}

/// Files that the log was put aside as, by the gate or by others. One that is being packed is there twice: it is whole as it was.
fn rotated_files(log: &Path) -> io::Result<Vec<PathBuf>> {
    let all = files::siblings(log)?;
    let twice = |path: &PathBuf| {
        let plain = path
            .to_string_lossy()
            .strip_suffix(files::PACKED)
            .map(PathBuf::from);
        plain.is_some_and(|plain| all.contains(&plain))
    };
    Ok(all.iter().filter(|path| !twice(path)).cloned().collect())
}

/// The number of the first line of a file that has one.
fn first_seq(path: &Path) -> io::Result<Option<u64>> {
    let mut lines = Lines::open(path)?;
    loop {
        match lines.next() {
            Ok(Some(files::Piece::Whole(line))) => {
                if let Some(link) = Link::of(&line) {
                    return Ok(Some(link.seq));
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(error) if unreadable(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// Whether a packed file is not, or not any longer, what gzip writes.
fn unreadable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
    )
}

fn digest(line: &[u8]) -> super::chain::Sha {
    sha(line)
}
