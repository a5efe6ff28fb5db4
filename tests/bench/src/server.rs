//! The server behind all ways: sessions, streams that stay open, and results whose size is part of
//! the path.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::TcpListener;

use crate::text;
use crate::wire::Wire;

/// `/json/10000` answers with 10,000 bytes of text in JSON, `/sse/10000` in an event stream.
pub const SIZES: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];

static SESSIONS: AtomicU64 = AtomicU64::new(1);

pub async fn serve(port: u16) -> io::Result<()> {
    let texts: HashMap<usize, String> = SIZES
        .iter()
        .map(|size| {
            (
                *size,
                serde_json::to_string(&text::clean(*size)).unwrap_or_default(),
            )
        })
        .collect();
    let texts = Arc::new(texts);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let texts = texts.clone();
        tokio::spawn(async move {
            // A peer that disconnects early is not an error.
            let _ = converse(Wire::new(stream)?, &texts).await;
            io::Result::Ok(())
        });
    }
}

async fn converse(mut wire: Wire, texts: &HashMap<usize, String>) -> io::Result<()> {
    while let Some(head) = wire.head().await? {
        let body = wire.body(&head).await?;
        let path = head.first.split(' ').nth(1).unwrap_or_default();
        if head.first.starts_with("GET") {
            wire.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n: hi\n\n\r\n",
            )
            .await?;
            continue;
        }
        let text = String::from_utf8_lossy(&body);
        let Some(id) = id(&text) else {
            wire.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
                .await?;
            continue;
        };
        if text.contains("\"initialize\"") {
            let session = SESSIONS.fetch_add(1, Ordering::Relaxed);
            let result = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"bench","version":"1"}}}}}}"#
            );
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: bench-{session:08}\r\nContent-Length: {}\r\n\r\n",
                result.len()
            );
            wire.send((head + &result).as_bytes()).await?;
            continue;
        }
        let (framing, size) = path
            .trim_start_matches('/')
            .split_once('/')
            .unwrap_or(("json", "100"));
        let said = size
            .parse()
            .ok()
            .and_then(|size: usize| texts.get(&size))
            .map_or("\"?\"", String::as_str);
        let result = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{said}}}],"isError":false}}}}"#
        );
        let answer = if framing == "sse" {
            let event = format!("event: message\ndata: {result}\n\n");
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n0\r\n\r\n",
                event.len()
            )
        } else {
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{result}",
                result.len()
            )
        };
        wire.send(answer.as_bytes()).await?;
    }
    Ok(())
}

/// Returns the id of a request as written; a notification has none.
fn id(text: &str) -> Option<&str> {
    let at = text.find("\"id\":")? + 5;
    let rest = text.get(at..)?;
    rest.get(..rest.find([',', '}'])?)
}
