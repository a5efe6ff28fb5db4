//! The MCP endpoint: a transparent path for each upstream.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, ORIGIN, VARY, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::admit::{self, TurnedAway, turned};
use super::certificate::Names;
use super::entry::Who;
use super::{Body, Front, body, prove, resource};
use crate::message::Message;
use crate::protocol::{
    Ask, Call, CallError, Carrier, Context, Era, Framing, Reply, SessionId, UpstreamName, Wire, answer, header, headers, sse,
};
use crate::record::Event;

/// Answers one request.
pub(super) async fn answer(front: Arc<Front>, request: Request<Incoming>, names: Arc<Names>) -> Response<Body> {
    let origin = request.headers().get(ORIGIN).cloned();
    let path = request.uri().path().to_owned();
    let site = resource::site(request.uri(), request.headers(), &front.listen, front.bound);
    let answered = try_answer(&front, request, &names, site.as_deref()).await;
    let mut response = answered.unwrap_or_else(|turned| {
        front.gate.tell(Event::TurnedAway { reason: turned.reason });
        let challenge = resource::challenge(&turned, &path, site.as_deref(), &front.entry.load());
        turn_away(&turned, challenge)
    });
    // Pages of listed origins may read answers; no wildcard, no credentials.
    if let Some(origin) = origin.filter(|origin| origin.to_str().is_ok_and(|origin| admit::listed(origin, &front.listen))) {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(VARY, HeaderValue::from_static("origin"));
        headers.insert("access-control-expose-headers", HeaderValue::from_static("mcp-session-id, www-authenticate"));
        headers.insert("access-control-allow-methods", HeaderValue::from_static("GET, POST, DELETE"));
        headers.insert(
            "access-control-allow-headers",
            HeaderValue::from_static(
                "authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name",
            ),
        );
    }
    response
}

fn turn_away(turned: &TurnedAway, challenge: Option<HeaderValue>) -> Response<Body> {
    let text = answer::error(None, answer::REFUSED, &format!("Refused: {}.", turned.hint), None);
    let mut response = Response::new(Body::Whole(text.into()));
    *response.status_mut() = turned.status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(challenge) = challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

async fn try_answer(
    front: &Arc<Front>,
    request: Request<Incoming>,
    names: &Names,
    site: Option<&str>,
) -> Result<Response<Body>, TurnedAway> {
    admit::place(&request, &front.listen)?;
    if request.method() == Method::OPTIONS {
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    if let Some(path) = request.uri().path().strip_prefix("/oauth/") {
        let path = path.to_owned();
        return Ok(super::logins::answer(front, request, &path).await);
    }
    let path = request.uri().path().to_owned();
    if let (Some(prover), Some(rest)) = (front.prover.get(), prove::path(&path)) {
        return prover.answer(front, request, rest).await;
    }
    let entry = front.entry.load_full();
    if let Some(metadata) = resource::metadata(request.method(), &path, site, &entry, front.gate.only_upstream()) {
        return Ok(metadata);
    }
    let who = entry.who(request.headers(), names, &resource::audiences(site, &path)).await?;
    let hint =
        "the gate has no such upstream for this agent; its paths are `/mcp/<upstream>` and, for HTTP+SSE, `/sse/<upstream>`";
    let unknown = || turned(StatusCode::NOT_FOUND, "path", hint);
    let mut parts = path.trim_start_matches('/').split('/');
    let (kind, name, rest) = (parts.next(), parts.next().unwrap_or(""), parts.next());
    if parts.next().is_some() {
        return Err(unknown());
    }
    let upstream = front.gate.upstream_named(name).ok_or_else(unknown)?;
    if !who.reaches(&upstream) || !front.gate.is_there_for(&who.agent, &who.caller, &upstream) {
        return Err(unknown());
    }
    match (kind, rest) {
        (Some("mcp"), None | Some("")) => Ok(endpoint(front, request, who, upstream).await),
        (Some("sse"), None | Some("")) => Ok(super::sse::open(front, &request, who, upstream)),
        (Some("sse"), Some(id)) => Ok(super::sse::post(front, request, who, &upstream, id).await),
        _ => Err(turned(StatusCode::NOT_FOUND, "path", "the gate's paths are `/mcp/<upstream>` and `/sse/<upstream>`")),
    }
}

/// One request to an upstream's transparent path.
pub(super) async fn endpoint(front: &Arc<Front>, request: Request<Incoming>, who: Who, upstream: UpstreamName) -> Response<Body> {
    let (agent, caller) = (who.agent.clone(), who.caller.clone());
    let mut context = Context {
        agent,
        upstream,
        era: Era::Legacy,
        session: None,
        asked: [].into(),
        caller,
        trace: None,
        wire: Wire::new(Carrier::Http, None),
    };
    let (method, sent) = (request.method().clone(), headers::travelling(request.headers()));
    let (mut call, message) = match read(front, request, &mut context).await {
        Ok(ask) => {
            let message = if let Ask::Send(message) = &ask { Some(message.clone()) } else { None };
            (Call { ask, headers: sent, context: context.clone() }, message)
        }
        Err((error, message)) => {
            front.gate.tell_failed(&context, &error);
            return respond(front, answer::failed(&error, Some(&context), message.as_ref()), None).await;
        }
    };
    if method != Method::POST {
        call.headers.remove(CONTENT_TYPE);
    }
    let listens = message.as_ref().is_none_or(|m| m.single().and_then(|e| e.method()) == Some("subscriptions/listen"));
    let reply = match front.gate.carry(call).await {
        Ok(reply) => closed_off(reply, context, message),
        Err(error) => answer::failed(&error, Some(&context), message.as_ref()),
    };
    respond(front, reply, listens.then_some(who)).await
}

/// Reads what is asked, and fills in who asks.
async fn read(front: &Front, request: Request<Incoming>, context: &mut Context) -> Result<Ask, (CallError, Option<Message>)> {
    let headers = request.headers().clone();
    let alone = |error| (error, None);
    headers::single(&headers).map_err(alone)?;
    if let Some(value) = headers.get(header::SESSION) {
        let session = value.to_str().ok().and_then(SessionId::new);
        context.session = Some(session.ok_or((CallError::UnknownSession, None))?);
    }
    let ask = match *request.method() {
        Method::POST => {
            content(&headers).map_err(alone)?;
            let bytes = body::read(request.into_body(), front.gate.limits()).await.map_err(alone)?;
            Ask::Send(Message::parse(bytes, &front.gate.limits().read).map_err(|error| alone(CallError::BadMessage(error)))?)
        }
        Method::GET => Ask::Listen,
        Method::DELETE => Ask::Close,
        _ => return Err(alone(CallError::NotOffered)),
    };
    let message = if let Ask::Send(message) = &ask { Some(message) } else { None };
    context.wire = Wire::new(Carrier::Http, headers::version(&headers, message).as_deref());
    context.era = headers::era(&headers, message).map_err(|error| (error, message.cloned()))?;
    match (context.era, &ask) {
        // Modern peers have neither sessions nor a stream of their own (2026-07-28, changelog, 1 and 4).
        (Era::Modern, Ask::Listen | Ask::Close) => Err(alone(CallError::NotOffered)),
        (Era::Modern, Ask::Send(_)) => {
            context.session = None;
            Ok(ask)
        }
        (Era::Legacy, _) => Ok(ask),
    }
}

/// A body must be JSON in the clear: what is compressed cannot be judged as it stands.
fn content(headers: &HeaderMap) -> Result<(), CallError> {
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(CallError::MediaType("`Content-Encoding` must be `identity`"));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let essence = kind.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(CallError::MediaType("`Content-Type` must be `application/json`"))
    }
}

/// The reply whose stream, should it fail on the way for a reason that its client cannot see, says so at its end.
fn closed_off(reply: Reply, context: Context, message: Option<Message>) -> Reply {
    if reply.framing != Framing::Events {
        return reply;
    }
    let frames = reply.frames.then(move |frame| {
        let failed = match &frame {
            // A connection that breaks breaks off here too: clients know what to do then.
            Ok(_) | Err(CallError::Connect(_)) => None,
            Err(error) => message.as_ref().map(|message| answer::failed(error, Some(&context), Some(message))),
        };
        async move {
            let Some(mut reply) = failed else { return frame };
            match reply.frames.next().await {
                Some(Ok(said)) => Ok(answer::made(sse::event(Some("message"), &said.raw))),
                _ => frame,
            }
        }
    });
    Reply { frames: Box::pin(frames), ..reply }
}

/// Writes a reply as HTTP. Streams on which somebody only `listens` end when the gate drains, or when that one may no more;
/// others may finish.
pub(super) async fn respond(front: &Arc<Front>, reply: Reply, listens: Option<Who>) -> Response<Body> {
    let Reply { status, headers, framing, mut frames } = reply;
    let body = match framing {
        Framing::Empty => Body::Empty,
        Framing::Body => match frames.next().await {
            Some(Ok(frame)) => Body::Whole(frame.raw),
            Some(Err(error)) => return Box::pin(respond(front, answer::failed(&error, None, None), None)).await,
            None => Body::Empty,
        },
        Framing::Events => {
            let open = front.gate.recorder().open_stream();
            let bytes = frames.map(move |frame| {
                let _counted = &open;
                frame.map(|frame| frame.raw).map_err(io::Error::other)
            });
            let bytes = bytes.boxed();
            Body::Stream(match listens {
                Some(who) => until_over(front, who, bytes),
                None => bytes,
            })
        }
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// A stream that ends when the gate drains, or when who listens may no more.
pub(super) fn until_over(
    front: &Arc<Front>,
    who: Who,
    bytes: stream::BoxStream<'static, io::Result<Bytes>>,
) -> stream::BoxStream<'static, io::Result<Bytes>> {
    let (mut draining, over) = (front.draining.clone(), front.clone().over(who));
    let ends = async move {
        tokio::select! {
            () = super::drained(&mut draining) => {}
            () = over => {}
        }
    };
    bytes.take_until(Box::pin(ends)).boxed()
}
