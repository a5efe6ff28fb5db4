//! Agents that make calls, each with a session and a connection of its own.

use std::io;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use crate::wire::{Head, Wire};

/// One session.
pub struct Agent {
    wire: Wire,
    port: u16,
    path: String,
    session: String,
    calls: u64,
}

impl Agent {
    /// Connects and initializes the session.
    pub async fn connect(port: u16, path: &str) -> io::Result<Self> {
        let wire = Wire::new(TcpStream::connect(("127.0.0.1", port)).await?)?;
        let mut agent = Self {
            wire,
            port,
            path: path.to_owned(),
            session: String::new(),
            calls: 0,
        };
        let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let (head, _) = agent.post(initialize).await?;
        let session = head.session.ok_or_else(|| io::Error::other("no session"))?;
        agent.session =
            format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        agent
            .post(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await?;
        Ok(agent)
    }

    /// Makes a tool call and returns the length of the answer's body.
    pub async fn call(&mut self) -> io::Result<usize> {
        self.calls += 1;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{"name":"fetch_page","arguments":{{"url":"https://example.test/kettle?page=7","format":"text"}}}}}}"#,
            self.calls
        );
        let (_, answer) = self.post(&body).await?;
        Ok(answer.len())
    }

    /// Opens the stream for messages that the server sends by itself, on a connection of its own,
    /// and leaves it open.
    pub async fn listen(&self) -> io::Result<Wire> {
        let mut wire = Wire::new(TcpStream::connect(("127.0.0.1", self.port)).await?)?;
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAccept: text/event-stream\r\n{}\r\n",
            self.path, self.port, self.session
        );
        wire.send(request.as_bytes()).await?;
        let head = wire.head().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        expect_good(&head)?;
        Ok(wire)
    }

    async fn post(&mut self, body: &str) -> io::Result<(Head, Vec<u8>)> {
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{}Content-Length: {}\r\n\r\n{body}",
            self.path,
            self.port,
            self.session,
            body.len()
        );
        self.wire.send(request.as_bytes()).await?;
        let head = self
            .wire
            .head()
            .await?
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        let answer = self.wire.body(&head).await?;
        expect_good(&head).map_err(|error| {
            io::Error::other(format!("{error}: {}", String::from_utf8_lossy(&answer)))
        })?;
        Ok((head, answer))
    }
}

fn expect_good(head: &Head) -> io::Result<()> {
    let good = head
        .first
        .split(' ')
        .nth(1)
        .is_some_and(|status| status.starts_with('2'));
    if good {
        Ok(())
    } else {
        Err(io::Error::other(head.first.clone()))
    }
}

/// Calls made within a period of time.
#[derive(Default)]
pub struct Calls {
    pub latencies: Vec<Duration>,
    pub took: Duration,
}

/// Makes calls in all sessions at the same time, each as fast as it is answered, for about `time`.
pub async fn call_for(time: Duration, agents: &mut Vec<Agent>, least: usize) -> io::Result<Calls> {
    let began = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    for mut agent in agents.drain(..) {
        running.spawn(async move {
            let mut latencies = Vec::new();
            while began.elapsed() < time {
                let at = Instant::now();
                let length = agent.call().await?;
                if length < least {
                    return Err(io::Error::other(format!(
                        "an answer of {length} bytes where {least} were due"
                    )));
                }
                latencies.push(at.elapsed());
            }
            Ok((agent, latencies))
        });
    }
    let mut calls = Calls::default();
    while let Some(done) = running.join_next().await {
        let (agent, latencies) = done.map_err(io::Error::other)??;
        agents.push(agent);
        calls.latencies.extend(latencies);
    }
    calls.took = began.elapsed();
    Ok(calls)
}
