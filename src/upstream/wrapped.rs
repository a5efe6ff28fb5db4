//! A server whose standard input and output belong to an agent's session: `lychgate wrap` started
//! it. Messages are written to it as lines; its messages come back on its single output, which the
//! process that started it reads.

use std::io;

use http::HeaderMap;
use http::StatusCode;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::Mutex;

use super::http::empty_reply;
use crate::protocol::{Call, CallError, CallKind, Reply};

/// The standard input of the server: whole lines, one after the other. Closed until the server has
/// been started.
#[derive(Default)]
pub struct ServerInput(Mutex<Option<ChildStdin>>);

impl ServerInput {
    /// Directs all further lines to this process.
    pub async fn open(&self, stdin: ChildStdin) {
        *self.0.lock().await = Some(stdin);
    }

    /// Closes the input: the server reads the end of the file.
    pub async fn close(&self) {
        *self.0.lock().await = None;
    }

    /// Writes the parts of one line.
    ///
    /// # Errors
    /// Fails if the server no longer reads.
    pub async fn write(&self, parts: &[&[u8]]) -> io::Result<()> {
        let mut stdin = self.0.lock().await;
        let stdin = stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        for part in parts {
            stdin.write_all(part).await?;
        }
        stdin.flush().await
    }

    /// Sends a message. The reply only confirms that it was sent.
    pub(super) async fn call(&self, call: &Call) -> Result<Reply, CallError> {
        let CallKind::Send(message) = &call.kind else {
            return Err(CallError::NotOffered);
        };
        let end = call.context.wire.line_end.as_deref().unwrap_or(b"\n");
        self.write(&[message.bytes(), end])
            .await
            .map_err(CallError::Connect)?;
        Ok(empty_reply(StatusCode::ACCEPTED, HeaderMap::new()))
    }
}
