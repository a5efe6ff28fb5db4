//! An agent that is a client of a gate, and the messages that it sends and reads.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::panic::Location;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use lychgate::message::{Json, Message, ReadLimits};

use super::harness::soon;

pub(crate) fn json(text: &str) -> Json {
    Json::parse(
        Bytes::copy_from_slice(text.as_bytes()),
        &ReadLimits::default(),
    )
    .unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns the string at a path in a JSON text.
pub(crate) fn string(json: &Json, path: &[&str]) -> Option<String> {
    json.root().at(path)?.str().map(Into::into)
}

pub(crate) fn message(bytes: &[u8]) -> Message {
    Message::parse(
        Bytes::copy_from_slice(bytes),
        &ReadLimits {
            depth: 64,
            ..ReadLimits::default()
        },
    )
    .unwrap()
}

type Pool = Client<HttpConnector, Full<Bytes>>;

fn client(from: Option<IpAddr>) -> Pool {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_local_address(from);
    Client::builder(TokioExecutor::new()).build(connector)
}

async fn send(client: &Pool, request: Request<Full<Bytes>>) -> Answer {
    let response = soon("a response", client.request(request)).await.unwrap();
    Answer::of(response)
}

/// An agent: an HTTP client with one token.
#[derive(Clone)]
pub(crate) struct Agent {
    address: SocketAddr,
    token: Option<String>,
    client: Pool,
}

impl Agent {
    pub(crate) fn new(address: SocketAddr, token: Option<String>) -> Self {
        Self {
            address,
            token,
            client: client(None),
        }
    }

    /// Returns a browser for the server with this origin.
    pub(crate) fn browser(origin: &str) -> Self {
        let address = origin.strip_prefix("http://").unwrap();
        Self::new(address.parse().unwrap(), None)
    }

    /// Returns the same agent at another address of this machine.
    pub(crate) fn at(self, from: IpAddr) -> Self {
        Self {
            client: client(Some(from)),
            ..self
        }
    }

    /// Sends a request to a path.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        send(&self.client, request.body(Full::new(body.into())).unwrap()).await
    }

    /// Posts a message to an upstream's path, with the headers that every client sends.
    pub(crate) async fn post(
        &self,
        upstream: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut all = vec![
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        all.extend_from_slice(headers);
        self.ask(Method::POST, &format!("/mcp/{upstream}"), &all, body)
            .await
    }

    /// Posts a message as [`Self::post`] does; panics unless this is the status of the answer.
    #[track_caller]
    pub(crate) fn post_expecting(
        &self,
        status: u16,
        upstream: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> impl Future<Output = Answer> {
        expect(status, self.post(upstream, headers, body))
    }

    /// Posts a message as [`Self::post`] does; panics unless the status is 200.
    #[track_caller]
    pub(crate) fn post_ok(
        &self,
        upstream: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> impl Future<Output = Answer> {
        self.post_expecting(200, upstream, headers, body)
    }

    /// Posts a message and returns the text of the answer; panics unless the status is 200.
    #[track_caller]
    pub(crate) fn fetch(
        &self,
        upstream: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> impl Future<Output = String> {
        self.fetch_expecting(200, upstream, headers, body)
    }

    /// Posts a message and returns the text of the answer; panics unless this is its status.
    #[track_caller]
    pub(crate) fn fetch_expecting(
        &self,
        status: u16,
        upstream: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> impl Future<Output = String> {
        let answer = self.post_expecting(status, upstream, headers, body);
        async move { answer.await.text().await }
    }

    /// Posts a message and returns the message of the error in the answer; panics unless this is
    /// the status.
    #[track_caller]
    pub(crate) fn fetch_error(
        &self,
        status: u16,
        upstream: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> impl Future<Output = String> {
        let answer = self.fetch_expecting(status, upstream, headers, body);
        async move { error_message(&json(&answer.await)) }
    }

    /// Posts a call and returns the texts of its result; panics unless the status is 200.
    #[track_caller]
    pub(crate) fn fetch_result(
        &self,
        upstream: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> impl Future<Output = String> {
        let answer = self.fetch(upstream, headers, body);
        async move { result_text(&json(&answer.await)) }
    }

    /// Posts a request of the modern era and returns the text of the answer; panics unless the
    /// status is 200.
    #[track_caller]
    pub(crate) fn fetch_modern(&self, upstream: &str, body: &str) -> impl Future<Output = String> {
        let answer = expect(200, self.post_modern(upstream, body));
        async move { answer.await.text().await }
    }

    /// Posts a JSON text to a path.
    pub(crate) async fn post_json(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        let headers = [("content-type", "application/json")];
        self.ask(Method::POST, path, &headers, body).await
    }

    /// Posts a form to a path.
    pub(crate) async fn post_form(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        self.ask(Method::POST, path, &headers, body).await
    }

    /// Calls a tool in a new session and returns the text of the answer.
    pub(crate) async fn call_in_session(&self, upstream: &str) -> String {
        let session = self.initialize(upstream).await.unwrap();
        let headers = [("mcp-session-id", session.as_str())];
        let answer = self.post_ok(upstream, &headers, call("1", "go")).await;
        answer.message_text().await
    }

    /// Requests a path with `GET`.
    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(Method::GET, path, headers, "").await
    }

    /// Requests a path with `GET`; panics unless the status is 200.
    #[track_caller]
    pub(crate) fn get_ok(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> impl Future<Output = Answer> {
        expect(200, self.get(path, headers))
    }

    /// Requests a path with `GET` and returns the text of the answer; panics unless the status is
    /// 200.
    #[track_caller]
    pub(crate) fn get_text(
        &self,
        path: &str,
        headers: &[(&str, &str)],
    ) -> impl Future<Output = String> {
        let answer = self.get_ok(path, headers);
        async move { answer.await.text().await }
    }

    /// Posts a request of the modern era: its headers are made from its body.
    pub(crate) async fn post_modern(&self, upstream: &str, body: &str) -> Answer {
        self.post_modern_with(upstream, &[], body).await
    }

    /// Posts a request of the modern era with additional headers.
    pub(crate) async fn post_modern_with(
        &self,
        upstream: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let headers = modern_headers(&message(body.as_bytes()));
        let headers = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<(&str, &str)> = headers.chain(more.iter().copied()).collect();
        self.post(upstream, &headers, body.to_owned()).await
    }

    /// Opens a legacy session and returns its id, if the server assigns one.
    pub(crate) async fn initialize(&self, upstream: &str) -> Option<String> {
        let answer = self.post_ok(upstream, &[], INITIALIZE).await;
        let session = answer
            .headers
            .get("mcp-session-id")
            .map(|id| id.to_str().unwrap().to_owned());
        answer.bytes().await;
        session
    }
}

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
/// The `_meta` member of a modern request.
pub(crate) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Returns the headers that mirror a modern message.
pub(crate) fn modern_headers(message: &Message) -> Vec<(&'static str, String)> {
    use base64::Engine;
    let mut out = vec![("mcp-protocol-version", "2026-07-28".to_owned())];
    let envelope = message.single().unwrap();
    let wrap = |text: &str| {
        let plain = text.bytes().all(|b| (0x20..0x7F).contains(&b))
            && text.trim() == text
            && !text.starts_with("=?");
        let wrapped = || {
            format!(
                "=?base64?{}?=",
                base64::prelude::BASE64_STANDARD.encode(text)
            )
        };
        if plain { text.to_owned() } else { wrapped() }
    };
    out.extend(envelope.method().map(|method| ("mcp-method", wrap(method))));
    out.extend(
        lychgate::protocol::headers::target_name(message, envelope)
            .map(|name| ("mcp-name", wrap(&name))),
    );
    out
}

/// Waits for an answer; panics with its body unless this is its status.
#[track_caller]
fn expect(status: u16, answer: impl Future<Output = Answer>) -> impl Future<Output = Answer> {
    let caller = Location::caller();
    async move { answer.await.expect_at(status, caller).await }
}

/// A response whose body may still be coming.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    /// The bytes of an event stream after the last event that was read.
    stream: BytesMut,
}

impl Answer {
    pub(crate) fn of(response: http::Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            stream: BytesMut::new(),
        }
    }

    /// Panics with the body of the answer unless this is its status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> impl Future<Output = Self> {
        self.expect_at(status, Location::caller())
    }

    async fn expect_at(self, status: u16, caller: &Location<'_>) -> Self {
        if self.status != status {
            let got = self.status;
            let told = self.bytes().await;
            let told = String::from_utf8_lossy(&told);
            panic!("{caller}: expected {status}, got {got}: {told}");
        }
        self
    }

    /// Returns the body as text; panics with it unless this is the status of the answer.
    #[track_caller]
    pub(crate) fn expect_text(self, status: u16) -> impl Future<Output = String> {
        let answer = self.expect(status);
        async move { answer.await.text().await }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(|value| value.to_str().unwrap())
            .unwrap_or_default()
    }

    async fn piece(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            match soon("a piece of a body", self.body.frame()).await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => return Some(Ok(data)),
                    Err(_) => continue,
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Returns the whole body once it has ended.
    pub(crate) async fn bytes(mut self) -> Bytes {
        let mut out = BytesMut::new();
        while let Some(piece) = self.piece().await {
            out.extend_from_slice(&piece.unwrap());
        }
        out.freeze()
    }

    pub(crate) async fn text(self) -> String {
        String::from_utf8(self.bytes().await.to_vec()).unwrap()
    }

    /// Returns the beginning of a body that need not end, up to the chunk that completes `part`.
    pub(crate) async fn read_to(mut self, part: &str) -> String {
        let mut out = Vec::new();
        let all = async {
            while memchr::memmem::find(&out, part.as_bytes()).is_none() {
                let Some(piece) = self.piece().await else {
                    break;
                };
                out.extend_from_slice(&piece.unwrap());
            }
        };
        // A stream that is open sends a chunk from time to time, each of them in time even if
        // `part` never comes.
        let in_time = tokio::time::timeout(Duration::from_secs(20), all).await;
        let read = String::from_utf8(out).unwrap();
        assert!(
            in_time.is_ok() && read.contains(part),
            "`{part}` did not come: {read}"
        );
        read
    }

    /// Returns the raw bytes of the next event; `None` at the end of the stream, whether it ended
    /// properly or not.
    pub(crate) async fn event(&mut self) -> Option<Bytes> {
        let mut from = 0;
        loop {
            if let Some(end) = memchr::memmem::find(&self.stream[from..], b"\n\n") {
                return Some(self.stream.split_to(from + end + 2).freeze());
            }
            from = self.stream.len().saturating_sub(1);
            match self.piece().await {
                Some(Ok(piece)) => self.stream.extend_from_slice(&piece),
                _ => return None,
            }
        }
    }

    /// Returns the data of the next event that contains a message.
    pub(crate) async fn data(&mut self) -> Option<Bytes> {
        loop {
            let event = String::from_utf8(self.event().await?.to_vec()).unwrap();
            let lines: Vec<&str> = event
                .split('\n')
                .filter_map(|line| line.strip_prefix("data: "))
                .collect();
            if lines.iter().any(|line| !line.is_empty()) {
                return Some(lines.join("\n").into());
            }
        }
    }

    /// Returns the text of the next message of a stream; panics at its end.
    pub(crate) async fn data_text(&mut self) -> String {
        String::from_utf8(self.data().await.unwrap().to_vec()).unwrap()
    }

    /// Returns the text of the first message of an answer, which may be a stream.
    pub(crate) async fn message_text(mut self) -> String {
        let streams = self.header("content-type").starts_with("text/event-stream");
        if streams {
            self.data_text().await
        } else {
            self.text().await
        }
    }
}

/// Returns a call of a tool with these arguments.
pub(crate) fn tool_call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// Returns a call of a tool with one argument.
pub(crate) fn argument_call(tool: &str, argument: &str, value: &str) -> String {
    let value = lychgate::message::quote(value);
    tool_call(tool, &format!(r#"{{"{argument}":{value}}}"#))
}

/// Returns a call of the tool `echo` with one text; the id is inserted as written.
pub(crate) fn call(id: &str, text: &str) -> String {
    let text = lychgate::message::quote(text);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":{text}}}}}}}"#
    )
}

/// Returns the same call in the modern era.
pub(crate) fn modern_call(id: &str, text: &str) -> String {
    let text = lychgate::message::quote(text);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":{text}}},{META}}}}}"#
    )
}

/// Returns the message of the error in an answer.
pub(crate) fn error_message(answer: &Json) -> String {
    string(answer, &["error", "message"]).unwrap_or_else(|| panic!("{}", answer.root().raw()))
}

/// Reports whether an answer is a tool's result with `isError`.
pub(crate) fn is_error(answer: &Json) -> bool {
    raw(answer, &["result", "isError"]).as_deref() == Some("true")
}

/// Returns the texts of a tool's result, one per line.
pub(crate) fn result_text(answer: &Json) -> String {
    let content = answer.root().at(&["result", "content"]);
    let texts = content
        .into_iter()
        .flat_map(|content| content.elements())
        .filter_map(|block| Some(block.get("text")?.str()?.into_owned()));
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the value at a path in a JSON text, as written.
pub(crate) fn raw(json: &Json, path: &[&str]) -> Option<String> {
    json.root().at(path).map(|value| value.raw().to_owned())
}
