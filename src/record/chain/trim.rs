//! Removes checkpoints of lines that were removed, so that the size of the checkpoint file is
//! bounded by the size of the log.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::checkpoint::{CheckpointLog, Reason, SignedCheckpoint};
use super::files::{sync_folder, with_suffix};
use super::{Head, Sha};

/// Maximum length of a checkpoint file that is not trimmed, in bytes.
const TRIM_BYTES: u64 = 1 << 20;
/// Maximum length of a checkpoint file that is trimmed, in bytes: it is read as a whole.
const MAX_BYTES: u64 = 256 << 20;
/// Suffix of the name of the file that replaces it.
const TRIMMING: &str = ".trimming";

/// The checkpoints to remove: those at the beginning that cover removed lines only.
struct TrimMarker {
    /// Their length in bytes.
    bytes: usize,
    /// The last removed line, according to the checkpoints.
    removed: Head,
    /// Digest of the last of them, which the next one refers to.
    last: Sha,
}

impl CheckpointLog {
    /// Removes checkpoints of removed lines if the file has grown long, and replaces them with one
    /// signed checkpoint. If this is interrupted, the file is either the old or the new one.
    ///
    /// # Errors
    /// The file cannot be read or replaced.
    pub(in crate::record) fn trim(&self) -> io::Result<()> {
        self.trim_from(TRIM_BYTES)
    }

    /// Like [`Self::trim`], for a file longer than `limit` bytes.
    pub(in crate::record) fn trim_from(&self, limit: u64) -> io::Result<()> {
        let mut notes = self.lock_file()?;
        let length = notes.metadata()?.len();
        if length <= limit || length > MAX_BYTES {
            return Ok(());
        }
        let mut text = Vec::new();
        notes.read_to_end(&mut text)?;
        let Some(marker) = trim_marker(&text) else {
            return Ok(());
        };
        let first = self.line(
            Reason::Trimmed,
            &marker.removed,
            0,
            Path::new(""),
            &marker.last,
        )?;
        let trimming = with_suffix(self.path(), TRIMMING);
        let mut out = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&trimming)?;
        out.write_all(format!("{first}\n").as_bytes())?;
        out.write_all(text.get(marker.bytes..).unwrap_or_default())?;
        out.sync_all()?;
        std::fs::rename(&trimming, self.path())?;
        sync_folder(self.path())
    }
}

/// Determines the checkpoints to remove. The last one always remains, since the next one refers to
/// it.
fn trim_marker(text: &[u8]) -> Option<TrimMarker> {
    let notes = || {
        text.split_inclusive(|byte| *byte == b'\n')
            .scan(0, |end, line| {
                *end += line.len();
                Some((
                    *end,
                    SignedCheckpoint::parse(line.strip_suffix(b"\n").unwrap_or(line)),
                ))
            })
    };
    let removed = notes()
        .filter_map(|(_, note)| note)
        .filter(|note| matches!(note.note.why, Reason::Removed | Reason::Trimmed));
    let removed = removed.map(|note| note.head).max_by_key(|head| head.seq)?;
    let mut marker = None;
    for (end, note) in notes() {
        let Some(note) = note else { continue };
        if note.head.seq > removed.seq || end >= text.len() {
            break;
        }
        // A `Trimmed` checkpoint replaces others, and the next one refers to the last of those, not
        // to it.
        let last = if note.note.why == Reason::Trimmed {
            note.prev
        } else {
            note.sha
        };
        marker = Some(TrimMarker {
            bytes: end,
            removed,
            last,
        });
    }
    marker
}

#[cfg(test)]
mod tests {
    use super::super::files;
    use super::super::key::SigningKey;
    use super::*;

    #[test]
    fn notes_of_removed_lines_go_and_the_rest_hangs_together() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.jsonl");
        let notes = CheckpointLog::new(&log, SigningKey::open(&folder.path().join("key")).unwrap());
        let read_text = || std::fs::read_to_string(files::checkpoints(&log)).unwrap();
        let at = |seq: u64| Head {
            seq,
            sha: [u8::try_from(seq % 251).unwrap(); 32],
        };
        notes.add(Reason::New, &Head::default(), 0, &log).unwrap();
        for seq in 1..=9 {
            notes.add(Reason::Lines, &at(seq), 0, &log).unwrap();
        }
        let original = read_text();
        notes.trim_from(0).unwrap();
        assert_eq!(read_text(), original, "nothing was removed");
        for through in [4, 6] {
            notes.add(Reason::Removed, &at(through), 0, &log).unwrap();
            notes.trim_from(1 << 20).unwrap();
            let before = read_text();
            notes.trim_from(0).unwrap();
            let after = read_text();
            let first = SignedCheckpoint::parse(after.lines().next().unwrap().as_bytes()).unwrap();
            assert_eq!((first.note.why, first.head), (Reason::Trimmed, at(through)));
            assert_eq!(first.is_signed_by(&[notes.key()]), Some(true));
            let rest: Vec<&str> = after.lines().skip(1).collect();
            assert!(
                before.ends_with(&format!("{}\n", rest.join("\n"))),
                "the rest is as it was"
            );
            let next = SignedCheckpoint::parse(rest[0].as_bytes()).unwrap();
            assert_eq!((next.head.seq, next.prev), (through + 1, first.prev));
        }
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            2,
            "the key and the notes"
        );
    }
}
