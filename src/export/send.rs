//! Sends the records of one signal: batches them, retries where that may help, and counts the
//! outcomes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use super::post::{Collector, SendError};
use super::queue::Queue;
use crate::record::ExportCounts;

/// Maximum number of attempts for one request.
const MAX_ATTEMPTS: u32 = 5;
/// Pause before the second attempt; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause, including one that the collector asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Sends the records of one signal.
pub(super) struct Sender {
    signal: &'static str,
    collector: Arc<Collector>,
    counts: ExportCounts,
    stop: watch::Receiver<bool>,
    /// Whether the last request was accepted. Only the first of consecutive failures is logged.
    is_healthy: AtomicBool,
}

/// A request, and the number of records in it.
pub(super) struct Request {
    pub(super) body: Bytes,
    pub(super) records: u64,
}

impl Sender {
    pub(super) fn new(
        signal: &'static str,
        collector: Arc<Collector>,
        counts: ExportCounts,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self {
            signal,
            collector,
            counts,
            stop,
            is_healthy: AtomicBool::new(true),
        }
    }

    /// Sends queued records until the exporter is closed, and then the rest.
    pub(super) async fn send_all<T>(
        self,
        queue: Arc<Queue<T>>,
        interval: Duration,
        request: impl Fn(Vec<T>) -> Request,
    ) {
        let mut stop = self.stop.clone();
        loop {
            let is_stopping = tokio::select! {
                () = tokio::time::sleep(interval) => false,
                () = queue.wait_for_batch() => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            while let Some(batch) = queue.take() {
                self.send(request(batch)).await;
            }
            if is_stopping {
                return;
            }
        }
    }

    /// Sends the current requests at each interval, and once more when the exporter is closed.
    pub(super) async fn send_regularly(
        self,
        interval: Duration,
        requests: impl Fn() -> Vec<Request>,
    ) {
        let mut stop = self.stop.clone();
        loop {
            let is_stopping = tokio::select! {
                () = tokio::time::sleep(interval) => false,
                _ = stop.wait_for(|stop| *stop) => true,
            };
            for request in requests() {
                self.send(request).await;
            }
            if is_stopping {
                return;
            }
        }
    }

    async fn send(&self, Request { body, records }: Request) {
        let mut stop = self.stop.clone();
        let mut pause = FIRST_PAUSE;
        let mut attempts = 1;
        // Counts the records as failed even if this future is dropped.
        let mut outcome = BatchOutcome {
            counts: &self.counts,
            failed: records,
        };
        loop {
            let why = match self.collector.post(self.signal, body.clone()).await {
                Ok(accepted) => {
                    let rejected = accepted.rejected.min(records);
                    outcome.failed = 0;
                    self.counts.accepted.inc_by(records - rejected);
                    self.counts.rejected.inc_by(rejected);
                    if rejected > 0 {
                        tracing::warn!(
                            signal = self.signal,
                            rejected,
                            "OTLP collector rejected records"
                        );
                    }
                    if !self.is_healthy.swap(true, Ordering::Relaxed) {
                        tracing::info!(signal = self.signal, "OTLP collector recovered");
                    }
                    return;
                }
                Err(why) => why,
            };
            if self.is_healthy.swap(false, Ordering::Relaxed) {
                tracing::warn!(signal = self.signal, %why, "OTLP export failed");
            }
            let retry_after = match why {
                SendError::Refused(_) => {
                    outcome.failed = 0;
                    self.counts.rejected.inc_by(records);
                    return;
                }
                SendError::Unreadable => return,
                SendError::Unavailable { after, .. } => after,
                SendError::Unreachable(_) | SendError::Timeout(_) => None,
            };
            if attempts == MAX_ATTEMPTS || *stop.borrow() {
                return;
            }
            attempts += 1;
            let wait = retry_after
                .unwrap_or(pause + jitter(pause))
                .min(LONGEST_PAUSE);
            pause = (pause * 2).min(LONGEST_PAUSE);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                // One last attempt, at once.
                _ = stop.wait_for(|stop| *stop) => attempts = MAX_ATTEMPTS,
            }
        }
    }
}

/// Counts records as failed unless they have another outcome.
struct BatchOutcome<'c> {
    counts: &'c ExportCounts,
    failed: u64,
}

impl Drop for BatchOutcome<'_> {
    fn drop(&mut self) {
        self.counts.failed.inc_by(self.failed);
    }
}

/// Returns up to a quarter of a pause, so that many gates do not retry at the same time.
fn jitter(pause: Duration) -> Duration {
    let [byte, ..] = *uuid::Uuid::new_v4().as_bytes();
    pause * u32::from(byte) / 1024
}
