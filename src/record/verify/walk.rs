//! Verifies the lines of a log, file by file.

use std::io;
use std::path::Path;

use serde::Deserialize;

use super::notes::KnownDigests;
use super::report::{FileSummary, Kind, Report, TornLine};
use super::{digest, is_unreadable};
use crate::message::hex;
use crate::record::chain::files::{Lines, Piece, file_name};
use crate::record::chain::{Head, Link, is_torn};

/// The state of verifying a log.
pub(super) struct Walk {
    digests: KnownDigests,
    report: Report,
    /// The last line in the chain, and its place.
    last: Head,
    last_place: Place,
    has_started: bool,
    /// Lines outside of the chain since that line.
    unlinked: Option<UnlinkedLine>,
}

#[derive(Clone, Default)]
struct Place {
    file: String,
    line: u64,
}

/// Consecutive lines outside of the chain.
struct UnlinkedLine {
    /// Place of the first line.
    place: Place,
    /// Number of their bytes, including line feeds.
    bytes: u64,
    /// Whether the last one has no line feed.
    is_open: bool,
    /// Place of the first line that cannot be an incompletely written one.
    foreign: Option<Place>,
}

impl Walk {
    pub(super) fn new(digests: KnownDigests, report: Report) -> Self {
        Self {
            digests,
            report,
            last: Head::default(),
            last_place: Place::default(),
            has_started: false,
            unlinked: None,
        }
    }

    /// Verifies a file.
    pub(super) fn file(&mut self, path: &Path, lines: &mut Lines) -> io::Result<()> {
        let name = file_name(path);
        let mut number = 0;
        let mut linked_lines = 0;
        let mut first = None;
        loop {
            let piece = match lines.next() {
                Ok(Some(read)) => read,
                Ok(None) => break,
                Err(error) if is_unreadable(&error) => {
                    let what = format!("cannot read the rest of the compressed file: {error}");
                    self.report
                        .add_flaw(Kind::Unreadable, &name, Some(number + 1), None, what);
                    break;
                }
                Err(error) => return Err(error),
            };
            number += 1;
            let place = Place {
                file: name.clone(),
                line: number,
            };
            match piece {
                Piece::Whole(line) => match Link::parse(&line) {
                    Some(link) => {
                        linked_lines += 1;
                        first = first.or(Some(link.seq));
                        self.line(&line, link, place);
                    }
                    None => self.add_unlinked(place, line.len() as u64 + 1, false, is_torn(&line)),
                },
                // It may lack only its line feed.
                Piece::Torn(line) => {
                    let torn = is_torn(&line) || Link::parse(&line).is_some();
                    self.add_unlinked(place, line.len() as u64, true, torn);
                }
                Piece::TooLong(bytes) => self.add_unlinked(place, bytes, false, false),
            }
        }
        let last_seq = first.map(|_| self.last.seq);
        self.report.files.push(FileSummary {
            name,
            lines: linked_lines,
            first_seq: first,
            last_seq,
        });
        Ok(())
    }

    /// Verifies a line with a link against the line before it and against its known digest.
    fn line(&mut self, line: &[u8], link: Link, place: Place) {
        if let Some(unlinked) = self.unlinked.take() {
            self.settle_torn(&unlinked, line);
        }
        if !self.has_started {
            self.verify_first(&link, &place);
        } else if !self.last.leads_to(&link) {
            self.report_broken(&link, &place);
        }
        let sha = digest(line);
        if let Some(voucher) = self.digests.lines.get(&link.seq) {
            if voucher.sha != sha {
                let by = if voucher.is_anchor {
                    "an anchor"
                } else {
                    "a checkpoint"
                };
                let what = format!(
                    "line {} does not match {by}: the line, or the log up to it, was rewritten",
                    link.seq
                );
                self.report.add_flaw(
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
        self.has_started = true;
        self.last = Head { seq: link.seq, sha };
        self.last_place = place;
        self.report.lines += 1;
        self.report.first_seq = self.report.first_seq.or(Some(link.seq));
    }

    /// Adds a line outside of the chain: `open` if it has no line feed, `torn` if it may have been
    /// written incompletely.
    fn add_unlinked(&mut self, place: Place, bytes: u64, open: bool, torn: bool) {
        let unlinked = self.unlinked.get_or_insert_with(|| UnlinkedLine {
            place: place.clone(),
            bytes: 0,
            is_open: open,
            foreign: None,
        });
        unlinked.bytes += bytes;
        unlinked.is_open = open;
        if !torn && unlinked.foreign.is_none() {
            unlinked.foreign = Some(place);
        }
    }

    /// Reports lines outside of the chain: as torn if the line after them records them with their
    /// length, otherwise as foreign.
    fn settle_torn(&mut self, unlinked: &UnlinkedLine, next: &[u8]) {
        #[derive(Deserialize)]
        struct ReopenedLog {
            torn_bytes: u64,
            how: String,
        }
        let reopened = serde_json::from_slice::<ReopenedLog>(next)
            .ok()
            .filter(|told| matches!(&*told.how, "after_crash" | "after_cut"));
        // The last of them may have had no line feed when they were found.
        let matches_length = |told: &ReopenedLog| {
            unlinked.foreign.is_none()
                && (told.torn_bytes == unlinked.bytes || told.torn_bytes + 1 == unlinked.bytes)
        };
        match reopened.filter(matches_length) {
            Some(told) => {
                let Place { file, line } = unlinked.place.clone();
                self.report.torn.push(TornLine {
                    file,
                    line,
                    bytes: told.torn_bytes,
                    closed: true,
                });
            }
            None => self.report_foreign(unlinked),
        }
    }

    fn report_foreign(&mut self, unlinked: &UnlinkedLine) {
        let what = "not a line that the gate wrote: it was modified or inserted".to_owned();
        let seq = self.has_started.then_some(self.last.seq + 1);
        let at = unlinked.foreign.as_ref().unwrap_or(&unlinked.place);
        self.report
            .add_flaw(Kind::Foreign, &at.file, Some(at.line), seq, what);
    }

    /// Verifies the first line: it begins the log, or follows the lines that retention removed.
    fn verify_first(&mut self, link: &Link, place: &Place) {
        let removed = self.digests.removed;
        let is_expected =
            Head::default().leads_to(link) || removed.seq > 0 && removed.leads_to(link);
        // A file may be recorded as removed and still exist, if the gate was killed at that moment.
        if is_expected || link.seq <= removed.seq {
            self.report.removed_through = Some(link.seq - 1).filter(|through| *through > 0);
            return;
        }
        if link.seq == removed.seq + 1 {
            let what = format!("line {} was modified, or belongs to another log", link.seq);
            self.report.add_flaw(
                Kind::Changed,
                &place.file,
                Some(place.line),
                Some(link.seq),
                what,
            );
            return;
        }
        self.report.removed_through = Some(removed.seq).filter(|through| *through > 0);
        self.report_missing(removed.seq + 1, link.seq.saturating_sub(1), place);
    }

    /// Reports a line that does not directly follow the one before it.
    fn report_broken(&mut self, link: &Link, place: &Place) {
        let next = self.last.seq + 1;
        if link.seq > next {
            self.report_missing(next, link.seq - 1, place);
        } else if link.seq == next {
            let Place { file, line } = self.last_place.clone();
            let what = format!(
                "line {} was modified: line {next} contains another digest of it",
                self.last.seq
            );
            self.report
                .add_flaw(Kind::Changed, &file, Some(line), Some(self.last.seq), what);
        } else {
            let what = format!(
                "line {} comes after line {}: it was moved or repeated",
                link.seq, self.last.seq
            );
            self.report.add_flaw(
                Kind::Foreign,
                &place.file,
                Some(place.line),
                Some(link.seq),
                what,
            );
        }
    }

    fn report_missing(&mut self, from: u64, to: u64, place: &Place) {
        let names: Vec<&str> = self
            .digests
            .rotated_files
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
            .add_flaw(kind, &place.file, Some(place.line), Some(from), what);
    }

    /// Verifies the end of the log and returns the report.
    pub(super) fn finish(mut self, log: &Path) -> Report {
        let name = file_name(log);
        match self.unlinked.take() {
            Some(unlinked) if unlinked.is_open && unlinked.foreign.is_none() => {
                let Place { file, line } = unlinked.place;
                self.report.torn.push(TornLine {
                    file,
                    line,
                    bytes: unlinked.bytes,
                    closed: false,
                });
            }
            Some(unlinked) => self.report_foreign(&unlinked),
            None => {}
        }
        let removed_all = !self.has_started && self.digests.removed.seq > 0;
        let through = if removed_all {
            self.digests.removed.seq
        } else {
            self.last.seq
        };
        if let Some((seq, voucher)) = self
            .digests
            .lines
            .last_key_value()
            .filter(|(seq, _)| **seq > through)
        {
            let by = if voucher.is_anchor {
                "an anchor"
            } else {
                "a checkpoint"
            };
            let what = format!(
                "the log ends with line {through}, but {by} covers line {seq}: the end was removed"
            );
            let (file, line) = if self.has_started {
                (self.last_place.file.clone(), Some(self.last_place.line))
            } else {
                (name, None)
            };
            self.report
                .add_flaw(Kind::CutOff, &file, line, Some(through + 1), what);
        }
        self.report.last_seq = self.has_started.then_some(self.last.seq);
        self.report.head = self.has_started.then(|| hex(&self.last.sha));
        self.report
    }
}
