//! Writes audit lines to a file or to standard output, in a thread of its own. Callers wait for it
//! only if the log is required.

mod anchor;
mod counts;
mod log;
mod pending_write;
mod queue;
mod retention;
mod stream;
mod writer;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

pub(super) use counts::Counts;
pub use pending_write::PendingWrite;

use super::entry::event::{Event as _, LogLost, LogOpened};
use crate::config::AuditConfig;
use crate::rules::Severity;
use queue::{JobSender, queue};
use writer::{Job, Shared, Writer};

/// Maximum number of queued jobs.
const QUEUED_JOBS: usize = 8192;
/// Maximum number of bytes that are queued to be written.
const QUEUED_BYTES: usize = 16 << 20;
/// Maximum time to wait until the queue is written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval at which a caller that needs a place in a full queue tries again.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Accepts audit lines.
pub(super) struct Sink {
    /// The queue of the writer thread, if there is a log.
    to: Option<(JobSender, Arc<Shared>)>,
    required: bool,
    counts: Counts,
}

impl Sink {
    /// Opens the log, creating file and folders as needed.
    ///
    /// # Errors
    /// The file cannot be opened for appending, whether or not the log is required.
    pub(super) fn new(config: &AuditConfig, counts: Counts) -> io::Result<Self> {
        let output = match &config.to {
            None => None,
            Some(to) => {
                let shared = Arc::new(Shared::default());
                let writer = Writer::open(config, to, shared.clone(), counts.clone())?;
                let (jobs, queue) = queue(QUEUED_JOBS);
                std::thread::Builder::new()
                    .name("audit".to_owned())
                    .spawn(move || writer.run(queue))?;
                Some((jobs, shared))
            }
        };
        Ok(Self {
            to: output,
            required: config.required,
            counts,
        })
    }

    /// Reports whether there is a log.
    pub(super) fn is_open(&self) -> bool {
        self.to.is_some()
    }

    /// Reports whether required events can be recorded: false while a required log cannot be
    /// written.
    pub(super) fn can_record(&self) -> bool {
        !self.required
            || self
                .to
                .as_ref()
                .is_none_or(|(_, shared)| !shared.failing.load(Ordering::Relaxed))
    }

    /// Queues lines to be written; each is a JSON object and ends in a line feed. If the log is
    /// required, messages that the lines record must not be forwarded before the lines are on disk,
    /// which the returned value waits for.
    pub(super) fn write(&self, lines: String, count: u64) -> PendingWrite {
        let Some((jobs, shared)) = &self.to else {
            return PendingWrite::done();
        };
        let bytes = lines.len();
        let has_room =
            shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= QUEUED_BYTES;
        let (sender, receiver) = if self.required {
            Some(oneshot::channel()).unzip()
        } else {
            (None, None)
        };
        if !has_room || jobs.push(Job::Lines(lines, count, sender)).is_err() {
            shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            shared.dropped.fetch_add(count, Ordering::Relaxed);
            self.counts.dropped.inc_by(count);
            return if self.required {
                PendingWrite::failed(full())
            } else {
                PendingWrite::done()
            };
        }
        receiver.map_or_else(PendingWrite::done, PendingWrite::pending)
    }

    /// Reopens the file after it was moved away.
    ///
    /// # Errors
    /// The queue of the writer thread is full, or the thread has ended.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let Some((jobs, _)) = &self.to else {
            return Ok(());
        };
        jobs.push(Job::Reopen).map_err(|error| match error {
            TrySendError::Full(_) => full(),
            TrySendError::Disconnected(_) => io::ErrorKind::BrokenPipe.into(),
        })
    }

    /// Waits until everything queued is written, for at most a few seconds.
    pub(super) fn flush(&self) {
        let Some((jobs, _)) = &self.to else { return };
        let (done, wait) = sync_channel(1);
        let mut job = Job::Flush(done);
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        while let Err(TrySendError::Full(again)) = jobs.push(job) {
            if Instant::now() >= deadline {
                break;
            }
            job = again;
            std::thread::sleep(RETRY_INTERVAL);
        }
        if wait
            .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            .is_err_and(|error| error == RecvTimeoutError::Timeout)
        {
            tracing::warn!(
                "the audit log did not accept all lines within {} s",
                FLUSH_TIMEOUT.as_secs()
            );
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.flush();
    }
}

fn full() -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, "the audit queue is full")
}

/// Returns the line that records that a log was opened or continues in another file: how it relates
/// to the existing lines, and how many bytes before it belong to no line.
fn opened_line(how: &str, torn_bytes: u64) -> String {
    let is_tampering = matches!(how, "after_cut" | "after_foreign" | "after_deletion");
    let severity = if is_tampering {
        Severity::Critical
    } else {
        Severity::Info
    };
    let line = LogOpened {
        how: how.into(),
        torn_bytes: Some(torn_bytes).filter(|torn| *torn > 0),
    }
    .line(severity);
    line.trim_end().to_owned()
}

/// Returns the line that records that lines are missing from the log.
fn lost_line(reason: &str, lines: u64) -> String {
    LogLost {
        reason: reason.into(),
        lines,
    }
    .line(Severity::High)
    .trim_end()
    .to_owned()
}
