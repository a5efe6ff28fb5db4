//! Polls a woken connection again without the scheduler. A connection is one task, in which the
//! reader of a request's body and the code that waits for the body wake each other. Each such
//! wake-up would send the task through the scheduler, which wakes another thread to look for work:
//! two system calls and a thread switch for nothing, twice per call.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// The future is being polled.
const POLLED: u8 = 1;
/// The future has been woken since the poll began.
const WOKEN: u8 = 2;
/// Maximum number of polls in a row; after that, other tasks get their turn.
const POLLS: usize = 8;

/// Runs a future to completion, and polls it again at once if it was woken while it was polled. The
/// caller pins it: passed by value, it would take its space twice.
pub(super) async fn repoll<F: Future>(mut future: Pin<&mut F>) -> F::Output {
    let wakeups = Arc::new(Wakeups::default());
    let waker = Waker::from(wakeups.clone());
    poll_fn(|context| wakeups.poll(future.as_mut(), &waker, context)).await
}

/// The wake-ups of one future.
#[derive(Default)]
struct Wakeups {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wakeups {
    fn poll<F: Future>(
        &self,
        mut future: Pin<&mut F>,
        waker: &Waker,
        context: &mut Context<'_>,
    ) -> Poll<F::Output> {
        self.task.register(context.waker());
        for _ in 0..POLLS {
            // The following poll handles everything that woke the future before.
            self.state.store(POLLED, Ordering::SeqCst);
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(output);
            }
            if self
                .state
                .compare_exchange(POLLED, 0, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
            {
                return Poll::Pending;
            }
        }
        self.state.store(0, Ordering::SeqCst);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Wakeups {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.fetch_or(WOKEN, Ordering::SeqCst) & POLLED == 0 {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use tokio::sync::Notify;

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_future_that_wakes_itself_does_not_wake_its_task() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(task.clone());
        let mut context = Context::from_waker(&waker);
        let mut left = 3;
        let mut wakes_itself = pin!(poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        let mut future = pin!(repoll(wakes_itself.as_mut()));
        assert!(future.as_mut().poll(&mut context).is_ready());
        assert_eq!(task.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn one_that_never_rests_gives_others_a_turn() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(task.clone());
        let polls = AtomicUsize::new(0);
        let mut wakes_itself = pin!(poll_fn(|context| {
            polls.fetch_add(1, Ordering::SeqCst);
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let mut future = pin!(repoll(wakes_itself.as_mut()));
        assert!(
            future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        assert_eq!(
            (task.0.load(Ordering::SeqCst), polls.load(Ordering::SeqCst)),
            (1, POLLS)
        );
    }

    #[test]
    fn a_wake_up_from_elsewhere_reaches_the_task() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(task.clone());
        let mut context = Context::from_waker(&waker);
        let notify = Notify::new();
        let mut notified = pin!(notify.notified());
        let mut future = pin!(repoll(notified.as_mut()));
        assert!(future.as_mut().poll(&mut context).is_pending());
        assert_eq!(task.0.load(Ordering::SeqCst), 0);
        notify.notify_one();
        assert_eq!(task.0.load(Ordering::SeqCst), 1);
        assert!(future.as_mut().poll(&mut context).is_ready());
    }
}
