//! Streamable HTTP (2025-03-26 and later, Transports).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header};
use hyper::body::Body;
use tokio::time::sleep;

use super::body::{self, EventStream, MaxSilence, Timer};
use super::client::{self, Client, ClientRequest, ReadDeadline};
use super::health::{Health, HealthTracker};
use super::pool::ResponseBody;
use super::{page, probe};
use crate::config::{HttpTransport, Limits, UpstreamConfig};
use crate::message::{Message, ReadLimits};
use crate::oauth::Authorizer;
use crate::protocol::sse::Fields;
use crate::protocol::{
    Call, CallError, CallKind, Context, Frame, Frames, Framing, InFlight, Payload, Reply,
};

/// A server reached over streamable HTTP. Sessions, revisions and event ids are a matter between
/// agent and server: they pass unchanged.
pub(super) struct Http {
    client: Client,
    limits: ReadLimits,
    stream_idle: Duration,
    initialize_timeout: Duration,
    request_timeout: Duration,
    pulse: HealthTracker,
    in_flight: Arc<InFlight>,
}

impl Http {
    /// # Errors
    /// An error message about the config, for the user.
    pub(super) fn new(
        transport: &HttpTransport,
        login: Option<Arc<Authorizer>>,
        config: &UpstreamConfig,
        limits: &Limits,
    ) -> Result<Self, String> {
        Ok(Self {
            client: Client::new(transport, login)?,
            limits: limits.read.clone(),
            stream_idle: limits.stream_idle,
            initialize_timeout: config.initialize_timeout,
            request_timeout: config.request_timeout,
            pulse: HealthTracker::default(),
            in_flight: InFlight::unlimited(),
        })
    }

    /// Reserves the bytes of answers in `in_flight`.
    pub(super) fn reserve_in(&mut self, in_flight: Arc<InFlight>) {
        self.in_flight = in_flight;
    }

    /// Sends one call. Dropping the future, or the frames of the reply, closes the stream to the
    /// server, which cancels a modern request.
    pub(super) async fn call(&self, call: &Call) -> Result<Reply, CallError> {
        self.pulse.felt(self.exchange(call).await)
    }

    pub(super) async fn health(&self) -> Health {
        self.pulse.health(probe::ask_http(&self.client)).await
    }

    pub(super) fn last_health(&self) -> Option<Health> {
        self.pulse.last()
    }

    async fn exchange(&self, call: &Call) -> Result<Reply, CallError> {
        let (method, body, time, gap) = match &call.ask {
            CallKind::Send(message) if initializes(message) => {
                let time = self.initialize_timeout;
                (
                    Method::POST,
                    message.bytes().clone(),
                    time,
                    MaxSilence::Answer(time, self.stream_idle),
                )
            }
            CallKind::Send(message) => (
                Method::POST,
                message.bytes().clone(),
                self.request_timeout,
                MaxSilence::Idle(self.stream_idle),
            ),
            // Some servers send no response head before the first event.
            CallKind::Listen => (
                Method::GET,
                Bytes::new(),
                self.stream_idle,
                MaxSilence::Idle(self.stream_idle),
            ),
            CallKind::Close => (
                Method::DELETE,
                Bytes::new(),
                self.request_timeout,
                MaxSilence::Idle(self.stream_idle),
            ),
        };
        let lasting = if call.listens() {
            ReadDeadline::Stream
        } else {
            ReadDeadline::Call
        };
        let sent = ClientRequest {
            lasting,
            method,
            url: &self.client.url,
            headers: &call.headers,
            body,
        };
        let sleep = pin!(sleep(time));
        let mut timer = Timer::new(sleep);
        let response = self
            .client
            .send_as(&call.context, sent, time, &mut timer)
            .await?;
        timer.end_in(self.stream_idle);
        self.read(response, time, gap, &call.context, &mut timer)
            .await
    }

    async fn read(
        &self,
        response: Response<ResponseBody>,
        time: Duration,
        gap: MaxSilence,
        context: &Context,
        timer: &mut Timer<'_>,
    ) -> Result<Reply, CallError> {
        let (head, body) = response.into_parts();
        let status = head.status;
        let mut headers = client::incoming(head.headers);
        let failed = status.is_client_error() || status.is_server_error();
        if encoded(&headers) {
            // The status is still useful, and nothing else can be judged.
            return if failed {
                Ok(empty(status, headers))
            } else {
                Err(CallError::BadReply(
                    "it is compressed, which was not requested",
                ))
            };
        }
        headers.remove(header::CONTENT_ENCODING);
        let kind = ContentKind::from_headers(&headers);
        let ended = body.is_end_stream() && kind != ContentKind::Events;
        if ended || matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(empty(status, headers));
        }
        if kind == ContentKind::Events {
            let frames = EventStream::new(body, self.limits.clone())
                .reserved(self.in_flight.reservation(&context.agent))
                .frames(gap);
            return Ok(Reply {
                status,
                headers,
                framing: Framing::Events,
                frames,
            });
        }
        let reservation = self.in_flight.reservation(&context.agent);
        let bytes = body::reserved(body, &self.limits, time, reservation, timer).await?;
        if bytes.is_empty() {
            return Ok(empty(status, headers));
        }
        let page = kind == ContentKind::Other && page::is_html(&bytes);
        if page {
            // For operators only: an agent would read the server's text without inspection.
            let begins = page::first_words(&bytes);
            tracing::warn!(
                upstream = %context.upstream, status = status.as_u16(), begins,
                "the server returned a web page instead of MCP: check `url` of the upstream"
            );
        }
        let payload = match (Message::parse(bytes.clone(), &self.limits), kind) {
            (Ok(message), ContentKind::Json) => Payload::Message(message),
            (Ok(message), _) if failed => Payload::Message(message),
            (Err(error), _) if failed => match body::text(bytes.clone(), &error) {
                Some(text) => Payload::Text(text),
                None => return Ok(empty(status, headers)),
            },
            (Err(error), ContentKind::Json) => return Err(CallError::NotMcp(error)),
            _ if page => return Err(CallError::WEB_PAGE),
            _ => {
                return Err(CallError::BadReply(
                    "its content type is neither JSON nor an event stream",
                ));
            }
        };
        let frames = Frames::one(Frame {
            payload,
            fields: Fields::default(),
        });
        Ok(Reply {
            status,
            headers,
            framing: Framing::Body,
            frames,
        })
    }
}

/// Reports whether this is the request that opens a legacy session.
pub(super) fn initializes(message: &Message) -> bool {
    message
        .envelopes()
        .iter()
        .any(|envelope| envelope.is_request() && envelope.method() == Some("initialize"))
}

/// Returns a reply without a body.
pub(super) fn empty(status: StatusCode, mut headers: HeaderMap) -> Reply {
    headers.remove(header::CONTENT_TYPE);
    headers.remove(header::CONTENT_ENCODING);
    Reply {
        status,
        headers,
        framing: Framing::Empty,
        frames: Frames::empty(),
    }
}

/// The declared content type of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Json,
    Events,
    Other,
}

impl ContentKind {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let value = headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let essence = value.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") {
            Self::Json
        } else if essence.eq_ignore_ascii_case("text/event-stream") {
            Self::Events
        } else {
            Self::Other
        }
    }
}

fn encoded(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests;
