//! Plain HTTP that arrives at the TLS port, usually from an agent whose URL begins with `http://`.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How much of the request is read, and for how long, so that the response is not lost with the
/// connection.
const READ_BYTES: usize = 64 << 10;
const READ_TIME: Duration = Duration::from_secs(1);

const TEXT: &str = "This port speaks HTTPS and the request came over plain HTTP. Write `https://` in place of `http://` in the client's URL.\n";

/// Reports whether the first byte of a connection is that of an HTTP request: TLS begins with 22
/// (RFC 8446, section 5.1), methods of HTTP/1.1 and the preface of HTTP/2 with a letter.
pub(super) async fn is_next(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let length = stream.peek(&mut first).await?;
    Ok(length == 1 && first.first().is_some_and(u8::is_ascii_alphabetic))
}

/// Responds with 400 and what to change, and ends the connection.
pub(super) async fn refuse(mut stream: TcpStream) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        TEXT.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(TEXT.as_bytes()).await?;
    stream.shutdown().await?;
    // A connection that is closed with unread bytes is reset, and the peer may lose the response.
    let mut remaining = stream.take(READ_BYTES as u64);
    let mut sink = tokio::io::sink();
    let read = tokio::io::copy(&mut remaining, &mut sink);
    tokio::time::timeout(READ_TIME, read)
        .await
        .map_or(Ok(()), |read| read.map(drop))
}
