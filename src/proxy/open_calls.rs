//! Open calls to a server whose answers arrive on one stream with everything else that it sends.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::list_changed::StreamPurpose;
use super::route::OpenCall;
use crate::inspect::StreamTail;
use crate::inspect::definitions::Kind;
use crate::message::{Envelope, Message, same_id};

/// Maximum number of open requests remembered. Older ones are forgotten and treated as answered.
const MAX_OPEN: usize = 1024;

/// The open calls, oldest first.
#[derive(Default)]
pub(super) struct OpenCalls {
    open: Mutex<VecDeque<OpenRequest>>,
    /// The last texts on the stream: the agent reads them one after the other, whichever call they
    /// belong to.
    pub(super) tail: Mutex<StreamTail>,
}

/// A request without an answer.
struct OpenRequest {
    /// Its id, as written.
    id: Arc<str>,
    call: Arc<OpenCall>,
    /// Whether the agent cancelled it: an answer that is already on its way is still accepted.
    cancelled: bool,
}

/// The calls that a message answers.
pub(super) struct AnsweredCalls {
    /// The call of the first answered request.
    pub(super) call: Option<Arc<OpenCall>>,
    /// Whether an answer in it does not match an open request.
    pub(super) is_stray: bool,
}

impl OpenCalls {
    /// Registers the requests of a call before it is sent. A call that cancels another releases the
    /// slots of that one.
    pub(super) fn add(&self, call: &Arc<OpenCall>) {
        let mut open = self.open.lock();
        if let Some(id) = call.sent_message().and_then(cancelled_request_id) {
            for cancelled_request in open.iter_mut().filter(|open| same_id(&open.id, id)) {
                cancelled_request.cancelled = true;
                cancelled_request.call.release();
            }
        }
        let requests = call.context().requests.iter().map(|asked| asked.id.clone());
        open.extend(requests.map(|id| OpenRequest {
            id,
            call: call.clone(),
            cancelled: false,
        }));
        let extra = open.len().saturating_sub(MAX_OPEN);
        open.drain(..extra);
    }

    /// Removes a call that was not sent.
    pub(super) fn remove(&self, call: &Arc<OpenCall>) {
        self.open
            .lock()
            .retain(|open| !Arc::ptr_eq(&open.call, call));
    }

    /// Removes all calls: they will not be answered any more.
    pub(super) fn clear(&self) {
        self.open.lock().clear();
    }

    /// Removes the requests that a message answers, and returns their call.
    pub(super) fn take_answered(&self, message: &Message) -> AnsweredCalls {
        let mut open = self.open.lock();
        let mut calls = AnsweredCalls {
            call: None,
            is_stray: false,
        };
        for envelope in message.answers() {
            let Some(id) = message.id(envelope) else {
                continue;
            };
            let exact = open.iter().position(|open| *open.id == *id);
            let at = exact.or_else(|| open.iter().position(|open| same_id(&open.id, id)));
            match at.and_then(|at| open.remove(at)) {
                Some(found) => drop(calls.call.get_or_insert(found.call)),
                None => calls.is_stray = true,
            }
        }
        calls
    }

    /// Removes the only request that waits for an answer, and returns it with its id.
    pub(super) fn single(&self) -> Option<(Arc<str>, Arc<OpenCall>)> {
        let mut open = self.open.lock();
        let mut waiting = (0..)
            .zip(open.iter())
            .filter(|(_, open)| !open.cancelled)
            .map(|(at, _)| at);
        let at = waiting.next().filter(|_| waiting.next().is_none())?;
        open.remove(at).map(|open| (open.id, open.call))
    }

    /// Stores the lists that a subscription was granted, if the message is the acknowledgement.
    pub(super) fn observe(&self, message: &Message) {
        for open in self.open.lock().iter() {
            if let Some(StreamPurpose::Subscription(subscription)) = &open.call.stream_purpose {
                subscription.observe(message);
            }
        }
    }

    /// Returns the notifications for subscriptions that a list has changed.
    pub(super) fn notifications(&self, kind: Kind) -> Vec<String> {
        let open = self.open.lock();
        let subscriptions =
            open.iter()
                .filter(|open| !open.cancelled)
                .filter_map(|open| match &open.call.stream_purpose {
                    Some(StreamPurpose::Subscription(subscription)) => Some(subscription),
                    _ => None,
                });
        subscriptions
            .filter_map(|subscription| subscription.notification(kind))
            .collect()
    }
}

/// Returns the id of the request that a message cancels.
fn cancelled_request_id(message: &Message) -> Option<&str> {
    let envelope = message
        .single()
        .filter(|envelope: &&Envelope| envelope.method() == Some("notifications/cancelled"))?;
    Some(message.body(envelope)?.get("requestId")?.raw())
}
