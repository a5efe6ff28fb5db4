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
use super::{Counts, lost_line};
use crate::config::{AuditConfig, AuditTo};
use crate::record::chain::checkpoint::{CheckpointLog, Reason};
use crate::record::chain::key::SigningKey;

/// Maximum number of bytes of one write.
const MAX_BATCH_BYTES: usize = 1 << 20;

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
    pub(super) queued_bytes: AtomicUsize,
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
    batch: Batch,
    /// Number of lines that could not be written, and not yet recorded in the log.
    failed: u64,
    is_healthy: bool,
    required: bool,
}

#[derive(Default)]
struct Batch {
    lines: Vec<String>,
    bytes: usize,
    count: u64,
    senders: Vec<oneshot::Sender<WriteResult>>,
}

enum Target {
    Stream(Stream),
    File(Box<CheckpointedLog>),
}

/// A log in a file, with its checkpoints.
struct CheckpointedLog {
    log: LogFile,
    anchors: Anchors,
    retention: RetentionThread,
    checkpoint_lines: u64,
    checkpoint_interval: Duration,
    /// The last line that has a checkpoint, and when it was written.
    last_checkpoint: (u64, Instant),
    is_healthy: bool,
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
            batch: Batch::default(),
            failed: 0,
            is_healthy: true,
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
            Job::Lines(lines, count, sender) => {
                self.batch.bytes += lines.len();
                self.batch.lines.push(lines);
                self.batch.count += count;
                self.batch.senders.extend(sender);
                if self.batch.bytes >= MAX_BATCH_BYTES {
                    self.write();
                }
            }
            Job::Reopen => {
                self.write();
                if let Target::File(checkpointed) = &mut self.target
                    && let Err(error) = checkpointed.log.reopen()
                {
                    tracing::error!(%error, "cannot reopen the audit log");
                }
            }
            Job::Flush(done) => {
                self.write();
                self.target.finish(&self.counts);
                // The caller may have stopped waiting.
                let _gone = done.try_send(());
            }
        }
    }

    fn write(&mut self) {
        let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
        if self.batch.lines.is_empty() && dropped == 0 && self.failed == 0 {
            return;
        }
        let Batch {
            lines,
            bytes,
            count,
            senders: who,
        } = std::mem::take(&mut self.batch);
        self.shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        let gaps = [("full_queue", dropped), ("not_written", self.failed)];
        let gaps: Vec<String> = gaps
            .iter()
            .filter(|(_, lines)| *lines > 0)
            .map(|(reason, lines)| lost_line(reason, *lines))
            .collect();
        let lines = lines.iter().flat_map(|lines| Lines(lines));
        let result = self.target.append(
            gaps.iter().map(String::as_str).chain(lines),
            self.required,
            &self.counts,
        );
        match &result {
            Ok(()) => {
                self.counts.written.inc_by(count + gaps.len() as u64);
                self.failed = 0;
                if !self.is_healthy {
                    tracing::info!("audit log recovered");
                }
            }
            Err(error) => {
                self.counts.failed.inc_by(count);
                self.failed += count;
                self.shared.dropped.fetch_add(dropped, Ordering::Relaxed);
                // Logged only for the first of consecutive failures, not for each line.
                if self.is_healthy {
                    tracing::error!(%error, "cannot write audit lines");
                }
            }
        }
        self.is_healthy = result.is_ok();
        self.shared
            .failing
            .store(!self.is_healthy, Ordering::Relaxed);
        let outcome = result.map_err(|error| (error.kind(), error.to_string()));
        for sender in who {
            // The caller may have stopped waiting.
            let _gone = sender.send(outcome.clone());
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
            Self::File(checkpointed) => {
                let effects = checkpointed.log.append(lines)?;
                if let Some(tampering) = checkpointed.log.take_tampering() {
                    counts.count_tampering(tampering);
                }
                if effects.rotated {
                    counts.rotated.inc();
                    checkpointed.retention.wake();
                    checkpointed.note(Reason::Opened, counts);
                }
                if durable {
                    checkpointed.log.sync()
                } else {
                    Ok(())
                }
            }
        }
    }

    fn note_if_due(&mut self, counts: &Counts) {
        let Self::File(checkpointed) = self else {
            return;
        };
        let lines = checkpointed
            .log
            .seq()
            .saturating_sub(checkpointed.last_checkpoint.0);
        let time = checkpointed.last_checkpoint.1.elapsed();
        if lines >= checkpointed.checkpoint_lines {
            checkpointed.note(Reason::Lines, counts);
        } else if lines > 0 && time >= checkpointed.checkpoint_interval {
            checkpointed.note(Reason::Time, counts);
        }
    }

    fn finish(&mut self, counts: &Counts) {
        let Self::File(checkpointed) = self else {
            return;
        };
        if checkpointed.log.seq() > checkpointed.last_checkpoint.0 {
            checkpointed.note(Reason::End, counts);
        }
        checkpointed.anchors.flush();
    }
}

impl CheckpointedLog {
    fn note(&mut self, why: Reason, counts: &Counts) {
        // Set even on failure, so that the checkpoint is not retried with every line.
        self.last_checkpoint = (self.log.seq(), Instant::now());
        let result = self.log.note(why);
        match &result {
            Ok(note) => {
                counts.checkpoints_written.inc();
                self.anchors.send(note);
            }
            Err(error) => {
                counts.checkpoints_failed.inc();
                if self.is_healthy {
                    tracing::error!(%error, "cannot write audit log checkpoints");
                }
            }
        }
        self.is_healthy = result.is_ok();
    }
}

fn open(path: &Path, config: &AuditConfig, counts: &Counts) -> io::Result<Target> {
    use std::os::unix::fs::FileTypeExt;
    let with_path =
        |what: &str| io::Error::other(format!("the audit log `{}`: {what}", path.display()));
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_char_device() => {
            let (file, _) = super::log::open_file(path)?;
            return Ok(Target::Stream(Stream::new(StreamTarget::Device(file))));
        }
        // Opening a pipe would block until it has a reader.
        Ok(metadata) if !metadata.is_file() => return Err(with_path("not a regular file")),
        _ => {}
    }
    let key = config
        .key_file
        .clone()
        .unwrap_or_else(|| AuditConfig::key_beside(path));
    // Creates the folder of the log, which may also be that of the key.
    super::log::open_file(path)?;
    let notes = Arc::new(CheckpointLog::new(path, SigningKey::open(&key)?));
    if notes.has_other_key()? {
        tracing::warn!(
            key = %key.display(),
            "checkpoints of the audit log were signed with another key than this: if it was not changed on purpose, bring the old one \
             back; `lychgate audit verify` needs both as `--key`"
        );
    }
    let mut log = LogFile::open(path, &config.rotation, notes.clone())?;
    if let Some(tampering) = log.take_tampering() {
        counts.count_tampering(tampering);
    }
    let anchors = Anchors::start(&config.anchor, counts)?;
    let keeper = RetentionThread::start(path, &config.rotation, notes, counts.clone())?;
    let mut checkpointed = CheckpointedLog {
        log,
        anchors,
        retention: keeper,
        checkpoint_lines: config.checkpoint_lines,
        checkpoint_interval: config.checkpoint_time,
        last_checkpoint: (0, Instant::now()),
        is_healthy: true,
    };
    checkpointed.note(Reason::Opened, counts);
    Ok(Target::File(Box::new(checkpointed)))
}
