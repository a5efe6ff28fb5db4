//! The thread that writes evidence. It is outside of the path of calls and has a queue that is
//! limited in messages and bytes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use prometheus::IntCounter;

use super::evidence::Store;
use super::stored_message::StoredMessage;

/// Maximum number of queued messages.
const MAX_QUEUED: usize = 4096;
/// Maximum number of bytes of queued messages.
const MAX_QUEUED_BYTES: u64 = 64 << 20;

/// Counters for the records of an evidence store.
#[derive(Clone, Debug)]
pub struct EvidenceCounts {
    /// Records written.
    pub stored: IntCounter,
    /// Records dropped because the queue was full.
    pub dropped: IntCounter,
    /// Records that could not be written.
    pub failed: IntCounter,
    /// Segments removed because they were too old or to make room.
    pub removed: IntCounter,
}

enum Job {
    Write(Box<StoredMessage>),
    Flush(SyncSender<()>),
}

/// The sending end of the queue.
#[derive(Debug)]
pub(super) struct Writer {
    queue: SyncSender<Job>,
    queued_bytes: Arc<AtomicU64>,
    counts: Option<EvidenceCounts>,
}

impl Writer {
    pub(super) fn start(store: Arc<Store>, counts: Option<EvidenceCounts>) -> io::Result<Self> {
        let (queue, work) = sync_channel(MAX_QUEUED);
        let queued_bytes = Arc::new(AtomicU64::new(0));
        let thread_queued = queued_bytes.clone();
        let thread_counts = counts.clone();
        std::thread::Builder::new()
            .name("evidence".into())
            .spawn(move || write(&store, &work, &thread_queued, thread_counts.as_ref()))?;
        Ok(Self {
            queue,
            queued_bytes,
            counts,
        })
    }

    pub(super) fn offer(&self, message: StoredMessage) {
        let bytes = message.message.len() as u64;
        let queued = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_queued = queued + bytes <= MAX_QUEUED_BYTES
            && self.queue.try_send(Job::Write(Box::new(message))).is_ok();
        if !is_queued {
            self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            count(self.counts.as_ref().map(|counts| &counts.dropped), 1);
        }
    }

    pub(super) fn flush(&self, timeout: Duration) {
        let (done, receiver) = sync_channel(1);
        let start = std::time::Instant::now();
        let mut work = Job::Flush(done);
        while start.elapsed() < timeout {
            match self.queue.try_send(work) {
                Ok(()) => {
                    receiver
                        .recv_timeout(timeout.saturating_sub(start.elapsed()))
                        .unwrap_or_default();
                    return;
                }
                Err(TrySendError::Full(returned)) => {
                    work = returned;
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
    }
}

fn write(
    store: &Store,
    work: &Receiver<Job>,
    queued_bytes: &AtomicU64,
    counts: Option<&EvidenceCounts>,
) {
    let mut segment = None;
    let mut is_failing = false;
    while let Ok(job) = work.recv() {
        let message = match job {
            Job::Write(kept) => kept,
            Job::Flush(done) => {
                if let Err(error) = Store::sync(segment.as_ref()) {
                    tracing::error!(%error, "cannot write evidence");
                }
                done.send(()).unwrap_or_default();
                continue;
            }
        };
        queued_bytes.fetch_sub(message.message.len() as u64, Ordering::Relaxed);
        match store.append(&mut segment, &message) {
            Ok(removed) => {
                count(counts.map(|counts| &counts.stored), 1);
                count(counts.map(|counts| &counts.removed), removed as u64);
                is_failing = false;
            }
            Err(error) => {
                count(counts.map(|counts| &counts.failed), 1);
                if !is_failing {
                    tracing::error!(%error, "cannot store evidence");
                }
                is_failing = true;
            }
        }
    }
}

fn count(counter: Option<&IntCounter>, by: u64) {
    if let Some(counter) = counter {
        counter.inc_by(by);
    }
}
