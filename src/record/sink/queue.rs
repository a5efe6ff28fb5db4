//! The queue of the writer thread. Adding a job costs a lock: while lines arrive, the writer polls
//! the queue, and it is woken only from a longer sleep or for a job that a caller waits for.

use std::sync::Arc;
use std::sync::mpsc::TrySendError;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::writer::Job;

/// Lines that no caller waits for are written together if they arrive within this time of the first
/// one, which saves writes. It is also the maximum time span of lines that are lost if the process
/// is killed.
const GATHER_TIME: Duration = Duration::from_millis(5);
/// Number of times that the writer polls an empty queue before it sleeps until it is woken. With
/// fewer than a hundred lines per second, waking it for each line costs less than polling in vain.
const MAX_POLLS: u32 = 2;
/// Interval at which a sleeping writer checks whether a checkpoint is due.
const IDLE_TIMEOUT: Duration = Duration::from_millis(500);
/// Capacity for jobs that is kept after a burst.
const RETAINED_JOBS: usize = 256;

/// The sending end of the queue. Dropping it ends the writer once all jobs are done.
pub(super) struct JobSender {
    shared: Arc<Shared>,
    limit: usize,
}

/// The receiving end of the queue.
pub(super) struct Queue {
    shared: Arc<Shared>,
    /// Number of polls of an empty queue since the last job.
    polls: u32,
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
    /// Whether a caller waits for one of the jobs.
    is_urgent: bool,
    is_closed: bool,
}

/// What the writer is doing.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Activity {
    /// It is writing, and checks the queue next.
    #[default]
    Writing,
    /// It waits a moment for more lines, and then checks the queue.
    Gathering,
    /// It sleeps until it is woken.
    Sleeping,
    /// It has ended.
    Ended,
}

/// Returns the two ends of a queue for at most `limit` jobs.
pub(super) fn queue(limit: usize) -> (JobSender, Queue) {
    let shared = Arc::new(Shared::default());
    (
        JobSender {
            shared: shared.clone(),
            limit,
        },
        Queue { shared, polls: 0 },
    )
}

impl JobSender {
    /// Adds a job.
    ///
    /// # Errors
    /// The queue is full, or the writer has ended.
    pub(super) fn push(&self, job: Job) -> Result<(), TrySendError<Job>> {
        let mut state = self.shared.state.lock();
        if state.writer == Activity::Ended {
            return Err(TrySendError::Disconnected(job));
        }
        if state.jobs.len() >= self.limit {
            return Err(TrySendError::Full(job));
        }
        let is_urgent = job.is_urgent();
        state.jobs.push(job);
        state.is_urgent |= is_urgent;
        let should_wake = match state.writer {
            Activity::Sleeping => true,
            Activity::Gathering => is_urgent,
            Activity::Writing | Activity::Ended => false,
        };
        if should_wake {
            // Woken once only, since it checks the queue before it sleeps again.
            state.writer = Activity::Writing;
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
    /// Waits for jobs and moves them to `jobs`. If these remain empty, it is time for other tasks.
    /// Returns `false` once there are no jobs and none will arrive.
    pub(super) fn take(&mut self, jobs: &mut Vec<Job>) -> bool {
        let mut state = self.shared.state.lock();
        if state.jobs.is_empty() {
            let is_sleeping = self.polls >= MAX_POLLS;
            let (activity, timeout) = if is_sleeping {
                (Activity::Sleeping, IDLE_TIMEOUT)
            } else {
                (Activity::Gathering, GATHER_TIME)
            };
            let is_woken = |state: &State| {
                if is_sleeping {
                    !state.jobs.is_empty()
                } else {
                    state.is_urgent
                }
            };
            state = self.shared.wait(state, activity, timeout, is_woken);
            self.polls = self.polls.saturating_add(1);
            if is_sleeping && !state.jobs.is_empty() && !state.is_urgent {
                state = self.shared.gather(state);
            }
        } else if !state.is_urgent {
            state = self.shared.gather(state);
        }
        std::mem::swap(&mut state.jobs, jobs);
        state.is_urgent = false;
        if !jobs.is_empty() {
            self.polls = 0;
        }
        // `state.jobs` is now the empty list that `jobs` was.
        state.jobs.shrink_to(RETAINED_JOBS);
        !jobs.is_empty() || !state.is_closed
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.writer = Activity::Ended;
        // Dropping the jobs notifies callers that wait for them.
        state.jobs = Vec::new();
    }
}

impl Shared {
    /// Waits until it is time to check the queue.
    fn wait<'s>(
        &self,
        mut state: MutexGuard<'s, State>,
        activity: Activity,
        timeout: Duration,
        is_woken: impl Fn(&State) -> bool,
    ) -> MutexGuard<'s, State> {
        state.writer = activity;
        self.wake.wait_while_for(
            &mut state,
            |state| !is_woken(state) && !state.is_closed,
            timeout,
        );
        state.writer = Activity::Writing;
        state
    }

    /// Waits a short time for more jobs, unless one is urgent.
    fn gather<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.wait(state, Activity::Gathering, GATHER_TIME, |state| {
            state.is_urgent
        })
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
        assert!(after(Activity::Sleeping, line("a")) == Activity::Writing);
        assert!(after(Activity::Gathering, line("b")) == Activity::Gathering);
        assert!(after(Activity::Gathering, flush()) == Activity::Writing);
        assert!(after(Activity::Sleeping, flush()) == Activity::Writing);
        assert!(after(Activity::Writing, line("c")) == Activity::Writing);
    }

    #[test]
    fn nothing_waits_for_long_whatever_the_writer_does() {
        for looks in [0, MAX_POLLS] {
            let (intake, mut queue) = queue(9);
            queue.polls = looks;
            let (done, taken) = sync_channel(9);
            let writer = std::thread::spawn(move || {
                let mut jobs = Vec::new();
                while queue.take(&mut jobs) {
                    jobs.drain(..)
                        .for_each(|job| done.send((job.is_urgent(), Instant::now())).unwrap());
                }
            });
            for pause in [Duration::ZERO, GATHER_TIME * 4] {
                std::thread::sleep(pause);
                let pushed = Instant::now();
                intake.push(line("a")).unwrap();
                let (is_urgent, at) = taken.recv_timeout(IDLE_TIMEOUT * 20).unwrap();
                assert!(!is_urgent && at >= pushed);
                intake.push(Job::Flush(sync_channel(1).0)).unwrap();
                assert!(taken.recv_timeout(IDLE_TIMEOUT * 20).unwrap().0);
            }
            drop(intake);
            writer.join().unwrap();
        }
    }
}
