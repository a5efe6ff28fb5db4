//! An audit log with its rotated files, read from the oldest line to the newest.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use flate2::read::MultiGzDecoder;

use super::entry::{Entry, MAX_LINE_BYTES};
use super::follow::file_identity;
use crate::record::verify::{Chain, Continuity, LogPart};

/// Maximum size of one decompressed file, in bytes.
const MAX_UNPACKED_BYTES: u64 = 16 << 30;
/// Number of bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;
/// The extension of a compressed file.
const GZ_SUFFIX: &str = ".gz";
/// An audit log: its file and the rotated files next to it, which may be compressed.
#[derive(Clone, Debug)]
pub struct Log {
    path: PathBuf,
    since: Option<SystemTime>,
}

/// A line, or a part of a file, that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    pub file: PathBuf,
    /// The line number, from 1.
    pub line: u64,
    /// Why it cannot be read.
    pub why: String,
}

/// The lines of a log, oldest first. They are read lazily, one at a time; files rotated in the
/// meantime are not missed.
pub struct Entries {
    log: Log,
    /// The first line of the last rotated file that was opened, and the time until which that file
    /// was written.
    last: Option<(u64, SystemTime)>,
    open: Option<OpenLog>,
    chain: Chain,
    /// An entry to be returned after the error that the chain is broken before it.
    next: Option<Entry>,
    is_done: bool,
}

struct OpenLog {
    reader: Box<dyn BufRead + Send>,
    file: Arc<Path>,
    line: u64,
}

enum NextLine {
    Line(Vec<u8>),
    Bad(String),
    End,
}

impl Log {
    /// Opens the log at this path.
    ///
    /// # Errors
    /// There is neither such a file nor one rotated away from it, or the folder cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let log = Self::at_path(path);
        if path.is_dir() {
            let message = format!(
                "`{}` is a folder; pass the path of the log in it",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::IsADirectory, message));
        }
        if !path.exists() && log.rotated_parts()?.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("no audit log at `{}`", path.display()),
            ));
        }
        Ok(log)
    }

    /// Returns the log at this path, whether or not it exists.
    pub(super) fn at_path(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            since: None,
        }
    }

    /// Returns the files that were rotated away after the one with this device and inode number;
    /// empty if it is not one of them.
    pub(super) fn files_after(&self, id: (u64, u64)) -> io::Result<VecDeque<PathBuf>> {
        let parts = self.rotated_parts()?;
        let has_id = |part: &LogPart| {
            std::fs::metadata(&part.path).is_ok_and(|file| file_identity(&file) == id)
        };
        let start = parts
            .iter()
            .rposition(has_id)
            .map_or(parts.len(), |at| at + 1);
        Ok(parts
            .into_iter()
            .skip(start)
            .map(|part| part.path)
            .collect())
    }

    /// Excludes the files that were rotated away before this time, if any: they contain no newer
    /// line.
    #[must_use]
    pub fn since(mut self, time: Option<SystemTime>) -> Self {
        self.since = time;
        self
    }

    /// Returns the files that exist now, oldest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn files(&self) -> io::Result<Vec<PathBuf>> {
        let mut files = self.rotated_files()?;
        files.extend(Some(self.path.clone()).filter(|path| path.exists()));
        Ok(files)
    }

    /// Returns the lines of the log, oldest first.
    pub fn entries(&self) -> Entries {
        Entries {
            log: self.clone(),
            last: None,
            open: None,
            chain: Chain::default(),
            next: None,
            is_done: false,
        }
    }

    /// Returns the rotated files, oldest first.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn rotated_files(&self) -> io::Result<Vec<PathBuf>> {
        Ok(self
            .rotated_parts()?
            .into_iter()
            .map(|part| part.path)
            .collect())
    }

    fn rotated_parts(&self) -> io::Result<Vec<LogPart>> {
        let mut parts = LogPart::list(&self.path)?;
        parts.retain(|part| self.since.is_none_or(|since| part.until >= since));
        Ok(parts)
    }
}

impl Entries {
    /// Reads the lines of one file, compressed or not.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn read_file(path: &Path) -> io::Result<Self> {
        Ok(Self {
            open: open(path)?,
            is_done: true,
            ..Log::at_path(path).entries()
        })
    }

    /// Advances to the next file. Returns `false` after the last one.
    fn advance(&mut self) -> io::Result<bool> {
        // The log itself is opened before the folder is listed: if it is rotated in between, its
        // lines are found in the resulting file.
        let log = match File::open(&self.log.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            log => Some(log?),
        };
        let is_newer =
            |part: &LogPart| self.last.is_none_or(|last| (part.first, part.until) > last);
        if let Some(part) = self.log.rotated_parts()?.into_iter().find(is_newer) {
            // Its name may change while it is read; its position in the log does not.
            let until = if part.first > 0 {
                SystemTime::now()
            } else {
                part.until
            };
            self.last = Some((part.first, until));
            self.open = open(&part.path)?;
            return Ok(true);
        }
        self.is_done = true;
        self.open = log.map(|log| {
            OpenLog::new(
                Box::new(BufReader::with_capacity(CHUNK_BYTES, log)),
                &self.log.path,
            )
        });
        Ok(self.open.is_some())
    }

    fn bad_line(&self, file: &Path, line: u64, why: String) -> BadLine {
        BadLine {
            file: file.to_owned(),
            line,
            why,
        }
    }
}

/// Opens a rotated file, compressed or not; `None` if it has been deleted. It may have been
/// compressed since it was listed.
fn open(path: &Path) -> io::Result<Option<OpenLog>> {
    let compressed_path = PathBuf::from(format!("{}{GZ_SUFFIX}", path.display()));
    let (path, file) = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match File::open(&compressed_path)
        {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => (compressed_path, file?),
        },
        file => (path.to_owned(), file?),
    };
    let reader: Box<dyn BufRead + Send> = if path.to_string_lossy().ends_with(GZ_SUFFIX) {
        let decoder = MultiGzDecoder::new(BufReader::with_capacity(CHUNK_BYTES, file))
            .take(MAX_UNPACKED_BYTES);
        Box::new(BufReader::with_capacity(CHUNK_BYTES, decoder))
    } else {
        Box::new(BufReader::with_capacity(CHUNK_BYTES, file))
    };
    Ok(Some(OpenLog::new(reader, &path)))
}

impl OpenLog {
    fn new(reader: Box<dyn BufRead + Send>, path: &Path) -> Self {
        Self {
            reader,
            file: path.into(),
            line: 0,
        }
    }

    /// Returns the next line that is not empty.
    fn next(&mut self) -> io::Result<NextLine> {
        loop {
            let mut line = Vec::new();
            self.line += 1;
            let length = self
                .reader
                .by_ref()
                .take(MAX_LINE_BYTES as u64 + 1)
                .read_until(b'\n', &mut line)?;
            if length == 0 {
                return Ok(NextLine::End);
            }
            if line.last() == Some(&b'\n') {
                line.pop();
            } else if length > MAX_LINE_BYTES {
                self.skip_line()?;
                return Ok(NextLine::Bad(format!("longer than {MAX_LINE_BYTES} bytes")));
            }
            if !line.is_empty() {
                return Ok(NextLine::Line(line));
            }
        }
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let chunk = self.reader.fill_buf()?;
            let (used, is_end) = match chunk.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (chunk.len(), chunk.is_empty()),
            };
            self.reader.consume(used);
            if is_end {
                return Ok(());
            }
        }
    }
}

impl Iterator for Entries {
    type Item = Result<Entry, BadLine>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(entry) = self.next.take() {
            return Some(Ok(entry));
        }
        loop {
            let Some(open) = &mut self.open else {
                if self.is_done {
                    return None;
                }
                match self.advance() {
                    Ok(_) => continue,
                    Err(error) => {
                        self.is_done = true;
                        return Some(Err(self.bad_line(&self.log.path, 0, error.to_string())));
                    }
                }
            };
            let file = open.file.clone();
            let line = open.line + 1;
            let next = open.next();
            let line = open.line.max(line);
            return match next {
                Ok(NextLine::Line(text)) => {
                    let continuity = self.chain.next(&text);
                    let result = Entry::read(text.into(), &file, line)
                        .map_err(|why| self.bad_line(&file, line, why));
                    let (first, next) =
                        check_link(continuity, result, |why| self.bad_line(&file, line, why));
                    self.next = next;
                    Some(first)
                }
                Ok(NextLine::Bad(why)) => Some(Err(self.bad_line(&file, line, why))),
                Ok(NextLine::End) => {
                    self.open = None;
                    continue;
                }
                // The rest of the file cannot be read, but the next file may be readable.
                Err(error) => {
                    self.open = None;
                    Some(Err(self.bad_line(&file, line, error.to_string())))
                }
            };
        }
    }
}

/// Returns what to yield for a line, and what to yield after it. A line that the gate did not write
/// is an error; one that does not follow from the previous line is yielded after the error that
/// reports this.
pub(super) fn check_link(
    continuity: Continuity,
    result: Result<Entry, BadLine>,
    bad_line: impl Fn(String) -> BadLine,
) -> (Result<Entry, BadLine>, Option<Entry>) {
    let verify = "`lychgate audit verify` reports the cause";
    match (continuity, result) {
        (Continuity::Unlinked, Ok(_)) => (
            Err(bad_line(format!(
                "not a line that the gate wrote; {verify}"
            ))),
            None,
        ),
        (Continuity::Broken, Ok(entry)) => (
            Err(bad_line(format!(
                "the chain is broken before this line; {verify}"
            ))),
            Some(entry),
        ),
        (_, read) => (read, None),
    }
}

#[cfg(test)]
mod tests;
