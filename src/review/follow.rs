//! Follows an audit log as it grows.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::{Entry, MAX_LINE_BYTES};
use super::log::{BadLine, Entries, Log, check_link};
use crate::record::verify::Chain;

/// An audit log that is followed as it grows: its file from the start, then every added line,
/// through rotation and truncation.
pub struct Follow {
    log: Log,
    path: Arc<Path>,
    open: Option<LiveFile>,
    /// Files that were rotated away since the last poll and never seen under the log's own name.
    rotated: VecDeque<PathBuf>,
    rotated_entries: Option<Entries>,
    chain: Chain,
    /// An entry to be returned after the error that the chain is broken before it.
    next: Option<Entry>,
    /// The last error that was reported, so that it is reported only once.
    last_error: Option<String>,
}

struct LiveFile {
    reader: BufReader<File>,
    id: (u64, u64),
    position: u64,
    line: u64,
    pending: Vec<u8>,
    /// Whether the current line is too long and is skipped.
    is_skipping: bool,
    /// Whether the file is no longer the log's own; it is read to its end once more.
    is_replaced: bool,
}

impl Follow {
    /// Follows a log's file from its start.
    pub fn new(path: &Path) -> Self {
        Self {
            log: Log::at_path(path),
            path: path.into(),
            open: None,
            rotated: VecDeque::new(),
            rotated_entries: None,
            chain: Chain::default(),
            next: None,
            last_error: None,
        }
    }

    /// Returns the next line, if one is available.
    pub fn poll(&mut self) -> Option<Result<Entry, BadLine>> {
        if let Some(entry) = self.next.take() {
            return Some(Ok(entry));
        }
        loop {
            if let Some(reading) = &mut self.rotated_entries {
                match reading.next() {
                    Some(entry) => return Some(entry),
                    None => (self.rotated_entries, self.chain) = (None, Chain::default()),
                }
            }
            if let Some(path) = self.rotated.pop_front() {
                self.rotated_entries = Entries::read_file(&path).ok();
                continue;
            }
            match self.step() {
                Ok(Step::Line(line, number)) => {
                    let bad = |why| BadLine {
                        file: self.path.to_path_buf(),
                        line: number,
                        why,
                    };
                    let continuity = self.chain.next(&line);
                    let (result, next) = check_link(
                        continuity,
                        Entry::read(line.into(), &self.path, number).map_err(bad),
                        bad,
                    );
                    (self.next, self.last_error) = (next, None);
                    return Some(result);
                }
                Ok(Step::Again) => {}
                Ok(Step::Nothing) => return None,
                Err(error) => {
                    self.open = None;
                    let why = error.to_string();
                    let is_known = self
                        .last_error
                        .replace(why.clone())
                        .is_some_and(|known| known == why);
                    return (!is_known).then(|| {
                        Err(BadLine {
                            file: self.path.to_path_buf(),
                            line: 0,
                            why,
                        })
                    });
                }
            }
        }
    }

    fn step(&mut self) -> io::Result<Step> {
        let Some(live) = &mut self.open else {
            let file = match File::open(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Step::Nothing),
                file => file?,
            };
            self.open = Some(LiveFile::new(file)?);
            return Ok(Step::Again);
        };
        if let Some(line) = live.read()? {
            return Ok(line);
        }
        let id = live.id;
        let is_replaced = live.is_replaced;
        match std::fs::metadata(&self.path) {
            Ok(now) if file_identity(&now) == id && now.len() < live.position => self.open = None,
            Ok(now) if file_identity(&now) == id => return Ok(Step::Nothing),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            // The file was moved away. The writer may have written to it once more before noticing,
            // so it is read to its end again.
            _ if !is_replaced => live.is_replaced = true,
            _ => {
                self.open = None;
                self.rotated = self.log.files_after(id)?;
            }
        }
        Ok(Step::Again)
    }
}

enum Step {
    Line(Vec<u8>, u64),
    Again,
    Nothing,
}

impl LiveFile {
    fn new(file: File) -> io::Result<Self> {
        let id = file_identity(&file.metadata()?);
        let reader = BufReader::with_capacity(64 << 10, file);
        Ok(Self {
            reader,
            id,
            position: 0,
            line: 0,
            pending: Vec::new(),
            is_skipping: false,
            is_replaced: false,
        })
    }

    /// Returns the next complete line, if there is one.
    fn read(&mut self) -> io::Result<Option<Step>> {
        loop {
            let room = (MAX_LINE_BYTES + 1).saturating_sub(self.pending.len());
            let length = self
                .reader
                .by_ref()
                .take(room as u64)
                .read_until(b'\n', &mut self.pending)?;
            self.position += length as u64;
            if self.pending.last() == Some(&b'\n') {
                self.pending.pop();
                self.line += 1;
                let line = std::mem::take(&mut self.pending);
                if !std::mem::replace(&mut self.is_skipping, false) && !line.is_empty() {
                    return Ok(Some(Step::Line(line, self.line)));
                }
            } else if self.pending.len() > MAX_LINE_BYTES {
                self.pending.clear();
                self.is_skipping = true;
            } else if length == 0 {
                return Ok(None);
            }
        }
    }
}

/// Returns the identity of a file, independent of its name.
pub(super) fn file_identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::entry::member;
    use std::fs::OpenOptions;
    use std::io::Write;

    fn add(path: &Path, text: &str) {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    fn line(n: usize) -> String {
        format!("{{\"event\":\"judged\",\"audit\":\"{n}\"}}\n")
    }

    fn poll_ids(follow: &mut Follow) -> Vec<String> {
        std::iter::from_fn(|| follow.poll())
            .map(|entry| entry.unwrap().get(member::audit).unwrap().into())
            .collect()
    }

    #[test]
    fn growth_rotation_and_truncation_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let rotated = |n: usize| {
            folder
                .path()
                .join(format!("audit.jsonl.20261122T10000000{n}Z-000{n}"))
        };
        let mut follow = Follow::new(&path);
        assert!(poll_ids(&mut follow).is_empty(), "there is none yet");
        add(&path, &(line(1) + &line(2) + "{\"event\":\"judged\","));
        assert_eq!(poll_ids(&mut follow), ["1", "2"], "half a line is none");
        add(&path, "\"audit\":\"3\"}\n");
        assert_eq!(poll_ids(&mut follow), ["3"]);
        // Lines written before and after the file is moved away; then an entire file that comes and
        // goes between two polls.
        add(&path, &line(4));
        std::fs::rename(&path, rotated(1)).unwrap();
        add(&rotated(1), &line(5));
        std::fs::write(rotated(2), line(6)).unwrap();
        add(&path, &line(7));
        assert_eq!(poll_ids(&mut follow), ["4", "5", "6", "7"]);
        std::fs::write(&path, "").unwrap();
        assert!(poll_ids(&mut follow).is_empty());
        add(&path, &line(8));
        assert_eq!(poll_ids(&mut follow), ["8"]);
        // Rotated by another program, which uses other names.
        std::fs::rename(&path, folder.path().join("audit.jsonl.1")).unwrap();
        add(&path, &line(9));
        assert_eq!(poll_ids(&mut follow), ["9"]);
    }
}
