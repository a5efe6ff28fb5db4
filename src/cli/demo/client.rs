//! The demo's agent: a minimal MCP client, over real HTTP.

use std::io;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::cli::response;
use crate::protocol::{JSON_OR_EVENTS, MODERN, header};

/// The protocol revision of the agent's session.
const LEGACY: &str = "2025-11-25";
/// Maximum length of a body that is read, in bytes.
const MAX_BODY_BYTES: usize = 4 << 20;

pub(super) struct Agent {
    http: Client<HttpConnector, Full<Bytes>>,
    session: Option<String>,
    last_id: u64,
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    session: Option<String>,
}

/// The protocol revision of a request.
#[derive(Clone, Copy)]
pub(super) enum Revision {
    /// A request in the agent's session.
    Legacy,
    /// A request without a session.
    Modern,
}

impl Agent {
    pub(super) fn new() -> Self {
        Self {
            http: Client::builder(TokioExecutor::new()).build_http(),
            session: None,
            last_id: 0,
        }
    }

    /// Opens a session, as required by revisions up to 2025-11-25.
    pub(super) async fn open(&mut self, url: &str) -> io::Result<Answer> {
        let client = json!({ "name": "lychgate-demo", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client });
        let body =
            json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params });
        let answer = self.post(url, &body.to_string(), &[]).await?;
        self.session.clone_from(&answer.session);
        let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.post(url, &notification.to_string(), &[(header::VERSION, LEGACY)])
            .await?;
        Ok(answer)
    }

    /// Returns a tool call request with a new id.
    pub(super) fn request(&mut self, revision: Revision, tool: &str, arguments: &Value) -> String {
        self.last_id += 1;
        let mut params = json!({ "name": tool, "arguments": arguments });
        if let (Revision::Modern, Some(object)) = (revision, params.as_object_mut()) {
            let version = "io.modelcontextprotocol/protocolVersion";
            let meta = json!({ version: MODERN, "io.modelcontextprotocol/clientCapabilities": {} });
            object.insert("_meta".to_owned(), meta);
        }
        json!({ "jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params })
            .to_string()
    }

    /// Sends a tool call request.
    pub(super) async fn call(
        &self,
        url: &str,
        revision: Revision,
        tool: &str,
        request: &str,
    ) -> io::Result<Answer> {
        match revision {
            Revision::Legacy => self.post(url, request, &[(header::VERSION, LEGACY)]).await,
            Revision::Modern => {
                let headers = [
                    (header::VERSION, MODERN),
                    (header::METHOD, "tools/call"),
                    (header::NAME, tool),
                ];
                self.post(url, request, &headers).await
            }
        }
    }

    async fn post(&self, url: &str, body: &str, headers: &[(&str, &str)]) -> io::Result<Answer> {
        let mut request = Request::post(url).header(CONTENT_TYPE, "application/json");
        request = request.header(ACCEPT, JSON_OR_EVENTS);
        let is_modern = headers.contains(&(header::VERSION, MODERN));
        let session = self
            .session
            .as_deref()
            .filter(|_| !is_modern)
            .map(|session| (header::SESSION, session));
        for (name, value) in headers.iter().copied().chain(session) {
            request = request.header(name, value);
        }
        self.send(
            request
                .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
                .map_err(io::Error::other)?,
        )
        .await
    }

    /// Fetches a page, such as the metrics.
    pub(super) async fn get(&self, url: &str) -> io::Result<String> {
        let uri: Uri = url.parse().map_err(io::Error::other)?;
        let request = Request::builder()
            .method(Method::GET)
            .uri(uri)
            .body(Full::default())
            .map_err(io::Error::other)?;
        Ok(String::from_utf8_lossy(&self.send(request).await?.body).into_owned())
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> io::Result<Answer> {
        let response = self.http.request(request).await.map_err(io::Error::other)?;
        let session = response
            .headers()
            .get(header::SESSION)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let status = response.status();
        Ok(Answer {
            status,
            body: read_body(response.into_body()).await?,
            session,
        })
    }
}

/// Reads a complete body, up to the maximum length.
pub(super) async fn read_body(body: Incoming) -> io::Result<Bytes> {
    response::read_body(body, MAX_BODY_BYTES, "the body is too long").await
}
