//! The rules of each revision: which headers must agree with the body, which methods and batches it
//! has.

use http::Method;

use super::harness::{Agent, META, Setup, TestGate, call, error_message, json, modern_call, raw};
use super::servers::{Peer, Server, Wire, json_reply, script};

const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

async fn gate() -> (TestGate, Server) {
    let server = Server::answering(OK).await;
    (server.setup().start().await, server)
}

/// Returns the status of an answer and the code of its error, which must contain the request's id.
async fn refused(agent: &Agent, headers: &[(&str, &str)], body: &str) -> (u16, i64) {
    let answer = agent.post("up", headers, body.to_owned()).await;
    let status = answer.status;
    let text = answer.text().await;
    let error = json(&text);
    if body.contains(r#""id":1"#) {
        assert_eq!(raw(&error, &["id"]).as_deref(), Some("1"), "{text}");
    }
    (
        status,
        raw(&error, &["error", "code"])
            .unwrap_or_else(|| panic!("{text}"))
            .parse()
            .unwrap(),
    )
}

const MODERN: [(&str, &str); 3] = [
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "echo"),
];

#[tokio::test]
async fn headers_must_say_what_the_body_says() {
    let (gate, server) = gate().await;
    let agent = gate.agent();
    let body = modern_call("1", "x");
    for index in 0..MODERN.len() {
        let mut headers = MODERN.to_vec();
        let (name, _) = headers.remove(index);
        assert_eq!(
            refused(&agent, &headers, &body).await,
            (400, -32020),
            "without `{name}`"
        );
        for wrong in ["2025-11-25", "tools/list", "ECHO", "=?base64?!!?="] {
            let mut headers = MODERN.to_vec();
            headers[index].1 = wrong;
            assert_eq!(
                refused(&agent, &headers, &body).await,
                (400, -32020),
                "`{name}: {wrong}`"
            );
        }
        let mut headers = MODERN.to_vec();
        headers.push(MODERN[index]);
        let (status, _) = refused(&agent, &headers, &modern_call("9", "x")).await;
        assert_eq!(status, 400, "`{name}` twice");
    }
    assert!(
        server.rest().await.is_empty(),
        "nothing of it reached the server"
    );
    agent.post_ok("up", &MODERN, body.clone()).await;
    let seen = server.next().await;
    assert_eq!(seen.body, body.as_bytes());
    for (name, value) in MODERN {
        assert_eq!(seen.headers[name], value, "passed on");
    }
}

#[tokio::test]
async fn wrapped_names_are_unwrapped_before_they_are_compared() {
    let (gate, server) = gate().await;
    let body = modern_call("1", "x").replace(r#""echo""#, r#""größe""#);
    gate.agent()
        .post_modern("up", &body)
        .await
        .expect(200)
        .await;
    assert_eq!(
        server.next().await.headers["mcp-name"],
        "=?base64?Z3LDtsOfZQ==?="
    );
    let other = [MODERN[0], MODERN[1], ("mcp-name", "=?base64?Z3Jvc3Nl?=")];
    assert_eq!(refused(&gate.agent(), &other, &body).await, (400, -32020));
}

#[tokio::test]
async fn mirrored_arguments_must_agree() {
    let tools = r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}]}}"#;
    let server = Server::start(move |seen| async move {
        json_reply(if seen.headers["mcp-method"] == "tools/list" {
            tools
        } else {
            OK
        })
    })
    .await;
    let gate = server.setup().start().await;
    let agent = gate.agent();
    agent
        .post_modern(
            "up",
            &format!(r#"{{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{{{META}}}}}"#),
        )
        .await
        .expect(200)
        .await;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"region":"Zürich","deep":{{"n":42}}}},{META}}}}}"#
    );
    let with = |more: &[(&'static str, &'static str)]| [&MODERN, more].concat();
    let good = with(&[
        ("mcp-param-region", "=?base64?WsO8cmljaA==?="),
        ("mcp-param-n", "42.0"),
    ]);
    agent.post_ok("up", &good, body.clone()).await;
    for bad in [
        with(&[]),
        with(&[("mcp-param-region", "=?base64?WsO8cmljaA==?=")]),
        with(&[
            ("mcp-param-region", "=?base64?WsO8cmljaA==?="),
            ("mcp-param-n", "43"),
        ]),
        with(&[("mcp-param-region", "Bern"), ("mcp-param-n", "42")]),
    ] {
        assert_eq!(refused(&agent, &bad, &body).await, (400, -32020), "{bad:?}");
    }
}

#[tokio::test]
async fn a_modern_request_says_so_in_its_body() {
    let (gate, server) = gate().await;
    let agent = gate.agent();
    assert_eq!(
        refused(&agent, &MODERN, &call("1", "x")).await,
        (400, -32602),
        "no `_meta`, and no way back to an older era"
    );
    assert_eq!(
        refused(&agent, &[], &modern_call("1", "x")).await,
        (400, -32020),
        "no header"
    );
    assert!(server.rest().await.is_empty());
}

#[tokio::test]
async fn batches_are_of_one_revision_only() {
    let (gate, server) = gate().await;
    let agent = gate.agent();
    let batch = format!("[{}]", call("1", "x"));
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let answer = agent
            .post_expecting(
                400,
                "up",
                &[("mcp-protocol-version", version)],
                batch.clone(),
            )
            .await;
        assert!(answer.text().await.contains("-32600"), "{version}");
    }
    let modern = format!("[{}]", modern_call("1", "x"));
    agent.post_expecting(400, "up", &MODERN[..1], modern).await;
    assert!(server.rest().await.is_empty());
    for headers in [&[][..], &[("mcp-protocol-version", "2025-03-26")]] {
        agent.post_ok("up", headers, batch.clone()).await;
        assert_eq!(server.next().await.body, batch.as_bytes());
    }
}

#[tokio::test]
async fn there_is_no_get_or_delete_in_the_modern_era() {
    let (gate, server) = gate().await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let answer = gate
            .agent()
            .ask(method, "/mcp/up", &MODERN[..1], "")
            .await
            .expect(405)
            .await;
        assert!(answer.header("allow").contains("POST"));
    }
    assert!(server.rest().await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_the_right_code() {
    let (gate, server) = gate().await;
    let agent = gate.agent();
    for (body, code) in [
        (&b"{"[..], -32700),
        (b"", -32700),
        (b"\xff{}", -32700),
        (br#"{"jsonrpc":"2.0","method":"a","method":"b"}"#, -32700),
        (
            br#"{"jsonrpc":"2.0","method":"a","m\u0065thod":"b"}"#,
            -32700,
        ),
        (br#"{"jsonrpc":"2.0","method":"\ud800"}"#, -32700),
        (br#"{"jsonrpc":"2.0","method":"a"} {}"#, -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (br#"{"jsonrpc":"2.0","method":"a","id":null}"#, -32600),
        (br#"{"method":"a","id":3}"#, -32600),
    ] {
        let answer = agent.post_expecting(400, "up", &[], body).await;
        let error = json(&answer.text().await);
        let shown = String::from_utf8_lossy(body);
        assert_eq!(
            raw(&error, &["error", "code"]),
            Some(code.to_string()),
            "{shown}"
        );
        assert!(!error_message(&error).is_empty());
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
        agent
            .ask(
                Method::POST,
                "/mcp/up",
                &[("content-type", kind)],
                call("1", "x"),
            )
            .await
            .expect(415)
            .await;
    }
    agent
        .post_expecting(415, "up", &[("content-encoding", "gzip")], call("1", "x"))
        .await;
    assert!(server.rest().await.is_empty());
}

#[tokio::test]
async fn a_server_of_the_first_revision_is_offered_nothing_modern() {
    let peer = Peer::start(Wire::Sse, script(|_| panic!("it reached the server"))).await;
    let gate = peer.behind(Setup::new(), "up").start().await;
    let answer = gate
        .agent()
        .post_modern("up", &modern_call("1", "x"))
        .await
        .expect(405)
        .await;
    assert_eq!(
        raw(&json(&answer.text().await), &["id"]).as_deref(),
        Some("1")
    );
}
