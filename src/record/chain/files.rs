//! The files of a log: the current one and those that it was rotated to.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flate2::read::MultiGzDecoder;

use super::MAX_LINE_BYTES;

/// Suffix of the name of a compressed file.
pub(in crate::record) const GZ_SUFFIX: &str = ".gz";
/// Length of `YYYYMMDDTHHMMSSmmmZ-NNNN`.
const STAMP_BYTES: usize = 24;

/// Syncs the folder of a file, so that the names in it are on disk.
pub(in crate::record) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

/// Returns the file beside the log that contains its checkpoints.
pub(in crate::record) fn checkpoints(log: &Path) -> PathBuf {
    with_suffix(log, ".checkpoints")
}

/// Returns a path with a suffix added to its last name.
pub(in crate::record) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Returns the name for rotating the log now: it sorts after the earlier ones and is unused.
pub(in crate::record) fn rotated_name(log: &Path, now: SystemTime) -> io::Result<PathBuf> {
    let stamp: String = humantime::format_rfc3339_millis(now)
        .to_string()
        .chars()
        .filter(|c| !matches!(c, '-' | ':' | '.'))
        .collect();
    let last = rotated_files(log)?
        .into_iter()
        .filter_map(|path| own_stamp(log, &path))
        .max();
    let (stamp, number) = match last.as_deref().and_then(|last| last.split_once('-')) {
        // A clock that was set back does not change the order.
        Some((before, number)) if before >= stamp.as_str() => {
            (before.to_owned(), number.parse::<u32>().unwrap_or(0) + 1)
        }
        _ => (stamp, 0),
    };
    if number > 9999 {
        return Err(io::Error::other(
            "there are too many files of one millisecond",
        ));
    }
    Ok(with_suffix(log, &format!(".{stamp}-{number:04}")))
}

/// Returns the files that the gate rotated, oldest first. If one exists both plain and compressed,
/// returns the plain one.
pub(in crate::record) fn rotated_files(log: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<(String, PathBuf)> = siblings(log)?
        .into_iter()
        .filter_map(|path| own_stamp(log, &path).map(|stamp| (stamp, path)))
        .collect();
    // Of two with one stamp, the plain one has the shorter name and is first.
    files.sort();
    files.dedup_by(|later, earlier| later.0 == earlier.0);
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// Creates the folder of a file, accessible only to its owner, if it does not exist.
pub(in crate::record) fn create_folder(file: &Path) -> io::Result<()> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), |folder| {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)
    })
}

/// Returns the name of a file, without its folder.
pub(in crate::record) fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Returns every file that may be a part of the log, including those that other programs rotated
/// (`audit.jsonl.1`, `audit.jsonl-20261122.gz`).
pub(in crate::record) fn siblings(log: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = log
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let name = file_name(log);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let file = entry.file_name();
        let rest = file
            .to_str()
            .and_then(|file| file.strip_prefix(&name))
            .unwrap_or_default();
        let digits = rest.strip_prefix(['.', '-']).unwrap_or_default();
        let digits = digits.strip_suffix(GZ_SUFFIX).unwrap_or(digits);
        let is_numbered = !digits.is_empty()
            && digits
                .bytes()
                .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.' | b'T' | b'Z' | b'_'));
        if is_numbered
            && digits.starts_with(|c: char| c.is_ascii_digit())
            && entry.file_type()?.is_file()
        {
            files.push(log.with_file_name(file));
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the part between the log's name and an optional `.gz`, if the gate chose the name.
fn own_stamp(log: &Path, path: &Path) -> Option<String> {
    let name = path
        .file_name()?
        .to_str()?
        .strip_prefix(log.file_name()?.to_str()?)?
        .strip_prefix('.')?;
    let stamp = name.strip_suffix(GZ_SUFFIX).unwrap_or(name);
    let is_valid = stamp.len() == STAMP_BYTES
        && stamp.bytes().enumerate().all(|(at, byte)| match at {
            8 => byte == b'T',
            18 => byte == b'Z',
            19 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    is_valid.then(|| stamp.to_owned())
}

/// Returns the time at which the gate rotated a file; `None` for files that it did not rotate.
pub(in crate::record) fn rotation_time(log: &Path, path: &Path) -> Option<SystemTime> {
    let stamp = own_stamp(log, path)?;
    let part = |from: usize, to: usize| stamp.get(from..to);
    let time = format!(
        "{}-{}-{}T{}:{}:{}.{}Z",
        part(0, 4)?,
        part(4, 6)?,
        part(6, 8)?,
        part(9, 11)?,
        part(11, 13)?,
        part(13, 15)?,
        part(15, 18)?
    );
    humantime::parse_rfc3339(&time).ok()
}

/// A piece of a file: a line, or bytes that are not one.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::record) enum Piece {
    /// A complete line, without its line feed.
    Whole(Vec<u8>),
    /// The rest of a file, which has no line feed.
    Torn(Vec<u8>),
    /// Longer than any line of a log.
    TooLong(u64),
}

/// Reads the lines of a file, plain or compressed, one at a time.
pub(in crate::record) struct Lines(Box<dyn BufRead + Send>);

impl Lines {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(in crate::record) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let packed = path.extension().is_some_and(|extension| extension == "gz");
        Ok(Self(if packed {
            Box::new(BufReader::new(MultiGzDecoder::new(BufReader::new(file))))
        } else {
            Box::new(BufReader::new(file))
        }))
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(in crate::record) fn next(&mut self) -> io::Result<Option<Piece>> {
        let mut line = Vec::new();
        (&mut self.0)
            .take(MAX_LINE_BYTES as u64)
            .read_until(b'\n', &mut line)?;
        Ok(match line.pop() {
            None => None,
            Some(b'\n') => Some(Piece::Whole(line)),
            Some(last) if line.len() + 1 < MAX_LINE_BYTES => {
                line.push(last);
                Some(Piece::Torn(line))
            }
            Some(_) => Some(Piece::TooLong(MAX_LINE_BYTES as u64 + self.skip()?)),
        })
    }

    /// Skips the rest of a line and returns its length.
    fn skip(&mut self) -> io::Result<u64> {
        let mut skipped = 0;
        loop {
            let buffer = self.0.fill_buf()?;
            let (used, is_end) = match memchr::memchr(b'\n', buffer) {
                Some(at) => (at + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            skipped += used as u64;
            self.0.consume(used);
            if is_end {
                return Ok(skipped);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn files_put_aside_sort_and_are_told_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.jsonl");
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_000_000_123);
        let mut names = Vec::new();
        for time in [
            now,
            now,
            now - Duration::from_secs(9),
            now + Duration::from_secs(1),
        ] {
            let path = rotated_name(&log, time).unwrap();
            assert!(!path.exists());
            std::fs::write(&path, "").unwrap();
            names.push(path);
        }
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(name(&names[0]), "audit.jsonl.20261118T110640123Z-0000");
        assert_eq!(name(&names[2]), "audit.jsonl.20261118T110640123Z-0002");
        assert_eq!(rotated_files(&log).unwrap(), names);
        assert_eq!(rotation_time(&log, &names[0]), Some(now));
        std::fs::write(with_suffix(&names[1], GZ_SUFFIX), "").unwrap();
        for other in [
            "audit.jsonl.1",
            "audit.jsonl-20261122.gz",
            "audit.jsonl.checkpoints",
            "audit.jsonl.key",
            "audit.jsonlx.1",
            "b",
        ] {
            std::fs::write(folder.path().join(other), "").unwrap();
        }
        assert_eq!(
            rotated_files(&log).unwrap(),
            names,
            "the plain one counts while both are there"
        );
        let all: Vec<String> = siblings(&log).unwrap().iter().map(name).collect();
        assert!(
            all.contains(&"audit.jsonl.1".to_owned())
                && all.contains(&"audit.jsonl-20261122.gz".to_owned()),
            "{all:?}"
        );
        assert_eq!(all.len(), names.len() + 3);
    }
}
