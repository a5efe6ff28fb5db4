//! Connections to one server, kept open for its next request.
//!
//! `hyper` handles HTTP on each connection. The pool hands out the idle connection that was used
//! last, so that unneeded connections expire. An HTTP/2 connection is shared by all requests.

use std::collections::VecDeque;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper::rt::{Read, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connection as _, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tower_service::Service;

/// How long an idle connection is kept. Node's and uvicorn's servers close theirs after 5 s: a call
/// sent at the moment of that close is lost, and a `tools/call` must not be sent twice.
const MAX_IDLE: Duration = Duration::from_secs(4);
/// Maximum number of idle connections.
const IDLE_CONNECTIONS: usize = 128;
/// Interval of HTTP/2 pings while a response is due.
const PING_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum size of a response's head, and of a read, over HTTP/1.1.
const HEAD_BYTES: usize = 64 << 10;

pub(super) type RequestBody = Full<Bytes>;
pub(super) type BoxedError = Box<dyn Error + Send + Sync>;

/// A pool of connections to the origin of a URL.
pub(super) struct Pool {
    connector: HttpsConnector<HttpConnector>,
    origin: Uri,
    host: HeaderValue,
    idle: Arc<Mutex<IdleConnections>>,
}

/// Connections without a request, the most recently used one at the end.
#[derive(Default)]
struct IdleConnections {
    connections: VecDeque<(Instant, Sender)>,
    /// Whether a task that closes expired connections is running.
    has_sweeper: bool,
}

/// The sending half of a connection.
enum Sender {
    Http1(http1::SendRequest<RequestBody>),
    Http2(http2::SendRequest<RequestBody>),
}

impl Pool {
    /// Creates a pool without connections.
    ///
    /// # Errors
    /// Fails if the host of the URL is not a valid header value.
    pub(super) fn new(connector: HttpsConnector<HttpConnector>, url: &Uri) -> Result<Self, String> {
        let host = url.host().unwrap_or_default();
        let default = if url.scheme_str() == Some("https") {
            443
        } else {
            80
        };
        let host = match url.port_u16().filter(|port| *port != default) {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let host = HeaderValue::from_str(&host)
            .map_err(|error| format!("the URL cannot be read: {error}"))?;
        Ok(Self {
            connector,
            origin: url.clone(),
            host,
            idle: Arc::default(),
        })
    }

    /// Sends a request to `url`, which is at the pool's origin. If an idle connection turns out to
    /// be closed by its server, it returns the request, which is then sent on another one: no
    /// request is sent twice.
    ///
    /// # Errors
    /// The error that prevented a response.
    pub(super) async fn request(
        &self,
        url: &Uri,
        mut request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, BoxedError> {
        while let Some(sender) = self.take() {
            match self.send(sender, url, request).await {
                Ok(response) => return Ok(response),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(failed.into_error().into()),
                },
            }
        }
        // Boxed: few requests need a new connection, and all would reserve space for it.
        let sender = Box::pin(self.connect()).await?;
        self.send(sender, url, request)
            .await
            .map_err(|failed| failed.into_error().into())
    }

    async fn send(
        &self,
        sender: Sender,
        url: &Uri,
        mut request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, TrySendError<Request<RequestBody>>> {
        match sender {
            Sender::Http1(mut sender) => {
                let path = url
                    .path_and_query()
                    .cloned()
                    .unwrap_or_else(|| PathAndQuery::from_static("/"));
                *request.uri_mut() = path.into();
                request
                    .headers_mut()
                    .insert(header::HOST, self.host.clone());
                let response_future = sender.try_send_request(request);
                let connection = PooledConnection {
                    sender: Some(sender),
                    idle: self.idle.clone(),
                };
                let response = response_future.await?;
                Ok(response.map(|incoming| ResponseBody {
                    incoming,
                    _connection: Some(connection),
                }))
            }
            Sender::Http2(mut sender) => {
                *request.uri_mut() = url.clone();
                request.headers_mut().remove(header::HOST);
                put_back(&self.idle, Sender::Http2(sender.clone()));
                let response = sender.try_send_request(request).await?;
                Ok(response.map(|incoming| ResponseBody {
                    incoming,
                    _connection: None,
                }))
            }
        }
    }

    async fn connect(&self) -> Result<Sender, BoxedError> {
        let io = self.connector.clone().call(self.origin.clone()).await?;
        if io.connected().is_negotiated_h2() {
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_header_list_size(HEAD_BYTES as u32)
                // A slow agent may block its own stream, but not the connection that others share.
                .initial_stream_window_size(256 << 10)
                .initial_connection_window_size(16 << 20)
                .keep_alive_interval(PING_INTERVAL)
                .handshake(io)
                .await?;
            spawn_connection(connection);
            return Ok(Sender::Http2(sender));
        }
        match io {
            MaybeHttpsStream::Http(io) => handshake(io).await,
            // Boxed: connections without TLS need no space for it.
            MaybeHttpsStream::Https(io) => handshake(Box::new(io)).await,
        }
    }

    fn take(&self) -> Option<Sender> {
        lock(&self.idle).take()
    }
}

/// Starts an HTTP/1.1 connection.
async fn handshake(io: impl Read + Write + Unpin + Send + 'static) -> Result<Sender, BoxedError> {
    let (sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES)
        .handshake(io)
        .await?;
    spawn_connection(connection);
    Ok(Sender::Http1(sender))
}

/// Runs a connection until it ends.
fn spawn_connection(connection: impl Future<Output = hyper::Result<()>> + Send + 'static) {
    // An `async fn` would reserve space for the connection twice.
    tokio::spawn(connection.map(|result| {
        if let Err(error) = result {
            tracing::debug!(%error, "a connection to a server ended early");
        }
    }));
}

fn lock(idle: &Mutex<IdleConnections>) -> MutexGuard<'_, IdleConnections> {
    idle.lock()
}

impl IdleConnections {
    /// Returns the most recently used connection that can send a request at once.
    fn take(&mut self) -> Option<Sender> {
        self.expire();
        let at = self
            .connections
            .iter()
            .rposition(|(_, sender)| sender.is_ready())?;
        self.connections.remove(at).map(|(_, sender)| sender)
    }

    /// Closes connections that have been idle for too long.
    fn expire(&mut self) {
        while self
            .connections
            .front()
            .is_some_and(|(since, _)| since.elapsed() >= MAX_IDLE)
        {
            self.connections.pop_front();
        }
    }
}

/// Keeps a connection for the next request.
fn put_back(idle: &Arc<Mutex<IdleConnections>>, sender: Sender) {
    let mut state = lock(idle);
    if state.connections.len() >= IDLE_CONNECTIONS {
        state.connections.pop_front();
    }
    state.connections.push_back((Instant::now(), sender));
    if !state.has_sweeper
        && let Ok(runtime) = Handle::try_current()
    {
        state.has_sweeper = true;
        runtime.spawn(sweep(Arc::downgrade(idle)));
    }
}

/// Closes connections as they expire, until none is left.
async fn sweep(idle: Weak<Mutex<IdleConnections>>) {
    let mut pause = MAX_IDLE;
    loop {
        tokio::time::sleep(pause).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut state = lock(&idle);
        state.expire();
        let Some((since, _)) = state.connections.front() else {
            state.has_sweeper = false;
            return;
        };
        pause = MAX_IDLE.saturating_sub(since.elapsed());
    }
}

impl Sender {
    fn is_ready(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_ready(),
            Self::Http2(sender) => sender.is_ready(),
        }
    }
}

/// An HTTP/1.1 connection with a request; returned to the pool once the response has been read.
struct PooledConnection {
    sender: Option<http1::SendRequest<RequestBody>>,
    idle: Arc<Mutex<IdleConnections>>,
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        // If the response was not read to its end, `hyper` closes the connection, and it is never
        // reused.
        if let Some(sender) = self.sender.take().filter(|sender| !sender.is_closed()) {
            put_back(&self.idle, Sender::Http1(sender));
        }
    }
}

/// The body of a response, with its connection.
pub(super) struct ResponseBody {
    incoming: Incoming,
    _connection: Option<PooledConnection>,
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.incoming).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
