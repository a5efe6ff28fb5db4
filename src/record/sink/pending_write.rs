//! Lines that are being written.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use super::writer::WriteResult;

/// Maximum time to wait until a line is on disk.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Lines that were queued. Messages that they record must not be forwarded before one of its two
/// methods to wait has succeeded. If the log is not required, both return at once.
#[must_use = "what these lines tell of may only go on when they are written"]
pub struct PendingWrite(State);

enum State {
    Done,
    Failed(io::Error),
    Pending(oneshot::Receiver<WriteResult>),
}

impl PendingWrite {
    /// Creates one that need not be waited for.
    pub(in crate::record) fn done() -> Self {
        Self(State::Done)
    }

    /// Creates one for lines that will not be written.
    pub(super) fn failed(error: io::Error) -> Self {
        Self(State::Failed(error))
    }

    /// Creates one that waits for the writer's result.
    pub(super) fn pending(receiver: oneshot::Receiver<WriteResult>) -> Self {
        Self(State::Pending(receiver))
    }

    /// Waits without blocking the thread.
    ///
    /// # Errors
    /// The lines were not written, or their state is unknown.
    pub async fn wait_async(self) -> io::Result<()> {
        match self.0 {
            State::Done => Ok(()),
            State::Failed(error) => Err(error),
            State::Pending(receiver) => write_result(
                tokio::time::timeout(WRITE_TIMEOUT, receiver)
                    .await
                    .map_err(|_| timed_out())?,
            ),
        }
    }

    /// Blocks the thread. On a thread of a multi-threaded runtime, its other tasks move to another
    /// thread.
    ///
    /// # Errors
    /// The lines were not written, or their state is unknown.
    pub fn wait(self) -> io::Result<()> {
        let receiver = match self.0 {
            State::Done => return Ok(()),
            State::Failed(error) => return Err(error),
            State::Pending(told) => told,
        };
        let is_multi_threaded = Handle::try_current()
            .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        if is_multi_threaded {
            tokio::task::block_in_place(|| block_on(receiver))
        } else {
            block_on(receiver)
        }
    }
}

fn block_on(receiver: oneshot::Receiver<WriteResult>) -> io::Result<()> {
    let deadline = Instant::now() + WRITE_TIMEOUT;
    let waker = Waker::from(Arc::new(ThreadWaker(std::thread::current())));
    let mut pinned = pin!(receiver);
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(result) = pinned.as_mut().poll(&mut context) {
            return write_result(result);
        }
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(timed_out());
        }
        std::thread::park_timeout(remaining);
    }
}

struct ThreadWaker(Thread);

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn write_result(result: Result<WriteResult, oneshot::error::RecvError>) -> io::Result<()> {
    let outcome = result.map_err(|_| {
        io::Error::new(
            io::ErrorKind::BrokenPipe,
            "the audit log writer has stopped",
        )
    })?;
    outcome.map_err(|(kind, text)| io::Error::new(kind, text))
}

fn timed_out() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!(
            "the audit log did not accept a line within {} s",
            WRITE_TIMEOUT.as_secs()
        ),
    )
}
