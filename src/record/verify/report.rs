//! What checking a log gave.

use serde::Serialize;

/// Maximum number of flaws that are reported individually; one proves tampering, more show its extent.
const FLAWS: usize = 100;

/// What checking a log gave.
#[derive(Debug, Default, Serialize)]
pub struct Report {
    /// Its files, oldest first.
    pub files: Vec<FileSummary>,
    /// Whole lines that hang in the chain.
    pub lines: u64,
    /// Number of the first line that is there.
    pub first_seq: Option<u64>,
    /// Number of the last whole line.
    pub last_seq: Option<u64>,
    /// Digest of the last whole line.
    pub head: Option<String>,
    /// Lines up to this number were removed because the config did not want them kept, as signed notes say.
    pub removed_through: Option<u64>,
    /// Checkpoints beside the log.
    pub checkpoints: u64,
    /// Those of them whose signature was checked, and is right.
    pub signed: u64,
    /// Number of the last line that a checkpoint vouches for: later ones could be changed by who can write to the log.
    pub vouched_through: Option<u64>,
    /// Checkpoints that were kept elsewhere.
    pub anchors: u64,
    /// Where writing broke off in the middle of a line: no tampering.
    pub torn: Vec<TornLine>,
    /// What is wrong, in the order of the log.
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

/// Where writing broke off in the middle of a line.
#[derive(Debug, Serialize)]
pub struct TornLine {
    pub file: String,
    /// Its line, from 1.
    pub line: u64,
    /// How many bytes there are of it.
    pub bytes: u64,
    /// The gate has gone on after it, and the log says so; otherwise it is the end of the log.
    pub closed: bool,
}

/// Something wrong.
#[derive(Debug, Serialize)]
pub struct Flaw {
    pub kind: Kind,
    pub file: String,
    /// Its line, from 1, if it is about one.
    pub line: Option<u64>,
    /// The number of the line in the chain.
    pub seq: Option<u64>,
    /// What is wrong, in words.
    pub what: String,
}

/// Kinds of what can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A line is not as it was written.
    Changed,
    /// A line does not belong to the log.
    Foreign,
    /// Lines are missing.
    Gap,
    MissingFile,
    /// The end is missing.
    CutOff,
    /// The log is another one than what was vouched for.
    Replaced,
    /// A checkpoint is not as it was written, or missing.
    Checkpoint,
    /// A signature is not of the key.
    Signature,
    /// A file cannot be read.
    Unreadable,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_verified(&self) -> bool {
        self.flaws.is_empty()
    }

    pub(super) fn flaw(
        &mut self,
        kind: Kind,
        file: &str,
        line: Option<u64>,
        seq: Option<u64>,
        what: String,
    ) {
        if self.flaws.len() < FLAWS {
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
