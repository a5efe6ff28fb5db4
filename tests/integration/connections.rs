//! Connections that are idle, send no credential or guess tokens end, and keep no other client out.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{Agent, TestGate, call, soon, token, until};
use super::servers::Server;

const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
const READ: Duration = Duration::from_millis(300);
const ELSEWHERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));

async fn gate(change: impl FnOnce(&mut lychgate::config::Limits)) -> (TestGate, Server) {
    let server = Server::answering(OK).await;
    let setup = server.setup().agents(&["ann", "bob"]);
    (
        setup.start_with(|config| change(&mut config.limits)).await,
        server,
    )
}

/// A minimal HTTP/2 client.
struct Raw {
    stream: TcpStream,
    answers_pings: bool,
    data: Vec<u8>,
}

impl Raw {
    /// Connects; `window` is the number of bytes that the gate may send of each body.
    async fn connect(to: SocketAddr, window: u32, answers_pings: bool) -> Self {
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await
            .unwrap();
        let mut raw = Self {
            stream,
            answers_pings,
            data: Vec::new(),
        };
        let mut settings = vec![0, 4];
        settings.extend(window.to_be_bytes());
        raw.frame(4, 0, 0, &settings).await;
        raw
    }

    async fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut bytes = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        self.stream.write_all(&bytes).await.ok();
    }

    /// Sends a GET as stream 1.
    async fn get(&mut self, path: &str, token: Option<&str>) {
        let mut head = vec![0x82, 0x86];
        let mut literal = |name: &[u8], value: &str| {
            head.extend(name);
            head.push(u8::try_from(value.len()).unwrap());
            head.extend(value.as_bytes());
        };
        literal(&[0x04], path);
        literal(&[0x01], "localhost");
        if let Some(token) = token {
            literal(&[0x0f, 0x08], &format!("Bearer {token}"));
        }
        self.frame(1, 0x05, 1, &head).await;
    }

    /// Reads until the gate closes the connection, for at most `time`; returns how long that took,
    /// or `None` if it stayed open.
    async fn closed_within(&mut self, time: Duration) -> Option<Duration> {
        let began = Instant::now();
        tokio::time::timeout(time, async { while self.next().await.is_some() {} })
            .await
            .ok()
            .map(|()| began.elapsed())
    }

    async fn next(&mut self) -> Option<()> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.stream.read_exact(&mut payload).await.ok()?;
        match head[3] {
            0 => self.data.extend(payload),
            6 if head[4] == 0 && self.answers_pings => self.frame(6, 1, 0, &payload).await,
            _ => {}
        }
        Some(())
    }
}

#[tokio::test]
async fn an_http2_connection_without_open_streams_ends() {
    let (gate, _server) = gate(|limits| limits.request_read = READ).await;
    for (window, answers_pings, counted) in
        [(65_535, true, 0.0), (65_535, false, 1.0), (0, true, 1.0)]
    {
        let before = gate.limit_hits("request_read_seconds");
        let mut raw = Raw::connect(gate.running.address, window, answers_pings).await;
        raw.get("/mcp/up", None).await;
        let took = raw
            .closed_within(Duration::from_secs(5))
            .await
            .expect("the connection ends");
        assert!(took >= READ, "{took:?}");
        assert_eq!(raw.data.is_empty(), window == 0);
        until("the count", || {
            gate.limit_hits("request_read_seconds") == before + counted
        })
        .await;
    }
    // An authenticated connection ends once it has been idle for that long.
    let mut raw = Raw::connect(gate.running.address, 65_535, false).await;
    raw.get("/mcp/nowhere", Some(&token("ann"))).await;
    assert!(
        raw.closed_within(Duration::from_secs(5))
            .await
            .expect("the connection ends")
            >= READ
    );
}

#[tokio::test]
async fn an_http1_connection_without_requests_ends() {
    let (gate, _server) = gate(|limits| limits.request_read = READ).await;
    for bearer in [
        String::new(),
        format!("authorization: Bearer {}\r\n", token("ann")),
    ] {
        let mut stream = TcpStream::connect(gate.running.address).await.unwrap();
        let request = format!("GET /mcp/nowhere HTTP/1.1\r\nhost: localhost\r\n{bearer}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let began = Instant::now();
        let mut said = Vec::new();
        soon("the end of the connection", stream.read_to_end(&mut said))
            .await
            .ok();
        assert!(began.elapsed() >= READ && said.starts_with(b"HTTP/1.1 40"));
    }
}

#[tokio::test]
async fn a_connection_with_an_open_stream_stays() {
    let (gate, _server) = gate(|limits| limits.request_read = READ).await;
    let mut raw = Raw::connect(gate.running.address, 65_535, true).await;
    raw.get("/sse/up", Some(&token("ann"))).await;
    assert_eq!(raw.closed_within(4 * READ).await, None);
    assert!(String::from_utf8_lossy(&raw.data).contains("event: endpoint"));
    let answer = gate.agent_named("ann").get("/sse/up", &[]).await;
    let mut answer = answer.expect(200).await;
    answer.event().await.unwrap();
    assert!(
        tokio::time::timeout(4 * READ, answer.event())
            .await
            .is_err(),
        "nothing more is said, and it does not end"
    );
}

#[tokio::test]
async fn unauthenticated_connections_do_not_keep_agents_out() {
    let (gate, _server) = gate(|limits| {
        limits.connections = 10;
        limits.unauthenticated_connections = 4;
    })
    .await;
    let known = gate.agent_named("ann");
    known.post_ok("up", &[], call("1", "x")).await.bytes().await;
    let mut held = Vec::new();
    for _ in 0..12 {
        let mut stream = TcpStream::connect(gate.running.address).await.unwrap();
        stream
            .write_all(b"GET /mcp/up HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await
            .ok();
        held.push(stream);
    }
    gate.agent_named("bob")
        .post_ok("up", &[], call("1", "x"))
        .await;
    known.post_ok("up", &[], call("1", "x")).await;
    assert!(gate.limit_hits("unauthenticated_connections") >= 8.0);
    assert_eq!(gate.limit_hits("connections"), 0.0);
    let mut said = Vec::new();
    soon("the end of the oldest", held[0].read_to_end(&mut said))
        .await
        .ok();
}

#[tokio::test]
async fn connections_per_address() {
    let (gate, _server) = gate(|limits| limits.connections_per_address = Some(2)).await;
    let held = [
        TcpStream::connect(gate.running.address).await.unwrap(),
        TcpStream::connect(gate.running.address).await.unwrap(),
    ];
    let mut third = TcpStream::connect(gate.running.address).await.unwrap();
    let mut said = Vec::new();
    soon("an answer", third.read_to_end(&mut said))
        .await
        .unwrap();
    assert!(said.starts_with(b"HTTP/1.1 503 "));
    gate.agent_named("ann")
        .at(ELSEWHERE)
        .post_ok("up", &[], call("1", "x"))
        .await;
    assert_eq!(gate.limit_hits("connections_per_address"), 1.0);
    drop(held);
}

#[tokio::test]
async fn silent_connections_do_not_hold_up_probes() {
    let (gate, _server) = gate(|limits| limits.admin_connections = 8).await;
    let admin = gate.running.admin.unwrap();
    let mut held = Vec::new();
    for _ in 0..20 {
        held.push(TcpStream::connect(admin).await.unwrap());
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(gate.admin(path).await.0, 200, "{path}");
    }
    assert!(gate.limit_hits("admin_connections") >= 12.0);
}

#[tokio::test]
async fn a_silent_connection_to_the_admin_port_ends() {
    let (gate, _server) = gate(|limits| limits.request_read = READ).await;
    for start in [
        "",
        "GET /healthz HTTP/1.1\r\nhost: local",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(gate.running.admin.unwrap())
            .await
            .unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        soon("the end of the connection", stream.read_to_end(&mut said))
            .await
            .ok();
        assert_eq!(
            said.starts_with(b"HTTP/1.1 200"),
            start.ends_with("\r\n\r\n")
        );
    }
}

#[tokio::test]
async fn guessing_tokens_locks_the_guesser() {
    let (gate, _server) = gate(|limits| limits.wrong_tokens_per_minute = 3).await;
    gate.agent_named("bob")
        .post_ok("up", &[], call("1", "x"))
        .await;
    let shows = |shown: &str| Agent::new(gate.running.address, Some(shown.to_owned()));
    for _ in 0..5 {
        shows("an-outdated-token")
            .post_expecting(401, "up", &[], call("1", "x"))
            .await;
    }
    for guess in ["guess-1", "guess-2"] {
        shows(guess)
            .post_expecting(401, "up", &[], call("1", "x"))
            .await;
    }
    let locked = shows("guess-3")
        .post_expecting(429, "up", &[], call("1", "x"))
        .await;
    assert_eq!(locked.header("retry-after"), "60");
    assert_eq!(locked.header("www-authenticate"), "");
    gate.agent_named("ann")
        .post_expecting(429, "up", &[], call("1", "x"))
        .await;
    assert_eq!(gate.limit_hits("wrong_tokens_per_minute"), 2.0);
    gate.agent_named("bob")
        .post_ok("up", &[], call("1", "x"))
        .await;
    gate.agent_named("ann")
        .at(ELSEWHERE)
        .post_ok("up", &[], call("1", "x"))
        .await;
}
