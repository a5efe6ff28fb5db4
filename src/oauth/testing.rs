//! A small loopback server that responds as a test specifies and records its requests.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::fetch::{Fetcher, Guard};

/// One response: status, headers, body.
pub(super) struct Reply(
    pub(super) u16,
    pub(super) Vec<(&'static str, String)>,
    pub(super) String,
);

impl Reply {
    pub(super) fn json(body: impl Into<String>) -> Self {
        Self(
            200,
            vec![("content-type", "application/json".into())],
            body.into(),
        )
    }

    pub(super) fn status(status: u16) -> Self {
        Self(status, vec![], String::new())
    }
}

/// A request as received: `GET /path`, its complete head, and its body.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) line: String,
    pub(super) head: String,
    pub(super) body: String,
}

pub(super) struct Site {
    /// `http://127.0.0.1:PORT`
    pub(super) origin: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    _task: JoinSet<()>,
}

impl Site {
    /// Starts a server; `answer` gets the origin and the request.
    pub(super) async fn new(
        answer: impl Fn(&str, &Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let mut task = JoinSet::new();
        let kept = asked.clone();
        let base = origin.clone();
        task.spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut bytes = Vec::new();
                let request = loop {
                    let read = stream.read_buf(&mut bytes).await.unwrap_or(0);
                    if let Some(request) = whole(&bytes) {
                        break Some(request);
                    }
                    if read == 0 {
                        break None;
                    }
                };
                let Some(request) = request else { continue };
                kept.lock().push(request.clone());
                let Reply(status, headers, body) = answer(&base, &request);
                let mut out = format!(
                    "HTTP/1.1 {status} Said\r\ncontent-length: {}\r\nconnection: close\r\n",
                    body.len()
                );
                for (name, value) in headers {
                    out.push_str(&format!("{name}: {value}\r\n"));
                }
                out.push_str("\r\n");
                out.push_str(&body);
                stream.write_all(out.as_bytes()).await.ok();
            }
        });
        Self {
            origin,
            asked,
            _task: task,
        }
    }

    /// Returns `GET /path` of each request, in order.
    pub(super) fn lines(&self) -> Vec<String> {
        self.asked
            .lock()
            .iter()
            .map(|asked| asked.line.clone())
            .collect()
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }
}

fn whole(bytes: &[u8]) -> Option<Asked> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length:")?
            .trim()
            .parse()
            .ok()
    });
    (body.len() >= length.unwrap_or(0)).then(|| Asked {
        line: head
            .lines()
            .next()
            .unwrap_or_default()
            .trim_end_matches(" HTTP/1.1")
            .to_owned(),
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

/// Returns a fetcher that may use `http` on loopback.
pub(super) fn fetcher() -> Fetcher {
    let guard = Guard {
        allow_loopback_http: true,
        private_hosts: vec![],
    };
    Fetcher::new(guard, Duration::from_secs(5), None).unwrap()
}
