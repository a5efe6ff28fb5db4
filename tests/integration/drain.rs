//! An orderly shutdown: open calls finish, no new ones begin, nothing is left behind.

use tokio::net::TcpStream;

use super::harness::{Agent, Setup, call, soon, until};
use super::servers::{Server, StdioServer};

#[tokio::test]
async fn open_calls_finish_and_new_ones_do_not_begin() {
    const DONE: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[]}}\n\n";
    let (server, tap) = Server::streaming().await;
    let gate = server.setup().start().await;
    let address = gate.running.address;
    let admin = gate.running.admin.unwrap();
    tap.say(": open\n\n").await;
    let mut open = gate.agent().post_ok("up", &[], call("1", "x")).await;
    open.event().await.unwrap();
    let watcher = Agent::new(admin, None);
    assert_eq!(watcher.get("/readyz", &[]).await.status, 200);
    let draining = tokio::spawn(gate.running.drain());
    soon("`/readyz` to say so", async {
        while watcher.get("/readyz", &[]).await.status != 503 {}
    })
    .await;
    soon("the listener to close", async {
        while TcpStream::connect(address).await.is_ok() {}
    })
    .await;
    assert!(!draining.is_finished(), "a call is open");
    assert_eq!(
        watcher.get("/healthz", &[]).await.status,
        200,
        "alive all the same"
    );
    tap.say(DONE).await;
    drop(tap);
    assert_eq!(open.event().await.unwrap(), DONE.as_bytes());
    assert_eq!(open.event().await, None);
    drop(open);
    soon("the end", draining).await.unwrap();
}

#[tokio::test]
async fn streams_that_only_listen_end_and_children_are_gone() {
    let server = StdioServer::start().await;
    let gate = Setup::new().stdio("up", &server).start().await;
    let agent = gate.agent();
    let (session, mut child) = server.session(&agent, "up").await;
    let headers = [
        ("mcp-session-id", session.as_str()),
        ("accept", "text/event-stream"),
    ];
    let mut stream = agent.get_ok("/mcp/up", &headers).await;
    let mut old = agent
        .get_ok("/sse/up", &[("accept", "text/event-stream")])
        .await;
    old.data().await.unwrap();
    let draining = tokio::spawn(gate.running.drain());
    assert_eq!(stream.event().await, None);
    assert_eq!(old.event().await, None);
    assert_eq!(child.line().await, None, "its standard input is closed");
    let pid = child.pid.clone();
    drop(child);
    soon("the end", draining).await.unwrap();
    until("the child to be gone", || !super::servers::runs(&pid)).await;
}

#[tokio::test]
async fn calls_that_do_not_end_are_cut_off_at_the_deadline() {
    let server = Server::start(|_| async { std::future::pending().await }).await;
    let setup = server.setup();
    let gate = setup
        .start_with(|config| config.limits.drain = std::time::Duration::from_millis(200))
        .await;
    let agent = gate.agent();
    let open = tokio::spawn(async move { agent.post("up", &[], call("1", "x")).await.status });
    server.next().await;
    soon("the end", gate.running.drain()).await;
    open.abort();
}
