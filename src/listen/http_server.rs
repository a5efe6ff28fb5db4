//! Runs HTTP on one connection, until its peer closes it, the gate drains or a limit ends it.
//!
//! The version is determined before the first byte is read. `hyper-util` would read the beginning
//! of a connection to determine it, and the buffer of the connection would then grow to twice its
//! size for the rest of the first request.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

use super::Body;
use super::connections::{Connection, OpenRequest};
use super::repoll::repoll;
use super::tracked_stream::TrackedStream;
use crate::config::Limits;

/// Interval of HTTP/2 pings to a peer, and timeout for its response.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of HTTP/2 streams that a peer may open and reset before they are handled
/// (CVE-2023-44487), and of streams that the gate may reset because of the peer's errors. More of
/// either ends the connection.
const PENDING_RESETS: usize = 20;
const ERROR_RESETS: usize = 128;
/// Number of body bytes that are passed to a connection at a time. A response counts as open until
/// the last of them are passed on.
const PIECE_BYTES: usize = 64 << 10;

/// The first bytes of HTTP/2 (RFC 9113, section 3.4). The method is reserved: no HTTP/1.1 request
/// uses it.
const PREFACE: &[u8; 3] = b"PRI";

/// The HTTP version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

impl Version {
    /// Returns the version of a connection without TLS, once its first bytes have arrived. They are
    /// left unread.
    ///
    /// # Errors
    /// The connection failed.
    pub(super) async fn peek(stream: &TcpStream) -> io::Result<Self> {
        let mut first = [0; PREFACE.len()];
        let mut pause = Duration::from_millis(1);
        loop {
            let length = stream.peek(&mut first).await?;
            let first = first.get(..length).unwrap_or_default();
            if first == PREFACE {
                return Ok(Self::Http2);
            }
            if first.is_empty() || !PREFACE.starts_with(first) {
                return Ok(Self::Http1);
            }
            // The socket stays readable, so there is no event to wait for.
            sleep(pause).await;
            pause *= 2;
        }
    }

    /// Returns the version that was negotiated in TLS (RFC 7301).
    pub(super) fn from_alpn(protocol: Option<&[u8]>) -> Self {
        if protocol == Some(b"h2") {
            Self::Http2
        } else {
            Self::Http1
        }
    }
}

/// An HTTP server with the limits of the config.
pub(super) struct Server {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    /// Maximum time without an open request, and maximum time until a valid credential is
    /// presented.
    timeout: Duration,
}

impl Server {
    pub(super) fn new(limits: &Limits) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.request_read)
            .max_buf_size(limits.header_bytes.max(8192));
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
            .max_concurrent_streams(u32::try_from(limits.calls_per_agent).unwrap_or(u32::MAX))
            .max_pending_accept_reset_streams(PENDING_RESETS)
            .max_local_error_reset_streams(ERROR_RESETS)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT);
        Self {
            http1,
            http2,
            timeout: limits.request_read,
        }
    }

    /// Serves requests on a stream. A connection without an open request ends after `request_read`.
    /// A connection without a valid credential also ends then, once its open requests are answered,
    /// and after twice that time without waiting for them.
    ///
    /// # Errors
    /// The limit that ended the connection, if its peer did not close it when asked to.
    pub(super) async fn run<S, A, F>(
        &self,
        version: Version,
        stream: S,
        connection: &Arc<Connection>,
        draining: &mut watch::Receiver<bool>,
        answer: A,
    ) -> Result<(), &'static str>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        A: Fn(Request<Incoming>) -> F,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let service = service_fn(|request| {
            let open_request = Some(connection.open_request());
            // hyper reserves space for this future while the connection is open: boxed, an idle
            // stream takes 8 kB less.
            ResponseFuture {
                response: Box::pin(answer(request)),
                open: open_request,
            }
        });
        match version {
            Version::Http1 => {
                let stream = TrackedStream::new(stream, connection.clone());
                repoll(pin!(self.run_http1(stream, service, connection, draining))).await
            }
            // Boxed, because few connections use it, and all would reserve space for it.
            Version::Http2 => {
                let http = self.http2.serve_connection(TokioIo::new(stream), service);
                repoll(Box::pin(self.run_http2(http, connection, draining)).as_mut()).await
            }
        }
    }

    async fn run_http1<S, V>(
        &self,
        stream: TrackedStream<S>,
        service: V,
        connection: &Connection,
        draining: &mut watch::Receiver<bool>,
    ) -> Result<(), &'static str>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        V: Service<Request<Incoming>, Response = Response<TrackedBody>, Error = Infallible>,
    {
        // Boxed, so that an idle connection holds neither hyper's buffers nor its state.
        let mut http = Box::pin(self.http1.serve_connection(stream, service));
        {
            let mut end = pin!(self.until_end_due(connection, draining));
            loop {
                tokio::select! {
                    ended = &mut http => return ending_limit(ended, connection),
                    () = &mut end => break,
                    () = connection.until_buffers_empty(self.timeout) => {}
                }
                let http1::Parts {
                    io,
                    read_buf,
                    service,
                    ..
                } = Pin::into_inner(http).into_parts();
                let mut stream = io.with_unread(&read_buf);
                drop(read_buf);
                let must_end = tokio::select! {
                    () = stream.until_readable() => false,
                    () = &mut end => true,
                };
                http = Box::pin(self.http1.serve_connection(stream, service));
                if must_end {
                    break;
                }
            }
        }
        self.shut_down(http.as_mut(), connection, draining).await
    }

    async fn run_http2(
        &self,
        http: impl GracefulConnection<Error = hyper::Error>,
        connection: &Connection,
        draining: &mut watch::Receiver<bool>,
    ) -> Result<(), &'static str> {
        let mut http = pin!(http);
        tokio::select! {
            ended = http.as_mut() => return ending_limit(ended, connection),
            () = self.until_end_due(connection, draining) => {}
        }
        self.shut_down(http, connection, draining).await
    }

    /// Returns when a connection has to end: the gate drains, or the connection's time is over.
    async fn until_end_due(&self, connection: &Connection, draining: &mut watch::Receiver<bool>) {
        tokio::select! {
            () = super::until_drained(draining) => {}
            () = connection.until_idle(self.timeout) => {}
            () = connection.until_login_timeout(self.timeout) => {}
        }
    }

    /// Lets the open requests of a connection finish.
    async fn shut_down(
        &self,
        mut http: Pin<&mut impl GracefulConnection<Error = hyper::Error>>,
        connection: &Connection,
        draining: &watch::Receiver<bool>,
    ) -> Result<(), &'static str> {
        if !connection.has_had_request() && !*draining.borrow() {
            return Err("request_read_seconds");
        }
        http.as_mut().graceful_shutdown();
        connection.start_idle();
        tokio::select! {
            ended = http.as_mut() => ending_limit(ended, connection),
            () = connection.until_idle(self.timeout) => Err("request_read_seconds"),
            () = connection.until_login_timeout(self.timeout * 2) => Err("request_read_seconds"),
        }
    }
}

/// Returns the limit that ended a connection, if it was one of HTTP's own.
fn ending_limit(outcome: hyper::Result<()>, connection: &Connection) -> Result<(), &'static str> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) if error.is_parse_too_large() => Err("header_bytes"),
        Err(error) if error.is_timeout() && !connection.has_had_request() => {
            Err("request_read_seconds")
        }
        Err(error) => {
            tracing::debug!(%error, "connection ended early");
            Ok(())
        }
    }
}

/// The response to a request. The future is boxed when it is created, because each move would copy
/// 11 kB.
struct ResponseFuture<F> {
    response: Pin<Box<F>>,
    open: Option<OpenRequest>,
}

impl<F: Future<Output = Response<Body>>> Future for ResponseFuture<F> {
    type Output = Result<Response<TrackedBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.response.as_mut().poll(context));
        let open = self.open.take();
        Poll::Ready(Ok(response.map(|body| TrackedBody {
            body,
            rest: Bytes::new(),
            _open: open,
        })))
    }
}

/// The body of a response. Its request counts as open until it has been sent.
struct TrackedBody {
    body: Body,
    /// The rest of a frame that is passed on in pieces.
    rest: Bytes,
    _open: Option<OpenRequest>,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                other => return other,
            }
        }
        let length = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.body.size_hint();
        if let Some(exact) = hint.exact() {
            hint.set_exact(exact + self.rest.len() as u64);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::listen::certificate::CertificateNames;

    /// Reports whether a connection has had no open request for a moment.
    async fn is_idle(connection: &Connection) -> bool {
        tokio::time::timeout(
            Duration::from_millis(50),
            connection.until_idle(Duration::ZERO),
        )
        .await
        .is_ok()
    }

    #[tokio::test]
    async fn the_first_bytes_say_the_version() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        for (pieces, version) in [
            (&["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"][..], Version::Http2),
            (&["P", "R", "I * HTTP/2.0\r\n"], Version::Http2),
            (&["POST / HTTP/1.1\r\n"], Version::Http1),
            (&["P", "ROPFIND / HTTP/1.1\r\n"], Version::Http1),
            (&["GET / HTTP/1.1\r\n"], Version::Http1),
            (&[], Version::Http1),
        ] {
            let mut client = TcpStream::connect(address).await.unwrap();
            let (mut server, _) = listener.accept().await.unwrap();
            let write = async {
                for piece in pieces {
                    client.write_all(piece.as_bytes()).await.unwrap();
                    sleep(Duration::from_millis(5)).await;
                }
                client.shutdown().await.unwrap();
            };
            let (found, ()) = tokio::join!(Version::peek(&server), write);
            assert_eq!(found.unwrap(), version, "{pieces:?}");
            let mut unread = String::new();
            server.read_to_string(&mut unread).await.unwrap();
            assert_eq!(unread, pieces.concat());
        }
        let silent = (
            TcpStream::connect(address).await.unwrap(),
            listener.accept().await.unwrap().0,
        );
        let waits = tokio::time::timeout(Duration::from_millis(20), Version::peek(&silent.1));
        assert!(waits.await.is_err(), "nothing says the version yet");
    }

    #[tokio::test]
    async fn a_request_is_open_until_the_last_piece_of_its_response_is_handed_over() {
        let connection = Connection::testing(CertificateNames::default());
        let bytes: Vec<u8> = (0..PIECE_BYTES * 2 + 10)
            .map(|number| number as u8)
            .collect();
        let stream = futures_util::stream::iter([
            Ok(Bytes::from(bytes.clone())),
            Ok(Bytes::from_static(b"end")),
        ]);
        for (body, end) in [
            (Body::Whole(bytes.clone().into()), &b""[..]),
            (Body::Stream(Box::pin(stream)), b"end"),
        ] {
            let mut tracked = TrackedBody {
                body,
                rest: Bytes::new(),
                _open: Some(connection.open_request()),
            };
            let mut read = Vec::new();
            while let Some(frame) = tracked.frame().await {
                let piece = frame.unwrap().into_data().unwrap();
                assert!(piece.len() <= PIECE_BYTES && !is_idle(&connection).await);
                read.extend_from_slice(&piece);
                let left = (bytes.len() + end.len() - read.len()) as u64;
                assert!(
                    tracked
                        .size_hint()
                        .exact()
                        .is_none_or(|exact| exact == left),
                    "what is left is announced"
                );
            }
            assert!(read == [&bytes, end].concat() && tracked.is_end_stream() | !end.is_empty());
            drop(tracked);
            assert!(is_idle(&connection).await);
        }
    }
}
