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
const MAX_UNTRUSTED_KEYS: usize = 20;

/// The known digest of a line.
#[derive(Clone, Copy)]
pub(super) struct KnownDigest {
    pub(super) sha: Sha,
    /// Whether it is from a checkpoint that was kept elsewhere.
    pub(super) is_anchor: bool,
}

/// The known digests and files of a log.
#[derive(Default)]
pub(super) struct KnownDigests {
    /// The known digests by line number.
    pub(super) lines: BTreeMap<u64, KnownDigest>,
    /// The last line that retention removed, together with all before it.
    pub(super) removed: Head,
    /// Names of rotated files, by the number of their last line.
    pub(super) rotated_files: BTreeMap<u64, String>,
    /// Whether there is no checkpoint file.
    pub(super) is_missing: bool,
    /// Untrusted keys that were reported.
    untrusted_keys: BTreeSet<String>,
}

impl KnownDigests {
    /// Reads checkpoints and anchors, and reports what is wrong with the checkpoints themselves.
    pub(super) fn read(
        log: &Path,
        trust_anchors: &TrustAnchors,
        report: &mut Report,
    ) -> io::Result<Self> {
        let mut digests = Self::default();
        let path = files::checkpoints(log);
        let name = files::file_name(&path);
        match Lines::open(&path) {
            Ok(lines) => digests.read_checkpoints(lines, &name, trust_anchors, report)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => digests.is_missing = true,
            Err(error) => return Err(error),
        }
        if digests.is_missing || report.checkpoints == 0 {
            let what = match digests.is_missing {
                true => {
                    "the checkpoints of the log are missing (only a log on standard output has none)"
                }
                false => "the checkpoint file contains no checkpoint",
            };
            report.add_flaw(Kind::Checkpoint, &name, None, None, what.to_owned());
        }
        for file in &trust_anchors.anchors {
            digests.read_anchors(file, trust_anchors, report)?;
        }
        Ok(digests)
    }

    /// Reads the checkpoints beside the log, which form a chain of their own.
    fn read_checkpoints(
        &mut self,
        mut lines: Lines,
        name: &str,
        trust_anchors: &TrustAnchors,
        report: &mut Report,
    ) -> io::Result<()> {
        let mut last = Sha::default();
        let mut number = 0;
        while let Some(piece) = lines.next()? {
            number += 1;
            let line = match piece {
                Piece::Whole(line) | Piece::Torn(line) => line,
                Piece::TooLong(_) => continue,
            };
            // An incomplete checkpoint proves nothing. Whether any other is missing shows in the
            // next one.
            let Some(signed_checkpoint) = SignedCheckpoint::parse(&line) else {
                continue;
            };
            report.checkpoints += 1;
            let at = Some(number);
            let seq = Some(signed_checkpoint.head.seq);
            let is_trimmed =
                report.checkpoints == 1 && signed_checkpoint.note.why == Reason::Trimmed;
            if is_trimmed {
                last = signed_checkpoint.prev;
            }
            if signed_checkpoint.prev != last {
                let what = if last == Sha::default() {
                    "checkpoints before this one are missing"
                } else {
                    "the checkpoint before this one is missing or modified"
                };
                report.add_flaw(Kind::Checkpoint, name, at, seq, what.to_owned());
            } else if last == Sha::default() && signed_checkpoint.note.why != Reason::New {
                report.add_flaw(
                    Kind::Checkpoint,
                    name,
                    at,
                    seq,
                    "checkpoints before this one are missing".to_owned(),
                );
            }
            if !is_trimmed {
                last = digest(&line);
            }
            if self.is_signed(&signed_checkpoint, name, number, trust_anchors, report) {
                self.add(&signed_checkpoint, false);
            }
        }
        Ok(())
    }

    /// Reads checkpoints that were kept elsewhere, in any order.
    fn read_anchors(
        &mut self,
        file: &Path,
        trust_anchors: &TrustAnchors,
        report: &mut Report,
    ) -> io::Result<()> {
        let name = file.display().to_string();
        let result = Lines::open(file).map_err(|error| {
            io::Error::new(error.kind(), format!("the anchors `{name}`: {error}"))
        });
        let mut lines = result?;
        let mut number = 0;
        let previous_count = report.anchors;
        while let Some(piece) = lines.next()? {
            number += 1;
            let line = match piece {
                Piece::Whole(line) | Piece::Torn(line) => line,
                Piece::TooLong(_) => Vec::new(),
            };
            match SignedCheckpoint::parse(&line) {
                Some(signed_checkpoint) => {
                    report.anchors += 1;
                    if self.is_signed(&signed_checkpoint, &name, number, trust_anchors, report) {
                        self.add(&signed_checkpoint, true);
                    }
                }
                None if line.iter().all(u8::is_ascii_whitespace) => {}
                None => report.add_flaw(
                    Kind::Checkpoint,
                    &name,
                    Some(number),
                    None,
                    "not a checkpoint".to_owned(),
                ),
            }
        }
        if report.anchors == previous_count {
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
        signed_checkpoint: &SignedCheckpoint,
        name: &str,
        number: u64,
        trust_anchors: &TrustAnchors,
        report: &mut Report,
    ) -> bool {
        let what = match signed_checkpoint.is_signed_by(&trust_anchors.keys) {
            _ if trust_anchors.keys.is_empty() => return true,
            Some(true) => {
                report.signed += 1;
                return true;
            }
            Some(false) => "its signature is invalid: the checkpoint was modified".to_owned(),
            // A key is reported once, since it affects all checkpoints that it signed.
            None if self.untrusted_keys.len() >= MAX_UNTRUSTED_KEYS
                || !self
                    .untrusted_keys
                    .insert(signed_checkpoint.note.key.clone()) =>
            {
                report.more_flaws += 1;
                return false;
            }
            None => format!(
                "it is signed with a key that is not trusted: `{}`",
                signed_checkpoint.note.key.escape_debug()
            ),
        };
        report.add_flaw(
            Kind::Signature,
            name,
            Some(number),
            Some(signed_checkpoint.head.seq),
            what,
        );
        false
    }

    fn add(&mut self, signed_checkpoint: &SignedCheckpoint, is_anchor: bool) {
        let head = signed_checkpoint.head;
        let note = &signed_checkpoint.note;
        match note.why {
            Reason::Removed | Reason::Trimmed if head.seq > self.removed.seq => self.removed = head,
            Reason::Rotated => {
                self.rotated_files.insert(head.seq, note.file.clone());
            }
            _ => {}
        }
        if head.seq > 0 {
            let voucher = self.lines.entry(head.seq).or_insert(KnownDigest {
                sha: head.sha,
                is_anchor,
            });
            // If two differ, one is of another log; the anchor takes precedence.
            if is_anchor {
                *voucher = KnownDigest {
                    sha: head.sha,
                    is_anchor,
                };
            }
        }
    }
}
