//! Where audit lines go: a file, or standard output; by one thread, that nobody waits for unless the log is required.

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

/// Maximum number of jobs that wait to be done.
const QUEUED_JOBS: usize = 8192;
/// Maximum number of bytes that wait to be written.
const QUEUED_BYTES: usize = 16 << 20;
/// Longest wait for the queue to be written out.
const FLUSH: Duration = Duration::from_secs(5);

/// Whoever must have a place in a full queue looks for it so often.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Takes audit lines.
pub(super) struct Sink {
    /// To the thread that writes, if there is a log.
    to: Option<(JobSender, Arc<Shared>)>,
    required: bool,
    counts: Counts,
}

impl Sink {
    /// Opens the log, creating file and folders as needed.
    ///
    /// # Errors
    /// A file that cannot be opened for appending, whether or not the log is required.
    pub(super) fn new(config: &AuditConfig, counts: Counts) -> io::Result<Self> {
        let to = match &config.to {
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
            to,
            required: config.required,
            counts,
        })
    }

    /// Whether anybody reads lines.
    pub(super) fn is_open(&self) -> bool {
        self.to.is_some()
    }

    /// Whether what must be told can be: false while a log that is required cannot be written.
    pub(super) fn can_record(&self) -> bool {
        !self.required
            || self
                .to
                .as_ref()
                .is_none_or(|(_, shared)| !shared.failing.load(Ordering::Relaxed))
    }

    /// Has lines written; each is a JSON object and ends in a line feed. Where the log is required, nothing that they tell
    /// of may go on before they are on the disk, which is what is given can be waited for.
    pub(super) fn write(&self, lines: String, count: u64) -> PendingWrite {
        let Some((jobs, shared)) = &self.to else {
            return PendingWrite::done();
        };
        let bytes = lines.len();
        let fits = shared.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes <= QUEUED_BYTES;
        let (who, told) = if self.required {
            Some(oneshot::channel()).unzip()
        } else {
            (None, None)
        };
        if !fits || jobs.push(Job::Lines(lines, count, who)).is_err() {
            shared.waiting.fetch_sub(bytes, Ordering::Relaxed);
            shared.dropped.fetch_add(count, Ordering::Relaxed);
            self.counts.dropped.inc_by(count);
            return if self.required {
                PendingWrite::failed(full())
            } else {
                PendingWrite::done()
            };
        }
        told.map_or_else(PendingWrite::done, PendingWrite::pending)
    }

    /// Opens the file anew, after it was moved away.
    ///
    /// # Errors
    /// The thread that would do it is too busy, or gone.
    pub(super) fn reopen(&self) -> io::Result<()> {
        let Some((jobs, _)) = &self.to else {
            return Ok(());
        };
        jobs.push(Job::Reopen).map_err(|error| match error {
            TrySendError::Full(_) => full(),
            TrySendError::Disconnected(_) => io::ErrorKind::BrokenPipe.into(),
        })
    }

    /// Waits, for at most a few seconds, until everything queued is written.
    pub(super) fn flush(&self) {
        let Some((jobs, _)) = &self.to else { return };
        let (done, wait) = sync_channel(1);
        let mut job = Job::Flush(done);
        let deadline = Instant::now() + FLUSH;
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
                FLUSH.as_secs()
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

/// The line of a log that is opened, or goes on in another file: how it hangs together with what was there, and how many
/// bytes before it belong to no line.
fn opened(how: &str, torn_bytes: u64) -> String {
    let found = matches!(how, "after_cut" | "after_foreign" | "after_deletion");
    let severity = if found {
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

/// The line of lines that the log lacks.
fn lost(reason: &str, lines: u64) -> String {
    LogLost {
        reason: reason.into(),
        lines,
    }
    .line(Severity::High)
    .trim_end()
    .to_owned()
}
