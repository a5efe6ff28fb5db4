//! The order of a session's stream and its calls. An agent opens its stream with a GET and calls
//! tools right after. The stream needs a new connection to the server and a call does not, so the
//! call would arrive first, and a server that then sends a request on a stream that is not open
//! discards it. Without the gate, the agent's client sends both in order.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::session::Session;

/// How long a stream delays calls. Some servers send no response head before the first event.
const MAX_WAIT: Duration = Duration::from_millis(200);

/// The streams of a session that the server has not answered yet.
#[derive(Default)]
pub(super) struct StreamOpenings {
    /// Their number, and when calls stop to wait for them. `None` if there are none.
    open: Mutex<Option<(usize, Instant)>>,
    ended: Notify,
}

impl StreamOpenings {
    fn deadline(&self) -> Option<Instant> {
        self.open.lock().map(|(_, deadline)| deadline)
    }

    async fn wait(&self) {
        loop {
            // Listens before it looks, so that no end is missed between the two.
            let ended = self.ended.notified();
            if self.deadline().is_none() {
                return;
            }
            ended.await;
        }
    }
}

impl Session {
    /// Counts a stream as not answered until the result is dropped.
    pub(super) fn start_stream(self: &Arc<Self>) -> StreamOpening {
        let deadline = Instant::now() + MAX_WAIT;
        let mut open = self.stream_openings.open.lock();
        *open = Some((open.map_or(1, |(count, _)| count + 1), deadline));
        StreamOpening(self.clone())
    }

    /// Waits until the server has answered the session's streams, until 200 ms after the start of
    /// the last one at most.
    pub(super) async fn wait_for_streams(&self) {
        if let Some(deadline) = self.stream_openings.deadline() {
            // After the deadline the call goes on: the server may answer only with its first event.
            let wait = self.stream_openings.wait();
            let _in_time = timeout_at(deadline, wait).await.is_ok();
        }
    }
}

/// A stream that the server has not answered yet.
pub(super) struct StreamOpening(Arc<Session>);

impl Drop for StreamOpening {
    fn drop(&mut self) {
        let openings = &self.0.stream_openings;
        {
            let mut open = openings.open.lock();
            *open = open
                .map(|(count, deadline)| (count.saturating_sub(1), deadline))
                .filter(|(count, _)| *count > 0);
        }
        openings.ended.notify_waiters();
    }
}
