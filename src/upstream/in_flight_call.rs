//! The state of a call while it is on a channel, and its conversion into a reply.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::sync::mpsc;

use super::body::{MaxSilence, with_timeout};
use super::channel::{Channel, Delivery, Incoming};
use crate::message::{Message, MessageKind};
use crate::protocol::sse::Fields;
use crate::protocol::{CallError, Era, Frame, Frames, Framing, Payload, Reply, answer};

/// A call in flight. Dropping it removes the call from the channel, and cancels it if its era
/// requires that.
pub(super) struct InFlightCall {
    channel: Arc<Channel>,
    number: u64,
    receiver: mpsc::UnboundedReceiver<Delivery>,
    /// Sends a line to the server without waiting, if the transport can.
    send_line: Option<Box<dyn Fn(Bytes) + Send + Sync>>,
    cancels_on_drop: bool,
    pub(super) is_subscription: bool,
    /// Whether the request has the `_meta` of its era.
    pub(super) has_meta: bool,
}

impl InFlightCall {
    pub(super) fn new(
        channel: Arc<Channel>,
        number: u64,
        receiver: mpsc::UnboundedReceiver<Delivery>,
        is_subscription: bool,
    ) -> Self {
        let cancels_on_drop = channel.era == Era::Modern;
        Self {
            channel,
            number,
            receiver,
            send_line: None,
            cancels_on_drop,
            is_subscription,
            has_meta: true,
        }
    }

    /// Enables cancellation: from now on, dropping the ticket may send `notifications/cancelled`
    /// through `send_line`.
    pub(super) fn enable_cancellation(
        &mut self,
        send_line: impl Fn(Bytes) + Send + Sync + 'static,
    ) {
        self.send_line = Some(Box::new(send_line));
    }

    /// Waits for the first message that belongs to the call. If it is the whole answer, the reply
    /// is a JSON body; otherwise each message becomes an event as it arrives, up to and including
    /// the answer.
    ///
    /// # Errors
    /// `Silent` after `first_wait`; the reason why the channel ended.
    pub(super) async fn reply(
        mut self,
        first_wait: Duration,
        gap: MaxSilence,
    ) -> Result<OpenedReply, CallError> {
        let answer = with_timeout(first_wait, self.next()).await;
        if matches!(answer, Err(CallError::Silent(_))) {
            self.cancels_on_drop = true;
        }
        let incoming = answer?;
        let is_error = incoming
            .message
            .envelopes()
            .iter()
            .any(|e| matches!(e.kind, MessageKind::Error));
        let status = match self.channel.era {
            Era::Modern => answer::status_of(&incoming.message, self.has_meta),
            Era::Legacy => StatusCode::OK,
        };
        let mut headers = HeaderMap::new();
        let (framing, frames) = if incoming.is_last && contains_only_answers(&incoming.message) {
            (Framing::Body, Frames::one(event(incoming.message)))
        } else {
            let open = if incoming.is_last { None } else { Some(self) };
            event_headers(&mut headers);
            let later_frames = unfold(open, move |open: Option<Self>| async move {
                let mut ticket = open?;
                match tokio::time::timeout(gap.time(), ticket.next()).await {
                    Ok(Ok(incoming)) => {
                        let open = if incoming.is_last { None } else { Some(ticket) };
                        Some((Ok(event(incoming.message)), open))
                    }
                    Ok(Err(CallError::Withdrawn)) => None,
                    Ok(Err(error)) => Some((Err(error), None)),
                    Err(_) => {
                        ticket.cancels_on_drop = true;
                        Some((Err(gap.error()), None))
                    }
                }
            });
            let first = futures_util::stream::iter([Ok(event(incoming.message))]);
            (
                Framing::Events,
                Frames::stream(futures_util::StreamExt::chain(first, later_frames)),
            )
        };
        Ok(OpenedReply {
            reply: Reply {
                status,
                headers,
                framing,
                frames,
            },
            is_error,
        })
    }

    async fn next(&mut self) -> Result<Incoming, CallError> {
        match self.receiver.recv().await {
            Some(delivery) => delivery,
            None => Err(CallError::BadReply("the server's stream ended")),
        }
    }
}

/// A reply, and whether it begins with an error.
pub(super) struct OpenedReply {
    pub(super) reply: Reply,
    pub(super) is_error: bool,
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        let unanswered = self.channel.remove_call(self.number);
        if let (true, Some(send_line)) = (self.cancels_on_drop, &self.send_line) {
            for id in unanswered {
                let line = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                );
                send_line(line.into());
            }
        }
    }
}

/// The single reader of messages that belong to no call. Dropping it lets another one attach.
pub(super) struct Listener {
    channel: Arc<Channel>,
    receiver: mpsc::UnboundedReceiver<Delivery>,
}

impl Listener {
    pub(super) fn new(channel: Arc<Channel>, receiver: mpsc::UnboundedReceiver<Delivery>) -> Self {
        Self { channel, receiver }
    }

    /// Returns a stream of events that ends with the session, or with an error if nothing arrived
    /// for `gap`.
    pub(super) fn reply(self, gap: MaxSilence) -> Reply {
        let mut headers = HeaderMap::new();
        event_headers(&mut headers);
        let frames = unfold(Some(self), move |open: Option<Self>| async move {
            let mut listener = open?;
            match tokio::time::timeout(gap.time(), listener.receiver.recv()).await {
                Ok(Some(Ok(incoming))) => Some((Ok(event(incoming.message)), Some(listener))),
                Ok(Some(Err(error))) => Some((Err(error), None)),
                Ok(None) => None,
                Err(_) => Some((Err(gap.error()), None)),
            }
        });
        Reply {
            status: StatusCode::OK,
            headers,
            framing: Framing::Events,
            frames: Frames::stream(frames),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.channel.touch();
    }
}

fn event_headers(headers: &mut HeaderMap) {
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
}

/// Reports whether a message contains only answers, as a JSON body must.
fn contains_only_answers(message: &Message) -> bool {
    message
        .envelopes()
        .iter()
        .all(|envelope| envelope.is_answer())
}

fn event(message: Message) -> Frame {
    Frame {
        payload: Payload::Message(message),
        fields: Fields::message(),
    }
}
