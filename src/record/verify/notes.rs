//! The known digests of a log, from the checkpoints beside it and from those that were kept
//! elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use super::report::{Kind, Report};
use super::{TrustAnchors, digest};
use crate::record::chain::checkpoint::{Reason, SignedCheckpoint};
use crate::record::chain::files::{self, Lines, Piece};
use crate::record::chain::{Head, Sha};

/// Maximum number of untrusted keys that are reported.
const STRANGERS: usize = 20;

/// The known digest of a line.
#[derive(Clone, Copy)]
pub(super) struct KnownDigest {
    pub(super) sha: Sha,
    /// Whether it is from a checkpoint that was kept elsewhere.
    pub(super) anchor: bool,
}

/// The known digests and files of a log.
#[derive(Default)]
pub(super) struct KnownDigests {
    /// The known digests by line number.
    pub(super) lines: BTreeMap<u64, KnownDigest>,
    /// The last line that retention removed, together with all before it.
    pub(super) removed: Head,
    /// Names of rotated files, by the number of their last line.
    pub(super) aside: BTreeMap<u64, String>,
    /// Whether there is no checkpoint file.
    pub(super) absent: bool,
    /// Untrusted keys that were reported.
    strangers: BTreeSet<String>,
}

impl KnownDigests {
    /// Reads checkpoints and anchors, and reports what is wrong with the checkpoints themselves.
    pub(super) fn read(
        log: &Path,
        against: &TrustAnchors,
        report: &mut Report,
    ) -> io::Result<Self> {
        let mut noted = Self::default();
        let beside = files::checkpoints(log);
        let name = beside
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match Lines::open(&beside) {
            Ok(lines) => noted.read_checkpoints(lines, &name, against, report)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => noted.absent = true,
            Err(error) => return Err(error),
        }
        if noted.absent || report.checkpoints == 0 {
            let what = match noted.absent {
                true => {
                    "the checkpoints of the log are missing (only a log on standard output has none)"
                }
                false => "the checkpoint file contains no checkpoint",
            };
            report.flaw(Kind::Checkpoint, &name, None, None, what.to_owned());
        }
        for file in &against.anchors {
            noted.anchors(file, against, report)?;
        }
        Ok(noted)
    }

    /// Reads the checkpoints beside the log, which form a chain of their own.
    fn read_checkpoints(
        &mut self,
        mut lines: Lines,
        name: &str,
        against: &TrustAnchors,
        report: &mut Report,
    ) -> io::Result<()> {
        let mut last = Sha::default();
        let mut number = 0;
        while let Some(read) = lines.next()? {
            number += 1;
            let line = match read {
                Piece::Whole(line) | Piece::Torn(line) => line,
                Piece::TooLong(_) => continue,
            };
            // An incomplete checkpoint proves nothing. Whether any other is missing shows in the
            // next one.
            let Some(signed) = SignedCheckpoint::parse(&line) else {
                continue;
            };
            report.checkpoints += 1;
            let at = Some(number);
            let seq = Some(signed.head.seq);
            let trimmed = report.checkpoints == 1 && signed.note.why == Reason::Trimmed;
            if trimmed {
                last = signed.prev;
            }
            if signed.prev != last {
                let what = if last == Sha::default() {
                    "checkpoints before this one are missing"
                } else {
                    "the checkpoint before this one is missing or modified"
                };
                report.flaw(Kind::Checkpoint, name, at, seq, what.to_owned());
            } else if last == Sha::default() && signed.note.why != Reason::New {
                report.flaw(
                    Kind::Checkpoint,
                    name,
                    at,
                    seq,
                    "checkpoints before this one are missing".to_owned(),
                );
            }
            if !trimmed {
                last = digest(&line);
            }
            if self.is_signed(&signed, (name, number), against, report) {
                self.take(&signed, false);
            }
        }
        Ok(())
    }

    /// Reads checkpoints that were kept elsewhere, in any order.
    fn anchors(
        &mut self,
        file: &Path,
        against: &TrustAnchors,
        report: &mut Report,
    ) -> io::Result<()> {
        let name = file.display().to_string();
        let opened = Lines::open(file).map_err(|error| {
            io::Error::new(error.kind(), format!("the anchors `{name}`: {error}"))
        });
        let mut lines = opened?;
        let mut number = 0;
        let before = report.anchors;
        while let Some(read) = lines.next()? {
            number += 1;
            let line = match read {
                Piece::Whole(line) | Piece::Torn(line) => line,
                Piece::TooLong(_) => Vec::new(),
            };
            match SignedCheckpoint::parse(&line) {
                Some(signed) => {
                    report.anchors += 1;
                    if self.is_signed(&signed, (&name, number), against, report) {
                        self.take(&signed, true);
                    }
                }
                None if line.iter().all(u8::is_ascii_whitespace) => {}
                None => report.flaw(
                    Kind::Checkpoint,
                    &name,
                    Some(number),
                    None,
                    "not a checkpoint".to_owned(),
                ),
            }
        }
        if report.anchors == before {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the anchors `{name}` contain no checkpoint"),
            ));
        }
        Ok(())
    }

    /// Reports whether a checkpoint counts. Without keys, all do.
    fn is_signed(
        &mut self,
        signed: &SignedCheckpoint,
        (name, number): (&str, u64),
        against: &TrustAnchors,
        report: &mut Report,
    ) -> bool {
        let what = match signed.signed_by(&against.keys) {
            _ if against.keys.is_empty() => return true,
            Some(true) => {
                report.signed += 1;
                return true;
            }
            Some(false) => "its signature is invalid: the checkpoint was modified".to_owned(),
            // A key is reported once, since it affects all checkpoints that it signed.
            None if self.strangers.len() >= STRANGERS
                || !self.strangers.insert(signed.note.key.clone()) =>
            {
                report.more_flaws += 1;
                return false;
            }
            None => format!(
                "it is signed with a key that is not trusted: `{}`",
                signed.note.key.escape_debug()
            ),
        };
        report.flaw(
            Kind::Signature,
            name,
            Some(number),
            Some(signed.head.seq),
            what,
        );
        false
    }

    fn take(&mut self, signed: &SignedCheckpoint, anchor: bool) {
        let head = signed.head;
        let note = &signed.note;
        match note.why {
            Reason::Removed | Reason::Trimmed if head.seq > self.removed.seq => self.removed = head,
            Reason::Rotated => {
                self.aside.insert(head.seq, note.file.clone());
            }
            _ => {}
        }
        if head.seq > 0 {
            let voucher = self.lines.entry(head.seq).or_insert(KnownDigest {
                sha: head.sha,
                anchor,
            });
            // If two differ, one is of another log; the anchor takes precedence.
            if anchor {
                *voucher = KnownDigest {
                    sha: head.sha,
                    anchor,
                };
            }
        }
    }
}
