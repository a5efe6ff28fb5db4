//! The part of HTTP/1.1 that both ends of the benchmark need, at little cost compared with what is
//! measured.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A connection, with the bytes that were read from it.
pub struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
    at: usize,
}

/// The head of a request or an answer.
#[derive(Debug)]
pub struct Head {
    /// The request line or the status line.
    pub first: String,
    /// The value of `Mcp-Session-Id`.
    pub session: Option<String>,
    length: Length,
}

#[derive(Debug, PartialEq, Eq)]
enum Length {
    Bytes(usize),
    Chunked,
}

impl Wire {
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(16 << 10),
            at: 0,
        })
    }

    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads the next head; `None` if the peer has disconnected instead.
    pub async fn head(&mut self) -> io::Result<Option<Head>> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            if !self.more().await? {
                return Ok(None);
            }
        };
        let text = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.at = end + 4;
        let mut lines = text.split("\r\n");
        let first = lines.next().unwrap_or_default().to_owned();
        let mut session = None;
        let mut length = Length::Bytes(0);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    length = Length::Bytes(value.parse().map_err(io::Error::other)?)
                }
                "transfer-encoding" => length = Length::Chunked,
                "mcp-session-id" => session = Some(value.to_owned()),
                _ => {}
            }
        }
        Ok(Some(Head {
            first,
            session,
            length,
        }))
    }

    /// Reads the body after a head.
    pub async fn body(&mut self, head: &Head) -> io::Result<Vec<u8>> {
        if let Length::Bytes(length) = head.length {
            return self.take(length).await;
        }
        let mut body = Vec::new();
        loop {
            let line = loop {
                if let Some(end) = find(&self.buffer[self.at..], b"\r\n") {
                    break self.take(end + 2).await?;
                }
                self.more_or_fail().await?;
            };
            let size = String::from_utf8_lossy(&line);
            let size = usize::from_str_radix(size.trim().split(';').next().unwrap_or_default(), 16)
                .map_err(io::Error::other)?;
            let chunk = self.take(size + 2).await?;
            if size == 0 {
                return Ok(body);
            }
            body.extend_from_slice(&chunk[..size]);
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < self.at + length {
            self.more_or_fail().await?;
        }
        let taken = self.buffer[self.at..self.at + length].to_vec();
        self.at += length;
        Ok(taken)
    }

    async fn more_or_fail(&mut self) -> io::Result<()> {
        if self.more().await? {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    async fn more(&mut self) -> io::Result<bool> {
        if self.buffer.capacity() - self.buffer.len() < 4096 {
            self.buffer.reserve(64 << 10);
        }
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
