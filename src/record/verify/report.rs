//! The result of verifying a log.

use serde::Serialize;

/// Maximum number of flaws that are reported individually; one proves tampering, more show its
/// extent.
const MAX_FLAWS: usize = 100;

/// The result of verifying a log.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// The files of the log, oldest first.
    pub files: Vec<FileSummary>,
    /// Number of complete lines in the chain.
    pub lines: u64,
    /// Number of the first existing line.
    pub first_seq: Option<u64>,
    /// Number of the last complete line.
    pub last_seq: Option<u64>,
    /// Digest of the last complete line.
    pub head: Option<String>,
    /// Lines up to this number were removed by the retention of the config, according to signed
    /// checkpoints.
    pub removed_through: Option<u64>,
    /// Number of checkpoints beside the log.
    pub checkpoints: u64,
    /// Number of checkpoints and anchors with a verified signature.
    pub signed: u64,
    /// Number of the last line that a checkpoint covers: later ones could be changed by anyone who
    /// can write to the log.
    pub vouched_through: Option<u64>,
    /// Number of checkpoints that were kept elsewhere.
    pub anchors: u64,
    /// Incompletely written lines, which are no tampering.
    pub torn: Vec<TornLine>,
    /// The flaws found, in the order of the log.
    pub flaws: Vec<Flaw>,
    pub more_flaws: u64,
}

/// A file of the log.
#[derive(Debug, Serialize)]
pub struct FileSummary {
    pub name: String,
    pub lines: u64,
    /// Number of its first line.
    pub first_seq: Option<u64>,
    /// Number of its last line.
    pub last_seq: Option<u64>,
}

/// An incompletely written line.
#[derive(Debug, Serialize)]
pub struct TornLine {
    pub file: String,
    /// Line number in the file, from 1.
    pub line: u64,
    /// Number of bytes that were written of it.
    pub bytes: u64,
    /// Whether the gate has continued after it, and the log records this; otherwise it is the end
    /// of the log.
    pub closed: bool,
}

/// Something that is wrong with the log.
#[derive(Debug, Serialize)]
pub struct Flaw {
    pub kind: Kind,
    pub file: String,
    /// Line number in the file, from 1, if the flaw concerns a line.
    pub line: Option<u64>,
    /// Number of the line in the chain.
    pub seq: Option<u64>,
    /// A description of the flaw.
    pub what: String,
}

/// Kinds of flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A line was modified.
    Changed,
    /// A line does not belong to the log.
    Foreign,
    /// Lines are missing.
    Gap,
    MissingFile,
    /// The end of the log is missing.
    CutOff,
    /// The log is not the one that checkpoints or anchors cover.
    Replaced,
    /// A checkpoint was modified or is missing.
    Checkpoint,
    /// A signature is not by a trusted key.
    Signature,
    /// A file cannot be read.
    Unreadable,
}

impl Report {
    /// Reports whether there are no flaws.
    pub fn is_verified(&self) -> bool {
        self.flaws.is_empty()
    }

    pub(super) fn add_flaw(
        &mut self,
        kind: Kind,
        file: &str,
        line: Option<u64>,
        seq: Option<u64>,
        what: String,
    ) {
        if self.flaws.len() < MAX_FLAWS {
            self.flaws.push(Flaw {
                kind,
                file: file.to_owned(),
                line,
                seq,
                what,
            });
        } else {
            self.more_flaws += 1;
        }
    }
}
