//! The sample server: three tools, both eras, streamable HTTP, and optionally a login. It is an
//! authorization server and the protected server in one; integration tests log in to it as well.

mod login;
mod tools;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub use self::login::{Answer, FURTHER_SCOPE, Login, SCOPE, Settings};
use super::client::read_body;
use crate::protocol::header;

/// Maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 64;
/// The path of the MCP endpoint.
const PATH: &str = "/mcp";
/// The tool that requires an additional scope.
const SCOPED_TOOL: &str = "run_command";

/// The running server.
pub(super) struct Sample {
    /// The URL of the MCP endpoint.
    pub(super) url: String,
    pub(super) server: Arc<Server>,
}

/// Starts the server on a free port of the loopback address. With `access`, a login is required,
/// and access tokens are valid for that long.
pub(super) async fn start(access: Option<Duration>) -> io::Result<Sample> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let login = access.map(|access| Login::new(Settings::new(&origin, access)));
    let server = Arc::new(Server::new(login));
    tokio::spawn(serve(listener, server.clone()));
    Ok(Sample {
        url: format!("{origin}{PATH}"),
        server,
    })
}

async fn serve(listener: TcpListener, server: Arc<Server>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(slot) = slots.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let server = server.clone();
        tokio::spawn(async move {
            let _place = slot;
            let service = service_fn(move |request| {
                let server = server.clone();
                async move { Ok::<_, Infallible>(read(request, &server).await) }
            });
            let mut builder = Builder::new();
            builder.timer(TokioTimer::new());
            if let Err(error) = builder
                .serve_connection(TokioIo::new(stream), service)
                .await
            {
                tracing::debug!(%error, "a connection to the sample server broke off");
            }
        });
    }
}

async fn read(request: Request<Incoming>, server: &Server) -> Answer {
    let (head, body) = request.into_parts();
    match read_body(body).await {
        Ok(body) => server.answer(&Request::from_parts(head, body)),
        Err(_) => respond(StatusCode::BAD_REQUEST, None),
    }
}

/// Answers requests, independent of the transport.
pub struct Server {
    login: Option<Login>,
    calls: AtomicUsize,
}

impl Server {
    /// Creates a server that has not received any requests.
    pub fn new(login: Option<Login>) -> Self {
        Self {
            login,
            calls: AtomicUsize::new(0),
        }
    }

    /// Returns the login, if the server requires one.
    pub fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// Returns the number of tool calls that it has answered.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Answers a request.
    pub fn answer(&self, request: &Request<Bytes>) -> Answer {
        if let Some(answer) = self.login.as_ref().and_then(|login| login.answer(request)) {
            return answer;
        }
        if request.uri().path() != PATH {
            return respond(StatusCode::NOT_FOUND, None);
        }
        let message = serde_json::from_slice::<Value>(request.body()).ok();
        if let Some(login) = &self.login
            && let Err(refusal) = login.admit(request.headers(), required_scopes(message.as_ref()))
        {
            return *refusal;
        }
        if request.method() != Method::POST {
            let mut response = respond(StatusCode::METHOD_NOT_ALLOWED, None);
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        message.map_or_else(
            || respond(StatusCode::BAD_REQUEST, None),
            |message| self.answer_message(&message),
        )
    }

    fn answer_message(&self, message: &Value) -> Answer {
        let Some(id) = message.get("id") else {
            return respond(StatusCode::ACCEPTED, None);
        };
        let method = message
            .get("method")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let params = message.get("params").cloned().unwrap_or_default();
        let modern = params
            .pointer("/_meta/io.modelcontextprotocol~1protocolVersion")
            .is_some();
        if method == "tools/call" {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        let Some(mut result) = tools::result(method, &params, modern) else {
            let error = json!({ "code": -32601, "message": format!("the sample server has no `{method}`") });
            let status = if modern {
                StatusCode::NOT_FOUND
            } else {
                StatusCode::OK
            };
            return respond(
                status,
                Some(&json!({ "jsonrpc": "2.0", "id": id, "error": error })),
            );
        };
        if let (true, Some(object)) = (modern, result.as_object_mut()) {
            object.insert("resultType".to_owned(), "complete".into());
        }
        let mut response = respond(
            StatusCode::OK,
            Some(&json!({ "jsonrpc": "2.0", "id": id, "result": result })),
        );
        if let ("initialize", Ok(session)) = (method, uuid::Uuid::new_v4().to_string().parse()) {
            response.headers_mut().insert(header::SESSION, session);
        }
        response
    }
}

/// Returns the scopes that a message requires.
fn required_scopes(message: Option<&Value>) -> &'static [&'static str] {
    let tool = message
        .and_then(|message| message.pointer("/params/name"))
        .and_then(Value::as_str);
    if tool == Some(SCOPED_TOOL) {
        &[SCOPE, FURTHER_SCOPE]
    } else {
        &[SCOPE]
    }
}

fn respond(status: StatusCode, body: Option<&Value>) -> Answer {
    let mut response = Answer::new(
        body.map(|body| Full::new(body.to_string().into()))
            .unwrap_or_default(),
    );
    *response.status_mut() = status;
    if body.is_some() {
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    response
}
