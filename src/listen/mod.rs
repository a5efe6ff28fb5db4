//! The side that faces agents: accepts connections, turns requests into calls, and drains.

pub mod admin;
mod admit;
pub mod approvals;
mod body;
mod certificate;
pub mod console;
mod entry;
mod http;
mod lines;
mod logins;
pub mod prove;
mod resource;
mod sse;
pub mod stdio;
pub mod tls;
mod token;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use ::http::{Request, Response};
use arc_swap::ArcSwap;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::config::{Config, Limits, Listen};
use crate::document::Fault;
use crate::oauth::Shared;
use crate::proxy::Gate;
use crate::record::Event;
pub use body::Body;
use certificate::Names;
pub use entry::Entry;
use entry::Who;

/// What every request from an agent needs.
pub struct Front {
    gate: Arc<Gate>,
    listen: Listen,
    entry: ArcSwap<Entry>,
    /// Ticks when there is another.
    entered: watch::Sender<()>,
    bound: SocketAddr,
    logins: Arc<Shared>,
    channels: sse::Channels,
    draining: watch::Receiver<bool>,
    /// Who may try the gate with canaries, once somebody may.
    prover: OnceLock<prove::Prover>,
}

impl Front {
    /// Puts the parts together, for a listener that is `bound` to an address. `draining` turns true when streams shall end.
    ///
    /// # Errors
    /// What keeps it from learning who vouches for agents.
    pub fn new(
        gate: Arc<Gate>,
        config: &Config,
        bound: SocketAddr,
        logins: Arc<Shared>,
        draining: watch::Receiver<bool>,
    ) -> Result<Self, Fault> {
        let entry = Entry::new(config, None).map_err(|error| Fault::of_file("issuer", error, None))?;
        let (listen, entry, channels) = (config.listen.clone(), ArcSwap::from_pointee(entry), sse::Channels::default());
        let entered = watch::Sender::new(());
        Ok(Self { gate, listen, entry, entered, bound, logins, channels, draining, prover: OnceLock::new() })
    }

    /// From now on the holder of the token with this SHA-256 may try the gate with canaries.
    ///
    /// # Errors
    /// As [`crate::record::Recorder::aside`].
    pub fn prove_by(&self, token_sha256: [u8; 32]) -> std::io::Result<()> {
        let recorder = Arc::new(self.gate.recorder().aside()?);
        // The first one stays.
        let _first = self.prover.set(prove::Prover::new(token_sha256, recorder));
        Ok(())
    }

    /// Who may come in by another config.
    ///
    /// # Errors
    /// As [`Front::new`].
    pub fn entry(&self, config: &Config) -> Result<Entry, Fault> {
        Entry::new(config, Some(&self.entry.load())).map_err(|error| Fault::of_file("issuer", error, None))
    }

    /// Puts that in force.
    pub fn admit_by(&self, entry: Entry) {
        let before = self.entry.swap(Arc::new(entry));
        self.entered.send_replace(());
        if !before.shows_like(&self.entry.load()) {
            self.gate.access_changed();
        }
    }

    /// Returns when somebody who has come in would not come in any more, or not to the same.
    async fn over(self: Arc<Self>, who: Who) {
        let (mut entered, before) = (self.entered.subscribe(), self.entry.load_full());
        while self.entry.load().still_admits(&who, &before) {
            let stays = async {
                match who.stays() {
                    Some(stays) => tokio::time::sleep(stays).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = entered.changed() => if changed.is_err() { return },
                () = stays => {}
            }
        }
    }

    /// Whether the gate is on its way out.
    pub fn draining(&self) -> bool {
        *self.draining.borrow()
    }
}

/// Accepts agents until the gate drains, then lets open connections end.
pub async fn serve(front: Arc<Front>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    let limits = front.gate.limits().clone();
    let places = Arc::new(Semaphore::new(limits.connections));
    let graceful = GracefulShutdown::new();
    let mut draining = front.draining.clone();
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors or the like: let others end before the next try.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    continue;
                }
            },
            () = drained(&mut draining) => break,
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            front.gate.tell(Event::Limit { name: "connections" });
            tokio::spawn(turn_away(stream));
            continue;
        };
        let (front, tls, watcher, limits) = (front.clone(), tls.clone(), graceful.watcher(), limits.clone());
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "no TCP_NODELAY");
            }
            match tls {
                None => connection(front, stream, Names::default(), watcher, &limits).await,
                Some(tls) => match tokio::time::timeout(limits.request_read, tls.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let names = Names::of(stream.get_ref().1.peer_certificates());
                        connection(front, stream, names, watcher, &limits).await;
                    }
                    _ => front.gate.tell(Event::TurnedAway { reason: "tls" }),
                },
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Returns when the gate drains. Should the sender go, there is nothing left to wait for either.
async fn drained(draining: &mut watch::Receiver<bool>) {
    drop(draining.wait_for(|draining| *draining).await);
}

async fn connection<S>(front: Arc<Front>, stream: S, names: Names, watcher: Watcher, limits: &Limits)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let asked = Arc::new(AtomicBool::new(false));
    let service = {
        let (front, asked, names) = (front.clone(), asked.clone(), Arc::new(names));
        // hyper keeps room for this future as long as the connection is open: boxed, an idle stream costs 8 kB less.
        service_fn(move |request| {
            asked.store(true, Ordering::Relaxed);
            Box::pin(answer(front.clone(), request, names.clone()))
        })
    };
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.request_read).max_buf_size(limits.header_bytes.max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(u32::try_from(limits.calls_per_agent).unwrap_or(u32::MAX))
        .keep_alive_interval(std::time::Duration::from_secs(30));
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let ended = tokio::select! {
        ended = watcher.watch(connection.into_owned()) => ended,
        // Whoever never comes to a request holds a place for nothing.
        () = silent(&asked, limits.request_read) => return front.gate.tell(Event::Limit { name: "request_read_seconds" }),
    };
    let Err(error) = ended else { return };
    match error.downcast_ref::<hyper::Error>() {
        Some(error) if error.is_parse_too_large() => front.gate.tell(Event::Limit { name: "header_bytes" }),
        Some(error) if error.is_timeout() && !asked.load(Ordering::Relaxed) => {
            front.gate.tell(Event::Limit { name: "request_read_seconds" });
        }
        _ => tracing::debug!(%error, "a connection from an agent broke off"),
    }
}

/// Returns after `time` if there was no request until then.
async fn silent(asked: &AtomicBool, time: std::time::Duration) {
    tokio::time::sleep(time).await;
    if asked.load(Ordering::Relaxed) {
        std::future::pending().await
    }
}

async fn answer(front: Arc<Front>, request: Request<Incoming>, names: Arc<Names>) -> Result<Response<Body>, Infallible> {
    Ok(http::answer(front, request, names).await)
}

/// Tells a connection beyond the limit so, without reading from it.
async fn turn_away(mut stream: TcpStream) {
    const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let write = tokio::time::timeout(std::time::Duration::from_secs(1), stream.write_all(FULL)).await;
    if !matches!(write, Ok(Ok(()))) {
        tracing::debug!("a connection beyond the limit went before it was told");
    }
}
