//! The listener is safe by default: who may connect, and which parts of an agent's request are
//! never passed on.

use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{Agent, assert_text, call, soon, token};
use super::servers::{Server, reply};

const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

async fn server() -> Server {
    Server::answering(OK).await
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_turned_away() {
    let server = server().await;
    let setup = server
        .setup()
        .with(|config| config.listen.origins = vec!["https://app.example".into()]);
    let gate = setup.start().await;
    let port = gate.running.address.port();
    let agent = gate.agent();
    for host in [
        "evil.example".to_owned(),
        format!("localhost.evil.example:{port}"),
        "10.0.0.1".to_owned(),
        format!("[fe80::1]:{port}"),
    ] {
        agent
            .post_expecting(403, "up", &[("host", &host)], call("1", "x"))
            .await;
    }
    for origin in [
        "http://evil.example",
        "null",
        "http://localhost:1",
        "https://app.example.evil.example",
        "https://app.example:444",
    ] {
        let host = format!("localhost:{port}");
        let answer = agent
            .post_expecting(
                403,
                "up",
                &[("host", &host), ("origin", origin)],
                call("1", "x"),
            )
            .await;
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
    assert!(server.rest().await.is_empty());
    gate.assert_series(r#"lychgate_turned_away_total{reason="host"}"#, 4.0);
    gate.assert_series(r#"lychgate_turned_away_total{reason="origin"}"#, 5.0);
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        let host = format!("{host}:{port}");
        agent
            .post_ok("up", &[("host", &host)], call("1", "x"))
            .await;
        agent
            .post_ok(
                "up",
                &[("host", &host), ("origin", &format!("http://{host}"))],
                call("1", "x"),
            )
            .await;
    }
    let answer = agent
        .post_ok("up", &[("origin", "https://app.example")], call("1", "x"))
        .await;
    assert_eq!(
        answer.header("access-control-allow-origin"),
        "https://app.example"
    );
}

#[tokio::test]
async fn agents_show_their_token() {
    let server = server().await;
    let mut setup = server
        .setup()
        .http("other", server.url())
        .agents(&["ann", "bob"]);
    setup.config.agents[1].upstreams = Some(vec!["other".into()]);
    let gate = setup.start().await;
    let stranger = gate.agent();
    let almost = format!("Bearer {}x", token("ann"));
    let short = format!("Bearer {}", &token("ann")[1..]);
    let bare = token("ann");
    for (value, status) in [
        (None, 401),
        (Some("Basic abc"), 401),
        (Some(almost.as_str()), 401),
        (Some(short.as_str()), 401),
        (Some("Bearer "), 400),
        (Some(bare.as_str()), 400),
    ] {
        let headers: Vec<_> = value
            .map(|value| ("authorization", value))
            .into_iter()
            .collect();
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let answer = stranger
                .ask(method, "/mcp/up", &headers, call("1", "x"))
                .await
                .expect(status)
                .await;
            assert!(answer.header("www-authenticate").starts_with("Bearer"));
        }
    }
    assert!(server.rest().await.is_empty());
    gate.agent_named("ann")
        .post_ok("up", &[], call("1", "x"))
        .await;
    // An upstream that this agent may not use is answered like an unknown one.
    let bob = gate.agent_named("bob");
    let hidden = bob.fetch_expecting(404, "up", &[], call("1", "x")).await;
    assert_eq!(
        hidden,
        bob.fetch_expecting(404, "nowhere", &[], call("1", "x"))
            .await
    );
    bob.post_ok("other", &[], call("1", "x")).await;
    let lines = gate.audit_text();
    assert_text(
        &lines,
        &[
            r#""gen_ai.agent.name":"ann""#,
            r#""gen_ai.agent.name":"bob""#,
        ],
        &[&token("ann")],
    );
}

#[tokio::test]
async fn credentials_cookies_and_forwarding_end_at_the_gate() {
    let server = Server::start(|_| async {
        let own = [
            ("content-type", "application/json"),
            ("set-cookie", "a=b"),
            ("www-authenticate", "Basic"),
            ("x-server", "kept"),
        ];
        reply(200, &own, OK)
    })
    .await;
    let mut setup = server.setup().agents(&["ann"]);
    if let lychgate::config::Transport::Http(http) =
        &mut setup.config.upstreams.get_mut("up").unwrap().transport
    {
        http.bearer = Some("the-gates-own".into());
    }
    let gate = setup.start().await;
    let sent = [
        ("cookie", "session=1"),
        ("proxy-authorization", "Basic eDp5"),
        ("forwarded", "for=10.1.1.1"),
        ("x-forwarded-for", "10.1.1.1"),
        ("x-forwarded-host", "inner.example"),
        ("x-real-ip", "10.1.1.1"),
        ("referer", "http://inner.example/secret"),
        ("x-api-key", "k"),
        ("te", "trailers"),
        ("accept-encoding", "gzip"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ];
    let answer = gate
        .agent_named("ann")
        .post_ok("up", &sent, call("1", "x"))
        .await;
    assert_eq!(answer.header("set-cookie"), "");
    assert_eq!(answer.header("www-authenticate"), "");
    assert_eq!(answer.header("x-server"), "kept");
    let seen = server.next().await;
    assert_eq!(seen.headers["authorization"], "Bearer the-gates-own");
    assert_eq!(seen.headers["accept-encoding"], "identity");
    assert_eq!(seen.headers["host"], server.address.to_string());
    assert!(seen.headers.contains_key("traceparent"));
    for name in [
        "cookie",
        "proxy-authorization",
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-real-ip",
        "referer",
        "x-api-key",
        "te",
    ] {
        assert!(
            !seen.headers.contains_key(name),
            "`{name}` reached the server"
        );
    }
}

#[tokio::test]
async fn bytes_that_are_no_request_are_no_call() {
    let server = server().await;
    let gate = server.setup().start().await;
    let body = call("1", "x");
    let head = |more: &str| {
        format!(
            "POST /mcp/up HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}\r\n{body}"
        )
    };
    for request in [
        format!(
            "POST /mcp/up HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ),
        head("host: evil.example\r\ncontent-length: 2\r\n"),
        head("content-length: 2\r\ncontent-length: 3\r\n"),
        head("content-length: 2\r\ntransfer-encoding: chunked\r\n"),
        head("x y: z\r\n"),
    ] {
        let mut stream = TcpStream::connect(gate.running.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut said = Vec::new();
        soon("an answer", stream.read_to_end(&mut said)).await.ok();
        let said = String::from_utf8_lossy(&said);
        assert!(!said.starts_with("HTTP/1.1 200"), "{request}\n{said}");
    }
    assert!(server.rest().await.is_empty());
}

#[tokio::test]
async fn off_loopback_it_does_not_start_without_agents() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lychgate.toml");
    let upstream = "[upstream.up]\nhttp = { url = \"http://127.0.0.1:1/mcp\" }\n";
    let load = |text: String| {
        std::fs::write(&path, text).unwrap();
        lychgate::config::load(&path)
    };
    let open = "[listen]\naddress = \"0.0.0.0:0\"\n";
    let faults = load(format!("{open}{upstream}")).unwrap_err();
    let told = faults.iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("0.0.0.0") && told.contains("agent"), "{told}");
    let hash = "ab".repeat(32);
    load(format!(
        "{open}[[agent]]\nname = \"ann\"\ntoken_sha256 = \"{hash}\"\n{upstream}"
    ))
    .unwrap();
    load(format!(
        "{open}allow_unauthenticated_agents_off_loopback = true\n{upstream}"
    ))
    .unwrap();
    load(format!("[listen]\naddress = \"127.0.0.1:0\"\n{upstream}")).unwrap();
}

#[tokio::test]
async fn other_paths_are_nothing() {
    let server = server().await;
    let gate = server.setup().start().await;
    let agent: Agent = gate.agent();
    for path in [
        "/",
        "/mcp",
        "/mcp/",
        "/mcp/nowhere",
        "/mcp/up/more/still",
        "/mcp/up/more",
        "/metrics",
        "/healthz",
        "/mcp/..%2fup",
        "/sse/up/made-up",
    ] {
        agent
            .post_json(path, call("1", "x"))
            .await
            .expect(404)
            .await;
    }
    assert!(server.rest().await.is_empty());
}
