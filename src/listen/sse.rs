//! HTTP+SSE for agents of 2024-11-05: one stream for all messages of the server, one URL to post
//! to.
//!
//! Whatever the transport of the upstream is, each posted message is carried like any other call,
//! and its replies are written to the stream.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::identity::Identity;
use super::{Body, Frontend, body, http as endpoint, keep_alive};
use crate::message::Message;
use crate::protocol::sse::{self, Data, Fields};
use crate::protocol::{
    AgentTransport, AgentWire, Call, CallError, CallKind, Context, Era, Framing, JSON_OR_EVENTS,
    Payload, Reply, SessionId, UpstreamName, answer, header, headers,
};
use crate::record::Event;

/// The open streams, by the last segment of the URL to post to. Limited by `sessions`.
#[derive(Default)]
pub(super) struct Channels(Mutex<HashMap<String, Arc<Channel>>>);

/// One agent's stream.
struct Channel {
    identity: Identity,
    upstream: UpstreamName,
    /// The session that the upstream opened, if any.
    session: Mutex<Option<SessionId>>,
    sender: mpsc::Sender<Bytes>,
}

impl Channels {}

/// Ends the channel when its stream is dropped.
struct ChannelGuard {
    front: Arc<Frontend>,
    id: String,
}

impl Drop for ChannelGuard {
    fn drop(&mut self) {
        let Some(channel) = self.front.channels.0.lock().remove(&self.id) else {
            return;
        };
        let front = self.front.clone();
        let Some(call) = channel
            .call(CallKind::Close, HeaderMap::new(), &channel.identity)
            .filter(|call| call.context.session.is_some())
        else {
            return;
        };
        tokio::spawn(async move {
            // In this revision, the end of the stream is the end of the session; the upstream is
            // notified as its own revision requires.
            if let Err(error) = front.gate.carry(call).await {
                tracing::debug!(%error, "cannot close a session");
            }
        });
    }
}

impl Channel {
    /// Returns a call by the agent that opened the stream, with the access that it has `as_of` a
    /// request.
    fn call(&self, ask: CallKind, mut headers: HeaderMap, as_of: &Identity) -> Option<Box<Call>> {
        let session = self.session.lock().clone();
        if let Some(session) = &session {
            headers.insert(
                header::SESSION,
                HeaderValue::from_str(session.expose()).ok()?,
            );
        }
        headers.insert(ACCEPT, HeaderValue::from_static(JSON_OR_EVENTS));
        let agent = as_of.agent.clone();
        let upstream = self.upstream.clone();
        let caller = as_of.caller.clone();
        let context = Context {
            session,
            caller,
            wire: AgentWire::new(AgentTransport::Http, None),
            ..Context::new(agent, upstream, Era::Legacy)
        };
        Some(Box::new(Call {
            kind: ask,
            headers,
            context,
        }))
    }
}

/// Opens a stream (GET).
pub(super) fn open(
    front: &Arc<Frontend>,
    request: &Request<Incoming>,
    identity: Identity,
    upstream: UpstreamName,
) -> Response<Body> {
    if request.method() != Method::GET {
        return status_response(StatusCode::METHOD_NOT_ALLOWED);
    }
    let limits = front.gate.limits();
    let (sender, inbox) = mpsc::channel(limits.queued_messages);
    let id = uuid::Uuid::new_v4().simple().to_string();
    let listener = identity.clone();
    {
        let mut channels = front.channels.0.lock();
        if channels.len() >= limits.sessions {
            drop(channels);
            front.gate.record(Event::Limit { name: "sessions" });
            return status_response(StatusCode::SERVICE_UNAVAILABLE);
        }
        channels.insert(
            id.clone(),
            Arc::new(Channel {
                identity,
                upstream: upstream.clone(),
                session: Mutex::default(),
                sender,
            }),
        );
    }
    let first = Fields::with_name("endpoint")
        .serialize(Some(Data::Text(format!("/sse/{upstream}/{id}").as_bytes())));
    let guard = ChannelGuard {
        front: front.clone(),
        id,
    };
    let events = stream::unfold((inbox, guard), |(mut inbox, guard)| async move {
        inbox.recv().await.map(|event| (Ok(event), (inbox, guard)))
    });
    let events = keep_alive::with_comments(
        stream::iter([Ok(first)]).chain(events).boxed(),
        limits.keep_alive,
    );
    let body = Body::Stream(endpoint::take_until_access_lost(front, listener, events));
    let mut response = Response::new(body);
    let values = [(CONTENT_TYPE, sse::MEDIA_TYPE), (CACHE_CONTROL, "no-cache")];
    headers::set(response.headers_mut(), values);
    response
}

/// Accepts a message (POST); its reply is sent on the stream.
pub(super) async fn post(
    front: &Arc<Frontend>,
    request: Request<Incoming>,
    identity: Identity,
    upstream: &UpstreamName,
    id: &str,
) -> Response<Body> {
    if request.method() != Method::POST {
        return status_response(StatusCode::METHOD_NOT_ALLOWED);
    }
    let channel = front.channels.0.lock().get(id).cloned();
    let Some(channel) = channel
        .filter(|channel| channel.identity.is_same(&identity) && channel.upstream == *upstream)
    else {
        return status_response(StatusCode::NOT_FOUND);
    };
    let (head, body) = request.into_parts();
    let headers = headers::keep_forwarded(head.headers);
    let reservation = front.gate.in_flight().reservation(&identity.agent);
    let parsed = match body::read(body, front.gate.limits(), reservation).await {
        Ok(bytes) => {
            Message::parse(bytes, &front.gate.limits().read).map_err(CallError::BadMessage)
        }
        Err(error) => Err(error),
    };
    let message = match parsed {
        Ok(message) => message,
        Err(error) => {
            if let Some(call) = channel.call(CallKind::Listen, HeaderMap::new(), &channel.identity)
            {
                front.gate.record_failure(&call.context, &error);
            }
            return endpoint::respond(front, answer::failure_reply(&error, None, None), None).await;
        }
    };
    let has_requests = message.requests().next().is_some();
    let task = tokio::spawn(carry(front.clone(), channel, message, headers, identity));
    // A message without a reply has reached the server when this request is answered, so that the
    // agent's next message cannot overtake it: a server may not know all of its tools before
    // `notifications/initialized`.
    if !has_requests && task.await.is_err() {
        return status_response(StatusCode::INTERNAL_SERVER_ERROR);
    }
    status_response(StatusCode::ACCEPTED)
}

/// Carries one message and writes its replies to the stream.
async fn carry(
    front: Arc<Frontend>,
    channel: Arc<Channel>,
    message: Message,
    headers: HeaderMap,
    identity: Identity,
) {
    let Some(call) = channel.call(CallKind::Send(message.clone()), headers, &identity) else {
        return;
    };
    let context = call.context.clone();
    let reply = match front.gate.carry(call).await {
        Ok(reply) => reply,
        Err(error) => answer::failure_reply(&error, Some(&context), Some(&message)),
    };
    if let Some(session) = answer::opened_session(&reply) {
        *channel.session.lock() = Some(session);
    }
    let initialized = message.single().and_then(|envelope| envelope.method())
        == Some("notifications/initialized");
    deliver(&channel, reply, &context, Some(&message)).await;
    if initialized {
        tokio::spawn(listen(front, channel));
    }
}

/// Forwards unsolicited messages of the server, from a stream that this agent does not know about.
async fn listen(front: Arc<Frontend>, channel: Arc<Channel>) {
    let Some(call) = channel
        .call(CallKind::Listen, HeaderMap::new(), &channel.identity)
        .filter(|call| call.context.session.is_some())
    else {
        return;
    };
    let context = call.context.clone();
    match front.gate.carry(call).await {
        Ok(reply) => deliver(&channel, reply, &context, None).await,
        Err(error) => tracing::debug!(%error, "the server has no stream of its own"),
    }
}

/// Writes a reply's messages to the stream, until either ends.
async fn deliver(channel: &Channel, reply: Reply, context: &Context, message: Option<&Message>) {
    let framing = reply.framing;
    let status = reply.status;
    let mut frames = reply.frames;
    loop {
        let next = tokio::select! {
            next = frames.next() => next,
            () = channel.sender.closed() => return,
        };
        let data = match next {
            None => return,
            Some(Ok(frame)) => match &frame.payload {
                Payload::Text(text) if !text.is_empty() => {
                    error_event(CallError::BadReply("it is not JSON-RPC"), context, message).await
                }
                _ if framing == Framing::Events || status.is_success() || message.is_some() => {
                    frame.text().cloned()
                }
                _ => None,
            },
            Some(Err(error)) => error_event(error, context, message).await,
        };
        let Some(data) = data.filter(|data| !data.is_empty()) else {
            continue;
        };
        if channel
            .sender
            .send(Fields::message().serialize(Some(Data::Json(&data))))
            .await
            .is_err()
        {
            return;
        }
    }
}

async fn error_event(
    error: CallError,
    context: &Context,
    message: Option<&Message>,
) -> Option<Bytes> {
    let mut reply = answer::failure_reply(&error, Some(context), Some(message?));
    reply
        .frames
        .next()
        .await?
        .ok()
        .and_then(|frame| frame.text().cloned())
}

fn status_response(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    response
}
