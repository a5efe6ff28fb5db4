//! The callback of one login: a loopback listener for that login alone (RFC 8252, section 7.3).

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::SecretText;
use crate::protocol::headers;

/// The only path that is served; the same as on the gate's own listener.
const PATH: &str = "/oauth/callback";
/// Maximum number of concurrent connections: a browser opens several.
const MAX_CONNECTIONS: usize = 16;
/// Maximum duration of one connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a request head, in bytes: authorization codes may be long.
const HEAD_BYTES: usize = 64 << 10;

/// A listener for the answer to one login.
pub struct Loopback {
    v4: TcpListener,
    /// Present if the machine has IPv6: a browser may prefer it for `localhost`.
    v6: Option<TcpListener>,
    port: u16,
}

impl Loopback {
    /// Listens on this loopback port, or on any free port if it is 0.
    ///
    /// # Errors
    /// Fails if the port is in use.
    pub async fn bind(port: u16) -> io::Result<Self> {
        let v4 = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let port = v4.local_addr()?.port();
        let v6 = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok();
        Ok(Self { v4, v6, port })
    }

    /// Returns the URL to which the authorization server redirects the browser.
    pub fn redirect_uri(&self) -> String {
        redirect_uri(self.port)
    }

    /// Waits for the browser and returns the query of its request. A query that is not `is_ours`
    /// (by its `state`) is refused and does not end the wait. Stops listening once an answer has
    /// arrived; returns `None` if none arrives in time.
    pub async fn wait_for_answer(
        self,
        limit: Duration,
        is_ours: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Option<SecretText> {
        let (sender, mut answers) = mpsc::channel(1);
        let state = Arc::new(CallbackState {
            is_ours,
            sender: Mutex::new(Some(sender)),
        });
        let mut connections = JoinSet::new();
        let serve = async {
            loop {
                tokio::select! {
                    Some(answer) = answers.recv() => return Some(answer),
                    Some(_) = connections.join_next() => {}
                    stream = self.accept(), if connections.len() < MAX_CONNECTIONS => {
                        if let Ok(stream) = stream {
                            connections.spawn(serve(stream, state.clone()));
                        } else {
                            // For example, out of file descriptors, until other connections release
                            // some.
                            tokio::time::sleep(Duration::from_millis(100)).await;
                        }
                    }
                }
            }
        };
        timeout(limit, serve).await.unwrap_or(None)
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        let v6 = async {
            match &self.v6 {
                Some(v6) => v6.accept().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = self.v4.accept() => accepted,
            accepted = v6 => accepted,
        }
        .map(|(stream, _)| stream)
    }
}

/// Returns the redirect URI of a listener on this port. It contains an address and not a name,
/// since names can be made to resolve elsewhere.
pub fn redirect_uri(port: u16) -> String {
    format!("http://127.0.0.1:{port}{PATH}")
}

/// Which answers are accepted, and where they are delivered.
struct CallbackState<F> {
    is_ours: F,
    /// Taken by the first answer that matches; there is no second.
    sender: Mutex<Option<mpsc::Sender<SecretText>>>,
}

async fn serve<F: Fn(&str) -> bool + Send + Sync + 'static>(
    stream: TcpStream,
    state: Arc<CallbackState<F>>,
) {
    let answer = Arc::new(Mutex::new(None));
    let service = service_fn(|request: Request<Incoming>| {
        let (page, matched) = respond(&request, &state);
        if matched.is_some() {
            *answer.lock() = matched;
        }
        async { Ok::<_, Infallible>(page) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false);
    // Errors on a connection are shown by the browser.
    drop(
        timeout(
            CONNECTION_TIMEOUT,
            http.serve_connection(TokioIo::new(stream), service),
        )
        .await,
    );
    // Delivered only now: the receiver may end the process, and the page has to reach the browser
    // first.
    let matched = answer.lock().take();
    if let Some((sender, query)) = matched {
        // Nobody is waiting if the time is over.
        drop(mpsc::Sender::send(&sender, query).await);
    }
}

type MatchedAnswer = Option<(mpsc::Sender<SecretText>, SecretText)>;

fn respond<F: Fn(&str) -> bool>(
    request: &Request<Incoming>,
    state: &CallbackState<F>,
) -> (Response<Full<Bytes>>, MatchedAnswer) {
    if request.uri().path() != PATH {
        return (page(StatusCode::NOT_FOUND, "Nothing is here."), None);
    }
    if request.method() != Method::GET {
        return (
            page(
                StatusCode::METHOD_NOT_ALLOWED,
                "This page can only be looked at.",
            ),
            None,
        );
    }
    let query = request.uri().query().unwrap_or_default();
    let refusal = || {
        (
            page(
                StatusCode::BAD_REQUEST,
                "This answer belongs to no login that is waited for.",
            ),
            None,
        )
    };
    if !(state.is_ours)(query) {
        return refusal();
    }
    match state.sender.lock().take() {
        Some(sender) => {
            let message = "The answer has arrived. This page can be closed; lychgate tells where it was started how the login ended.";
            (
                page(StatusCode::OK, message),
                Some((sender, SecretText::new(query.to_owned()))),
            )
        }
        None => refusal(),
    }
}

/// Returns a page that must not be cached, loads nothing, and sends its URL (which contains the
/// code) to nobody.
fn page(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>lychgate</title><p>{text}</p></html>\n"
    );
    let mut response = Response::new(Full::new(Bytes::from(html)));
    *response.status_mut() = status;
    let values = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONNECTION, "close"),
    ];
    headers::set(response.headers_mut(), values);
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn send_request(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .unwrap();
        stream
            .write_all(format!("{request} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    fn is_ours(query: &str) -> bool {
        query.split('&').any(|pair| pair == "state=right")
    }

    #[tokio::test]
    async fn only_the_right_state_on_the_one_path_ends_the_wait() {
        let loopback = Loopback::bind(0).await.unwrap();
        let uri = loopback.redirect_uri();
        let port = loopback.port;
        assert_eq!(uri, format!("http://127.0.0.1:{port}/oauth/callback"));
        let waiting = tokio::spawn(loopback.wait_for_answer(Duration::from_secs(30), is_ours));
        for (request, status) in [
            ("GET /oauth/callback?code=c&state=wrong", "400"),
            ("GET /oauth/callback?code=c", "400"),
            ("GET /oauth/callback", "400"),
            ("GET /favicon.ico", "404"),
            ("GET /oauth/callback/x?state=right", "404"),
            ("POST /oauth/callback?code=c&state=right", "405"),
            ("GET /oauth/callback?code=c&state=wrong<script>", "400"),
        ] {
            let response = send_request(port, request).await;
            assert!(
                response.starts_with(&format!("HTTP/1.1 {status}")),
                "{request}: {response}"
            );
            assert!(
                !response.contains("wrong"),
                "nothing of the address is shown: {response}"
            );
            assert!(!waiting.is_finished());
        }
        let response = send_request(port, "GET /oauth/callback?code=c%2Fd&state=right")
            .await
            .to_ascii_lowercase();
        assert!(response.starts_with("http/1.1 200"), "{response}");
        assert_contains!(
            response,
            "cache-control: no-store",
            "referrer-policy: no-referrer",
            "content-security-policy: default-src 'none'"
        );
        assert_lacks!(response, "<script", "c%2fd");
        let answer = waiting.await.unwrap().unwrap();
        assert_eq!(answer.expose(), "code=c%2Fd&state=right");
        assert!(
            TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                .await
                .is_err(),
            "it listens no longer"
        );
    }

    #[tokio::test]
    async fn who_says_nothing_does_not_keep_others_out_and_the_wait_ends() {
        let loopback = Loopback::bind(0).await.unwrap();
        let port = loopback.port;
        let waiting = tokio::spawn(loopback.wait_for_answer(Duration::from_secs(30), is_ours));
        let mut silent = vec![];
        for _ in 0..MAX_CONNECTIONS - 1 {
            silent.push(
                TcpStream::connect((Ipv4Addr::LOCALHOST, port))
                    .await
                    .unwrap(),
            );
        }
        assert!(
            send_request(port, "GET /oauth/callback?state=right")
                .await
                .starts_with("HTTP/1.1 200")
        );
        assert!(waiting.await.unwrap().is_some());

        let loopback = Loopback::bind(0).await.unwrap();
        assert!(
            loopback
                .wait_for_answer(Duration::from_millis(50), is_ours)
                .await
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_said() {
        let first = Loopback::bind(0).await.unwrap();
        assert!(Loopback::bind(first.port).await.is_err());
    }
}
