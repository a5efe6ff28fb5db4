//! The thread that writes audit lines. Lines that are queued together are written and synced
//! together.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::anchor::Anchors;
use super::log::LogFile;
use super::queue::Queue;
use super::retention::RetentionThread;
use super::stream::{Stream, StreamTarget};
use super::{Counts, lost};
use crate::config::{AuditConfig, AuditTo};
use crate::record::chain::checkpoint::{CheckpointLog, Reason};
use crate::record::chain::key::SigningKey;

/// Maximum number of bytes of one write.
const GATHERED_BYTES: usize = 1 << 20;

/// The result of writing lines, for the caller that waits for it.
pub(super) type WriteResult = Result<(), (io::ErrorKind, String)>;

/// A job of the writer thread.
pub(super) enum Job {
    /// Lines, their number, and the caller that waits until they are on disk.
    Lines(String, u64, Option<oneshot::Sender<WriteResult>>),
    Reopen,
    /// Write everything, add a checkpoint, and notify the caller.
    Flush(SyncSender<()>),
}

impl Job {
    /// Reports whether a caller waits for it.
    pub(super) fn is_urgent(&self) -> bool {
        !matches!(self, Self::Lines(_, _, None))
    }
}

/// State that the thread shares with the callers.
#[derive(Default)]
pub(super) struct Shared {
    /// Number of queued bytes.
    pub(super) waiting: AtomicUsize,
    /// Number of lines that were dropped because the queue was full, and not yet recorded in the
    /// log.
    pub(super) dropped: AtomicU64,
    /// Whether the last write failed.
    pub(super) failing: AtomicBool,
}

pub(super) struct Writer {
    target: Target,
    shared: Arc<Shared>,
    counts: Counts,
    gathered: Batch,
    /// Number of lines that could not be written, and not yet recorded in the log.
    failed: u64,
    well: bool,
    required: bool,
}

#[derive(Default)]
struct Batch {
    lines: Vec<String>,
    bytes: usize,
    count: u64,
    who: Vec<oneshot::Sender<WriteResult>>,
}

enum Target {
    Stream(Stream),
    File(Box<CheckpointedLog>),
}

/// A log in a file, with its checkpoints.
struct CheckpointedLog {
    log: LogFile,
    anchors: Anchors,
    keeper: RetentionThread,
    every_lines: u64,
    every: Duration,
    /// The last line that has a checkpoint, and when it was written.
    last: (u64, Instant),
    well: bool,
}

impl Writer {
    /// Opens the log.
    ///
    /// # Errors
    /// The log cannot be opened.
    pub(super) fn open(
        config: &AuditConfig,
        to: &AuditTo,
        shared: Arc<Shared>,
        counts: Counts,
    ) -> io::Result<Self> {
        let target = match to {
            AuditTo::Stdout => Target::Stream(Stream::new(StreamTarget::Stdout)),
            AuditTo::File(path) => open(path, config, &counts)?,
        };
        let required = config.required;
        Ok(Self {
            target,
            shared,
            counts,
            gathered: Batch::default(),
            failed: 0,
            well: true,
            required,
        })
    }

    /// Writes lines until all senders are dropped.
    pub(super) fn run(mut self, mut queue: Queue) {
        let mut jobs = Vec::new();
        while queue.take(&mut jobs) {
            jobs.drain(..).for_each(|job| self.take(job));
            // Called even without lines: while recording is reported as impossible, no messages may
            // arrive that would cause another attempt.
            self.write();
            self.target.note_if_due(&self.counts);
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Lines(lines, count, who) => {
                self.gathered.bytes += lines.len();
                self.gathered.lines.push(lines);
                self.gathered.count += count;
                self.gathered.who.extend(who);
                if self.gathered.bytes >= GATHERED_BYTES {
                    self.write();
                }
            }
            Job::Reopen => {
                self.write();
                if let Target::File(noted) = &mut self.target
                    && let Err(error) = noted.log.reopen()
                {
                    tracing::error!(%error, "cannot reopen the audit log");
                }
            }
            Job::Flush(done) => {
                self.write();
                self.target.end(&self.counts);
                // The caller may have stopped waiting.
                let _gone = done.try_send(());
            }
        }
    }

    fn write(&mut self) {
        let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
        if self.gathered.lines.is_empty() && dropped == 0 && self.failed == 0 {
            return;
        }
        let Batch {
            lines,
            bytes,
            count,
            who,
        } = std::mem::take(&mut self.gathered);
        self.shared.waiting.fetch_sub(bytes, Ordering::Relaxed);
        let gaps = [("full_queue", dropped), ("not_written", self.failed)];
        let gaps: Vec<String> = gaps
            .iter()
            .filter(|(_, lines)| *lines > 0)
            .map(|(reason, lines)| lost(reason, *lines))
            .collect();
        let lines = lines.iter().flat_map(|lines| Lines(lines));
        let written = self.target.append(
            gaps.iter().map(String::as_str).chain(lines),
            self.required,
            &self.counts,
        );
        match &written {
            Ok(()) => {
                self.counts.written.inc_by(count + gaps.len() as u64);
                self.failed = 0;
                if !self.well {
                    tracing::info!("audit log recovered");
                }
            }
            Err(error) => {
                self.counts.failed.inc_by(count);
                self.failed += count;
                self.shared.dropped.fetch_add(dropped, Ordering::Relaxed);
                // Logged only for the first of consecutive failures, not for each line.
                if self.well {
                    tracing::error!(%error, "cannot write audit lines");
                }
            }
        }
        self.well = written.is_ok();
        self.shared.failing.store(!self.well, Ordering::Relaxed);
        let told = written.map_err(|error| (error.kind(), error.to_string()));
        for one in who {
            // The caller may have stopped waiting.
            let _gone = one.send(told.clone());
        }
    }
}

/// Iterates over the lines of a text, without their line feeds. `str::lines` does the same, but
/// examines each byte individually.
struct Lines<'t>(&'t str);

impl<'t> Iterator for Lines<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let end = memchr::memchr(b'\n', self.0.as_bytes()).unwrap_or(self.0.len());
        let line = self.0.get(..end).filter(|_| !self.0.is_empty())?;
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        Some(line)
    }
}

impl Target {
    fn append<'l>(
        &mut self,
        lines: impl Iterator<Item = &'l str>,
        durable: bool,
        counts: &Counts,
    ) -> io::Result<()> {
        match self {
            Self::Stream(stream) => stream.append(lines),
            Self::File(noted) => {
                let done = noted.log.append(lines)?;
                if let Some(found) = noted.log.take_tampering() {
                    counts.count_tampering(found);
                }
                if done.rotated {
                    counts.rotated.inc();
                    noted.keeper.wake();
                    noted.note(Reason::Opened, counts);
                }
                if durable { noted.log.sync() } else { Ok(()) }
            }
        }
    }

    fn note_if_due(&mut self, counts: &Counts) {
        let Self::File(noted) = self else { return };
        let lines = noted.log.seq().saturating_sub(noted.last.0);
        let time = noted.last.1.elapsed();
        if lines >= noted.every_lines {
            noted.note(Reason::Lines, counts);
        } else if lines > 0 && time >= noted.every {
            noted.note(Reason::Time, counts);
        }
    }

    fn end(&mut self, counts: &Counts) {
        let Self::File(noted) = self else { return };
        if noted.log.seq() > noted.last.0 {
            noted.note(Reason::End, counts);
        }
        noted.anchors.flush();
    }
}

impl CheckpointedLog {
    fn note(&mut self, why: Reason, counts: &Counts) {
        // Set even on failure, so that the checkpoint is not retried with every line.
        self.last = (self.log.seq(), Instant::now());
        let noted = self.log.note(why);
        match &noted {
            Ok(note) => {
                counts.noted.inc();
                self.anchors.send(note);
            }
            Err(error) => {
                counts.not_noted.inc();
                if self.well {
                    tracing::error!(%error, "cannot write audit log checkpoints");
                }
            }
        }
        self.well = noted.is_ok();
    }
}

fn open(path: &Path, config: &AuditConfig, counts: &Counts) -> io::Result<Target> {
    use std::os::unix::fs::FileTypeExt;
    let named =
        |what: &str| io::Error::other(format!("the audit log `{}`: {what}", path.display()));
    match std::fs::metadata(path) {
        Ok(found) if found.file_type().is_char_device() => {
            let (file, _) = super::log::open_file(path)?;
            return Ok(Target::Stream(Stream::new(StreamTarget::Device(file))));
        }
        // Opening a pipe would block until it has a reader.
        Ok(found) if !found.is_file() => return Err(named("not a regular file")),
        _ => {}
    }
    let key = config
        .key_file
        .clone()
        .unwrap_or_else(|| AuditConfig::key_beside(path));
    // Creates the folder of the log, which may also be that of the key.
    super::log::open_file(path)?;
    let notes = Arc::new(CheckpointLog::new(path, SigningKey::open(&key)?));
    if notes.were_of_another_key()? {
        tracing::warn!(
            key = %key.display(),
            "checkpoints of the audit log were signed with another key than this: if it was not changed on purpose, bring the old one \
             back; `lychgate audit verify` needs both as `--key`"
        );
    }
    let mut log = LogFile::open(path, &config.rotation, notes.clone())?;
    if let Some(found) = log.take_tampering() {
        counts.count_tampering(found);
    }
    let anchors = Anchors::start(&config.anchor, counts)?;
    let keeper = RetentionThread::start(path, &config.rotation, notes, counts.clone())?;
    let mut noted = CheckpointedLog {
        log,
        anchors,
        keeper,
        every_lines: config.checkpoint_lines,
        every: config.checkpoint_time,
        last: (0, Instant::now()),
        well: true,
    };
    noted.note(Reason::Opened, counts);
    Ok(Target::File(Box::new(noted)))
}
