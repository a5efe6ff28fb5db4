//! The most recent audit lines, for live readers. Their number is limited, and no reader delays
//! recording.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::entry::event::{Event as _, Judged};
use super::entry::member;

/// Maximum number of lines that are kept.
const MAX_LINES: usize = 2000;
/// Maximum number of bytes of lines that are kept.
const MAX_BYTES: usize = 8 << 20;
/// Maximum number of lines of one [`TailBatch`].
const MAX_BATCH_LINES: usize = 500;

/// A handle for the most recent audit lines; clones share the lines.
#[derive(Clone)]
pub struct AuditTail(Arc<TailState>);

struct TailState {
    buffer: Mutex<TailBuffer>,
    /// The number of the next line.
    progress: watch::Sender<u64>,
    always_keeps: AtomicBool,
}

/// The lines; the last one has the number before `next`.
#[derive(Default)]
struct TailBuffer {
    lines: VecDeque<Arc<str>>,
    bytes: usize,
    next: u64,
}

/// Reads lines as they arrive.
pub struct TailReader {
    shared: Arc<TailState>,
    progress: watch::Receiver<u64>,
    next: u64,
}

/// Lines in the order in which they were recorded.
#[derive(Debug, PartialEq, Eq)]
pub struct TailBatch {
    /// Number of lines before the first of these that were dropped without being read.
    pub missed: u64,
    /// The number of the first line; each further line has the next number.
    pub first: u64,
    /// The lines, without their line feeds.
    pub lines: Vec<Arc<str>>,
}

impl Default for AuditTail {
    fn default() -> Self {
        Self(Arc::new(TailState {
            buffer: Mutex::default(),
            progress: watch::Sender::new(0),
            always_keeps: AtomicBool::new(false),
        }))
    }
}

impl AuditTail {
    /// Keeps lines from now on even while there are no readers, so that later ones receive earlier
    /// lines.
    pub fn start_keeping(&self) {
        self.0.always_keeps.store(true, Ordering::Relaxed);
    }

    /// Adds earlier lines, if there are no lines yet.
    pub fn seed<'l>(&self, lines: impl Iterator<Item = &'l str>) {
        let next = {
            let mut buffer = self.0.buffer.lock();
            if buffer.next > 0 {
                return;
            }
            lines.for_each(|line| buffer.add(line));
            buffer.next
        };
        self.0.progress.send_replace(next);
    }

    /// Reports whether there are readers. For them, lines are created even if there is no log.
    pub(super) fn is_watched(&self) -> bool {
        self.0.progress.receiver_count() > 0
    }

    /// Adds lines, each of which ends in a line feed.
    pub(super) fn push(&self, lines: &str) {
        if !self.0.always_keeps.load(Ordering::Relaxed) && !self.is_watched() {
            return;
        }
        let next = {
            let mut buffer = self.0.buffer.lock();
            lines
                .lines()
                .filter(|line| !line.is_empty())
                .for_each(|line| buffer.add(line));
            buffer.next
        };
        self.0.progress.send_replace(next);
    }

    /// Returns the first available line of the inspection with this id.
    pub fn find_judged(&self, audit: &str) -> Option<Arc<str>> {
        let id_member = format!(r#""{}":"{audit}""#, member::audit::NAME);
        let event_member = format!(r#""{}":"{}""#, member::event::NAME, Judged::EVENT);
        self.0
            .buffer
            .lock()
            .lines
            .iter()
            .find(|line| line.contains(&event_member) && line.contains(&id_member))
            .cloned()
    }

    /// Returns a reader that starts `back` lines before the end.
    pub fn watch(&self, back: usize) -> TailReader {
        let progress = self.0.progress.subscribe();
        let next = self.0.buffer.lock().next.saturating_sub(back as u64);
        TailReader {
            shared: self.0.clone(),
            progress,
            next,
        }
    }
}

impl TailState {}

impl TailBuffer {
    fn add(&mut self, line: &str) {
        self.next += 1;
        self.bytes += line.len();
        self.lines.push_back(line.into());
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
        }
    }

    fn first(&self) -> u64 {
        self.next - self.lines.len() as u64
    }
}

impl TailReader {
    /// Returns the lines that were not read yet, and waits if there are none. `None` once there
    /// will be no more.
    pub async fn next(&mut self) -> Option<TailBatch> {
        loop {
            if let Some(batch) = self.take_available() {
                return Some(batch);
            }
            self.progress.changed().await.ok()?;
        }
    }

    /// Returns the lines that were not read yet, if there are any.
    pub fn take_available(&mut self) -> Option<TailBatch> {
        self.progress.mark_unchanged();
        let buffer = self.shared.buffer.lock();
        // There is nothing to miss before the very first line.
        let first = buffer.first().max(self.next);
        let missed = first - self.next;
        let skip = usize::try_from(first - buffer.first()).unwrap_or(usize::MAX);
        let lines: Vec<_> = buffer
            .lines
            .iter()
            .skip(skip)
            .take(MAX_BATCH_LINES)
            .cloned()
            .collect();
        drop(buffer);
        self.next = first + lines.len() as u64;
        (!lines.is_empty()).then_some(TailBatch {
            missed,
            first,
            lines,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(batch: &TailBatch) -> Vec<&str> {
        batch.lines.iter().map(AsRef::as_ref).collect()
    }

    #[test]
    fn nothing_is_kept_for_nobody() {
        let live = AuditTail::default();
        live.push("one\n");
        assert_eq!(live.watch(10).take_available(), None);
        live.start_keeping();
        live.push("two\nthree\n");
        let mut watch = live.watch(10);
        let batch = watch.take_available().unwrap();
        assert_eq!(
            (texts(&batch), batch.missed, batch.first),
            (vec!["two", "three"], 0, 0)
        );
        assert_eq!(watch.take_available(), None);
        assert_eq!(texts(&live.watch(1).take_available().unwrap()), ["three"]);
    }

    #[test]
    fn earlier_lines_come_before_all_others_or_not_at_all() {
        let live = AuditTail::default();
        live.seed(["one", "two"].into_iter());
        live.start_keeping();
        live.push("three\n");
        live.seed(["late"].into_iter());
        assert_eq!(
            texts(&live.watch(10).take_available().unwrap()),
            ["one", "two", "three"]
        );
    }

    #[test]
    fn a_slow_reader_is_told_what_it_missed() {
        let live = AuditTail::default();
        let mut watch = live.watch(0);
        assert!(live.is_watched());
        for number in 0..MAX_LINES + 7 {
            live.push(&format!("{number}\n"));
        }
        let batch = watch.take_available().unwrap();
        assert_eq!(
            (batch.missed, batch.first, batch.lines.len()),
            (7, 7, MAX_BATCH_LINES)
        );
        assert_eq!(texts(&batch)[0], "7");
        let batch = watch.take_available().unwrap();
        assert_eq!((batch.missed, batch.first), (0, 7 + MAX_BATCH_LINES as u64));
        drop(watch);
        assert!(!live.is_watched());
    }

    #[test]
    fn bytes_are_bounded_too() {
        let live = AuditTail::default();
        live.start_keeping();
        let long = "x".repeat(MAX_BYTES / 4);
        (0..9).for_each(|_| live.push(&format!("{long}\n")));
        let buffer = live.0.buffer.lock();
        assert_eq!(
            (buffer.lines.len(), buffer.bytes <= MAX_BYTES, buffer.next),
            (4, true, 9)
        );
    }

    #[tokio::test]
    async fn a_reader_waits_until_something_comes() {
        let live = AuditTail::default();
        let mut watch = live.watch(0);
        let other = live.clone();
        let writer = tokio::spawn(async move {
            tokio::task::yield_now().await;
            other.push("late\n");
        });
        assert_eq!(texts(&watch.next().await.unwrap()), ["late"]);
        writer.await.unwrap();
    }
}
