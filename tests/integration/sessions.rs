//! A legacy session belongs to the agent that opened it, and all events of its streams pass.

use http::Method;

use super::harness::{Agent, Setup, call};
use super::servers::{
    Peer, Server, StdioServer, Wire, initialized, json_reply, reply, says, script, streamed,
};

async fn status(agent: &Agent, method: Method, session: &str) -> u16 {
    let headers = [
        ("mcp-session-id", session),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let body = if method == Method::POST {
        call("1", "x")
    } else {
        String::new()
    };
    agent.ask(method, "/mcp/up", &headers, body).await.status
}

#[tokio::test]
async fn a_session_is_its_agents_alone_on_every_transport() {
    for wire in Wire::ALL {
        let peer = Peer::start(wire, script(|asked| says(asked, "fine"))).await;
        let gate = peer
            .behind(Setup::new(), "up")
            .agents(&["ann", "bob"])
            .start()
            .await;
        let ann = gate.agent_named("ann");
        let bob = gate.agent_named("bob");
        let session = ann.initialize("up").await.unwrap();
        assert_eq!(status(&ann, Method::POST, &session).await, 200, "{wire:?}");
        for method in [Method::POST, Method::GET, Method::DELETE] {
            assert_eq!(
                status(&bob, method.clone(), &session).await,
                404,
                "{wire:?}: another's"
            );
            assert_eq!(
                status(&ann, method.clone(), "made-up").await,
                404,
                "{wire:?}: unknown"
            );
        }
        assert_eq!(
            status(&ann, Method::POST, &session).await,
            200,
            "{wire:?}: bob did it no harm"
        );
        gate.running.drain().await;
    }
}

#[tokio::test]
async fn delete_ends_a_session() {
    let server = Server::start(|seen| async move {
        match (seen.method, initialized_reply(&seen.body)) {
            (Method::DELETE, _) => reply(204, &[], ""),
            (_, Some(reply)) => reply,
            _ => json_reply(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        }
    })
    .await;
    let gate = server.setup().start().await;
    let agent = gate.agent();
    let session = agent.initialize("up").await.unwrap();
    assert_eq!(status(&agent, Method::DELETE, &session).await, 204);
    assert_eq!(
        server.rest().await.last().unwrap().headers["mcp-session-id"],
        session.as_str()
    );
    assert_eq!(status(&agent, Method::POST, &session).await, 404);
    assert!(
        server.rest().await.is_empty(),
        "the server hears no more of it"
    );
}

fn initialized_reply(body: &[u8]) -> Option<super::servers::Reply> {
    let answer = (!body.is_empty())
        .then(|| initialized(body))
        .flatten()?
        .remove(0);
    Some(reply(
        200,
        &[
            ("content-type", "application/json"),
            ("mcp-session-id", "s-1"),
        ],
        answer,
    ))
}

#[tokio::test]
async fn delete_ends_a_child_and_two_agents_never_share_one() {
    let server = StdioServer::start().await;
    let gate = Setup::new()
        .stdio("up", &server)
        .agents(&["ann", "bob"])
        .start()
        .await;
    let mut opened = Vec::new();
    for name in ["ann", "bob"] {
        let agent = gate.agent_named(name);
        let (session, child) = server.session(&agent, "up").await;
        opened.push((agent, session, child));
    }
    assert_ne!(opened[0].2.pid, opened[1].2.pid);
    assert_ne!(opened[0].1, opened[1].1);
    // A message reaches the agent's own child, also in the modern era.
    for (agent, session, child) in &mut opened {
        let words = format!("for {}", child.pid);
        let body = call("1", &words);
        let headers = [("mcp-session-id", session.as_str())];
        let (answer, ()) = tokio::join!(agent.post("up", &headers, body.clone()), async {
            assert_eq!(child.text().await, body);
            child.say(says(&body, "ok")[0].as_bytes()).await;
        });
        answer.expect(200).await;
    }
    let (ann, session, mut child) = opened.remove(0);
    assert_eq!(status(&ann, Method::DELETE, &session).await, 204);
    assert_eq!(child.line().await, None, "its standard input is closed");
    assert_eq!(status(&ann, Method::POST, &session).await, 404);
    assert!(opened[0].2.runs(), "the other agent's child lives");
    drop(child);
    gate.running.drain().await;
}

#[tokio::test]
async fn two_agents_never_share_a_child_in_the_modern_era() {
    let server = StdioServer::start().await;
    let gate = Setup::new()
        .stdio("up", &server)
        .agents(&["ann", "bob"])
        .start()
        .await;
    let mut pids = Vec::new();
    for name in ["ann", "bob"] {
        let agent = gate.agent_named(name);
        let body = super::harness::modern_call("1", "x");
        let (answer, child) = tokio::join!(agent.post_modern("up", &body), async {
            let mut child = server.next().await;
            let asked = child.text().await;
            child.say(says(&asked, "ok")[0].as_bytes()).await;
            child
        });
        answer.expect(200).await;
        pids.push(child);
    }
    assert_ne!(pids[0].pid, pids[1].pid);
    drop(pids);
    gate.running.drain().await;
}

#[tokio::test]
async fn streams_are_resumed_by_the_server_and_priming_events_pass() {
    const FIRST: &str = "id: 1-0\ndata: \n\nretry: 700\n\n";
    const AGAIN: &str = "id: 1-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n";
    let server = Server::start(|seen| async move {
        if let Some(reply) = initialized_reply(&seen.body) {
            return reply;
        }
        let (tap, reply) = streamed();
        tap.say(if seen.headers.contains_key("last-event-id") {
            AGAIN
        } else {
            FIRST
        })
        .await;
        reply
    })
    .await;
    let gate = server.setup().start().await;
    let agent = gate.agent();
    let session = agent.initialize("up").await.unwrap();
    let mut headers = vec![
        ("mcp-session-id", session.as_str()),
        ("accept", "text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let first = agent.get_ok("/mcp/up", &headers).await;
    assert_eq!(first.text().await, FIRST);
    headers.push(("last-event-id", "1-0"));
    let again = agent.get_ok("/mcp/up", &headers).await;
    assert_eq!(again.text().await, AGAIN);
    let seen = server.rest().await.pop().unwrap();
    assert_eq!(seen.headers["last-event-id"], "1-0");
    assert_eq!(seen.headers["mcp-session-id"], "s-1");
}
