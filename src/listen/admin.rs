//! The admin port: `/metrics`, `/healthz`, `/readyz`, and for whoever has the token `/approvals` and `/console`.

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::future::join_all;
use http::header::{CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::approvals::Counter;
use super::console::Console;
use super::{Body, Front};
use crate::message::quote;
use crate::upstream::Health;

/// Connections to the admin port at the same time.
const CONNECTIONS: usize = 64;

/// Answers on the admin port for as long as the process lives.
/// Without a `counter` nobody is asked through it.
pub async fn serve(front: Arc<Front>, listener: TcpListener, counter: Option<Arc<Counter>>, console: Option<Console>) {
    let console = console.map(Arc::new);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            continue;
        };
        let (front, counter, console) = (front.clone(), counter.clone(), console.clone());
        tokio::spawn(async move {
            let _place = place;
            let read = front.gate.limits().request_read;
            let service = service_fn(move |request| {
                let (front, counter, console) = (front.clone(), counter.clone(), console.clone());
                async move { Ok::<_, Infallible>(answer(&front, counter.as_deref(), console.as_ref(), request).await) }
            });
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(read);
            if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                tracing::debug!(%error, "a connection to the admin port broke off");
            }
        });
    }
}

async fn answer(
    front: &Arc<Front>,
    counter: Option<&Counter>,
    console: Option<&Arc<Console>>,
    request: Request<Incoming>,
) -> Response<Body> {
    let below = |rest: &&str| rest.is_empty() || rest.starts_with('/');
    if let Some(rest) = request.uri().path().strip_prefix("/console").filter(below) {
        let rest = rest.to_owned();
        return match console {
            Some(console) => Box::pin(console.answer(front, request, &rest)).await,
            None => {
                let why = "{\"error\":\"the console is off: see `console` under `[admin]`, and whether the gate could write its token file\"}\n";
                text(StatusCode::NOT_FOUND, "application/json", why.into())
            }
        };
    }
    if let (Some(counter), Some(rest)) = (counter, request.uri().path().strip_prefix("/approvals")) {
        let id = rest.strip_prefix('/').unwrap_or(rest).to_owned();
        return counter.answer(&front.gate, request, &id).await;
    }
    if request.method() != Method::GET {
        return text(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".into());
    }
    match request.uri().path() {
        "/metrics" => text(StatusCode::OK, "text/plain; version=0.0.4", front.gate.recorder().metrics_text()),
        "/healthz" => text(StatusCode::OK, "text/plain", "alive\n".into()),
        "/readyz" => {
            let (ready, told) = readiness(front).await;
            text(if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, "application/json", told)
        }
        _ => text(StatusCode::NOT_FOUND, "text/plain", "paths: /metrics, /healthz, /readyz, /approvals, /console\n".into()),
    }
}

/// Whether new calls are welcome, and how each upstream is. One that is down does not make the gate unready: the
/// others go on.
async fn readiness(front: &Front) -> (bool, String) {
    let why = if front.draining() {
        Some("it ends: calls under way are still answered")
    } else {
        (!front.gate.recorder().can_tell()).then_some("the audit log is required and cannot be written: see the gate's own log")
    };
    let ready = why.is_none();
    let asked = front.gate.upstreams().map(|(name, upstream)| async move {
        let health = upstream.health().await;
        let why = if let Health::Down(why) = &health { format!(",\"why\":{}", quote(why)) } else { String::new() };
        format!("{}:{{\"state\":\"{}\"{why}}}", quote(&name.0), health.name())
    });
    let mut upstreams = join_all(asked).await;
    upstreams.sort();
    let why = why.map(|why| format!("\"why\":{},", quote(why))).unwrap_or_default();
    (ready, format!("{{\"ready\":{ready},{why}\"upstreams\":{{{}}}}}\n", upstreams.join(",")))
}

pub(super) fn text(status: StatusCode, kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::Whole(text.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
