//! What goes in and what comes out of an upstream, whatever the transport.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderMap, StatusCode};

use super::{CallError, Context};
use crate::message::Message;

/// What an agent asks of a server.
#[derive(Clone)]
pub enum Ask {
    /// POST: take this message.
    Send(Message),
    /// GET: what the server says unasked (legacy sessions).
    Listen,
    /// DELETE: end the session (legacy).
    Close,
}

/// One call on its way to an upstream.
#[derive(Clone)]
pub struct Call {
    /// What is asked.
    pub ask: Ask,
    /// The agent's headers that may travel on: already without credentials, cookies, forwarding and hop-by-hop headers.
    pub headers: HeaderMap,
    /// Who asks whom.
    pub context: Context,
}

/// What a frame carries.
#[derive(Clone)]
pub enum Payload {
    /// A JSON-RPC message or batch.
    Message(Message),
    /// Text that is not JSON-RPC: the body of an HTTP error, an `endpoint` event.
    Text(Bytes),
    /// Nothing that reaches a model: a comment, a priming event, `retry:`.
    Empty,
}

/// One unit of a reply: a JSON body, one event of a stream.
#[derive(Clone)]
pub struct Frame {
    /// The bytes as they came, framing included.
    pub raw: Bytes,
    /// What they carry.
    pub payload: Payload,
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({} bytes)", self.raw.len())
    }
}

/// The frames of a reply, in order. Dropping the stream cancels the call upstream, as its transport and era lay down.
pub type Frames = Pin<Box<dyn Stream<Item = Result<Frame, CallError>> + Send>>;

/// How the frames of a reply stand on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    Empty,
    /// One body, JSON or text.
    Body,
    /// `text/event-stream`; each frame's `raw` is one event with the blank line that ends it.
    Events,
}

/// A server's reply.
pub struct Reply {
    /// HTTP status; upstreams without HTTP give the one that streamable HTTP lays down.
    pub status: StatusCode,
    /// Headers for the agent: hop-by-hop, length, cookies and challenges already gone.
    pub headers: HeaderMap,
    /// How `frames` stand on the wire.
    pub framing: Framing,
    /// What it says.
    pub frames: Frames,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).field("framing", &self.framing).finish_non_exhaustive()
    }
}
