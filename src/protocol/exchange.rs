//! The input and output of an upstream, independent of the transport.

use std::fmt;
use std::pin::Pin;
use std::task::{self, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, StatusCode};

use super::sse::{Data, Fields};
use super::{CallError, Context};
use crate::message::Message;

/// An agent's request to a server.
#[derive(Clone)]
pub enum CallKind {
    /// POST: send this message.
    Send(Message),
    /// GET: receive what the server sends on its own (legacy sessions).
    Listen,
    /// DELETE: end the session (legacy).
    Close,
}

impl CallKind {
    /// Returns the message that is sent, if there is one.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Send(message) => Some(message),
            Self::Listen | Self::Close => None,
        }
    }
}

/// One call on its way to an upstream.
#[derive(Clone)]
pub struct Call {
    pub kind: CallKind,
    /// The agent's headers that may be forwarded: already without credentials, cookies, forwarding
    /// and hop-by-hop headers.
    pub headers: HeaderMap,
    /// Sender and receiver of the call.
    pub context: Context,
}

impl Call {
    /// Reports whether it opens a stream on which the agent only listens: the session's own, or a
    /// subscription (2026-07-28, `basic/patterns/subscriptions`).
    pub fn listens(&self) -> bool {
        match &self.kind {
            CallKind::Listen => true,
            CallKind::Send(message) => {
                message.single().and_then(|envelope| envelope.method())
                    == Some("subscriptions/listen")
            }
            CallKind::Close => false,
        }
    }
}

/// The content of a frame.
#[derive(Clone)]
pub enum Payload {
    /// A JSON-RPC message or batch from a server.
    Message(Message),
    /// JSON-RPC that was already inspected, or that the gateway created itself.
    Inspected(Bytes),
    /// Text that is not JSON-RPC: the body of an HTTP error, an event with another name; empty in a
    /// priming event.
    Text(Bytes),
    /// No data: a comment, `retry:`.
    Empty,
}

/// One unit of a reply: a JSON body, or one event of a stream. It contains no bytes of the server's
/// framing.
#[derive(Clone)]
pub struct Frame {
    pub payload: Payload,
    /// The other fields of an event; ignored if the reply is not an event stream.
    pub fields: Fields,
}

impl Frame {
    /// Creates a message that was already inspected, or that the gateway created itself.
    pub fn inspected(json: impl Into<Bytes>) -> Self {
        Self {
            payload: Payload::Inspected(json.into()),
            fields: Fields::message(),
        }
    }

    /// Returns the text that it carries, if any.
    pub fn text(&self) -> Option<&Bytes> {
        match &self.payload {
            Payload::Message(message) => Some(message.bytes()),
            Payload::Inspected(text) | Payload::Text(text) => Some(text),
            Payload::Empty => None,
        }
    }

    pub fn event(&self) -> Bytes {
        self.fields.serialize(match &self.payload {
            Payload::Message(message) => Some(Data::Json(message.bytes())),
            Payload::Inspected(json) => Some(Data::Json(json)),
            Payload::Text(text) => Some(Data::Text(text)),
            Payload::Empty => None,
        })
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({} bytes)", self.text().map_or(0, Bytes::len))
    }
}

/// The frames of a reply, in order. Dropping a stream cancels the call upstream, as its transport
/// and era define.
pub enum Frames {
    /// The frame of a body that has arrived completely, if there is one.
    Body(Option<Result<Frame, CallError>>),
    /// Frames that are still to come.
    Stream(Pin<Box<dyn Stream<Item = Result<Frame, CallError>> + Send>>),
}

impl Frames {
    pub fn empty() -> Self {
        Self::Body(None)
    }

    pub fn one(frame: Frame) -> Self {
        Self::Body(Some(Ok(frame)))
    }

    pub fn stream(frames: impl Stream<Item = Result<Frame, CallError>> + Send + 'static) -> Self {
        Self::Stream(Box::pin(frames))
    }
}

impl Stream for Frames {
    type Item = Result<Frame, CallError>;

    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        match self.get_mut() {
            Self::Body(frame) => Poll::Ready(frame.take()),
            Self::Stream(frames) => frames.as_mut().poll_next(context),
        }
    }
}

/// How the frames of a reply are encoded on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    Empty,
    /// One body, JSON or text.
    Body,
    /// `text/event-stream`: each frame is one event.
    Events,
}

/// A server's reply.
pub struct Reply {
    /// HTTP status; upstreams without HTTP return the one that streamable HTTP defines.
    pub status: StatusCode,
    /// Headers for the agent, with hop-by-hop headers, length, cookies and challenges already
    /// removed. `Content-Type` is set from the framing when the reply is written.
    pub headers: HeaderMap,
    /// How `frames` are encoded on the wire.
    pub framing: Framing,
    /// The content.
    pub frames: Frames,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("status", &self.status)
            .field("framing", &self.framing)
            .finish_non_exhaustive()
    }
}
