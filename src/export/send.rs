//! Sends the records of one signal: gathers them, tries again where that may help, and counts what became of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use super::post::{Collector, SendError};
use super::queue::Queue;
use crate::record::ExportCounts;

/// How often one request is sent, at the most.
const TRIES: u32 = 5;
/// Pause before the second try; each further one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause, whatever the collector asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Sends one signal.
pub(super) struct Sender {
    signal: &'static str,
    post: Arc<Collector>,
    counts: ExportCounts,
    stop: watch::Receiver<bool>,
    /// Whether the last request was taken: what goes wrong is said once for each time that it begins to.
    well: AtomicBool,
}

/// A request, and how many records it holds.
pub(super) struct Request {
    pub(super) body: Bytes,
    pub(super) records: u64,
}

impl Sender {
    pub(super) fn new(
        signal: &'static str,
        post: Arc<Collector>,
        counts: ExportCounts,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self {
            signal,
            post,
            counts,
            stop,
            well: AtomicBool::new(true),
        }
    }

    /// Sends what comes into the queue until it is time to stop, and what is left then.
    pub(super) async fn all<T>(
        self,
        queue: Arc<Queue<T>>,
        interval: Duration,
        request: impl Fn(Vec<T>) -> Request,
    ) {
        let mut stop = self.stop.clone();
        loop {
            let stops = tokio::select! {
                () = tokio::time::sleep(interval) => false,
                () = queue.enough() => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            while let Some(batch) = queue.take() {
                self.send(request(batch)).await;
            }
            if stops {
                return;
            }
        }
    }

    /// Sends what there is at each interval, and once more when it is time to stop.
    pub(super) async fn regularly(self, interval: Duration, requests: impl Fn() -> Vec<Request>) {
        let mut stop = self.stop.clone();
        loop {
            let stops = tokio::select! {
                () = tokio::time::sleep(interval) => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            for request in requests() {
                self.send(request).await;
            }
            if stops {
                return;
            }
        }
    }

    async fn send(&self, Request { body, records }: Request) {
        let mut stop = self.stop.clone();
        let mut pause = PAUSE;
        let mut tries = 1;
        // Counted where this is given up on the way, too.
        let mut fate = BatchOutcome {
            counts: &self.counts,
            failed: records,
        };
        loop {
            let why = match self.post.post(self.signal, body.clone()).await {
                Ok(taken) => {
                    let rejected = taken.rejected.min(records);
                    fate.failed = 0;
                    self.counts.accepted.inc_by(records - rejected);
                    self.counts.rejected.inc_by(rejected);
                    if rejected > 0 {
                        tracing::warn!(
                            signal = self.signal,
                            rejected,
                            "OTLP collector rejected records"
                        );
                    }
                    if !self.well.swap(true, Ordering::Relaxed) {
                        tracing::info!(signal = self.signal, "OTLP collector recovered");
                    }
                    return;
                }
                Err(why) => why,
            };
            if self.well.swap(false, Ordering::Relaxed) {
                tracing::warn!(signal = self.signal, %why, "OTLP export failed");
            }
            let asked = match why {
                SendError::Refused(_) => {
                    fate.failed = 0;
                    self.counts.rejected.inc_by(records);
                    return;
                }
                SendError::Unreadable => return,
                SendError::Later { after, .. } => after,
                SendError::Unreachable(_) | SendError::Late(_) => None,
            };
            if tries == TRIES || *stop.borrow() {
                return;
            }
            tries += 1;
            let wait = asked.unwrap_or(pause + jitter(pause)).min(LONGEST_PAUSE);
            pause = (pause * 2).min(LONGEST_PAUSE);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // One last try, at once.
                _ = stop.wait_for(|stop| *stop) => tries = TRIES,
            }
        }
    }
}

/// Counts records as failed unless something else became of them.
struct BatchOutcome<'c> {
    counts: &'c ExportCounts,
    failed: u64,
}

impl Drop for BatchOutcome<'_> {
    fn drop(&mut self) {
        self.counts.failed.inc_by(self.failed);
    }
}

/// Up to a quarter of a pause, so that many gates do not come back at once.
fn jitter(pause: Duration) -> Duration {
    let [byte, ..] = *uuid::Uuid::new_v4().as_bytes();
    pause * u32::from(byte) / 1024
}
