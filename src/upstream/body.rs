//! Reading bodies: whole with a size limit, or event by event.

use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::time::{Instant, Sleep, sleep};

use super::pool::ResponseBody;
use crate::message::{Message, ParseError, ReadLimits};
use crate::protocol::sse::{Decoder, Event};
use crate::protocol::{CallError, Frame, Frames, Payload, Reservation};
use crate::trust::error_text;

/// A body that `hyper` reads.
pub(super) trait Readable: Body<Data = Bytes, Error = hyper::Error> + Unpin {}

impl<B: Body<Data = Bytes, Error = hyper::Error> + Unpin> Readable for B {}

/// Returns the next chunk of a body; `None` at its end.
async fn next_chunk(body: &mut impl Readable) -> Result<Option<Bytes>, CallError> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => {
                return Err(CallError::Connect(io::Error::other(error_text(&error))));
            }
            // Trailers carry nothing for an agent.
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data()
                    && !data.is_empty()
                {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Reads a body to its end. Its bytes are reserved before they are read: the announced length at
/// once, the rest as it arrives.
///
/// # Errors
/// `NotMcp` if it is longer than `message_bytes`, `Silent` if nothing arrived for `gap`, `Connect`
/// if it broke off, `Limit` if too many bytes are in flight.
pub(super) async fn read_reserved(
    body: impl Readable,
    limits: &ReadLimits,
    gap: Duration,
    mut reservation: Reservation,
    timer: &mut Timer<'_>,
) -> Result<Bytes, CallError> {
    reservation.reserve(
        usize::try_from(body.size_hint().lower())
            .unwrap_or(usize::MAX)
            .min(limits.message_bytes),
    )?;
    let body = read_chunks(body, limits, gap, |bytes| reservation.grow(bytes), timer).await?;
    Ok(reservation.attach(body))
}

/// Like [`read_reserved`], without a reservation, for bodies that are not passed on.
pub(super) async fn read_whole(
    body: impl Readable,
    limits: &ReadLimits,
    gap: Duration,
) -> Result<Bytes, CallError> {
    let sleep = pin!(sleep(gap));
    let mut timer = Timer::new(sleep);
    read_chunks(body, limits, gap, |_| Ok(()), &mut timer).await
}

/// Reads the beginning of a body, up to `limit` bytes. If the body breaks off after some bytes,
/// returns those.
///
/// # Errors
/// `Connect` if it breaks off before the first byte.
pub(super) async fn read_beginning(
    mut body: impl Readable,
    limit: usize,
) -> Result<Bytes, CallError> {
    let mut bytes = BytesMut::new();
    while bytes.len() < limit {
        match next_chunk(&mut body).await {
            Ok(Some(chunk)) => {
                bytes.extend_from_slice(chunk.get(..limit - bytes.len()).unwrap_or(chunk.as_ref()))
            }
            Err(error) if bytes.is_empty() => return Err(error),
            Ok(None) | Err(_) => break,
        }
    }
    Ok(bytes.freeze())
}

async fn read_chunks(
    mut body: impl Readable,
    limits: &ReadLimits,
    gap: Duration,
    mut reserve: impl FnMut(usize) -> Result<(), CallError>,
    timer: &mut Timer<'_>,
) -> Result<Bytes, CallError> {
    let too_large = || {
        CallError::NotMcp(ParseError::TooLarge {
            limit: limits.message_bytes,
        })
    };
    if body.size_hint().lower() > limits.message_bytes as u64 {
        return Err(too_large());
    }
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let Some(chunk) = timer.wait(gap, pin!(next_chunk(&mut body))).await? else {
            break;
        };
        if first.len() + rest.len() + chunk.len() > limits.message_bytes {
            return Err(too_large());
        }
        reserve(first.len() + rest.len() + chunk.len())?;
        match (first.is_empty(), rest.is_empty()) {
            (true, true) => first = chunk,
            (_, true) => {
                let expected = usize::try_from(body.size_hint().lower())
                    .unwrap_or(0)
                    .min(limits.message_bytes);
                rest.reserve(first.len() + chunk.len() + expected);
                rest.extend_from_slice(&std::mem::take(&mut first));
                rest.extend_from_slice(&chunk);
            }
            _ => rest.extend_from_slice(&chunk),
        }
    }
    Ok(if rest.is_empty() {
        first
    } else {
        rest.freeze()
    })
}

/// Returns the output of `future`, or `Silent` if it takes longer than `time`.
pub(super) async fn with_timeout<T>(
    time: Duration,
    future: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    tokio::time::timeout(time, future)
        .await
        .unwrap_or(Err(CallError::Silent(time)))
}

/// The timer of a call, reused by all its waits: moving a timer to a later time is one atomic
/// operation, creating another one takes two locks.
pub(super) struct Timer<'s> {
    sleep: Pin<&'s mut Sleep>,
    /// Deadline for all waits.
    deadline: Option<Instant>,
}

impl<'s> Timer<'s> {
    pub(super) fn new(sleep: Pin<&'s mut Sleep>) -> Self {
        Self {
            sleep,
            deadline: None,
        }
    }

    /// Sets the deadline for all further waits to `time` from now.
    pub(super) fn set_deadline(&mut self, time: Duration) {
        self.deadline = Some(Instant::now() + time);
    }

    /// Returns the output of `future`, or `Silent` if it takes longer than `time`. The caller pins
    /// the future: taken by value, it would occupy its space twice.
    pub(super) async fn wait<T>(
        &mut self,
        time: Duration,
        mut future: Pin<&mut impl Future<Output = Result<T, CallError>>>,
    ) -> Result<T, CallError> {
        let wait_until = Instant::now() + time;
        self.sleep
            .as_mut()
            .reset(self.deadline.map_or(wait_until, |end| end.min(wait_until)));
        std::future::poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(output),
            Poll::Pending => self
                .sleep
                .as_mut()
                .poll(context)
                .map(|()| Err(CallError::Silent(time))),
        })
        .await
    }
}

/// An event stream that is being read.
pub(super) struct EventStream {
    body: ResponseBody,
    decoder: Decoder,
    limits: ReadLimits,
    /// Reservation for the current event.
    reservation: Option<Reservation>,
}

impl EventStream {
    pub(super) fn new(body: ResponseBody, limits: ReadLimits) -> Self {
        Self {
            body,
            decoder: Decoder::default(),
            limits,
            reservation: None,
        }
    }

    /// Reserves the bytes of each event as they arrive.
    pub(super) fn with_reservation(self, reservation: Reservation) -> Self {
        Self {
            reservation: Some(reservation),
            ..self
        }
    }

    /// Returns the next event as soon as the blank line that ends it has arrived; `None` when the
    /// stream has ended. An event cut short by the end of the stream is dropped, as receivers must.
    ///
    /// # Errors
    /// `NotMcp` if an event is longer than `message_bytes`, `Connect` if the stream broke off,
    /// `Limit` if too many bytes are in flight.
    pub(super) async fn next(&mut self) -> Result<Option<Event>, CallError> {
        loop {
            if let Some(mut event) = self.decoder.next_event() {
                if let Some(reservation) = &mut self.reservation {
                    let event_reservation = reservation.take();
                    event.data = event.data.map(|data| event_reservation.attach(data));
                }
                return Ok(Some(event));
            }
            let limit = self.limits.message_bytes;
            if self.decoder.buffered_bytes() > limit {
                return Err(CallError::NotMcp(ParseError::TooLarge { limit }));
            }
            match next_chunk(&mut self.body).await? {
                Some(chunk) => {
                    let bytes = self.decoder.buffered_bytes() + chunk.len();
                    self.reservation
                        .as_mut()
                        .map_or(Ok(()), |reservation| reservation.grow(bytes))?;
                    self.decoder.push(&chunk);
                }
                None => return Ok(None),
            }
        }
    }

    /// Returns the frames of this stream. It ends with an error at the first event that cannot be
    /// judged, and with `Limit("stream_idle_seconds")` or `Silent` if no event arrived for `gap`.
    pub(super) fn frames(self, gap: MaxSilence) -> Frames {
        let open = Some((self, gap));
        Frames::stream(futures_util::stream::unfold(open, async |open| {
            let (mut events, gap) = open?;
            let next = match tokio::time::timeout(gap.time(), events.next()).await {
                Err(_) => Err(gap.error()),
                Ok(Ok(None)) => return None,
                Ok(Ok(Some(event))) => frame(event, &events.limits),
                Ok(Err(error)) => Err(error),
            };
            match next {
                Ok(frame) => Some((Ok(frame), Some((events, gap.after_frame())))),
                Err(error) => Some((Err(error), None)),
            }
        }))
    }
}

/// How long a stream may be silent.
#[derive(Clone, Copy)]
pub(super) enum MaxSilence {
    /// The limit `stream_idle_seconds`.
    Idle(Duration),
    /// The time for an answer to `initialize` and similar requests; once something has arrived, the
    /// limit `stream_idle_seconds`.
    Answer(Duration, Duration),
}

impl MaxSilence {
    pub(super) fn time(self) -> Duration {
        match self {
            Self::Idle(time) | Self::Answer(time, _) => time,
        }
    }

    pub(super) fn error(self) -> CallError {
        match self {
            Self::Idle(_) => CallError::Limit("stream_idle_seconds"),
            Self::Answer(time, _) => CallError::Silent(time),
        }
    }

    fn after_frame(self) -> Self {
        match self {
            Self::Idle(time) | Self::Answer(_, time) => Self::Idle(time),
        }
    }
}

fn frame(event: Event, limits: &ReadLimits) -> Result<Frame, CallError> {
    let is_message = event.is_message();
    let payload = match event.data {
        None => Payload::Empty,
        Some(data) if data.is_empty() => Payload::Text(data),
        Some(data) => match Message::parse(data.clone(), limits) {
            Ok(message) => Payload::Message(message),
            Err(error) if is_message => return Err(CallError::NotMcp(error)),
            // Clients treat an event with another name as text.
            Err(error) => match text(data, &error) {
                Some(text) => Payload::Text(text),
                None => return Err(CallError::NotMcp(error)),
            },
        },
    };
    Ok(Frame {
        payload,
        fields: event.fields,
    })
}

/// Returns a body that is not a message, if it can be judged as text. A body that looks like JSON
/// but cannot be parsed strictly cannot: a client may read something in it that a judge of its text
/// does not see.
pub(super) fn text(bytes: Bytes, error: &ParseError) -> Option<Bytes> {
    let text = std::str::from_utf8(&bytes).ok()?;
    let looks_like_json = text
        .trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
        .starts_with(['{', '[']);
    (!looks_like_json || matches!(error, ParseError::NotRpc(_))).then_some(bytes)
}
