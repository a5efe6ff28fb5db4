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
const QUEUE: usize = 4096;
/// Maximum number of bytes of queued messages.
const QUEUE_BYTES: u64 = 64 << 20;

/// Counters for the records of an evidence store.
#[derive(Clone, Debug)]
pub struct EvidenceCounts {
    /// Records written.
    pub kept: IntCounter,
    /// Records dropped because the queue was full.
    pub dropped: IntCounter,
    /// Records that could not be written.
    pub failed: IntCounter,
    /// Segments removed because they were too old or to make room.
    pub forgotten: IntCounter,
}

enum Job {
    Keep(Box<StoredMessage>),
    Flush(SyncSender<()>),
}

/// The sending end of the queue.
#[derive(Debug)]
pub(super) struct Writer {
    queue: SyncSender<Job>,
    waiting: Arc<AtomicU64>,
    counts: Option<EvidenceCounts>,
}

impl Writer {
    pub(super) fn start(store: Arc<Store>, counts: Option<EvidenceCounts>) -> io::Result<Self> {
        let (queue, work) = sync_channel(QUEUE);
        let waiting = Arc::new(AtomicU64::new(0));
        let left = waiting.clone();
        let counted = counts.clone();
        std::thread::Builder::new()
            .name("evidence".into())
            .spawn(move || write(&store, &work, &left, counted.as_ref()))?;
        Ok(Self {
            queue,
            waiting,
            counts,
        })
    }

    pub(super) fn offer(&self, kept: StoredMessage) {
        let bytes = kept.message.len() as u64;
        let waiting = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let sent = waiting + bytes <= QUEUE_BYTES
            && self.queue.try_send(Job::Keep(Box::new(kept))).is_ok();
        if !sent {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            count(self.counts.as_ref().map(|counts| &counts.dropped), 1);
        }
    }

    pub(super) fn flush(&self, within: Duration) {
        let (done, heard) = sync_channel(1);
        let began = std::time::Instant::now();
        let mut work = Job::Flush(done);
        while began.elapsed() < within {
            match self.queue.try_send(work) {
                Ok(()) => {
                    heard
                        .recv_timeout(within.saturating_sub(began.elapsed()))
                        .unwrap_or_default();
                    return;
                }
                Err(TrySendError::Full(back)) => {
                    work = back;
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
    waiting: &AtomicU64,
    counts: Option<&EvidenceCounts>,
) {
    let mut segment = None;
    let mut fails = false;
    while let Ok(next) = work.recv() {
        let kept = match next {
            Job::Keep(kept) => kept,
            Job::Flush(done) => {
                if let Err(error) = Store::sync(segment.as_ref()) {
                    tracing::error!(%error, "cannot write evidence");
                }
                done.send(()).unwrap_or_default();
                continue;
            }
        };
        waiting.fetch_sub(kept.message.len() as u64, Ordering::Relaxed);
        match store.append(&mut segment, &kept) {
            Ok(gone) => {
                count(counts.map(|counts| &counts.kept), 1);
                count(counts.map(|counts| &counts.forgotten), gone as u64);
                fails = false;
            }
            Err(error) => {
                count(counts.map(|counts| &counts.failed), 1);
                if !fails {
                    tracing::error!(%error, "cannot store evidence");
                }
                fails = true;
            }
        }
    }
}

fn count(counter: Option<&IntCounter>, by: u64) {
    if let Some(counter) = counter {
        counter.inc_by(by);
    }
}
