//! HTTP+SSE of 2024-11-05: one GET stream on which everything arrives, and an endpoint to which
//! messages are POSTed.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header, uri};
use tokio::sync::watch;
use tokio::time::sleep;
use url::{Position, Url};

use super::body::{self, EventStream, Timer, with_timeout};
use super::channel::Channel;
use super::client::{Client, ClientRequest, ReadDeadline};
use super::end::ChannelEnd;
use super::health::{Health, HealthTracker};
use super::http::ContentKind;
use super::in_flight_call::InFlightCall;
use super::probe;
use super::sessions::{ServerLink, Sessions, Timeouts, or_cancelled};
use crate::config::{HttpTransport, Limits, UpstreamConfig};
use crate::message::{Message, ReadLimits};
use crate::oauth::Authorizer;
use crate::protocol::{
    Call, CallError, Context, Era, InFlight, Reply, UpstreamName, header as mcp,
};

/// A server reached over HTTP+SSE. The agent sees each stream as a legacy session of streamable
/// HTTP.
pub(super) struct Sse {
    client: Arc<Client>,
    name: UpstreamName,
    limits: Limits,
    timeouts: Timeouts,
    sessions: Sessions<Stream>,
    health_tracker: HealthTracker,
    closing: watch::Sender<bool>,
    in_flight: Arc<InFlight>,
}

impl Sse {
    /// # Errors
    /// An error message about the config, for the user.
    pub(super) fn new(
        name: UpstreamName,
        transport: &HttpTransport,
        login: Option<Arc<Authorizer>>,
        config: &UpstreamConfig,
        limits: &Limits,
    ) -> Result<Self, String> {
        let timeouts = Timeouts::new(config, limits);
        Ok(Self {
            client: Arc::new(Client::new(transport, login)?),
            name,
            limits: limits.clone(),
            timeouts,
            sessions: Sessions::new(limits.sessions, timeouts),
            health_tracker: HealthTracker::default(),
            closing: watch::Sender::new(false),
            in_flight: InFlight::unlimited(),
        })
    }

    /// Reserves the bytes of answers in `in_flight`.
    pub(super) fn reserve_in(&mut self, in_flight: Arc<InFlight>) {
        self.in_flight = in_flight;
    }

    /// Sends one call. Modern calls are not offered: the transport was removed two revisions
    /// earlier, and an agent that gets this error goes back to `initialize`.
    pub(super) async fn call(&self, call: &Call) -> Result<Reply, CallError> {
        if call.context.era == Era::Modern {
            return Err(CallError::NotOffered);
        }
        or_cancelled(
            self.health_tracker
                .record_outcome(self.sessions.dispatch(call, self.connect(call)).await),
        )
    }

    pub(super) async fn health(&self) -> Health {
        self.health_tracker
            .health(probe::probe_sse(&self.client))
            .await
    }

    pub(super) fn last_health(&self) -> Option<Health> {
        self.health_tracker.last_known()
    }

    /// Ends all streams.
    pub(super) fn shutdown(&self) {
        self.closing.send_replace(true);
    }

    async fn connect(&self, call: &Call) -> Result<Arc<Stream>, CallError> {
        if *self.closing.borrow() {
            return Err(CallError::Draining);
        }
        let mut headers = call.headers.clone();
        headers.remove(mcp::SESSION);
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("text/event-stream"),
        );
        let (events, endpoint) = self.open_stream(&headers, &call.context).await?;
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        let channel = Channel::new(Era::Legacy, self.name.clone(), &self.limits);
        let (stop, stopping) = watch::channel(false);
        let reader = Reader {
            events,
            channel: channel.clone(),
            idle: self.limits.session_idle,
            message_bytes: self.limits.read.message_bytes,
            stopping,
            closing: self.closing.subscribe(),
        };
        tokio::spawn(reader.run());
        let post = Post {
            client: self.client.clone(),
            endpoint,
            headers,
            context: call.context.clone(),
            limits: self.limits.read.clone(),
        };
        Ok(Arc::new(Stream {
            channel,
            post: Arc::new(post),
            stop,
        }))
    }

    /// Opens the stream and waits for the event that names the endpoint.
    async fn open_stream(
        &self,
        headers: &HeaderMap,
        context: &Context,
    ) -> Result<(EventStream, Uri), CallError> {
        let time = self.timeouts.initialize;
        let request = ClientRequest {
            deadline: ReadDeadline::Stream,
            method: Method::GET,
            url: &self.client.url,
            headers,
            body: Bytes::new(),
        };
        let sleep = pin!(sleep(time));
        let mut timer = Timer::new(sleep);
        let response = self
            .client
            .send_as(context, request, time, &mut timer)
            .await?;
        if response.status() != StatusCode::OK
            || ContentKind::from_headers(response.headers()) != ContentKind::Events
        {
            return Err(CallError::BadReply("its URL gives no event stream"));
        }
        let reservation = self.in_flight.reservation(&context.agent);
        let events = EventStream::new(response.into_body(), self.limits.read.clone())
            .with_reservation(reservation);
        with_timeout(time, self.read_endpoint(events)).await
    }

    async fn read_endpoint(
        &self,
        mut events: EventStream,
    ) -> Result<(EventStream, Uri), CallError> {
        while let Some(event) = events.next().await? {
            if let (Some(b"endpoint"), Some(data)) = (event.fields.name.as_deref(), event.data) {
                let reference = std::str::from_utf8(&data).unwrap_or_default();
                let endpoint = resolve(&self.client.url, reference);
                return Ok((
                    events,
                    endpoint.ok_or(CallError::BadReply("its endpoint is not at its own origin"))?,
                ));
            }
        }
        Err(CallError::BadReply(
            "its stream ended before it named an endpoint",
        ))
    }
}

/// One stream and the endpoint that its messages are sent to.
struct Stream {
    channel: Arc<Channel>,
    post: Arc<Post>,
    stop: watch::Sender<bool>,
}

struct Post {
    client: Arc<Client>,
    endpoint: Uri,
    headers: HeaderMap,
    /// The context of the stream's owner: each message uses the token that is valid when it is
    /// sent.
    context: Context,
    limits: ReadLimits,
}

impl ServerLink for Stream {
    fn channel(&self) -> &Arc<Channel> {
        &self.channel
    }

    /// Some servers hold the response back until they have answered on the stream, so the request
    /// continues in a task of its own when nothing waits for it any more.
    async fn send(&self, message: &Message, time: Duration) -> Result<(), CallError> {
        let post = self.post.clone();
        let bytes = message.bytes().clone();
        let outcome = tokio::spawn(async move { post.send(bytes, time).await }).await;
        let outcome = outcome.unwrap_or(Err(CallError::BadReply("sending was interrupted")));
        if matches!(outcome, Err(CallError::UnknownSession)) {
            self.close();
        }
        outcome
    }

    /// Only modern calls are cancelled, and this transport has none.
    fn enable_cancellation(&self, _: &mut InFlightCall) {}

    fn close(&self) {
        self.channel.end(ChannelEnd::Closed);
        self.stop.send_replace(true);
    }
}

impl Post {
    async fn send(&self, message: Bytes, time: Duration) -> Result<(), CallError> {
        let request = ClientRequest {
            deadline: ReadDeadline::Call,
            method: Method::POST,
            url: &self.endpoint,
            headers: &self.headers,
            body: message,
        };
        let sleep = pin!(sleep(time));
        let mut timer = Timer::new(sleep);
        let response = self
            .client
            .send_as(&self.context, request, time, &mut timer)
            .await?;
        let status = response.status();
        // Reading the body, which carries no information, lets the connection be reused.
        let read = body::read_whole(response.into_body(), &self.limits, time).await;
        tracing::trace!(%status, whole = read.is_ok(), "a message was posted");
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::NOT_FOUND | StatusCode::GONE => Err(CallError::UnknownSession),
            _ => Err(CallError::BadReply("its endpoint refused the message")),
        }
    }
}

/// Reads a stream until it ends, or until it is no longer needed.
struct Reader {
    events: EventStream,
    channel: Arc<Channel>,
    idle: Duration,
    message_bytes: usize,
    stopping: watch::Receiver<bool>,
    closing: watch::Receiver<bool>,
}

impl Reader {
    async fn run(self) {
        let Self {
            mut events,
            channel,
            idle,
            message_bytes,
            mut stopping,
            mut closing,
        } = self;
        let end = tokio::select! {
            end = read_events(&mut events, &channel, message_bytes) => end,
            _ = stopping.wait_for(|stop| *stop) => ChannelEnd::Closed,
            _ = closing.wait_for(|closing| *closing) => ChannelEnd::Gone("the gateway is shutting down".into()),
            () = channel.wait_until_idle(idle) => ChannelEnd::Gone("the session was idle".into()),
        };
        channel.end(end);
    }
}

async fn read_events(
    events: &mut EventStream,
    channel: &Channel,
    message_bytes: usize,
) -> ChannelEnd {
    loop {
        match events.next().await {
            Ok(Some(event)) => {
                if let (true, Some(data)) = (
                    event.is_message(),
                    event.data.filter(|data| !data.is_empty()),
                ) {
                    let bytes = data.len();
                    if let Err(error) = channel.receive(data).await {
                        tracing::warn!(upstream = %channel.upstream, bytes, "an event of the server is {error}; dropped");
                    }
                }
            }
            Ok(None) => return ChannelEnd::Gone("the server's stream ended".into()),
            Err(CallError::NotMcp(_)) => return ChannelEnd::TooLarge(message_bytes),
            Err(error) => {
                return ChannelEnd::Gone(
                    format!("the server's stream was interrupted: {error}").into(),
                );
            }
        }
    }
}

/// Resolves the endpoint that a server names against the URL of its stream (RFC 3986, 5.2). Returns
/// `None` if it is at another origin: the gateway's credentials are sent there.
fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next().unwrap_or_default();
    // `url` would remove or escape what no URL contains.
    let is_unusual = |c: char| c.is_ascii_whitespace() || c.is_ascii_control();
    if reference.is_empty() || reference.contains(is_unusual) {
        return None;
    }
    let stream = Url::parse(&base.to_string()).ok()?;
    let endpoint = stream.join(reference).ok()?;
    let has_login = !endpoint.username().is_empty() || endpoint.password().is_some();
    if endpoint.origin() != stream.origin() || has_login {
        return None;
    }
    uri::Builder::new()
        .scheme(base.scheme_str()?)
        .authority(base.authority()?.clone())
        .path_and_query(&endpoint[Position::BeforePath..])
        .build()
        .ok()
}

#[cfg(test)]
mod tests;
