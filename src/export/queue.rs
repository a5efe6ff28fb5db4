//! The queue of records to be sent, limited in records and bytes.

use std::collections::VecDeque;

use parking_lot::Mutex;
use prometheus::IntCounter;
use tokio::sync::Notify;

use crate::config::OtlpConfig;

/// Queued records, the oldest first.
pub(super) struct Queue<T> {
    pending: Mutex<QueuedRecords<T>>,
    /// Notified when there are enough records for one request.
    batch_ready: Notify,
    queue_records: usize,
    queue_bytes: usize,
    batch_records: usize,
    batch_bytes: usize,
    dropped: IntCounter,
}

struct QueuedRecords<T> {
    records: VecDeque<(T, usize)>,
    bytes: usize,
}

impl<T> Queue<T> {
    pub(super) fn new(config: &OtlpConfig, dropped: IntCounter) -> Self {
        let OtlpConfig {
            queue_records,
            queue_bytes,
            batch_records,
            batch_bytes,
            ..
        } = *config;
        let pending = Mutex::new(QueuedRecords {
            records: VecDeque::new(),
            bytes: 0,
        });
        Self {
            pending,
            batch_ready: Notify::new(),
            queue_records,
            queue_bytes,
            batch_records,
            batch_bytes,
            dropped,
        }
    }

    /// Adds a record of `bytes` bytes, or drops it if there is no room.
    pub(super) fn push(&self, record: T, bytes: usize) {
        let mut pending = self.pending.lock();
        if pending.records.len() >= self.queue_records
            || pending.bytes.saturating_add(bytes) > self.queue_bytes
        {
            drop(pending);
            self.dropped.inc();
            return;
        }
        let had_enough = self.has_enough(&pending);
        pending.bytes += bytes;
        pending.records.push_back((record, bytes));
        let should_wake = !had_enough && self.has_enough(&pending);
        drop(pending);
        if should_wake {
            self.batch_ready.notify_one();
        }
    }

    /// Returns the next records for one request, at least one; `None` if the queue is empty.
    pub(super) fn take(&self) -> Option<Vec<T>> {
        let mut pending = self.pending.lock();
        let mut out = Vec::new();
        let mut bytes = 0;
        while let Some((_, more)) = pending.records.front() {
            if !out.is_empty()
                && (out.len() >= self.batch_records || bytes + more > self.batch_bytes)
            {
                break;
            }
            bytes += more;
            out.extend(pending.records.pop_front().map(|(record, _)| record));
        }
        pending.bytes = pending.bytes.saturating_sub(bytes);
        (!out.is_empty()).then_some(out)
    }

    /// Waits until there are enough records for one request.
    pub(super) async fn wait_for_batch(&self) {
        self.batch_ready.notified().await;
    }

    fn has_enough(&self, pending: &QueuedRecords<T>) -> bool {
        pending.records.len() >= self.batch_records || pending.bytes >= self.batch_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(records: usize, bytes: usize) -> Queue<u32> {
        let mut config = OtlpConfig::new(String::new());
        (config.queue_records, config.queue_bytes) = (records, bytes);
        (config.batch_records, config.batch_bytes) = (3, 100);
        Queue::new(&config, IntCounter::new("n", "n").unwrap())
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted() {
        let few = queue(2, 1000);
        (0..5).for_each(|n| few.push(n, 1));
        assert_eq!(
            (few.take(), few.take(), few.dropped.get()),
            (Some(vec![0, 1]), None, 3)
        );
        let small = queue(100, 50);
        small.push(0, 30);
        small.push(1, 30);
        small.push(2, usize::MAX);
        assert_eq!((small.take(), small.dropped.get()), (Some(vec![0]), 2));
        small.push(3, 50);
        assert_eq!(
            (small.take(), small.dropped.get()),
            (Some(vec![3]), 2),
            "what is taken makes room"
        );
    }

    #[test]
    fn a_request_has_so_many_records_and_bytes_but_at_least_one() {
        let queue = queue(100, 10_000);
        (0..4).for_each(|n| queue.push(n, 1));
        [(4, 60), (5, 60), (6, 500), (7, 1)]
            .into_iter()
            .for_each(|(n, bytes)| queue.push(n, bytes));
        let batches: Vec<_> = std::iter::from_fn(|| queue.take()).collect();
        assert_eq!(
            batches,
            [vec![0, 1, 2], vec![3, 4], vec![5], vec![6], vec![7]]
        );
    }

    #[tokio::test]
    async fn whoever_waits_for_enough_is_woken_by_it() {
        let queue = queue(100, 10_000);
        queue.push(0, 1);
        assert!(
            tokio::time::timeout(std::time::Duration::from_millis(20), queue.wait_for_batch())
                .await
                .is_err()
        );
        queue.push(1, 1);
        queue.push(2, 1);
        tokio::time::timeout(std::time::Duration::from_secs(5), queue.wait_for_batch())
            .await
            .unwrap();
    }
}
