//! Silent event streams get comments, and calls that are silent for long get a stream where this
//! changes nothing else.

use std::time::Duration;

use http::Method;

use super::child::Child;
use super::harness::{Agent, Setup, TestGate, assert_contains, call, modern_call, soon};
use super::servers::{Server, StdioServer, says};

const COMMENT: &[u8] = b":\n\n";

fn quick(setup: Setup) -> Setup {
    setup.with(|config| config.limits.keep_alive = Duration::from_millis(100))
}

async fn opened(server: &StdioServer) -> (TestGate, Agent, String, Child) {
    let gate = quick(Setup::new().stdio("up", server)).start().await;
    let agent = gate.agent();
    let (session, child) = server.session(&agent, "up").await;
    (gate, agent, session, child)
}

#[tokio::test]
async fn a_call_that_is_silent_for_long_gets_a_stream_with_comments() {
    let server = StdioServer::start().await;
    let (gate, agent, session, mut child) = opened(&server).await;
    let headers = [("mcp-session-id", session.as_str())];
    let body = call("5", "x");
    let mut answer = agent.post_ok("up", &headers, body.clone()).await;
    assert_eq!(
        answer.header("content-type"),
        "text/event-stream; charset=utf-8"
    );
    for _ in 0..3 {
        assert_eq!(answer.event().await.unwrap(), COMMENT);
    }
    assert_eq!(child.text().await, body);
    child.say(says(&body, "late")[0].as_bytes()).await;
    assert_contains(&answer.data_text().await, &["late"]);
    assert_eq!(answer.event().await, None, "the answer is the end");

    // A failure after the stream has begun is reported on the stream, with the id of the call.
    let mut answer = agent.post_ok("up", &headers, call("6", "x")).await;
    assert_eq!(answer.event().await.unwrap(), COMMENT);
    drop(child);
    let error = answer.data_text().await;
    assert_contains(&error, &[r#""id":6,"#, "The server's process ended"]);
    gate.running.drain().await;
}

#[tokio::test]
async fn no_stream_is_opened_where_it_would_change_more() {
    let server = StdioServer::start().await;
    let (gate, agent, session, mut child) = opened(&server).await;
    // A client that does not accept a stream.
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
        ("mcp-session-id", session.as_str()),
    ];
    let body = call("5", "x");
    let (answer, ()) = tokio::join!(
        agent.ask(Method::POST, "/mcp/up", &headers, body.clone()),
        async {
            assert_eq!(child.text().await, body);
            tokio::time::sleep(Duration::from_millis(300)).await;
            child.say(says(&body, "late")[0].as_bytes()).await;
        }
    );
    assert_eq!(answer.header("content-type"), "application/json");
    // The modern era, where an error has an HTTP status of its own.
    let modern = modern_call("7", "x");
    let (answer, child) = tokio::join!(agent.post_modern("up", &modern), async {
        let mut child = server.next().await;
        child.line().await.unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        child
            .say(br#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}"#)
            .await;
        child
    });
    assert_eq!(answer.status, 404);
    drop(child);
    gate.running.drain().await;
}

#[tokio::test]
async fn streams_of_servers_and_of_the_gate_get_comments() {
    let (server, tap) = Server::streaming().await;
    let gate = quick(server.setup()).start().await;
    let agent = gate.agent();
    let mut answer = agent.post_ok("up", &[], call("1", "go")).await;
    assert_eq!(
        answer.event().await.unwrap(),
        COMMENT,
        "of a server that says nothing"
    );
    drop((tap, answer));
    let mut stream = agent
        .get_ok("/sse/up", &[("accept", "text/event-stream")])
        .await;
    let first = stream.event().await.unwrap();
    assert!(first.starts_with(b"event: endpoint\n"));
    for _ in 0..2 {
        assert_eq!(
            soon("a comment", stream.event()).await.unwrap(),
            COMMENT,
            "on a stream of the gate's own"
        );
    }
    drop(stream);
    gate.running.drain().await;
}
