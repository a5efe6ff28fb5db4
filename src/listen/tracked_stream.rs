//! The stream of an HTTP/1.1 connection, which records what is needed to free the buffers of an
//! idle one.
//!
//! hyper keeps 16 kB of buffers for as long as a connection is open, and reports neither whether a
//! response has been written nor whether a request head has been read in part. It flushes its
//! stream only when its own buffer is empty, and reads a head only between two requests, so the
//! stream can determine both.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::connections::Connection;

/// The stream of a connection.
pub(super) struct TrackedStream<S> {
    io: TokioIo<S>,
    /// Bytes that were read before hyper took over, which hyper reads first.
    unread: Bytes,
    connection: Arc<Connection>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TrackedStream<S> {
    pub(super) fn new(stream: S, connection: Arc<Connection>) -> Self {
        Self {
            io: TokioIo::new(stream),
            unread: Bytes::new(),
            connection,
        }
    }

    /// Returns the same stream with these bytes, which have been read from it, as unread.
    pub(super) fn with_unread(self, unread: &[u8]) -> Self {
        // Copied, even if there are none: a slice would keep hyper's buffer alive.
        Self {
            unread: Bytes::copy_from_slice(unread),
            ..self
        }
    }

    /// Returns when there is something to read. The end of the stream and an error count too: hyper
    /// encounters them again.
    pub(super) async fn until_readable(&mut self) {
        if self.unread.is_empty() {
            let mut first = [0];
            let length = self.io.inner_mut().read(&mut first).await.unwrap_or(0);
            self.unread = Bytes::copy_from_slice(first.get(..length).unwrap_or_default());
        }
    }
}

impl<S: AsyncRead + Unpin> Read for TrackedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unread.is_empty() {
            ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        } else {
            let length = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread.split_to(length));
        }
        self.connection.record_read();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Write for TrackedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.connection.set_flushed(false);
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(context))?;
        self.connection.set_flushed(true);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.connection.set_flushed(false);
        Pin::new(&mut self.io).poll_write_vectored(context, pieces)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Response;
    use tokio::io::AsyncWriteExt;
    use tokio::sync::watch;
    use tokio::time::sleep;

    use super::*;
    use crate::config::Limits;
    use crate::listen::Body;
    use crate::listen::certificate::CertificateNames;
    use crate::listen::http_server::{Server, Version};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: gate\r\n\r\n";

    #[tokio::test]
    async fn a_connection_without_buffers_takes_the_next_request() {
        let connection = Arc::new(Connection::testing(CertificateNames::default()));
        connection.set_authenticated();
        let (mut client, stream) = tokio::io::duplex(1 << 10);
        let (drain, mut draining) = watch::channel(false);
        let server = Server::new(&Limits::default());
        let answer = |_| async { Response::new(Body::Whole("answer".into())) };
        let idle = || {
            tokio::time::timeout(
                Duration::from_secs(3),
                connection.until_buffers_empty(Duration::from_secs(1)),
            )
        };
        let agent = async {
            // Whole requests, two at once, and one that is interrupted for longer than buffers are
            // kept.
            for (pieces, answers) in [
                (vec![REQUEST], 1),
                (vec![REQUEST, REQUEST], 2),
                (vec![&REQUEST[..9], &REQUEST[9..]], 1),
            ] {
                for (number, piece) in pieces.iter().enumerate() {
                    if number > 0 && pieces[0].len() < REQUEST.len() {
                        assert!(idle().await.is_err(), "a part of a head was read");
                    }
                    client.write_all(piece).await.unwrap();
                }
                for _ in 0..answers {
                    let mut read = Vec::new();
                    while !read.ends_with(b"answer") {
                        read.push(client.read_u8().await.unwrap());
                    }
                }
                idle().await.unwrap();
                // The connection waits equally long, and then frees its buffers.
                sleep(Duration::from_millis(50)).await;
            }
            drain.send_replace(true);
            assert_eq!(
                client.read(&mut [0]).await.unwrap(),
                0,
                "it ends without buffers too"
            );
        };
        let (ended, ()) = tokio::join!(
            server.run(Version::Http1, stream, &connection, &mut draining, answer),
            agent
        );
        ended.unwrap();
    }
}
