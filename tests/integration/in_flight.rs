//! Bytes in flight are reserved before they are read, for all agents together and for each, and
//! released when a call has ended.

use std::time::Duration;

use lychgate::config::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{TestGate, assert_contains, call, soon, token, until};
use super::servers::{Server, json_reply};

const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
const AGENTS: [&str; 2] = ["ann", "bob"];

fn small(limits: &mut Limits) {
    limits.read.message_bytes = 1_000_000;
    limits.bytes_in_flight = 1_700_000;
    limits.bytes_in_flight_per_agent = 1_200_000;
}

async fn gate(change: impl FnOnce(&mut Limits)) -> (TestGate, Server) {
    let server = Server::answering(OK).await;
    let setup = server.setup().agents(&AGENTS).with(|config| {
        small(&mut config.limits);
        change(&mut config.limits);
    });
    (setup.start().await, server)
}

/// Starts a request of an agent without sending its body.
async fn begun(gate: &TestGate, agent: &str, framing: &str) -> TcpStream {
    let mut stream = TcpStream::connect(gate.running.address).await.unwrap();
    let head = format!(
        "POST /mcp/up HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer {}\r\n{framing}\r\n\r\n",
        token(agent)
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

fn in_flight(gate: &TestGate) -> usize {
    gate.running.gate().in_flight().bytes()
}

/// Returns the head of an answer.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n")
        && soon("an answer", stream.read(&mut byte)).await.unwrap_or(0) == 1
    {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap().to_lowercase()
}

#[tokio::test]
async fn announced_bodies_are_reserved_before_they_come() {
    let (gate, server) = gate(|limits| limits.request_read = Duration::from_secs(2)).await;
    let mut slow = begun(&gate, "ann", "content-length: 900000").await;
    until("the reservation", || in_flight(&gate) == 900_000).await;
    let own = head(&mut begun(&gate, "ann", "content-length: 900000").await).await;
    assert!(
        own.starts_with("http/1.1 429") && own.contains("retry-after: 1"),
        "{own}"
    );
    let other = head(&mut begun(&gate, "bob", "content-length: 900000").await).await;
    assert!(
        other.starts_with("http/1.1 503") && other.contains("retry-after: 1"),
        "{other}"
    );
    let answer = gate
        .agent_named("bob")
        .fetch_expecting(503, "up", &[], call("1", &"x".repeat(900_000)))
        .await;
    assert_contains(
        &answer,
        &["bytes_in_flight", "Wait for earlier calls to end"],
    );
    assert_eq!(gate.limit_hits("bytes_in_flight"), 2.0);
    assert_eq!(gate.limit_hits("bytes_in_flight_per_agent"), 1.0);
    // Short messages still find room, and the slow upload ends when its time is over.
    gate.agent_named("ann")
        .fetch("up", &[], call("1", "x"))
        .await;
    assert!(head(&mut slow).await.starts_with("http/1.1 408"));
    until("the release", || in_flight(&gate) == 0).await;
    gate.agent_named("bob")
        .fetch("up", &[], call("1", &"x".repeat(900_000)))
        .await;
    until("the release", || in_flight(&gate) == 0).await;
    assert_eq!(server.rest().await.len(), 2);
}

#[tokio::test]
async fn other_bodies_are_reserved_as_they_arrive() {
    let (gate, _server) = gate(|limits| limits.bytes_in_flight_per_agent = 1_000_000).await;
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut stream = begun(&gate, "ann", "transfer-encoding: chunked").await;
        stream
            .write_all(format!("{:x}\r\n{}\r\n", 400_000, " ".repeat(400_000)).as_bytes())
            .await
            .unwrap();
        streams.push(stream);
    }
    until("both reservations", || in_flight(&gate) >= 800_000).await;
    streams[0]
        .write_all(format!("{:x}\r\n{}\r\n", 300_000, " ".repeat(300_000)).as_bytes())
        .await
        .unwrap();
    assert!(head(&mut streams[0]).await.starts_with("http/1.1 429"));
    assert_eq!(gate.limit_hits("bytes_in_flight_per_agent"), 1.0);
    drop(streams);
    until("the release", || in_flight(&gate) == 0).await;
}

#[tokio::test]
async fn answers_count_too() {
    let server = Server::start(|seen| async move {
        let long = seen.body.windows(4).any(|word| word == b"long");
        let text = if long { "x".repeat(900_000) } else { String::new() };
        json_reply(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#))
    })
    .await;
    let gate = server
        .setup()
        .agents(&AGENTS)
        .start_with(|config| small(&mut config.limits))
        .await;
    gate.agent_named("ann")
        .fetch("up", &[], call("1", "long"))
        .await;
    until("the release", || in_flight(&gate) == 0).await;
    let _slow = begun(&gate, "ann", "content-length: 900000").await;
    until("the reservation", || in_flight(&gate) == 900_000).await;
    let own = gate
        .agent_named("ann")
        .fetch_expecting(429, "up", &[], call("1", "long"))
        .await;
    assert!(own.contains("bytes_in_flight_per_agent"), "{own}");
    gate.agent_named("bob")
        .fetch_expecting(503, "up", &[], call("1", "long"))
        .await;
    gate.agent_named("bob")
        .fetch("up", &[], call("1", "short"))
        .await;
    assert_eq!(gate.limit_hits("bytes_in_flight"), 1.0);
    assert_eq!(gate.limit_hits("bytes_in_flight_per_agent"), 1.0);
}
