//! Signed checkpoints, which record how far the log was written. They are stored beside it and form
//! a chain, as the lines of the log do.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::files::file_name;
use super::key::{PublicKey, SigningKey};
use super::{Head, Sha, sha};
use crate::message::{hex, unhex};

/// Prefix of the signed bytes, so that a signature made for another purpose is never valid here.
const DOMAIN: &[u8] = b"lychgate audit checkpoint 1\n";
/// Maximum length of a checkpoint, in bytes.
pub(in crate::record) const MAX_CHECKPOINT_BYTES: usize = 16 << 10;
/// Maximum time to wait for another process that adds a checkpoint.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Separates the signed text from the signature.
const SIGNATURE: &str = ",\"signature\":\"";

/// Why a checkpoint was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::record) enum Reason {
    /// The log is new and has no lines yet.
    New,
    /// A process opened the log.
    Opened,
    /// The number of lines since the last checkpoint was reached.
    Lines,
    /// The time since the last checkpoint was reached.
    Time,
    /// A file was rotated.
    Rotated,
    /// A process shut down cleanly.
    End,
    /// A file was removed by the retention of the config: all lines up to this one are gone.
    Removed,
    /// Checkpoints of removed lines were removed. This one is the first and replaces them: `prev`
    /// is the digest of the last of them.
    Trimmed,
}

/// The contents of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::record) struct Checkpoint {
    /// When it was written, in RFC 3339.
    pub(in crate::record) time: String,
    /// Why it was written.
    pub(in crate::record) why: Reason,
    /// Number of the last line.
    pub(in crate::record) seq: u64,
    /// Digest of that line.
    pub(in crate::record) head: String,
    /// Length of the file up to and including that line.
    pub(in crate::record) bytes: u64,
    /// The file that contains the line.
    pub(in crate::record) file: String,
    /// Digest of the checkpoint before, including its signature.
    pub(in crate::record) prev: String,
    /// Name of the key that signed it.
    pub(in crate::record) key: String,
}

/// A checkpoint as read from a file.
#[derive(Clone, Debug)]
pub(in crate::record) struct SignedCheckpoint {
    pub(in crate::record) note: Checkpoint,
    pub(in crate::record) head: Head,
    pub(in crate::record) prev: Sha,
    /// Digest of the whole line.
    pub(in crate::record) sha: Sha,
    body: Vec<u8>,
    signature: String,
}

impl SignedCheckpoint {
    /// Parses a checkpoint, given without its line feed.
    pub(in crate::record) fn parse(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line)
            .ok()
            .filter(|text| text.len() <= MAX_CHECKPOINT_BYTES)?;
        let (body, signature) = text.rsplit_once(SIGNATURE)?;
        let signature = signature.strip_suffix("\"}")?.to_owned();
        let body = format!("{body}}}");
        let note: Checkpoint = serde_json::from_str(&body).ok()?;
        let head = Head {
            seq: note.seq,
            sha: unhex(&note.head)?,
        };
        let prev = unhex(&note.prev)?;
        Some(Self {
            note,
            head,
            prev,
            sha: sha(line),
            body: body.into_bytes(),
            signature,
        })
    }

    /// Reports whether the key that it names is in `keys` and has signed it; `None` if that key is
    /// not in `keys`.
    pub(in crate::record) fn is_signed_by(&self, keys: &[PublicKey]) -> Option<bool> {
        let key = keys.iter().find(|key| key.id() == self.note.key)?;
        Some(key.is_valid_signature(&signed_bytes(&self.body), &self.signature))
    }
}

/// The file that checkpoints are appended to.
pub(in crate::record) struct CheckpointLog {
    path: PathBuf,
    key: SigningKey,
    key_id: String,
}

impl CheckpointLog {
    /// Creates the one that is beside a log.
    pub(in crate::record) fn new(log: &Path, key: SigningKey) -> Self {
        let key_id = key.public_key().id();
        Self {
            path: super::files::checkpoints(log),
            key,
            key_id,
        }
    }

    /// Appends a checkpoint, syncs it to disk and returns its line. Several processes may do so at
    /// once.
    ///
    /// # Errors
    /// The file cannot be written. A partially written checkpoint does not count as one.
    pub(in crate::record) fn add(
        &self,
        why: Reason,
        head: &Head,
        bytes: u64,
        file: &Path,
    ) -> io::Result<String> {
        let notes = self.lock_file()?;
        let (last, torn) = tail(&notes)?;
        let line = self.line(
            why,
            head,
            bytes,
            file,
            &last.map(|last| last.sha).unwrap_or_default(),
        )?;
        let separator = if torn { "\n" } else { "" };
        (&notes).write_all(format!("{separator}{line}\n").as_bytes())?;
        notes.sync_data()?;
        Ok(line)
    }

    /// Returns the last checkpoint, if there is one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(in crate::record) fn last(&self) -> io::Result<Option<SignedCheckpoint>> {
        match File::open(&self.path) {
            Ok(notes) => Ok(tail(&notes)?.0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.with_path(error)),
        }
    }

    /// Reports whether the last checkpoint was signed with another key.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(in crate::record) fn has_other_key(&self) -> io::Result<bool> {
        Ok(self
            .last()?
            .is_some_and(|last| last.note.key != self.key_id))
    }

    /// Returns a signed checkpoint, without its line feed.
    pub(super) fn line(
        &self,
        why: Reason,
        head: &Head,
        bytes: u64,
        file: &Path,
        prev: &Sha,
    ) -> io::Result<String> {
        let note = Checkpoint {
            time: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            why,
            seq: head.seq,
            head: hex(&head.sha),
            bytes,
            file: file_name(file),
            prev: hex(prev),
            key: self.key_id.clone(),
        };
        let body = serde_json::to_string(&note).map_err(io::Error::other)?;
        let signature = self.key.sign(&signed_bytes(body.as_bytes()));
        Ok(format!(
            "{}{SIGNATURE}{signature}\"}}",
            body.trim_end_matches('}')
        ))
    }

    /// Returns the key that verifies the checkpoints.
    #[cfg(test)]
    pub(super) fn key(&self) -> PublicKey {
        self.key.public_key()
    }

    /// Returns the path of the checkpoint file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens and locks the file, and makes sure that it was not replaced in the meantime.
    pub(super) fn lock_file(&self) -> io::Result<File> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            let notes = self.open()?;
            match flock(&notes, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let own = notes.metadata()?;
                    let current = std::fs::metadata(&self.path);
                    if current
                        .is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino()))
                    {
                        return Ok(notes);
                    }
                }
                Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1))
                }
                Err(error) => return Err(self.with_path(error.into())),
            }
        }
    }

    fn open(&self) -> io::Result<File> {
        let result = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path);
        result.map_err(|error| self.with_path(error))
    }

    fn with_path(&self, error: io::Error) -> io::Error {
        io::Error::new(
            error.kind(),
            format!(
                "the checkpoints of the audit log, `{}`: {error}",
                self.path.display()
            ),
        )
    }
}

/// Returns the last complete checkpoint of a file, and whether an incomplete one follows it.
fn tail(notes: &File) -> io::Result<(Option<SignedCheckpoint>, bool)> {
    let length = notes.metadata()?.len();
    // Enough for an incomplete checkpoint and the one before it.
    let from = length.saturating_sub(4 * MAX_CHECKPOINT_BYTES as u64);
    let mut end = vec![0; usize::try_from(length - from).unwrap_or_default()];
    notes.read_exact_at(&mut end, from)?;
    let torn = end.last().is_some_and(|last| *last != b'\n');
    // A last checkpoint that lacks only its line feed was not yet sent anywhere. It is valid once
    // the line feed is added.
    let last = end
        .split(|byte| *byte == b'\n')
        .rev()
        .find_map(SignedCheckpoint::parse);
    Ok((last, torn))
}

fn signed_bytes(body: &[u8]) -> Vec<u8> {
    [DOMAIN, body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_signed_and_hang_together_over_torn_ones() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.jsonl");
        let notes =
            || CheckpointLog::new(&log, SigningKey::open(&folder.path().join("key")).unwrap());
        let head = Head {
            seq: 7,
            sha: [3; 32],
        };
        assert!(notes().last().unwrap().is_none());
        let first = notes().add(Reason::New, &Head::default(), 0, &log).unwrap();
        let path = folder.path().join("audit.jsonl.checkpoints");
        OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"{\"time\":\"2026")
            .unwrap();
        let second = notes().add(Reason::Lines, &head, 99, &log).unwrap();
        let last = notes().last().unwrap().unwrap();
        assert_eq!(
            (last.head, last.note.why, last.note.bytes, &*last.note.file),
            (head, Reason::Lines, 99, "audit.jsonl")
        );
        assert_eq!(last.prev, sha(first.as_bytes()));
        let key = notes().key.public_key();
        assert_eq!(last.is_signed_by(&[key]), Some(true));
        assert_eq!(last.is_signed_by(&[]), None);
        let forged =
            SignedCheckpoint::parse(second.replace("\"bytes\":99", "\"bytes\":98").as_bytes())
                .unwrap();
        assert_eq!(forged.is_signed_by(&[key]), Some(false));
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 3);
    }
}
