//! Notes of lines that are gone go as well, so that the file of notes is bounded by what is kept of the log.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::checkpoint::{CheckpointLog, Reason, SignedCheckpoint};
use super::files::{sync_folder, with_suffix};
use super::{Head, Sha};

/// A shorter file of notes is left as it is, in bytes.
const TRIM_BYTES: u64 = 1 << 20;
/// A longer one is: it is read as a whole.
const MOST_BYTES: u64 = 256 << 20;
/// Ends the name of the file that takes its place.
const TRIMMING: &str = ".trimming";

/// What goes: the notes at the beginning that are of removed lines only.
struct TrimMarker {
    /// How long they are.
    bytes: usize,
    /// The last line that was removed, as they say.
    removed: Head,
    /// Digest of the last of them, that the next one hangs on.
    last: Sha,
}

impl CheckpointLog {
    /// Leaves out notes of lines that were removed, if the file has grown long; a signed note takes their place. Broken off
    /// anywhere, the file is the old or the new one.
    ///
    /// # Errors
    /// The file cannot be read, or another not be put in its place.
    pub(in crate::record) fn trim(&self) -> io::Result<()> {
        self.trim_from(TRIM_BYTES)
    }

    /// As [`Self::trim`], of a file longer than this many bytes.
    pub(in crate::record) fn trim_from(&self, most: u64) -> io::Result<()> {
        let mut notes = self.locked()?;
        let length = notes.metadata()?.len();
        if length <= most || length > MOST_BYTES {
            return Ok(());
        }
        let mut text = Vec::new();
        notes.read_to_end(&mut text)?;
        let Some(gone) = trim_marker(&text) else {
            return Ok(());
        };
        let first = self.line(Reason::Trimmed, &gone.removed, 0, Path::new(""), &gone.last)?;
        let trimming = with_suffix(self.path(), TRIMMING);
        let mut out = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&trimming)?;
        out.write_all(format!("{first}\n").as_bytes())?;
        out.write_all(text.get(gone.bytes..).unwrap_or_default())?;
        out.sync_all()?;
        std::fs::rename(&trimming, self.path())?;
        sync_folder(self.path())
    }
}

/// What can go of a file of notes; the last note always stays, since the next one hangs on it.
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
    let mut gone = None;
    for (end, note) in notes() {
        let Some(note) = note else { continue };
        if note.head.seq > removed.seq || end >= text.len() {
            break;
        }
        // What stands first, in the place of others, is itself no part of what the next one hangs on.
        let last = if note.note.why == Reason::Trimmed {
            note.prev
        } else {
            note.sha
        };
        gone = Some(TrimMarker {
            bytes: end,
            removed,
            last,
        });
    }
    gone
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
        let read = || std::fs::read_to_string(files::checkpoints(&log)).unwrap();
        let at = |seq: u64| Head {
            seq,
            sha: [u8::try_from(seq % 251).unwrap(); 32],
        };
        notes.add(Reason::New, &Head::default(), 0, &log).unwrap();
        for seq in 1..=9 {
            notes.add(Reason::Lines, &at(seq), 0, &log).unwrap();
        }
        let whole = read();
        notes.trim_from(0).unwrap();
        assert_eq!(read(), whole, "nothing was removed");
        for through in [4, 6] {
            notes.add(Reason::Removed, &at(through), 0, &log).unwrap();
            notes.trim_from(1 << 20).unwrap();
            let before = read();
            notes.trim_from(0).unwrap();
            let after = read();
            let first = SignedCheckpoint::parse(after.lines().next().unwrap().as_bytes()).unwrap();
            assert_eq!((first.note.why, first.head), (Reason::Trimmed, at(through)));
            assert_eq!(first.signed_by(&[notes.key()]), Some(true));
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
