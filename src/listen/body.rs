//! Bodies of requests and responses.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::config::Limits;
use crate::message::{ParseError, ReadLimits};
use crate::protocol::{AgentName, CallError, InFlight, Reservation};

/// The body of a response: empty, available bytes, or a stream of them.
pub enum Body {
    Empty,
    /// Available bytes, with their length announced.
    Whole(Bytes),
    /// Bytes as they arrive.
    Stream(BoxStream<'static, io::Result<Bytes>>),
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Empty => Poll::Ready(None),
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Self::Stream(stream) => stream
                .as_mut()
                .poll_next(context)
                .map(|next| next.map(|bytes| bytes.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Empty)
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// Reads a short body of at most `bytes` bytes.
///
/// # Errors
/// As [`read`].
pub(super) async fn read_at_most(
    body: Incoming,
    limits: &Limits,
    bytes: usize,
) -> Result<Bytes, CallError> {
    let limits = Limits {
        read: ReadLimits::of_bytes(bytes),
        ..limits.clone()
    };
    read(
        body,
        &limits,
        InFlight::unlimited().reservation(&AgentName("".into())),
    )
    .await
}

/// Reads a request's body within the limits of size and time. Its bytes are reserved before they
/// are read: all of the announced length, or as they arrive if none is announced.
///
/// # Errors
/// `Limit` if it is too slow or too many bytes are in flight, `BadMessage` if it is too long.
pub(super) async fn read(
    body: Incoming,
    limits: &Limits,
    mut reservation: Reservation,
) -> Result<Bytes, CallError> {
    let max_bytes = limits.read.message_bytes;
    let too_large = || CallError::BadMessage(ParseError::TooLarge { limit: max_bytes });
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_large());
    }
    reservation.reserve(usize::try_from(body.size_hint().lower()).unwrap_or(max_bytes))?;
    let gather = async {
        let mut body = body;
        let mut first: Option<Bytes> = None;
        let mut buffer = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| CallError::BrokenOff(io::Error::other(error)))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let received = if buffer.is_empty() {
                first.as_ref().map_or(0, Bytes::len)
            } else {
                buffer.len()
            };
            if received + data.len() > max_bytes {
                return Err(too_large());
            }
            reservation.grow(received + data.len())?;
            // Most bodies come in one piece, which need not be copied.
            match &first {
                None => first = Some(data),
                Some(start) => {
                    if buffer.is_empty() {
                        buffer.extend_from_slice(start);
                    }
                    buffer.extend_from_slice(&data);
                }
            }
        }
        Ok(reservation.attach(if buffer.is_empty() {
            first.unwrap_or_default()
        } else {
            buffer.freeze()
        }))
    };
    tokio::time::timeout(limits.request_read, gather)
        .await
        .map_err(|_| CallError::Limit("request_read_seconds"))?
}
