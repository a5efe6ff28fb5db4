//! Scripted servers, one for each transport. All bind to port 0 and end with the test.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use lychgate::protocol::sse::{Data, Fields};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

pub(crate) use super::child::*;
use super::harness::{Setup, message, soon};

/// The answer of a server over HTTP.
pub(crate) type Reply = Response<BoxBody<Bytes, Infallible>>;

/// A request that reached a server.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) version: http::Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

const NO_SESSION: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;

/// Reports whether a request is a health check of the gate.
fn is_probe(seen: &Seen) -> bool {
    seen.headers
        .get("mcp-session-id")
        .is_some_and(|session| session == "lychgate-health")
}

/// An HTTP server that follows a script and records the requests that reach it. The gate's own
/// health checks are answered and not recorded.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Mutex<mpsc::UnboundedReceiver<Seen>>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start<F>(script: impl Fn(Seen) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        Self::start_tls(None, script).await
    }

    /// Starts a server that answers every request with this JSON text.
    pub(crate) async fn answering(body: &'static str) -> Self {
        Self::start(move |_| async move { json_reply(body) }).await
    }

    /// Starts a server that answers every request with a tool result of this text.
    pub(crate) async fn saying(text: &str) -> Self {
        let body = text_result("1", text);
        Self::start(move |_| std::future::ready(json_reply(body.clone()))).await
    }

    /// Starts a server that answers its only request with a stream.
    pub(crate) async fn streaming() -> (Self, Tap) {
        let (tap, reply) = streamed();
        let reply = std::sync::Mutex::new(Some(reply));
        let server =
            Self::start(move |_| std::future::ready(reply.lock().unwrap().take().unwrap()));
        (server.await, tap)
    }

    /// Returns the setup of a gate with this server as the upstream `up`.
    pub(crate) fn setup(&self) -> Setup {
        Setup::new().http("up", self.url())
    }

    /// Starts a server, over TLS if there is a config.
    pub(crate) async fn start_tls<F>(
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(Seen) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        Self::serve(tls, false, move |seen| {
            let asked = if is_probe(&seen) {
                None
            } else {
                Some(script(seen))
            };
            async move {
                match asked {
                    Some(asked) => asked.await,
                    None => reply(404, &[("content-type", "application/json")], NO_SESSION),
                }
            }
        })
        .await
    }

    /// Starts a server that leaves the gate's health checks to the script and records them.
    pub(crate) async fn start_with_probes<F>(
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(Seen) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        Self::serve(tls, true, script).await
    }

    async fn serve<F>(
        tls: Option<Arc<rustls::ServerConfig>>,
        keeps_probes: bool,
        script: impl Fn(Seen) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Reply> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, seen) = mpsc::unbounded_channel();
        let script = Arc::new(script);
        let tls = tls.map(TlsAcceptor::from);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let script = script.clone();
                let tell = tell.clone();
                let tls = tls.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    let script = script.clone();
                    let tell = tell.clone();
                    async move {
                        let seen = see(request).await;
                        if keeps_probes || !is_probe(&seen) {
                            // The test may have finished receiving.
                            drop(tell.send(seen.clone()));
                        }
                        Ok::<_, Infallible>(script(seen).await)
                    }
                });
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    // Broken connections are part of the tests.
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
        Self {
            address,
            seen: Mutex::new(seen),
            task,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the next request that reached the server.
    pub(crate) async fn next(&self) -> Seen {
        soon("a request at the server", async {
            self.seen.lock().await.recv().await
        })
        .await
        .unwrap()
    }

    /// Returns the requests that reached the server and were not yet returned.
    pub(crate) async fn rest(&self) -> Vec<Seen> {
        let mut seen = self.seen.lock().await;
        std::iter::from_fn(|| seen.try_recv().ok()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn see(request: Request<Incoming>) -> Seen {
    let (head, mut body) = request.into_parts();
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        bytes.extend_from_slice(frame.data_ref().map(|data| &data[..]).unwrap_or_default());
    }
    let path = head
        .uri
        .path_and_query()
        .map(|path| path.as_str().to_owned())
        .unwrap_or_default();
    Seen {
        method: head.method,
        path,
        version: head.version,
        headers: head.headers,
        body: bytes.into(),
    }
}

/// Returns an answer with a complete body.
pub(crate) fn reply(
    status: u16,
    headers: &[(&'static str, &str)],
    body: impl Into<Bytes>,
) -> Reply {
    let mut reply = Response::new(Full::new(body.into()).boxed());
    *reply.status_mut() = status.try_into().unwrap();
    for (name, value) in headers {
        reply
            .headers_mut()
            .append(*name, HeaderValue::from_str(value).unwrap());
    }
    reply
}

pub(crate) fn json_reply(body: impl Into<Bytes>) -> Reply {
    reply(200, &[("content-type", "application/json")], body)
}

/// Sends on an open stream.
#[derive(Clone)]
pub(crate) struct Tap(mpsc::Sender<Bytes>);

impl Tap {
    /// Sends bytes unchanged.
    pub(crate) async fn say(&self, bytes: impl Into<Bytes>) {
        self.0.send(bytes.into()).await.unwrap();
    }

    /// Returns when the receiver has closed the stream.
    pub(crate) async fn closed(&self) {
        soon("the end of a stream", self.0.closed()).await;
    }
}

/// Returns an event stream and its sender; the stream ends when all clones of the sender are
/// dropped.
pub(crate) fn streamed() -> (Tap, Reply) {
    let (send, mut receive) = mpsc::channel::<Bytes>(64);
    let pieces = futures_util::stream::poll_fn(move |context| receive.poll_recv(context))
        .map(|piece| Ok(Frame::data(piece)));
    let mut reply = Response::new(BodyExt::boxed(StreamBody::new(pieces)));
    reply.headers_mut().insert(
        "content-type",
        HeaderValue::from_static("text/event-stream"),
    );
    (Tap(send), reply)
}

/// Returns a message as an event.
pub(crate) fn event(message: &[u8]) -> Bytes {
    Fields::message().serialize(Some(Data::Json(message)))
}

/// A function from a message to the messages that answer it, which every transport can carry.
pub(crate) type Script = Arc<dyn Fn(Bytes) -> BoxFuture<'static, Vec<Bytes>> + Send + Sync>;

/// Returns a script that answers without waiting. `initialize` is answered in its place.
pub(crate) fn script(answer: impl Fn(&str) -> Vec<String> + Send + Sync + 'static) -> Script {
    let answer = Arc::new(answer);
    Arc::new(move |bytes| {
        let answer = answer.clone();
        async move {
            let text = std::str::from_utf8(&bytes).unwrap().to_owned();
            initialized(&bytes)
                .unwrap_or_else(|| answer(&text).into_iter().map(Bytes::from).collect())
        }
        .boxed()
    })
}

/// Returns the answer to `initialize` if that is the request.
pub(crate) fn initialized(bytes: &[u8]) -> Option<Vec<Bytes>> {
    let asked = message(bytes);
    let envelope = asked
        .single()
        .filter(|envelope| envelope.method() == Some("initialize"))?;
    let id = asked.id(envelope)?;
    Some(vec![
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#)
            .into(),
    ])
}

/// Returns a tool result with one text; the id is inserted as written.
pub(crate) fn text_result(id: &str, text: &str) -> String {
    let text = lychgate::message::quote(text);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{text}}}]}}}}"#
    )
}

/// Returns a tool result with one text for a request; nothing for a message that is not a request.
pub(crate) fn says(asked: &str, text: &str) -> Vec<String> {
    let asked = message(asked.as_bytes());
    let id = asked.single().and_then(|envelope| asked.id(envelope));
    id.map(|id| text_result(id, text)).into_iter().collect()
}

/// The transport to a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wire {
    /// Streamable HTTP with answers as JSON.
    Json,
    /// Streamable HTTP with answers as event streams.
    Events,
    /// HTTP+SSE of 2024-11-05.
    Sse,
    /// A child process.
    Stdio,
}

impl Wire {
    pub(crate) const ALL: [Self; 4] = [Self::Json, Self::Events, Self::Sse, Self::Stdio];
}

/// A server on any transport.
pub(crate) enum Peer {
    Http(Server),
    Sse(Server),
    Stdio(StdioServer, JoinHandle<()>),
}

impl Peer {
    pub(crate) async fn start(wire: Wire, script: Script) -> Self {
        match wire {
            Wire::Json | Wire::Events => {
                Self::Http(Server::start(move |seen| streamable(wire, script.clone(), seen)).await)
            }
            Wire::Sse => {
                let stream: Arc<std::sync::Mutex<Option<Tap>>> = Arc::default();
                Self::Sse(
                    Server::start(move |seen| two_way(stream.clone(), script.clone(), seen)).await,
                )
            }
            Wire::Stdio => {
                let server = StdioServer::start().await;
                let children = server.children.clone();
                let task = tokio::spawn(async move {
                    while let Some(mut child) = children.lock().await.recv().await {
                        let script = script.clone();
                        tokio::spawn(async move {
                            while let Some(line) = child.line().await {
                                for answer in script(line).await {
                                    child.say(&answer).await;
                                }
                            }
                        });
                    }
                });
                Self::Stdio(server, task)
            }
        }
    }

    /// Adds the server to a gate as an upstream.
    pub(crate) fn behind(&self, setup: Setup, name: &str) -> Setup {
        match self {
            Self::Http(server) => setup.http(name, server.url()),
            Self::Sse(server) => setup.sse(name, format!("http://{}/sse", server.address)),
            Self::Stdio(server, _) => setup.stdio(name, server),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Self::Stdio(_, task) = self {
            task.abort();
        }
    }
}

async fn streamable(wire: Wire, script: Script, seen: Seen) -> Reply {
    if seen.method != Method::POST {
        return reply(405, &[], "");
    }
    let answers = script(seen.body.clone()).await;
    let mut reply = match answers.as_slice() {
        [] => reply(202, &[], ""),
        [only] if wire == Wire::Json => json_reply(only.clone()),
        several => {
            let events: Vec<u8> = several.iter().flat_map(|message| event(message)).collect();
            self::reply(200, &[("content-type", "text/event-stream")], events)
        }
    };
    if initialized(&seen.body).is_some() {
        reply.headers_mut().insert(
            "mcp-session-id",
            HeaderValue::from_static("session-of-the-server"),
        );
    }
    reply
}

async fn two_way(stream: Arc<std::sync::Mutex<Option<Tap>>>, script: Script, seen: Seen) -> Reply {
    if seen.method == Method::GET {
        let (tap, reply) = streamed();
        tap.say("event: endpoint\ndata: /messages?session=1\n\n")
            .await;
        *stream.lock().unwrap() = Some(tap);
        return reply;
    }
    assert_eq!(seen.path, "/messages?session=1");
    let tap = stream.lock().unwrap().clone().unwrap();
    tokio::spawn(async move {
        for answer in script(seen.body).await {
            tap.say(event(&answer)).await;
        }
    });
    reply(202, &[], "Accepted")
}
