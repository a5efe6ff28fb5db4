//! What waits for the thread that writes. Handing something in costs a lock: the writer looks by itself while lines come, and
//! is woken only from a longer sleep, or for what somebody waits for.

use std::sync::Arc;
use std::sync::mpsc::TrySendError;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::writer::Job;

/// Lines that nobody waits for and that come within this time of the first are written with it: one write for many. It is
/// also what a process that is killed loses at most.
const GATHER: Duration = Duration::from_millis(5);
/// After so many looks at an empty queue the writer sleeps until it is woken: where less than a hundred lines come in a second,
/// waking it for each costs less than looking in vain.
const LOOKS: u32 = 2;
/// Even then it looks at this interval whether a checkpoint is due.
const IDLE: Duration = Duration::from_millis(500);
/// Room for jobs that is kept when a burst is over.
const KEPT_JOBS: usize = 256;

/// Where jobs are handed in. Dropping it ends the writer, once it has done all of them.
pub(super) struct JobSender {
    shared: Arc<Shared>,
    limit: usize,
}

/// Where the writer gets them.
pub(super) struct Queue {
    shared: Arc<Shared>,
    /// Looks at an empty queue since the last job.
    looks: u32,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: Vec<Job>,
    writer: Activity,
    /// Somebody waits for one of the jobs.
    is_urgent: bool,
    is_closed: bool,
}

/// What the writer does.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Activity {
    /// It writes, and looks at the queue next.
    #[default]
    Writes,
    /// It lets lines gather for a moment, and looks then.
    Gathers,
    /// It sleeps until it is woken.
    Sleeps,
    /// It has ended.
    Gone,
}

/// The two ends of a queue in which at most `limit` jobs wait.
pub(super) fn queue(limit: usize) -> (JobSender, Queue) {
    let shared = Arc::new(Shared::default());
    (
        JobSender {
            shared: shared.clone(),
            limit,
        },
        Queue { shared, looks: 0 },
    )
}

impl JobSender {
    /// Hands in a job.
    ///
    /// # Errors
    /// There is no room, or nobody who would do it.
    pub(super) fn push(&self, job: Job) -> Result<(), TrySendError<Job>> {
        let mut state = self.shared.state.lock();
        if state.writer == Activity::Gone {
            return Err(TrySendError::Disconnected(job));
        }
        if state.jobs.len() >= self.limit {
            return Err(TrySendError::Full(job));
        }
        let is_urgent = job.is_urgent();
        state.jobs.push(job);
        state.is_urgent |= is_urgent;
        let wakes = match state.writer {
            Activity::Sleeps => true,
            Activity::Gathers => is_urgent,
            Activity::Writes | Activity::Gone => false,
        };
        if wakes {
            // Once: it looks at the queue before it sleeps again.
            state.writer = Activity::Writes;
            drop(state);
            self.shared.wake.notify_one();
        }
        Ok(())
    }
}

impl Drop for JobSender {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.wake.notify_one();
    }
}

impl Queue {
    /// Waits for jobs and moves them to `jobs`, which may stay empty: then it is time to look at other things. `false` once
    /// there are none and none will come.
    pub(super) fn take(&mut self, jobs: &mut Vec<Job>) -> bool {
        let mut state = self.shared.state.lock();
        if state.jobs.is_empty() {
            let sleeps = self.looks >= LOOKS;
            let (activity, most) = if sleeps {
                (Activity::Sleeps, IDLE)
            } else {
                (Activity::Gathers, GATHER)
            };
            let woken = |state: &State| {
                if sleeps {
                    !state.jobs.is_empty()
                } else {
                    state.is_urgent
                }
            };
            state = self.shared.wait(state, activity, most, woken);
            self.looks = self.looks.saturating_add(1);
            if sleeps && !state.jobs.is_empty() && !state.is_urgent {
                state = self
                    .shared
                    .wait(state, Activity::Gathers, GATHER, |state| state.is_urgent);
            }
        } else if !state.is_urgent {
            state = self
                .shared
                .wait(state, Activity::Gathers, GATHER, |state| state.is_urgent);
        }
        std::mem::swap(&mut state.jobs, jobs);
        state.is_urgent = false;
        if !jobs.is_empty() {
            self.looks = 0;
        }
        // What is in `state` now is the empty list of before.
        state.jobs.shrink_to(KEPT_JOBS);
        !jobs.is_empty() || !state.is_closed
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.writer = Activity::Gone;
        // Whoever waits for one of them learns that nobody does it.
        state.jobs = Vec::new();
    }
}

impl Shared {
    /// Waits until it is time to look at the queue.
    fn wait<'s>(
        &self,
        mut state: MutexGuard<'s, State>,
        activity: Activity,
        most: Duration,
        woken: impl Fn(&State) -> bool,
    ) -> MutexGuard<'s, State> {
        state.writer = activity;
        self.wake
            .wait_while_for(&mut state, |state| !woken(state) && !state.is_closed, most);
        state.writer = Activity::Writes;
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::mpsc::sync_channel;
    use std::time::Instant;

    fn line(text: &str) -> Job {
        Job::Lines(format!("{text}\n"), 1, None)
    }

    fn texts(jobs: &[Job]) -> Vec<&str> {
        jobs.iter()
            .map(|job| {
                if let Job::Lines(text, ..) = job {
                    text.trim_end()
                } else {
                    "-"
                }
            })
            .collect()
    }

    #[test]
    fn jobs_come_in_order_and_all_before_the_end() {
        let (intake, mut queue) = queue(9);
        let mut jobs = Vec::new();
        intake.push(line("a")).unwrap();
        intake.push(Job::Reopen).unwrap();
        intake.push(line("b")).unwrap();
        assert!(queue.take(&mut jobs));
        assert_eq!(texts(&jobs), ["a", "-", "b"]);
        jobs.clear();
        intake.push(line("c")).unwrap();
        drop(intake);
        assert!(queue.take(&mut jobs));
        assert_eq!(texts(&jobs), ["c"]);
        jobs.clear();
        assert!(!queue.take(&mut jobs));
    }

    #[test]
    fn a_full_queue_and_one_without_a_writer_refuse() {
        let (intake, queue) = queue(2);
        (0..2).for_each(|_| intake.push(line("a")).unwrap());
        assert!(matches!(intake.push(line("b")), Err(TrySendError::Full(_))));
        drop(queue);
        assert!(matches!(
            intake.push(line("b")),
            Err(TrySendError::Disconnected(_))
        ));
    }

    #[test]
    fn only_a_sleeping_writer_is_woken_by_lines_and_any_by_what_is_waited_for() {
        let (intake, _queue) = queue(9);
        let after = |before: Activity, job: Job| {
            intake.shared.state.lock().writer = before;
            intake.push(job).unwrap();
            intake.shared.state.lock().writer
        };
        let flush = || Job::Flush(sync_channel(1).0);
        assert!(after(Activity::Sleeps, line("a")) == Activity::Writes);
        assert!(after(Activity::Gathers, line("b")) == Activity::Gathers);
        assert!(after(Activity::Gathers, flush()) == Activity::Writes);
        assert!(after(Activity::Sleeps, flush()) == Activity::Writes);
        assert!(after(Activity::Writes, line("c")) == Activity::Writes);
    }

    #[test]
    fn nothing_waits_for_long_whatever_the_writer_does() {
        for looks in [0, LOOKS] {
            let (intake, mut queue) = queue(9);
            queue.looks = looks;
            let (done, taken) = sync_channel(9);
            let writer = std::thread::spawn(move || {
                let mut jobs = Vec::new();
                while queue.take(&mut jobs) {
                    jobs.drain(..)
                        .for_each(|job| done.send((job.is_urgent(), Instant::now())).unwrap());
                }
            });
            for pause in [Duration::ZERO, GATHER * 4] {
                std::thread::sleep(pause);
                let pushed = Instant::now();
                intake.push(line("a")).unwrap();
                let (is_urgent, at) = taken.recv_timeout(IDLE * 20).unwrap();
                assert!(!is_urgent && at >= pushed);
                intake.push(Job::Flush(sync_channel(1).0)).unwrap();
                assert!(taken.recv_timeout(IDLE * 20).unwrap().0);
            }
            drop(intake);
            writer.join().unwrap();
        }
    }
}
