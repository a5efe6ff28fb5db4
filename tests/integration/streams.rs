//! Nothing is held back without need, and a client that disconnects is handled as its revision
//! specifies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use http::Method;
use tokio::sync::{Mutex, oneshot};

use super::harness::{Setup, TestGate, assert_contains, assert_text, call, modern_call, soon};
use super::servers::{Server, StdioServer, Tap, json_reply, reply, text_result};

const NOTE: &str = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1,\"progress\":1}}\n\n";
const DONE: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n";

/// Starts a gate for a server with a single stream, on which the test sends.
async fn tapped() -> (TestGate, Server, Tap) {
    let (server, tap) = Server::streaming().await;
    (server.setup().start().await, server, tap)
}

#[tokio::test]
async fn a_notification_arrives_when_it_is_sent() {
    let (gate, _server, tap) = tapped().await;
    tap.say(NOTE).await;
    let mut answer = gate.agent().post_ok("up", &[], call("1", "x")).await;
    assert_eq!(
        answer.event().await.unwrap(),
        NOTE.as_bytes(),
        "before the answer exists"
    );
    tap.say(": alive\n\n").await;
    assert_eq!(answer.event().await.unwrap(), ":\n\n".as_bytes());
    tap.say(DONE).await;
    drop(tap);
    assert_eq!(answer.event().await.unwrap(), DONE.as_bytes());
    assert_eq!(answer.event().await, None);
}

#[tokio::test]
async fn closing_a_modern_stream_closes_it_at_the_server() {
    let (gate, _server, tap) = tapped().await;
    tap.say(NOTE).await;
    let mut answer = gate
        .agent()
        .post_modern("up", &modern_call("1", "x"))
        .await
        .expect(200)
        .await;
    answer.event().await.unwrap();
    drop(answer);
    tap.closed().await;
}

#[tokio::test]
async fn an_agent_that_goes_before_the_answer_began_is_noticed() {
    let (gone, noticed) = oneshot::channel::<()>();
    let gone = Arc::new(Mutex::new(Some(gone)));
    let server = Server::start(move |_| {
        let gone = gone.clone();
        async move {
            // Dropped with this future, when the connection ends.
            let _gone = gone.lock().await.take();
            std::future::pending().await
        }
    })
    .await;
    let gate = server.setup().start().await;
    let agent = gate.agent();
    let asking =
        tokio::spawn(async move { agent.post_modern("up", &modern_call("1", "x")).await.status });
    server.next().await;
    asking.abort();
    assert!(soon("the end of the request", noticed).await.is_err());
}

#[tokio::test]
async fn leaving_a_modern_call_cancels_it_at_the_child() {
    let server = StdioServer::start().await;
    let gate = Setup::new().stdio("up", &server).start().await;
    let agent = gate.agent();
    let asking = tokio::spawn(async move {
        agent
            .post_modern("up", &modern_call(r#""c\u0031""#, "x"))
            .await
            .status
    });
    let mut child = server.next().await;
    assert!(child.text().await.contains("tools/call"));
    asking.abort();
    let line = child.text().await;
    assert_contains(
        &line,
        &[
            r#""method":"notifications/cancelled""#,
            r#""requestId":"c\u0031""#,
        ],
    );
    drop(child);
    gate.running.drain().await;
}

#[tokio::test]
async fn leaving_a_legacy_call_cancels_nothing() {
    let server = StdioServer::start().await;
    let gate = Setup::new().stdio("up", &server).start().await;
    let agent = gate.agent();
    let (session, mut child) = server.session(&agent, "up").await;
    let leaver = gate.agent();
    let id = session.clone();
    let asking = tokio::spawn(async move {
        leaver
            .post("up", &[("mcp-session-id", &id)], call("1", "first"))
            .await
            .status
    });
    assert!(child.text().await.contains("first"));
    asking.abort();
    drop(asking.await);
    let headers = [("mcp-session-id", session.as_str())];
    let (answer, ()) = tokio::join!(agent.post("up", &headers, call("2", "second")), async {
        assert!(
            child.text().await.contains("second"),
            "the next line is the next call, not a cancellation"
        );
        child
            .say(br#"{"jsonrpc":"2.0","id":1,"result":{"late":true}}"#)
            .await;
        child
            .say(br#"{"jsonrpc":"2.0","id":2,"result":{"in":"time"}}"#)
            .await;
    });
    assert_eq!(
        answer.expect_text(200).await,
        r#"{"jsonrpc":"2.0","id":2,"result":{"in":"time"}}"#
    );
    drop(child);
    gate.running.drain().await;
}

#[tokio::test]
async fn what_a_child_says_unasked_goes_to_the_sessions_own_stream() {
    let server = StdioServer::start().await;
    let gate = Setup::new().stdio("up", &server).start().await;
    let agent = gate.agent();
    let (session, mut child) = server.session(&agent, "up").await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    child.say(note.as_bytes()).await;
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("accept", "text/event-stream"),
    ];
    let mut stream = agent.get_ok("/mcp/up", &headers).await;
    assert_eq!(stream.data().await.unwrap(), note.as_bytes());
    child.say(note.as_bytes()).await;
    assert_eq!(stream.data().await.unwrap(), note.as_bytes());
    drop((stream, child));
    gate.running.drain().await;
}

#[tokio::test]
async fn a_broken_stream_ends_and_an_unreadable_one_says_so() {
    let (gate, _server, tap) = tapped().await;
    tap.say(NOTE).await;
    let mut answer = gate.agent().post_ok("up", &[], call("1", "x")).await;
    answer.event().await.unwrap();
    tap.say("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"result\":\"doubled\"}\n\n")
        .await;
    tap.say(DONE).await;
    let end = answer.data().await.unwrap();
    let end = String::from_utf8(end.to_vec()).unwrap();
    assert_text(&end, &[r#""id":1,"error""#], &["doubled"]);
    assert_eq!(
        answer.data().await,
        None,
        "nothing follows what could not be read"
    );
}

#[tokio::test]
async fn on_http_sse_nothing_overtakes_what_waits_for_no_answer() {
    let taken = Arc::new(AtomicBool::new(false));
    let takes = taken.clone();
    let server = Server::start(move |_| {
        let takes = takes.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            takes.store(true, Ordering::SeqCst);
            reply(202, &[], "")
        }
    })
    .await;
    let gate = server.setup().start().await;
    let agent = gate.agent();
    let mut stream = agent
        .get_ok("/sse/up", &[("accept", "text/event-stream")])
        .await;
    let endpoint = stream.data_text().await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    agent.post_json(&endpoint, note).await.expect(202).await;
    assert!(
        taken.load(Ordering::SeqCst),
        "the agent may send its next message: the server has this one"
    );
}

/// Starts a server that answers a GET once `answered` has ended, and a POST with the number of GETs
/// that it has answered.
async fn slow_to_open(
    answered: impl Future<Output = ()> + Clone + Send + Sync + 'static,
) -> Server {
    let open = Arc::new(AtomicUsize::new(0));
    Server::start(move |seen| {
        let (open, answered) = (open.clone(), answered.clone());
        async move {
            if seen.method == Method::GET {
                answered.await;
                open.fetch_add(1, Ordering::SeqCst);
                return reply(200, &[("content-type", "text/event-stream")], NOTE);
            }
            json_reply(text_result(
                "1",
                &format!("{} open", open.load(Ordering::SeqCst)),
            ))
        }
    })
    .await
}

/// Opens a stream, calls a tool while the server has not answered, and returns the result.
async fn called_while_opening(server: &Server) -> String {
    let gate = server.setup().start().await;
    let (listener, caller) = (gate.agent(), gate.agent());
    let accept = [("accept", "text/event-stream")];
    let stream = tokio::spawn(async move { listener.get("/mcp/up", &accept).await.status });
    assert_eq!(server.next().await.method, Method::GET);
    let answer = caller.post_ok("up", &[], call("1", "x")).await;
    let result = answer.text().await;
    stream.abort();
    result
}

#[tokio::test]
async fn a_call_does_not_overtake_the_stream_of_its_session() {
    let server = slow_to_open(tokio::time::sleep(Duration::from_millis(50)).shared()).await;
    assert_contains(&called_while_opening(&server).await, &["1 open"]);
}

#[tokio::test]
async fn a_stream_that_the_server_does_not_answer_delays_no_call_for_long() {
    let server = slow_to_open(std::future::pending().shared()).await;
    assert_contains(&called_while_opening(&server).await, &["0 open"]);
}

#[tokio::test]
async fn a_stream_delays_calls_only_while_it_is_new() {
    let server = slow_to_open(std::future::pending().shared()).await;
    let gate = server.setup().start().await;
    let (listener, caller) = (gate.agent(), gate.agent());
    let stream = tokio::spawn(async move { listener.get("/mcp/up", &[]).await.status });
    assert_eq!(server.next().await.method, Method::GET);
    let started = std::time::Instant::now();
    for _ in 0..20 {
        let answer = caller.post_ok("up", &[], call("1", "x")).await;
        assert_contains(&answer.text().await, &["0 open"]);
    }
    // Each of them would wait for 200 ms.
    assert!(started.elapsed() < Duration::from_secs(3));
    stream.abort();
}
