//! A scripted HTTP server, and the calls that tests make.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame as BodyFrame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::sync::mpsc;

use crate::config::{HttpTransport, Limits, Transport, UpstreamConfig};
use crate::message::Message;
use crate::protocol::{
    AgentName, Call, CallError, CallKind, Context, Era, Frame, Framing, Reply, SessionId,
    UpstreamName,
};
use crate::upstream::Upstream;

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;
type Script =
    dyn Fn(Request<Incoming>) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync;

/// Serves `script` on a free loopback port until the test ends; over TLS if a config is given.
pub(super) async fn serve<F>(
    tls: Option<rustls::ServerConfig>,
    script: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static,
) -> SocketAddr
where
    F: Future<Output = Answer> + Send + 'static,
{
    let script: Arc<Script> = Arc::new(move |request| Box::pin(script(request)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = tls.map(|config| tokio_rustls::TlsAcceptor::from(Arc::new(config)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let script = script.clone();
            let tls = tls.clone();
            let service = hyper::service::service_fn(move |request| {
                let answer = script(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            tokio::spawn(async move {
                let server = auto::Builder::new(TokioExecutor::new());
                // A connection that breaks off is part of the test.
                match tls {
                    None => drop(server.serve_connection(TokioIo::new(stream), service).await),
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            drop(server.serve_connection(TokioIo::new(stream), service).await);
                        }
                    }
                }
            });
        }
    });
    address
}

pub(super) fn answer(
    status: u16,
    headers: &[(&'static str, &str)],
    body: impl Into<Bytes>,
) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed());
    *answer.status_mut() = status.try_into().unwrap();
    for (name, value) in headers {
        answer
            .headers_mut()
            .append(*name, HeaderValue::from_str(value).unwrap());
    }
    answer
}

/// Returns an event stream that emits what is sent to `Sender`, and closes it when the client goes
/// away.
pub(super) fn streamed() -> (mpsc::Sender<Bytes>, Answer) {
    let (send, mut receive) = mpsc::channel::<Bytes>(16);
    let pieces = futures_util::stream::poll_fn(move |cx| receive.poll_recv(cx))
        .map(|piece| Ok(BodyFrame::data(piece)));
    let mut answer = Response::new(BodyExt::boxed(StreamBody::new(pieces)));
    answer.headers_mut().insert(
        "content-type",
        HeaderValue::from_static("text/event-stream"),
    );
    (send, answer)
}

pub(super) fn http(url: String) -> HttpTransport {
    HttpTransport {
        login: None,
        ..HttpTransport::new(url)
    }
}

pub(super) fn limits() -> Limits {
    let mut limits = Limits {
        stream_idle: Duration::from_secs(5),
        ..Limits::default()
    };
    limits.read.message_bytes = 64 << 10;
    limits
}

pub(super) fn upstream(transport: Transport, limits: &Limits) -> Upstream {
    let config = UpstreamConfig {
        initialize_timeout: Duration::from_secs(3),
        request_timeout: Duration::from_millis(1500),
        ..UpstreamConfig::new(transport)
    };
    Upstream::new(UpstreamName("it".into()), &config, limits, None).unwrap()
}

pub(super) fn message(text: &str) -> Message {
    Message::parse(Bytes::copy_from_slice(text.as_bytes()), &limits().read).unwrap()
}

/// Creates a call of agent `ann` in a given era and session.
pub(super) fn call(ask: CallKind, era: Era, session: Option<&str>) -> Call {
    let context = Context {
        session: session.map(|id| SessionId::new(id).unwrap()),
        requests: Arc::new([]),
        ..Context::new(AgentName("ann".into()), UpstreamName("it".into()), era)
    };
    Call {
        kind: ask,
        headers: HeaderMap::new(),
        context,
    }
}

pub(super) fn modern(text: &str) -> Call {
    call(CallKind::Send(message(text)), Era::Modern, None)
}

pub(super) fn legacy(text: &str, session: Option<&str>) -> Call {
    call(CallKind::Send(message(text)), Era::Legacy, session)
}

/// Reports whether a call is refused since its session is unknown.
pub(super) async fn is_unknown(upstream: &Upstream, call: &Call) -> bool {
    matches!(upstream.call(call).await, Err(CallError::UnknownSession))
}

/// Makes a call another agent's.
pub(super) fn foreign(mut call: Call) -> Call {
    call.context.agent = AgentName("bob".into());
    call
}

/// Returns the raw bytes of all frames, and the error that ended them.
pub(super) async fn all(mut reply: Reply) -> (Vec<String>, Option<CallError>) {
    let mut frames = Vec::new();
    while let Some(next) = reply.frames.next().await {
        match next {
            Ok(frame) => frames.push(written(reply.framing, &frame)),
            Err(error) => return (frames, Some(error)),
        }
    }
    (frames, None)
}

/// Returns the next frame's bytes, which must arrive within two seconds.
pub(super) async fn next(reply: &mut Reply) -> String {
    let frame = tokio::time::timeout(Duration::from_secs(2), reply.frames.next())
        .await
        .expect("a frame in time");
    written(reply.framing, &frame.unwrap().unwrap())
}

/// Serializes a frame as agents receive it.
fn written(framing: Framing, frame: &Frame) -> String {
    let bytes = if framing == Framing::Events {
        frame.event()
    } else {
        frame.text().unwrap().clone()
    };
    String::from_utf8(bytes.to_vec()).unwrap()
}
