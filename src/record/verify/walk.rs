//! Verifies the lines of a log, file by file.

use std::io;
use std::path::Path;

use serde::Deserialize;

use super::notes::KnownDigests;
use super::report::{FileSummary, Kind, Report, TornLine};
use super::{digest, unreadable};
use crate::message::hex;
use crate::record::chain::files::{Lines, Piece};
use crate::record::chain::{Head, Link, is_torn};

/// The state of verifying a log.
pub(super) struct Walk {
    noted: KnownDigests,
    report: Report,
    /// The last line in the chain, and its place.
    last: Head,
    at: Place,
    started: bool,
    /// Lines outside of the chain since that line.
    loose: Option<UnlinkedLine>,
}

#[derive(Clone, Default)]
struct Place {
    file: String,
    line: u64,
}

/// Consecutive lines outside of the chain.
struct UnlinkedLine {
    /// Place of the first line.
    at: Place,
    /// Number of their bytes, including line feeds.
    bytes: u64,
    /// Whether the last one has no line feed.
    open: bool,
    /// Place of the first line that cannot be an incompletely written one.
    foreign: Option<Place>,
}

impl Walk {
    pub(super) fn new(noted: KnownDigests, report: Report) -> Self {
        Self {
            noted,
            report,
            last: Head::default(),
            at: Place::default(),
            started: false,
            loose: None,
        }
    }

    /// Verifies a file.
    pub(super) fn file(&mut self, path: &Path, lines: &mut Lines) -> io::Result<()> {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let mut number = 0;
        let mut hang = 0;
        let mut first = None;
        loop {
            let read = match lines.next() {
                Ok(Some(read)) => read,
                Ok(None) => break,
                Err(error) if unreadable(&error) => {
                    let what = format!("cannot read the rest of the compressed file: {error}");
                    self.report
                        .flaw(Kind::Unreadable, &name, Some(number + 1), None, what);
                    break;
                }
                Err(error) => return Err(error),
            };
            number += 1;
            let place = Place {
                file: name.clone(),
                line: number,
            };
            match read {
                Piece::Whole(line) => match Link::parse(&line) {
                    Some(link) => {
                        hang += 1;
                        first = first.or(Some(link.seq));
                        self.line(&line, link, place);
                    }
                    None => {
                        self.add_unlinked(place, line.len() as u64 + 1, (false, is_torn(&line)))
                    }
                },
                // It may lack only its line feed.
                Piece::Torn(line) => {
                    let torn = is_torn(&line) || Link::parse(&line).is_some();
                    self.add_unlinked(place, line.len() as u64, (true, torn));
                }
                Piece::TooLong(bytes) => self.add_unlinked(place, bytes, (false, false)),
            }
        }
        let last_seq = first.map(|_| self.last.seq);
        self.report.files.push(FileSummary {
            name,
            lines: hang,
            first_seq: first,
            last_seq,
        });
        Ok(())
    }

    /// Verifies a line with a link against the line before it and against its known digest.
    fn line(&mut self, line: &[u8], link: Link, place: Place) {
        if let Some(loose) = self.loose.take() {
            self.settle_torn(&loose, line);
        }
        if !self.started {
            self.begin(&link, &place);
        } else if !self.last.leads_to(&link) {
            self.broken(&link, &place);
        }
        let sha = digest(line);
        if let Some(voucher) = self.noted.lines.get(&link.seq) {
            if voucher.sha != sha {
                let by = if voucher.anchor {
                    "an anchor"
                } else {
                    "a checkpoint"
                };
                let what = format!(
                    "line {} does not match {by}: the line, or the log up to it, was rewritten",
                    link.seq
                );
                self.report.flaw(
                    Kind::Replaced,
                    &place.file,
                    Some(place.line),
                    Some(link.seq),
                    what,
                );
            } else {
                self.report.vouched_through = self.report.vouched_through.max(Some(link.seq));
            }
        }
        self.started = true;
        self.last = Head { seq: link.seq, sha };
        self.at = place;
        self.report.lines += 1;
        self.report.first_seq = self.report.first_seq.or(Some(link.seq));
    }

    /// Adds a line outside of the chain: `open` if it has no line feed, `torn` if it may have been
    /// written incompletely.
    fn add_unlinked(&mut self, place: Place, bytes: u64, (open, torn): (bool, bool)) {
        let loose = self.loose.get_or_insert_with(|| UnlinkedLine {
            at: place.clone(),
            bytes: 0,
            open,
            foreign: None,
        });
        loose.bytes += bytes;
        loose.open = open;
        if !torn && loose.foreign.is_none() {
            loose.foreign = Some(place);
        }
    }

    /// Reports lines outside of the chain: as torn if the line after them records them with their
    /// length, otherwise as foreign.
    fn settle_torn(&mut self, loose: &UnlinkedLine, next: &[u8]) {
        #[derive(Deserialize)]
        struct ReopenedLog {
            torn_bytes: u64,
            how: String,
        }
        let told = serde_json::from_slice::<ReopenedLog>(next)
            .ok()
            .filter(|told| matches!(&*told.how, "after_crash" | "after_cut"));
        // The last of them may have had no line feed when they were found.
        let fits = |told: &ReopenedLog| {
            loose.foreign.is_none()
                && (told.torn_bytes == loose.bytes || told.torn_bytes + 1 == loose.bytes)
        };
        match told.filter(fits) {
            Some(told) => {
                let Place { file, line } = loose.at.clone();
                self.report.torn.push(TornLine {
                    file,
                    line,
                    bytes: told.torn_bytes,
                    closed: true,
                });
            }
            None => self.report_foreign(loose),
        }
    }

    fn report_foreign(&mut self, loose: &UnlinkedLine) {
        let what = "not a line that the gate wrote: it was modified or inserted".to_owned();
        let seq = self.started.then_some(self.last.seq + 1);
        let at = loose.foreign.as_ref().unwrap_or(&loose.at);
        self.report
            .flaw(Kind::Foreign, &at.file, Some(at.line), seq, what);
    }

    /// Verifies the first line: it begins the log, or follows the lines that retention removed.
    fn begin(&mut self, link: &Link, place: &Place) {
        let removed = self.noted.removed;
        let fits = Head::default().leads_to(link) || removed.seq > 0 && removed.leads_to(link);
        // A file may be recorded as removed and still exist, if the gate was killed at that moment.
        if fits || link.seq <= removed.seq {
            self.report.removed_through = Some(link.seq - 1).filter(|through| *through > 0);
            return;
        }
        if link.seq == removed.seq + 1 {
            let what = format!("line {} was modified, or belongs to another log", link.seq);
            self.report.flaw(
                Kind::Changed,
                &place.file,
                Some(place.line),
                Some(link.seq),
                what,
            );
            return;
        }
        self.report.removed_through = Some(removed.seq).filter(|through| *through > 0);
        self.missing(removed.seq + 1, link.seq.saturating_sub(1), place);
    }

    /// Reports a line that does not directly follow the one before it.
    fn broken(&mut self, link: &Link, place: &Place) {
        let next = self.last.seq + 1;
        if link.seq > next {
            self.missing(next, link.seq - 1, place);
        } else if link.seq == next {
            let Place { file, line } = self.at.clone();
            let what = format!(
                "line {} was modified: line {next} contains another digest of it",
                self.last.seq
            );
            self.report
                .flaw(Kind::Changed, &file, Some(line), Some(self.last.seq), what);
        } else {
            let what = format!(
                "line {} comes after line {}: it was moved or repeated",
                link.seq, self.last.seq
            );
            self.report.flaw(
                Kind::Foreign,
                &place.file,
                Some(place.line),
                Some(link.seq),
                what,
            );
        }
    }

    fn missing(&mut self, from: u64, to: u64, place: &Place) {
        let names: Vec<&str> = self
            .noted
            .aside
            .range(from..=to)
            .map(|(_, name)| name.as_str())
            .take(5)
            .collect();
        let lines = if from == to {
            format!("line {from} is")
        } else {
            format!("lines {from} to {to} are")
        };
        let (kind, what) = if names.is_empty() {
            (Kind::Gap, format!("{lines} missing before this line"))
        } else {
            let names = names
                .iter()
                .map(|name| format!("`{}`", name.escape_debug()))
                .collect::<Vec<_>>()
                .join(", ");
            (
                Kind::MissingFile,
                format!(
                    "{lines} missing: the rotated file {names} is gone, and no checkpoint records its removal"
                ),
            )
        };
        self.report
            .flaw(kind, &place.file, Some(place.line), Some(from), what);
    }

    /// Verifies the end of the log and returns the report.
    pub(super) fn end(mut self, log: &Path) -> Report {
        let name = log
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        match self.loose.take() {
            Some(loose) if loose.open && loose.foreign.is_none() => {
                let Place { file, line } = loose.at;
                self.report.torn.push(TornLine {
                    file,
                    line,
                    bytes: loose.bytes,
                    closed: false,
                });
            }
            Some(loose) => self.report_foreign(&loose),
            None => {}
        }
        let removed_all = !self.started && self.noted.removed.seq > 0;
        let through = if removed_all {
            self.noted.removed.seq
        } else {
            self.last.seq
        };
        if let Some((seq, voucher)) = self
            .noted
            .lines
            .last_key_value()
            .filter(|(seq, _)| **seq > through)
        {
            let by = if voucher.anchor {
                "an anchor"
            } else {
                "a checkpoint"
            };
            let what = format!(
                "the log ends with line {through}, but {by} covers line {seq}: the end was removed"
            );
            let (file, line) = if self.started {
                (self.at.file.clone(), Some(self.at.line))
            } else {
                (name, None)
            };
            self.report
                .flaw(Kind::CutOff, &file, line, Some(through + 1), what);
        }
        self.report.last_seq = self.started.then_some(self.last.seq);
        self.report.head = self.started.then(|| hex(&self.last.sha));
        self.report
    }
}
