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
    health_tracker: HealthTracker,
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
            health_tracker: HealthTracker::default(),
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
        self.health_tracker
            .record_outcome(self.exchange(call).await)
    }

    pub(super) async fn health(&self) -> Health {
        self.health_tracker
            .health(probe::probe_http(&self.client))
            .await
    }

    pub(super) fn last_health(&self) -> Option<Health> {
        self.health_tracker.last_known()
    }

    async fn exchange(&self, call: &Call) -> Result<Reply, CallError> {
        let (method, body, time, gap) = match &call.kind {
            CallKind::Send(message) if is_initialize(message) => {
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
        let deadline = if call.listens() {
            ReadDeadline::Stream
        } else {
            ReadDeadline::Call
        };
        let request = ClientRequest {
            deadline,
            method,
            url: &self.client.url,
            headers: &call.headers,
            body,
        };
        let sleep = pin!(sleep(time));
        let mut timer = Timer::new(sleep);
        let response = self
            .client
            .send_as(&call.context, request, time, &mut timer)
            .await?;
        timer.set_deadline(self.stream_idle);
        self.read_reply(response, time, gap, &call.context, &mut timer)
            .await
    }

    async fn read_reply(
        &self,
        response: Response<ResponseBody>,
        time: Duration,
        gap: MaxSilence,
        context: &Context,
        timer: &mut Timer<'_>,
    ) -> Result<Reply, CallError> {
        let (head, body) = response.into_parts();
        let status = head.status;
        let mut headers = client::response_headers(head.headers);
        let is_failure = status.is_client_error() || status.is_server_error();
        if is_encoded(&headers) {
            // The status is still useful, and nothing else can be judged.
            return if is_failure {
                Ok(empty_reply(status, headers))
            } else {
                Err(CallError::BadReply(
                    "it is compressed, which was not requested",
                ))
            };
        }
        headers.remove(header::CONTENT_ENCODING);
        let kind = ContentKind::from_headers(&headers);
        let is_ended = body.is_end_stream() && kind != ContentKind::Events;
        if is_ended || matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(empty_reply(status, headers));
        }
        if kind == ContentKind::Events {
            let frames = EventStream::new(body, self.limits.clone())
                .with_reservation(self.in_flight.reservation(&context.agent))
                .frames(gap);
            return Ok(Reply {
                status,
                headers,
                framing: Framing::Events,
                frames,
            });
        }
        let reservation = self.in_flight.reservation(&context.agent);
        let bytes = body::read_reserved(body, &self.limits, time, reservation, timer).await?;
        if bytes.is_empty() {
            return Ok(empty_reply(status, headers));
        }
        let is_page = kind == ContentKind::Other && page::is_html(&bytes);
        if is_page {
            // For operators only: an agent would read the server's text without inspection.
            let begins = page::first_words(&bytes);
            tracing::warn!(
                upstream = %context.upstream, status = status.as_u16(), begins,
                "the server returned a web page instead of MCP: check `url` of the upstream"
            );
        }
        let payload = match (Message::parse(bytes.clone(), &self.limits), kind) {
            (Ok(message), ContentKind::Json) => Payload::Message(message),
            (Ok(message), _) if is_failure => Payload::Message(message),
            (Err(error), _) if is_failure => match body::text(bytes.clone(), &error) {
                Some(text) => Payload::Text(text),
                None => return Ok(empty_reply(status, headers)),
            },
            (Err(error), ContentKind::Json) => return Err(CallError::NotMcp(error)),
            _ if is_page => return Err(CallError::WEB_PAGE),
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
pub(super) fn is_initialize(message: &Message) -> bool {
    message
        .envelopes()
        .iter()
        .any(|envelope| envelope.is_request() && envelope.method() == Some("initialize"))
}

/// Returns a reply without a body.
pub(super) fn empty_reply(status: StatusCode, mut headers: HeaderMap) -> Reply {
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

fn is_encoded(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

#[cfg(test)]
mod tests;
