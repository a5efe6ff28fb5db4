//! The admin port: `/metrics`, `/healthz`, `/readyz`, and for holders of the token `/approvals` and
//! `/console`.

use std::sync::Arc;

use futures_util::future::join_all;
use http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::admit::AllowedOrigins;
use super::approvals::ApprovalEndpoint;
use super::connections::{Admission, Connection, ConnectionTable};
use super::console::Console;
use super::http_server::{Server, Version};
use super::{Body, Frontend, accept, reject_connection};
use crate::config::Admin;
use crate::message::quote;
use crate::protocol::headers;
use crate::record::Event;

/// State for answering requests to the admin port.
struct AdminService {
    front: Arc<Frontend>,
    config: Admin,
    approvals: Option<Arc<ApprovalEndpoint>>,
    console: Option<Arc<Console>>,
}

/// Answers requests to the admin port for the lifetime of the process. Without `approvals`, it
/// accepts no approvals.
pub async fn serve(
    front: Arc<Frontend>,
    listener: TcpListener,
    config: Admin,
    approvals: Option<Arc<ApprovalEndpoint>>,
    console: Option<Console>,
) {
    let table = ConnectionTable::for_admin(front.gate.limits());
    let service = Arc::new(AdminService {
        front,
        config,
        approvals,
        console: console.map(Arc::new),
    });
    // A draining gate still answers here.
    let (_until_dropped, draining) = watch::channel(false);
    loop {
        let (stream, from) = accept(&listener).await;
        match table.admit(from, true) {
            Ok(Admission { connection, limit }) => {
                limit
                    .into_iter()
                    .for_each(|name| service.front.gate.record(Event::Limit { name }));
                let evicted = connection.until_evicted();
                let service = service.clone();
                let draining = draining.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = service.handle(stream, connection, draining) => {}
                        () = evicted => tracing::debug!("admin connection closed to make room"),
                    }
                });
            }
            Err(name) => {
                service.front.gate.record(Event::Limit { name });
                tokio::spawn(reject_connection(stream));
            }
        }
    }
}

impl AdminService {
    async fn handle(
        self: &Arc<Self>,
        stream: TcpStream,
        connection: Connection,
        mut draining: watch::Receiver<bool>,
    ) {
        let limits = self.front.gate.limits();
        let connection = Arc::new(connection);
        let server = Server::new(limits);
        let answer = |request| {
            let service = self.clone();
            let connection = connection.clone();
            async move { service.answer(request, &connection).await }
        };
        if let Err(name) = server
            .run(Version::Http1, stream, &connection, &mut draining, answer)
            .await
        {
            self.front.gate.record(Event::Limit { name });
        }
    }

    async fn answer(&self, request: Request<Incoming>, connection: &Connection) -> Response<Body> {
        let front = &self.front;
        let is_subpath = |rest: &&str| rest.is_empty() || rest.starts_with('/');
        if let Some(rest) = request
            .uri()
            .path()
            .strip_prefix("/console")
            .filter(is_subpath)
        {
            let rest = rest.to_owned();
            return match &self.console {
                Some(console) => Box::pin(console.answer(front, request, &rest, connection)).await,
                None => {
                    let why = "{\"error\":\"the console is off: see `console` under `[admin]`, and whether the gate could write its token file\"}\n";
                    text_response(StatusCode::NOT_FOUND, "application/json", why.into())
                }
            };
        }
        if let (Some(endpoint), Some(rest)) = (
            &self.approvals,
            request.uri().path().strip_prefix("/approvals"),
        ) {
            let id = rest.strip_prefix('/').unwrap_or(rest).to_owned();
            return endpoint.answer(&front.gate, request, &id, connection).await;
        }
        if let Err(rejection) = AllowedOrigins::for_admin(&self.config).check(&request) {
            front.gate.record(Event::Rejected {
                reason: rejection.reason,
            });
            return text_response(
                rejection.status,
                "text/plain",
                format!("{}\n", rejection.hint),
            );
        }
        if request.method() != Method::GET {
            return text_response(
                StatusCode::METHOD_NOT_ALLOWED,
                "text/plain",
                "only GET\n".into(),
            );
        }
        match request.uri().path() {
            "/metrics" => text_response(
                StatusCode::OK,
                "text/plain; version=0.0.4",
                front.gate.recorder().metrics_text(),
            ),
            "/healthz" => text_response(StatusCode::OK, "text/plain", "alive\n".into()),
            "/readyz" => {
                let (ready, report) = readiness(front).await;
                text_response(
                    if ready {
                        StatusCode::OK
                    } else {
                        StatusCode::SERVICE_UNAVAILABLE
                    },
                    "application/json",
                    report,
                )
            }
            _ => text_response(
                StatusCode::NOT_FOUND,
                "text/plain",
                "paths: /metrics, /healthz, /readyz, /approvals, /console\n".into(),
            ),
        }
    }
}

/// Reports whether new calls are accepted, and the state of each upstream, with the reason if it is
/// down. An upstream that is down does not make the gate unready: the others still work.
async fn readiness(front: &Frontend) -> (bool, String) {
    let why = if front.is_draining() {
        Some("shutting down; open calls are still answered")
    } else {
        (!front.gate.recorder().can_record())
            .then_some("the audit log is required and cannot be written: see the gateway's log")
    };
    let ready = why.is_none();
    let all = front.gate.upstreams();
    let checks = all.iter().map(|(name, upstream)| async move {
        let health = upstream.prompt_health().await;
        let why = health
            .reason()
            .map(|why| format!(",\"why\":{}", quote(why)))
            .unwrap_or_default();
        format!(
            "{}:{{\"state\":\"{}\"{why}}}",
            quote(&name.0),
            health.name()
        )
    });
    let mut upstreams = join_all(checks).await;
    upstreams.sort();
    let why = why
        .map(|why| format!("\"why\":{},", quote(why)))
        .unwrap_or_default();
    (
        ready,
        format!(
            "{{\"ready\":{ready},{why}\"upstreams\":{{{}}}}}\n",
            upstreams.join(",")
        ),
    )
}

pub(super) fn text_response(
    status: StatusCode,
    kind: &'static str,
    text: String,
) -> Response<Body> {
    let mut response = Response::new(Body::Whole(text.into()));
    *response.status_mut() = status;
    let values = [(CONTENT_TYPE, kind), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    headers::set(response.headers_mut(), values);
    response
}
