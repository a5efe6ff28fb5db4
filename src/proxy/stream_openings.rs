//! The order of a session's stream and its calls. An agent opens its stream with a GET and calls
//! tools right after. The stream needs a new connection to the server and a call does not, so the
//! call would arrive first, and a server that then sends a request on a stream that is not open
//! discards it. Without the gate, the agent's client sends both in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::session::Session;

/// How long a call waits for a stream. Some servers send no response head before the first event.
const MAX_WAIT: Duration = Duration::from_millis(200);

/// The streams of a session that the server has not answered yet.
#[derive(Default)]
pub(super) struct StreamOpenings {
    count: AtomicUsize,
    ended: Notify,
}

impl StreamOpenings {
    fn are_done(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    async fn wait(&self) {
        loop {
            // Listens before it looks, so that no end is missed between the two.
            let ended = self.ended.notified();
            if self.are_done() {
                return;
            }
            ended.await;
        }
    }
}

impl Session {
    /// Counts a stream as not answered until the result is dropped.
    pub(super) fn start_stream(self: &Arc<Self>) -> StreamOpening {
        self.stream_openings.count.fetch_add(1, Ordering::AcqRel);
        StreamOpening(self.clone())
    }

    /// Waits until the server has answered the session's streams, for 200 ms at most.
    pub(super) async fn wait_for_streams(&self) {
        if !self.stream_openings.are_done() {
            // After the timeout the call goes on: the server may answer only with its first event.
            let _in_time = timeout(MAX_WAIT, self.stream_openings.wait()).await.is_ok();
        }
    }
}

/// A stream that the server has not answered yet.
pub(super) struct StreamOpening(Arc<Session>);

impl Drop for StreamOpening {
    fn drop(&mut self) {
        let openings = &self.0.stream_openings;
        openings.count.fetch_sub(1, Ordering::AcqRel);
        openings.ended.notify_waiters();
    }
}
