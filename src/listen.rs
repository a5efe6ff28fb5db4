//! The side that faces agents: accepts connections, turns requests into calls, and drains.

pub mod admin;
mod admit;
pub mod approvals;
mod authentication;
mod body;
mod certificate;
mod connections;
pub mod console;
mod failed_logins;
mod http;
mod http_server;
mod identity;
mod keep_alive;
mod lines;
mod logins;
mod mcp_page;
mod plain_http;
pub mod prove;
mod repoll;
mod resource;
mod sse;
pub mod stdio;
pub mod tls;
mod token;
mod tracked_stream;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use ::http::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue};
use ::http::{Response, StatusCode};
use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::{Config, Limits, Listen};
use crate::document::Fault;
use crate::oauth::Shared;
use crate::proxy::Gate;
use crate::record::Event;
pub use authentication::Authenticator;
pub use body::Body;
use certificate::CertificateNames;
use connections::{Admission, Connection, ConnectionTable};
use failed_logins::FailedLogins;
use http_server::{Server, Version};
use identity::Identity;

/// Shared state for the requests of agents.
pub struct Frontend {
    gate: Arc<Gate>,
    listen: Listen,
    authenticator: ArcSwap<Authenticator>,
    /// Notified when the authenticator is replaced.
    authenticator_changed: watch::Sender<()>,
    bound_address: SocketAddr,
    logins: Arc<Shared>,
    channels: sse::Channels,
    /// Invalid tokens of agents.
    failed_logins: FailedLogins,
    draining: watch::Receiver<bool>,
    /// The endpoint for canaries, once it is enabled.
    prove_endpoint: OnceLock<prove::ProveEndpoint>,
}

impl Frontend {
    /// Assembles the front end for a listener at `bound_address`. `draining` becomes
    /// true when streams have to end.
    ///
    /// # Errors
    /// The reason why agents' issuers cannot be set up.
    pub fn new(
        gate: Arc<Gate>,
        config: &Config,
        bound_address: SocketAddr,
        logins: Arc<Shared>,
        draining: watch::Receiver<bool>,
    ) -> Result<Self, Fault> {
        let evicted = gate.recorder().limit_hits("verified_tokens");
        let authenticator = Authenticator::new(config, None, &evicted)
            .map_err(|error| Fault::of_file("issuer", error, None))?;
        let (listen, authenticator, channels) = (
            config.listen.clone(),
            ArcSwap::from_pointee(authenticator),
            sse::Channels::default(),
        );
        let authenticator_changed = watch::Sender::new(());
        let failed_logins = FailedLogins::new(gate.limits().wrong_tokens_per_minute);
        Ok(Self {
            gate,
            listen,
            authenticator,
            authenticator_changed,
            bound_address,
            logins,
            channels,
            failed_logins,
            draining,
            prove_endpoint: OnceLock::new(),
        })
    }

    /// Allows the holder of the token with this SHA-256 to test the gate with canaries.
    ///
    /// # Errors
    /// As [`crate::record::Recorder::trial_recorder`].
    pub fn enable_canaries(&self, token_sha256: [u8; 32]) -> std::io::Result<()> {
        let recorder = Arc::new(self.gate.recorder().trial_recorder()?);
        // The first one is kept.
        let _first = self
            .prove_endpoint
            .set(prove::ProveEndpoint::new(token_sha256, recorder));
        Ok(())
    }

    /// Returns the authenticator for another config.
    ///
    /// # Errors
    /// As [`Frontend::new`].
    pub fn build_authenticator(&self, config: &Config) -> Result<Authenticator, Fault> {
        let evicted = self.gate.recorder().limit_hits("verified_tokens");
        Authenticator::new(config, Some(&self.authenticator.load()), &evicted)
            .map_err(|error| Fault::of_file("issuer", error, None))
    }

    /// Puts an authenticator into effect.
    pub fn set_authenticator(&self, authenticator: Authenticator) {
        let previous = self.authenticator.swap(Arc::new(authenticator));
        self.authenticator_changed.send_replace(());
        if !previous.has_same_access(&self.authenticator.load()) {
            self.gate.notify_lists_changed();
        }
    }

    /// Returns when an authenticated caller would no longer be admitted, or not with the same
    /// access.
    fn until_access_lost(
        self: Arc<Self>,
        identity: Identity,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (mut entered, before) = (
            self.authenticator_changed.subscribe(),
            self.authenticator.load_full(),
        );
        // An async block stores each of these once, whereas an `async fn` reserves space for its
        // arguments twice.
        async move {
            while self.authenticator.load().still_admits(&identity, &before) {
                // Boxed, because only few credentials expire.
                let stays = async {
                    match identity.remaining_time() {
                        Some(lifetime) => Box::pin(tokio::time::sleep(lifetime)).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    changed = entered.changed() => if changed.is_err() { return },
                    () = stays => {}
                }
            }
        }
    }

    /// Reports whether the gate is draining.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }
}

/// Accepts agents until the gate drains, then lets open connections end.
pub async fn serve(front: Arc<Frontend>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    let limits = Arc::new(front.gate.limits().clone());
    let table = ConnectionTable::for_agents(&limits);
    let server = Arc::new(Server::new(&limits));
    // Each connection holds a receiver: when the last one is dropped, all connections have ended.
    let open = watch::Sender::new(());
    let mut draining = front.draining.clone();
    loop {
        let (stream, from) = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = until_drained(&mut draining) => break,
        };
        let needs_credential = !front.authenticator.load().is_open();
        let connection = match table.admit(from, needs_credential) {
            Ok(Admission { connection, limit }) => {
                limit
                    .into_iter()
                    .for_each(|name| front.gate.record(Event::Limit { name }));
                connection
            }
            Err(name) => {
                front.gate.record(Event::Limit { name });
                tokio::spawn(reject_connection(stream));
                continue;
            }
        };
        let (front, tls, limits, server) =
            (front.clone(), tls.clone(), limits.clone(), server.clone());
        let is_open = open.subscribe();
        tokio::spawn(async move {
            let _is_open = is_open;
            let evicted = connection.until_evicted();
            tokio::select! {
                () = connect(front, stream, tls, connection, &server, &limits) => {}
                () = evicted => tracing::debug!("unauthenticated connection closed to make room"),
            }
        });
    }
    drop(listener);
    open.closed().await;
}

/// Returns the next connection and its remote address.
async fn accept(listener: &TcpListener) -> (TcpStream, IpAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "no TCP_NODELAY");
                }
                return (stream, from.ip());
            }
            Err(error) => {
                // Out of file descriptors or a similar resource: let other connections end before
                // the next attempt.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

/// Returns when the gate drains. If the sender is dropped, there is nothing left to wait for
/// either.
async fn until_drained(draining: &mut watch::Receiver<bool>) {
    drop(draining.wait_for(|draining| *draining).await);
}

/// Serves a connection: TLS, if it is enabled, and HTTP.
async fn connect(
    front: Arc<Frontend>,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    connection: Connection,
    server: &Server,
    limits: &Limits,
) {
    if let Some(tls) = tls {
        // Boxed, so that connections without TLS need no space for it.
        return Box::pin(connect_tls(front, stream, tls, connection, server, limits)).await;
    }
    let mut draining = front.draining.clone();
    let version = tokio::select! {
        version = Version::peek(&stream) => version,
        () = until_drained(&mut draining) => return,
        () = connection.until_idle(limits.request_read) => return front.gate.record(Event::Limit { name: "request_read_seconds" }),
    };
    match version {
        Ok(version) => handle(&front, version, stream, connection, server).await,
        Err(error) => tracing::debug!(%error, "connection ended before its first byte"),
    }
}

async fn connect_tls(
    front: Arc<Frontend>,
    stream: TcpStream,
    tls: TlsAcceptor,
    mut connection: Connection,
    server: &Server,
    limits: &Limits,
) {
    let handshake = async {
        if plain_http::is_next(&stream).await? {
            return Ok(FirstBytes::PlainHttp(stream));
        }
        Ok::<_, std::io::Error>(FirstBytes::Tls(Box::new(tls.accept(stream).await?)))
    };
    match tokio::time::timeout(limits.request_read, handshake).await {
        Ok(Ok(FirstBytes::Tls(stream))) => {
            let (_, session) = stream.get_ref();
            connection.names = CertificateNames::from_chain(session.peer_certificates());
            let version = Version::from_alpn(session.alpn_protocol());
            connection.start_idle();
            handle(&front, version, stream, connection, server).await;
        }
        Ok(Ok(FirstBytes::PlainHttp(stream))) => {
            front.gate.record(Event::Rejected { reason: "tls" });
            if let Err(error) = plain_http::refuse(stream).await {
                tracing::debug!(%error, "connection closed before the answer to plain HTTP was sent");
            }
        }
        _ => front.gate.record(Event::Rejected { reason: "tls" }),
    }
}

/// The protocol of the first bytes on the TLS port.
enum FirstBytes {
    Tls(Box<TlsStream<TcpStream>>),
    PlainHttp(TcpStream),
}

/// Answers requests on a connection until it ends.
async fn handle<S>(
    front: &Arc<Frontend>,
    version: Version,
    stream: S,
    connection: Connection,
    server: &Server,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection = Arc::new(connection);
    let answer = |request| http::answer(front.clone(), request, connection.clone());
    let mut draining = front.draining.clone();
    if let Err(name) = server
        .run(version, stream, &connection, &mut draining, answer)
        .await
    {
        front.gate.record(Event::Limit { name });
    }
}

/// Returns a response with JSON.
fn respond_json(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Whole(text.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Returns the cookies that a client presents, by name.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// Responds with 503 to a connection beyond the limit, without reading from it.
async fn reject_connection(mut stream: TcpStream) {
    const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let write =
        tokio::time::timeout(std::time::Duration::from_secs(1), stream.write_all(FULL)).await;
    if !matches!(write, Ok(Ok(()))) {
        tracing::debug!("rejected connection closed early");
    }
}
