//! Probes whether a server answers in MCP, for `/readyz` and metrics, without an agent's call and
//! without side effects on the server.
//!
//! Over streamable HTTP the probe is a `ping` in a session that the server never opened. Without a
//! session, some servers open one for any request; an unknown session is refused by all of them
//! with 400 or 404, and servers without sessions answer. Over HTTP+SSE the probe opens the stream
//! and closes it again at once. For a stdio server, the program is looked up but not started.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};

use super::body;
use super::client::{Client, ClientRequest, ReadDeadline};
use super::http::ContentKind;
use crate::message::{Message, ReadLimits};
use crate::protocol::{CallError, JSON_OR_EVENTS, header as mcp};
use crate::record::Redactor;

/// Timeout for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes of an answer that are read.
const READ_BYTES: usize = 16 << 10;
/// Maximum number of bytes of a page that are quoted.
const WORDS_BYTES: usize = 80;
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"lychgate-health","method":"ping"}"#;
const SESSION: &str = "lychgate-health";
const REVISION: &str = "2025-06-18";

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProbeResult {
    /// It answers in MCP.
    Answers,
    /// It requires authentication.
    AuthRequired,
    /// It refuses the probe in a way that gives no evidence about MCP.
    Unclear(String),
    /// It cannot be reached, or it is not an MCP server.
    Down(String),
}

/// Probes a server over streamable HTTP.
pub(super) async fn probe_http(client: &Client) -> ProbeResult {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(JSON_OR_EVENTS));
    headers.insert(mcp::SESSION, HeaderValue::from_static(SESSION));
    headers.insert(mcp::VERSION, HeaderValue::from_static(REVISION));
    let body = Bytes::from_static(PING);
    send_probe(
        client,
        ClientRequest {
            deadline: ReadDeadline::Call,
            method: Method::POST,
            url: &client.url,
            headers: &headers,
            body,
        },
    )
    .await
}

/// Probes a server over HTTP+SSE.
pub(super) async fn probe_sse(client: &Client) -> ProbeResult {
    let headers = HeaderMap::from_iter([(
        header::ACCEPT,
        HeaderValue::from_static("text/event-stream"),
    )]);
    let body = Bytes::new();
    send_probe(
        client,
        ClientRequest {
            deadline: ReadDeadline::Stream,
            method: Method::GET,
            url: &client.url,
            headers: &headers,
            body,
        },
    )
    .await
}

async fn send_probe(client: &Client, request: ClientRequest<'_>) -> ProbeResult {
    let is_post = request.method == Method::POST;
    let reply = async {
        let response = client.exchange(request, None).await?;
        let (head, body) = response.into_parts();
        let is_stream = head.status.is_success()
            && ContentKind::from_headers(&head.headers) == ContentKind::Events;
        // A stream may send nothing for a long time.
        let bytes = if is_stream {
            Bytes::new()
        } else {
            body::read_beginning(body, READ_BYTES).await?
        };
        Ok(ProbeReply {
            status: head.status,
            headers: head.headers,
            body: bytes,
        })
    };
    match tokio::time::timeout(ANSWER_TIMEOUT, reply).await {
        Ok(Ok(answer)) => answer.judge(&client.peer.to_string(), is_post, |text| {
            client.contains_secret(text)
        }),
        Ok(Err(CallError::Connect(error))) => ProbeResult::Down(error.to_string()),
        Ok(Err(error)) => ProbeResult::Down(format!("{}: {error}", client.peer)),
        Err(_) => ProbeResult::Down(format!(
            "{} does not answer within {} s; check the server, and `url`",
            client.peer,
            ANSWER_TIMEOUT.as_secs()
        )),
    }
}

/// A server's answer to the probe.
struct ProbeReply {
    status: StatusCode,
    headers: HeaderMap,
    /// The beginning of the body.
    body: Bytes,
}

impl ProbeReply {
    /// Evaluates an answer. `is_own` reports whether a text contains a secret of the gate, which a
    /// server may send back.
    fn judge(&self, peer: &str, is_post: bool, is_own: impl Fn(&str) -> bool) -> ProbeResult {
        let status = self.status.as_u16();
        let kind = ContentKind::from_headers(&self.headers);
        if status == 401 {
            return ProbeResult::AuthRequired;
        }
        let is_stream = self.status.is_success() && kind == ContentKind::Events;
        let gateway_fails = matches!(status, 502..=504);
        if is_stream || (is_post && !gateway_fails && self.is_rpc()) {
            return ProbeResult::Answers;
        }
        let text = String::from_utf8_lossy(&self.body);
        let is_page = is_page(&text);
        let words = excerpt(&text, is_page, is_own);
        let quote = if words.is_empty() {
            String::new()
        } else {
            format!(", \"{words}\"")
        };
        let lower = text.to_ascii_lowercase();
        if lower.contains("http request") && lower.contains("https") {
            return ProbeResult::Down(format!(
                "{peer} expects TLS ({status}{quote}); write `https://` in `url`"
            ));
        }
        if self.status.is_redirection() {
            return ProbeResult::Down(format!(
                "{peer} redirects ({status}){}, and redirects are not followed; write the URL that it leads to in `url`",
                self.location()
                    .map(|to| format!(" to {to}"))
                    .unwrap_or_default()
            ));
        }
        if is_page {
            let fix = "correct the path in `url`: MCP endpoints often end in `/mcp`, those of HTTP+SSE in `/sse`";
            return ProbeResult::Down(format!(
                "{peer} answers with a web page, not MCP ({status}{quote}); {fix}"
            ));
        }
        match status {
            // Servers refuse a session in plain text like this.
            400 | 404 if lower.contains("session") => ProbeResult::Answers,
            405 if is_post => ProbeResult::Down(format!(
                "{peer} takes no POST at this path ({status}{quote}); correct the path in `url`, or use `sse` for a server of HTTP+SSE"
            )),
            404 => ProbeResult::Unclear(format!(
                "{peer} has nothing at this path ({status}{quote}); correct the path in `url`"
            )),
            502..=504 => ProbeResult::Down(format!(
                "{peer} is a proxy that cannot reach its server ({status}{quote}); check the server"
            )),
            400..=599 => ProbeResult::Unclear(format!(
                "{peer} refuses requests ({status}{quote}); check `url` and the server's log"
            )),
            _ => ProbeResult::Down(format!(
                "{peer} answers, but not in MCP ({status}{quote}); check that `url` is its MCP endpoint"
            )),
        }
    }

    fn is_rpc(&self) -> bool {
        let limits = ReadLimits::of_bytes(READ_BYTES);
        if let Ok(message) = Message::parse(self.body.clone(), &limits) {
            return message
                .envelopes()
                .iter()
                .all(|envelope| envelope.method().is_none());
        }
        false
    }

    /// Returns the target of a redirect, without its query, which may contain a key.
    fn location(&self) -> Option<String> {
        let target: Uri = self
            .headers
            .get(header::LOCATION)?
            .to_str()
            .ok()?
            .parse()
            .ok()?;
        let origin = target
            .authority()
            .map(|host| format!("{}://{host}", target.scheme_str().unwrap_or("https")));
        let path = target.path();
        let text = format!(
            "`{}{path}`",
            origin
                .filter(|origin| !origin.contains('@'))
                .unwrap_or_default()
        );
        (text.len() <= 200).then_some(text)
    }
}

fn is_page(text: &str) -> bool {
    let start: String = text
        .trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
        .chars()
        .take(512)
        .collect();
    let start = start.to_ascii_lowercase();
    start.starts_with("<!doctype html")
        || start.starts_with("<html")
        || start.starts_with("<head")
        || start.contains("<html")
}

/// Returns the first words of a body, or the title of a page, without possible secrets.
fn excerpt(text: &str, is_page: bool, is_own: impl Fn(&str) -> bool) -> String {
    let title = is_page.then(|| title(text)).flatten();
    let mut plain = String::new();
    let mut in_tag = false;
    for c in title.unwrap_or(text).chars().take(READ_BYTES) {
        match c {
            '<' if is_page => in_tag = true,
            '>' if in_tag => {
                in_tag = false;
                plain.push(' ');
            }
            _ if in_tag => {}
            c if c.is_control() || c == '"' => plain.push(' '),
            c => plain.push(c),
        }
    }
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    match Redactor::shared() {
        Some(redactor) if !is_own(&plain) => redactor.text(&plain, WORDS_BYTES).into_owned(),
        _ => String::new(),
    }
}

fn title(text: &str) -> Option<&str> {
    // ASCII lowercasing keeps the length of every letter, so offsets are the same in both.
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower.get(start..)?.find('>')? + 1;
    let end = start + lower.get(start..)?.find("</title")?;
    text.get(start..end)
        .filter(|title| !title.trim().is_empty())
}

/// Checks whether a program of this name can be started, with the lookup that the system uses.
pub(super) fn probe_program(program: &str) -> ProbeResult {
    if is_executable(program) {
        return ProbeResult::Answers;
    }
    let fix = if program.contains('/') {
        "install it there, or correct `command`"
    } else {
        "install it, or write its full path in `command`"
    };
    let problem = if program.contains('/') {
        "is not there or is not executable"
    } else {
        "is not on the gate's PATH"
    };
    ProbeResult::Down(format!("the program `{program}` {problem}; {fix}"))
}

fn is_executable(program: &str) -> bool {
    let is_runnable = |path: &Path| {
        path.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_runnable(Path::new(program));
    }
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| is_runnable(&folder.join(program)))
    })
}

#[cfg(test)]
mod tests;
