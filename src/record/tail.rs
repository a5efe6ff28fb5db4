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
const LINES: usize = 2000;
/// Maximum number of bytes of lines that are kept.
const BYTES: usize = 8 << 20;
/// Maximum number of lines of one [`TailBatch`].
const BATCH: usize = 500;

/// A handle for the most recent audit lines; clones share the lines.
#[derive(Clone)]
pub struct AuditTail(Arc<TailState>);

struct TailState {
    kept: Mutex<TailLine>,
    /// The number of the next line.
    told: watch::Sender<u64>,
    keeps: AtomicBool,
}

/// The lines; the last one has the number before `next`.
#[derive(Default)]
struct TailLine {
    lines: VecDeque<Arc<str>>,
    bytes: usize,
    next: u64,
}

/// Reads lines as they arrive.
pub struct TailReader {
    shared: Arc<TailState>,
    told: watch::Receiver<u64>,
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
            kept: Mutex::default(),
            told: watch::Sender::new(0),
            keeps: AtomicBool::new(false),
        }))
    }
}

impl AuditTail {
    /// Keeps lines from now on even while there are no readers, so that later ones receive earlier
    /// lines.
    pub fn keep(&self) {
        self.0.keeps.store(true, Ordering::Relaxed);
    }

    /// Adds earlier lines, if there are no lines yet.
    pub fn seed<'l>(&self, lines: impl Iterator<Item = &'l str>) {
        let next = {
            let mut kept = self.0.kept.lock();
            if kept.next > 0 {
                return;
            }
            lines.for_each(|line| kept.add(line));
            kept.next
        };
        self.0.told.send_replace(next);
    }

    /// Reports whether there are readers. For them, lines are created even if there is no log.
    pub(super) fn is_watched(&self) -> bool {
        self.0.told.receiver_count() > 0
    }

    /// Adds lines, each of which ends in a line feed.
    pub(super) fn push(&self, lines: &str) {
        if !self.0.keeps.load(Ordering::Relaxed) && !self.is_watched() {
            return;
        }
        let next = {
            let mut kept = self.0.kept.lock();
            lines
                .lines()
                .filter(|line| !line.is_empty())
                .for_each(|line| kept.add(line));
            kept.next
        };
        self.0.told.send_replace(next);
    }

    /// Returns the first available line of the inspection with this id.
    pub fn judged(&self, audit: &str) -> Option<Arc<str>> {
        let of_it = format!(r#""{}":"{audit}""#, member::audit::NAME);
        let judged = format!(r#""{}":"{}""#, member::event::NAME, Judged::EVENT);
        self.0
            .kept
            .lock()
            .lines
            .iter()
            .find(|line| line.contains(&judged) && line.contains(&of_it))
            .cloned()
    }

    /// Returns a reader that starts `back` lines before the end.
    pub fn watch(&self, back: usize) -> TailReader {
        let told = self.0.told.subscribe();
        let next = self.0.kept.lock().next.saturating_sub(back as u64);
        TailReader {
            shared: self.0.clone(),
            told,
            next,
        }
    }
}

impl TailState {}

impl TailLine {
    fn add(&mut self, line: &str) {
        self.next += 1;
        self.bytes += line.len();
        self.lines.push_back(line.into());
        while self.lines.len() > LINES || self.bytes > BYTES {
            let Some(gone) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= gone.len();
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
            if let Some(batch) = self.now() {
                return Some(batch);
            }
            self.told.changed().await.ok()?;
        }
    }

    /// Returns the lines that were not read yet, if there are any.
    pub fn now(&mut self) -> Option<TailBatch> {
        self.told.mark_unchanged();
        let kept = self.shared.kept.lock();
        // There is nothing to miss before the very first line.
        let first = kept.first().max(self.next);
        let missed = first - self.next;
        let skip = usize::try_from(first - kept.first()).unwrap_or(usize::MAX);
        let lines: Vec<_> = kept.lines.iter().skip(skip).take(BATCH).cloned().collect();
        drop(kept);
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
        assert_eq!(live.watch(10).now(), None);
        live.keep();
        live.push("two\nthree\n");
        let mut watch = live.watch(10);
        let batch = watch.now().unwrap();
        assert_eq!(
            (texts(&batch), batch.missed, batch.first),
            (vec!["two", "three"], 0, 0)
        );
        assert_eq!(watch.now(), None);
        assert_eq!(texts(&live.watch(1).now().unwrap()), ["three"]);
    }

    #[test]
    fn earlier_lines_come_before_all_others_or_not_at_all() {
        let live = AuditTail::default();
        live.seed(["one", "two"].into_iter());
        live.keep();
        live.push("three\n");
        live.seed(["late"].into_iter());
        assert_eq!(
            texts(&live.watch(10).now().unwrap()),
            ["one", "two", "three"]
        );
    }

    #[test]
    fn a_slow_reader_is_told_what_it_missed() {
        let live = AuditTail::default();
        let mut watch = live.watch(0);
        assert!(live.is_watched());
        for number in 0..LINES + 7 {
            live.push(&format!("{number}\n"));
        }
        let batch = watch.now().unwrap();
        assert_eq!(
            (batch.missed, batch.first, batch.lines.len()),
            (7, 7, BATCH)
        );
        assert_eq!(texts(&batch)[0], "7");
        let batch = watch.now().unwrap();
        assert_eq!((batch.missed, batch.first), (0, 7 + BATCH as u64));
        drop(watch);
        assert!(!live.is_watched());
    }

    #[test]
    fn bytes_are_bounded_too() {
        let live = AuditTail::default();
        live.keep();
        let long = "x".repeat(BYTES / 4);
        (0..9).for_each(|_| live.push(&format!("{long}\n")));
        let kept = live.0.kept.lock();
        assert_eq!(
            (kept.lines.len(), kept.bytes <= BYTES, kept.next),
            (4, true, 9)
        );
    }

    #[tokio::test]
    async fn a_reader_waits_until_something_comes() {
        let live = AuditTail::default();
        let mut watch = live.watch(0);
        let other = live.clone();
        let told = tokio::spawn(async move {
            tokio::task::yield_now().await;
            other.push("late\n");
        });
        assert_eq!(texts(&watch.next().await.unwrap()), ["late"]);
        told.await.unwrap();
    }
}
