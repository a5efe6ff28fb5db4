//! The MCP endpoint: a transparent path for each upstream.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, ORIGIN, RETRY_AFTER,
    VARY, WWW_AUTHENTICATE,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::admit::{AllowedOrigins, Rejection, is_listed, reject};
use super::authentication::Authenticator;
use super::connections::Connection;
use super::identity::Identity;
use super::{
    Body, Frontend, body, failed_logins, keep_alive, mcp_page, prove, resource, respond_json,
};
use crate::message::Message;
use crate::protocol::{
    AgentTransport, AgentWire, Call, CallError, CallKind, Context, Era, Frames, Framing, Payload,
    Reply, SessionId, UpstreamName, answer, header, headers, sse,
};
use crate::record::Event;

/// Maximum number of upstreams that a refusal names.
const NAMES_SHOWN: usize = 32;

/// Answers one request.
#[inline]
pub(super) async fn answer(
    front: Arc<Frontend>,
    request: Request<Incoming>,
    connection: Arc<Connection>,
) -> Response<Body> {
    let origin = request.headers().get(ORIGIN).cloned();
    let uri = request.uri().clone();
    let path = uri.path();
    let is_browser = mcp_page::is_page_request(&request);
    let authenticator = front.authenticator.load_full();
    // With an external issuer, tokens have the gate's URL as their audience. Otherwise, only pages
    // for people show the URL.
    let is_named = is_browser || authenticator.issuers().len() > 0;
    let base_url = is_named
        .then(|| {
            resource::base_url(
                request.uri(),
                request.headers(),
                &front.listen,
                front.bound_address,
            )
        })
        .flatten();
    let result = try_answer(
        &front,
        request,
        &connection,
        &authenticator,
        path,
        base_url.as_deref(),
    )
    .await;
    let mut response = result.unwrap_or_else(|rejection| {
        front.gate.record(Event::Rejected {
            reason: rejection.reason,
        });
        if rejection.status == StatusCode::TOO_MANY_REQUESTS {
            front.gate.record(Event::Limit {
                name: "wrong_tokens_per_minute",
            });
        }
        let challenge = resource::challenge(&rejection, path, base_url.as_deref(), &authenticator);
        rejection_response(&rejection, challenge, is_browser)
    });
    // Pages of listed origins may read responses; no wildcard, no credentials.
    if let Some(origin) = origin.filter(|origin| {
        origin
            .to_str()
            .is_ok_and(|origin| is_listed(origin, &front.listen.origins))
    }) {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(VARY, HeaderValue::from_static("origin"));
        headers.insert(
            "access-control-expose-headers",
            HeaderValue::from_static("mcp-session-id, www-authenticate"),
        );
        headers.insert(
            "access-control-allow-methods",
            HeaderValue::from_static("GET, POST, DELETE"),
        );
        headers.insert(
            "access-control-allow-headers",
            HeaderValue::from_static(
                "authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name",
            ),
        );
    }
    response
}

/// Returns the response to a rejected request: a page, if a browser sent it without a credential.
fn rejection_response(
    rejection: &Rejection,
    challenge: Option<HeaderValue>,
    is_browser: bool,
) -> Response<Body> {
    let mut response = if is_browser && rejection.status == StatusCode::UNAUTHORIZED {
        mcp_page::unauthorized(&rejection.hint)
    } else {
        let text = answer::error(
            None,
            answer::REFUSED,
            &format!("Refused: {}.", rejection.hint),
            None,
        );
        respond_json(rejection.status, text)
    };
    if rejection.status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(
            RETRY_AFTER,
            HeaderValue::from(failed_logins::WINDOW.as_secs()),
        );
    }
    if let Some(challenge) = challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

async fn try_answer(
    front: &Arc<Frontend>,
    request: Request<Incoming>,
    connection: &Connection,
    authenticator: &Authenticator,
    path: &str,
    base_url: Option<&str>,
) -> Result<Response<Body>, Rejection> {
    AllowedOrigins::for_agents(&front.listen).check(&request)?;
    if request.method() == Method::OPTIONS {
        let mut response = Response::new(Body::Empty);
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    if let Some(path) = path.strip_prefix("/oauth/") {
        return Ok(Box::pin(super::logins::answer(front, request, path)).await);
    }
    if let (Some(prove_endpoint), Some(rest)) = (front.prove_endpoint.get(), prove::path(path)) {
        return Box::pin(prove_endpoint.answer(front, request, rest, connection)).await;
    }
    let only_upstream = || front.gate.only_upstream();
    if let Some(metadata) = resource::metadata(
        request.method(),
        path,
        base_url,
        authenticator,
        only_upstream,
    ) {
        return Ok(metadata);
    }
    let audiences = || resource::audiences(base_url, path);
    let identity = authenticator
        .authenticate(
            request.headers(),
            connection,
            audiences,
            &front.failed_logins,
        )
        .await?;
    connection.set_authenticated();
    let unknown = || unknown_path(front, &identity);
    let alias = resource::alias_of(path).map(|name| format!("/mcp/{name}"));
    let mut parts = alias
        .as_deref()
        .unwrap_or(path)
        .trim_start_matches('/')
        .split('/');
    let kind = parts.next();
    let name = parts.next().unwrap_or("");
    let rest = parts.next();
    if parts.next().is_some() {
        return Err(unknown());
    }
    let upstream = front.gate.find_upstream(name).ok_or_else(unknown)?;
    if !identity.may_reach(&upstream)
        || !front
            .gate
            .may_use_upstream(&identity.agent, &identity.caller, &upstream)
    {
        return Err(unknown());
    }
    match (kind, rest) {
        (Some("mcp" | "sse"), None | Some("")) if mcp_page::is_page_request(&request) => {
            Ok(mcp_page::endpoint(&upstream, base_url, path))
        }
        (Some("mcp"), None | Some("")) => Ok(endpoint(front, request, identity, upstream).await),
        (Some("sse"), None | Some("")) => Ok(super::sse::open(front, &request, identity, upstream)),
        (Some("sse"), Some(id)) => {
            Ok(Box::pin(super::sse::post(front, request, identity, &upstream, id)).await)
        }
        _ => Err(unknown()),
    }
}

/// Returns the rejection of an unknown path. It names only the upstreams that this caller may use:
/// a hidden one is indistinguishable from one that does not exist.
fn unknown_path(front: &Frontend, identity: &Identity) -> Rejection {
    let may_use = |name: &UpstreamName| {
        identity.may_reach(name)
            && identity
                .caller
                .access
                .as_ref()
                .is_none_or(|access| access.check_upstream(name).is_ok())
    };
    let upstreams = front.gate.upstreams();
    let mut names: Vec<&str> = upstreams
        .iter()
        .map(|(name, _)| name)
        .filter(|&name| may_use(name))
        .map(|name| &*name.0)
        .collect();
    names.sort_unstable();
    let shown: Vec<String> = names
        .iter()
        .take(NAMES_SHOWN)
        .map(|name| format!("`/mcp/{name}`"))
        .collect();
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let hint = match (shown.is_empty(), more) {
        (true, _) => "no such path, and this agent has access to no upstream".to_owned(),
        (false, 0) => format!(
            "no such path; available: {} (`/sse/` instead of `/mcp/` for HTTP+SSE)",
            shown.join(", ")
        ),
        (false, more) => format!(
            "no such path; available: {} and {more} more",
            shown.join(", ")
        ),
    };
    Rejection {
        hint: hint.into(),
        ..reject(StatusCode::NOT_FOUND, "path", "")
    }
}

/// Answers one request to an upstream's transparent path.
pub(super) async fn endpoint(
    front: &Arc<Frontend>,
    request: Request<Incoming>,
    identity: Identity,
    upstream: UpstreamName,
) -> Response<Body> {
    let agent = identity.agent.clone();
    let caller = identity.caller.clone();
    let mut context = Context {
        caller,
        wire: AgentWire::new(AgentTransport::Http, None),
        ..Context::new(agent, upstream, Era::Legacy)
    };
    let (call, message) = match read(front, request, &mut context).await {
        Ok((ask, headers)) => {
            let (headers, message) = match &ask {
                CallKind::Send(message) => {
                    (headers::keep_forwarded(headers), Some(message.clone()))
                }
                // A stream may be open for hours.
                CallKind::Listen | CallKind::Close => {
                    (headers::copy_values(headers::keep_forwarded(headers)), None)
                }
            };
            // Boxed, because each future that it passes through would reserve space for it.
            (
                Box::new(Call {
                    kind: ask,
                    headers,
                    context,
                }),
                message,
            )
        }
        Err((error, message)) => {
            front.gate.record_failure(&context, &error);
            return respond(
                front,
                answer::failure_reply(&error, Some(&context), message.as_ref()),
                None,
            )
            .await;
        }
    };
    let is_subscription = message
        .as_ref()
        .is_none_or(|m| m.single().and_then(|e| e.method()) == Some("subscriptions/listen"));
    let reply = keep_alive::carry(front, call).await;
    respond(front, reply, is_subscription.then_some(identity)).await
}

/// Reads a request, and adds its sender to the context.
async fn read(
    front: &Frontend,
    request: Request<Incoming>,
    context: &mut Context,
) -> Result<(CallKind, HeaderMap), (CallError, Option<Message>)> {
    let (head, body) = request.into_parts();
    let headers = head.headers;
    let without_message = |error| (error, None);
    headers::check_unique(&headers).map_err(without_message)?;
    if let Some(value) = headers.get(header::SESSION) {
        let session = value.to_str().ok().and_then(SessionId::new);
        context.session = Some(session.ok_or((CallError::UnknownSession, None))?);
    }
    let ask = match head.method {
        Method::POST => {
            check_content_type(&headers).map_err(without_message)?;
            let reservation = front.gate.in_flight().reservation(&context.agent);
            let bytes = body::read(body, front.gate.limits(), reservation)
                .await
                .map_err(without_message)?;
            CallKind::Send(
                Message::parse(bytes, &front.gate.limits().read)
                    .map_err(|error| without_message(CallError::BadMessage(error)))?,
            )
        }
        Method::GET => CallKind::Listen,
        Method::DELETE => CallKind::Close,
        _ => return Err(without_message(CallError::NotOffered)),
    };
    let message = ask.message();
    context.wire = AgentWire::new(
        AgentTransport::Http,
        headers::version(&headers, message).as_deref(),
    );
    context.era = headers::era(&headers, message).map_err(|error| (error, message.cloned()))?;
    match (context.era, &ask) {
        // In the modern era, there are neither sessions nor a separate stream (2026-07-28,
        // changelog, 1 and 4).
        (Era::Modern, CallKind::Listen | CallKind::Close) => {
            Err(without_message(CallError::NotOffered))
        }
        (Era::Modern, CallKind::Send(_)) => {
            context.session = None;
            Ok((ask, headers))
        }
        (Era::Legacy, _) => Ok((ask, headers)),
    }
}

/// Checks that a body is uncompressed JSON: a compressed one cannot be judged as it is.
fn check_content_type(headers: &HeaderMap) -> Result<(), CallError> {
    if headers
        .get(CONTENT_ENCODING)
        .is_some_and(|encoding| encoding != "identity")
    {
        return Err(CallError::MediaType(
            "`Content-Encoding` must be `identity`",
        ));
    }
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or("");
    let essence = kind.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(CallError::MediaType(
            "`Content-Type` must be `application/json`",
        ))
    }
}

/// Returns the reply with its stream extended: if it fails for a reason that the client cannot see,
/// the error is its last message.
pub(super) fn with_final_error(reply: Reply, context: Context, message: Option<Message>) -> Reply {
    // A stream that was not opened by a message has no request to answer.
    let Some(message) = message.filter(|_| reply.framing == Framing::Events) else {
        return reply;
    };
    let frames = reply.frames.then(move |frame| {
        let error_reply = match &frame {
            // A broken connection to the upstream also breaks off here: clients know what to do
            // then.
            Ok(_) | Err(CallError::Connect(_)) => None,
            Err(error) => Some(answer::failure_reply(error, Some(&context), Some(&message))),
        };
        async move {
            let Some(mut reply) = error_reply else {
                return frame;
            };
            match reply.frames.next().await {
                Some(Ok(error)) => Ok(error),
                _ => frame,
            }
        }
    });
    Reply {
        frames: Frames::stream(frames),
        ..reply
    }
}

/// Writes a reply as HTTP. A stream on which a client only listens (`listener`) ends when the gate
/// drains, or when the client loses its access; others may finish.
pub(super) async fn respond(
    front: &Arc<Frontend>,
    reply: Reply,
    listener: Option<Identity>,
) -> Response<Body> {
    let Reply {
        status,
        mut headers,
        framing,
        mut frames,
    } = reply;
    let mut content_type = None;
    let body = match framing {
        Framing::Empty => Body::Empty,
        Framing::Body => match frames.next().await {
            Some(Ok(frame)) => {
                let text = matches!(frame.payload, Payload::Text(_));
                content_type = Some(if text {
                    "text/plain; charset=utf-8"
                } else {
                    "application/json"
                });
                frame.text().cloned().map_or(Body::Empty, Body::Whole)
            }
            Some(Err(error)) => {
                return Box::pin(respond(
                    front,
                    answer::failure_reply(&error, None, None),
                    None,
                ))
                .await;
            }
            None => Body::Empty,
        },
        Framing::Events => {
            content_type = Some(sse::MEDIA_TYPE);
            let open = front.gate.recorder().open_stream();
            let bytes = frames.map(move |frame| {
                let _counted = &open;
                frame.map(|frame| frame.event()).map_err(io::Error::other)
            });
            let bytes = keep_alive::with_comments(bytes.boxed(), front.gate.limits().keep_alive);
            Body::Stream(match listener {
                Some(identity) => {
                    headers = headers::compact(headers);
                    take_until_access_lost(front, identity, bytes)
                }
                None => bytes,
            })
        }
    };
    // Clients decode the body according to this header: the server's own header could turn
    // inspected text into other text.
    match content_type {
        Some(kind) => headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind)),
        None => headers.remove(CONTENT_TYPE),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Returns a stream that ends when the gate drains, or when the listener loses its access.
pub(super) fn take_until_access_lost(
    front: &Arc<Frontend>,
    identity: Identity,
    bytes: stream::BoxStream<'static, io::Result<Bytes>>,
) -> stream::BoxStream<'static, io::Result<Bytes>> {
    let mut draining = front.draining.clone();
    let over = front.clone().until_access_lost(identity);
    let end = async move {
        tokio::select! {
            () = super::until_drained(&mut draining) => {}
            () = over => {}
        }
    };
    bytes.take_until(Box::pin(end)).boxed()
}
