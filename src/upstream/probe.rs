//! Whether a server could be reached, asked without troubling it: for `/readyz`, before the first call and after a
//! failed one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use http::Uri;
use tokio::net::TcpStream;

use super::Health;
use crate::config::Transport;

/// Time for a connection; whoever asks waits for as long.
const CONNECT: Duration = Duration::from_secs(2);

/// How to find out.
pub(super) enum Probe {
    /// Something must listen there.
    Address(String, u16),
    /// The program must be there.
    Program(String),
    /// It is part of this process.
    BuiltIn,
}

impl Probe {
    pub(super) fn of(transport: &Transport) -> Self {
        match transport {
            Transport::Http(http) | Transport::Sse(http) => {
                let url: Uri = http.url.parse().unwrap_or_default();
                let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
                let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
                Self::Address(host.to_owned(), port)
            }
            Transport::Stdio(stdio) => Self::Program(stdio.command.first().cloned().unwrap_or_default()),
        }
    }

    /// Before the first call.
    pub(super) async fn first(&self) -> Health {
        match self {
            Self::Address(host, port) => match tokio::time::timeout(CONNECT, TcpStream::connect((host.as_str(), *port))).await {
                Ok(Ok(_)) => Health::Up,
                Ok(Err(error)) => Health::Down(format!("nothing answers at {host}:{port}: {error}")),
                Err(_) => Health::Down(format!("nothing answers at {host}:{port} within {} s", CONNECT.as_secs())),
            },
            Self::BuiltIn => Health::Up,
            Self::Program(program) if found(program) => Health::Up,
            Self::Program(program) => Health::Down(format!("the program `{program}` is not there")),
        }
    }

    /// After a call could not reach it, for this reason: a server that can be connected to again is up until a call
    /// says otherwise; a process that ended is down until one starts well.
    pub(super) async fn again(&self, why: String) -> Health {
        match self {
            Self::Address(..) | Self::BuiltIn => self.first().await,
            Self::Program(_) => Health::Down(why),
        }
    }
}

/// Whether a program can be started by this name, as the system looks for it.
fn found(program: &str) -> bool {
    let runs = |path: &Path| path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        return runs(Path::new(program));
    }
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| runs(&folder.join(program))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_listens_is_up_and_one_that_does_not_is_down() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let probe = Probe::Address("127.0.0.1".into(), listener.local_addr().unwrap().port());
        assert_eq!(probe.first().await, Health::Up);
        drop(listener);
        assert!(matches!(probe.again("before".into()).await, Health::Down(why) if why.contains("127.0.0.1")));
    }

    #[tokio::test]
    async fn a_program_must_be_there() {
        assert_eq!(Probe::Program("sh".into()).first().await, Health::Up);
        assert!(matches!(Probe::Program("no-such-program-here".into()).first().await, Health::Down(_)));
        assert_eq!(Probe::Program("sh".into()).again("it ended".into()).await, Health::Down("it ended".into()));
    }
}
