//! Common mistakes of users: each is answered with the cause, the place and the fix.

use std::sync::Arc;

use http::Method;
use lychgate::config::{AccessConfig, Lists};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::harness::{
    INITIALIZE, Setup, assert_contains, assert_text, call, error_message, json, line_with, log,
    soon,
};
use super::servers::{Server, command, reply};
use super::tls::Authority;

const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn server() -> Server {
    Server::answering(OK).await
}

#[tokio::test]
async fn plain_http_at_the_tls_port_is_answered_with_the_scheme_to_use() {
    let authority = Authority::new();
    let server = server().await;
    let setup = server
        .setup()
        .with(|config| config.listen.tls = authority.listens(false));
    let gate = setup.start().await;
    let request = format!(
        "POST /mcp/up HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{INITIALIZE}",
        INITIALIZE.len()
    );
    for start in [request.as_str(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut stream = TcpStream::connect(gate.running.address).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut said = String::new();
        // The answer comes at once, not after the timeout of a handshake.
        stream.shutdown().await.unwrap();
        soon("the answer", stream.read_to_string(&mut said))
            .await
            .unwrap();
        assert!(
            said.starts_with("HTTP/1.1 400 ")
                && said.contains("Write `https://` in place of `http://`"),
            "{said}"
        );
    }
    gate.assert_series(r#"lychgate_turned_away_total{reason="tls"}"#, 2.0);
    assert!(server.rest().await.is_empty());
}

#[tokio::test]
async fn a_browser_gets_a_page_that_says_what_to_do() {
    let server = server().await;
    let gate = server.setup().start().await;
    let agent = gate.agent();
    let page = [("accept", BROWSER)];
    let answer = agent.get_ok("/mcp/up", &page).await;
    assert!(answer.header("content-type").starts_with("text/html"));
    assert!(
        answer
            .header("content-security-policy")
            .starts_with("default-src 'none'")
    );
    let text = answer.text().await;
    let url = format!("http://{}/mcp/up", gate.running.address);
    assert_text(
        &text,
        &[&format!("claude mcp add --transport http up {url}")],
        &["<script"],
    );
    let unknown = agent.get("/mcp/no-such", &page).await.expect(404).await;
    assert_eq!(unknown.header("content-type"), "application/json");
    assert!(
        server.rest().await.is_empty(),
        "no server is asked for a page"
    );
    // A client that opens its stream is served as usual.
    agent
        .get("/mcp/up", &[("accept", "text/event-stream")])
        .await;
    assert_eq!(server.next().await.method, Method::GET);

    let closed = server.setup().agents(&["ann"]).start().await;
    for path in ["/mcp/up", "/mcp/no-such"] {
        let answer = closed.agent().get(path, &page).await.expect(401).await;
        assert!(
            answer.header("content-type").starts_with("text/html")
                && answer.header("www-authenticate") == "Bearer"
        );
        let text = answer.text().await;
        assert_text(&text, &["needs a credential"], &["no-such"]);
    }
}

#[tokio::test]
async fn a_wrong_token_is_not_reported_as_a_missing_one() {
    let server = server().await;
    let gate = server.setup().agents(&["ann"]).start().await;
    let told = async |agent: super::harness::Agent| {
        agent.fetch_error(401, "up", &[], call("1", "x")).await
    };
    let missing = told(gate.agent()).await;
    let wrong = told(gate.agent_named("eve")).await;
    assert_contains(
        &missing,
        &["no token was sent", "Authorization: Bearer TOKEN"],
    );
    assert_contains(
        &wrong,
        &["the token is not valid here", "lychgate agent list"],
    );
    gate.agent_named("ann")
        .post_ok("up", &[], call("1", "x"))
        .await;
}

#[tokio::test]
async fn localhost_and_its_address_are_one_origin() {
    let server = server().await;
    let gate = server.setup().start().await;
    let port = gate.running.address.port();
    let asked = async |host: &str, origin: &str| {
        let host = format!("{host}:{port}");
        let origin = format!("{origin}:{port}");
        gate.agent()
            .post(
                "up",
                &[("host", &host), ("origin", &origin)],
                call("1", "x"),
            )
            .await
            .status
    };
    for (host, origin, status) in [
        ("127.0.0.1", "http://localhost", 200),
        ("localhost", "http://127.0.0.1", 200),
        ("127.0.0.1", "https://localhost", 403),
        ("127.0.0.1", "http://localhost.example", 403),
    ] {
        assert_eq!(asked(host, origin).await, status, "{host} {origin}");
    }
    let other = [("origin", "http://localhost:1")];
    gate.agent()
        .post_expecting(403, "up", &other, call("1", "x"))
        .await;
}

#[tokio::test]
async fn a_path_with_mcp_appended_reaches_the_server() {
    let server = server().await;
    let gate = server.setup().start().await;
    for path in ["/up/mcp", "/mcp/up"] {
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let answer = gate
            .agent()
            .ask(Method::POST, path, &headers, call("1", "x"))
            .await
            .expect(200)
            .await;
        assert_eq!(answer.text().await, OK, "{path}");
        let asked = server.next().await;
        assert!(
            asked.method == Method::POST && asked.body == call("1", "x").as_bytes(),
            "{path}"
        );
    }
    assert!(server.rest().await.is_empty());
}

#[tokio::test]
async fn an_unknown_path_is_answered_with_the_upstreams_that_this_agent_may_use() {
    let server = server().await;
    let setup = ["docs", "files", "closed"]
        .iter()
        .fold(Setup::new(), |setup, name| setup.http(name, server.url()));
    let gate = setup
        .agents(&["ann", "bob"])
        .with(|config| {
            let deny = Lists {
                upstreams: vec!["closed".to_owned()],
                ..Lists::default()
            };
            config.access = vec![Arc::new(AccessConfig {
                name: "all".into(),
                agents: vec!["*".to_owned()],
                deny,
                ..AccessConfig::default()
            })];
            config.agents[1].upstreams = Some(vec!["files".to_owned()]);
        })
        .start()
        .await;
    let told = async |agent: &str, path: &str| {
        let answer = gate
            .agent_named(agent)
            .ask(Method::POST, path, &[], INITIALIZE)
            .await
            .expect(404)
            .await;
        error_message(&json(&answer.text().await))
    };
    for path in ["/mcp/no-such", "/mcp/closed", "/closed/mcp", "/"] {
        let ann = told("ann", path).await;
        let bob = told("bob", path).await;
        assert!(
            ann.contains("available: `/mcp/docs`, `/mcp/files`") && !ann.contains("/mcp/closed"),
            "{path}: {ann}"
        );
        assert!(
            bob.contains("available: `/mcp/files`") && !bob.contains("docs"),
            "{path}: {bob}"
        );
    }
    assert!(server.rest().await.is_empty());
}

#[tokio::test]
async fn a_program_that_is_missing_is_named() {
    let program = |name: &str| command(&[name]);
    let setup = Setup::new()
        .command("bare", program("no-such-program"))
        .command("full", program("/no/such/program"));
    let gate = setup.start().await;
    for (upstream, cause) in [
        (
            "bare",
            "the program `no-such-program` is not on the gateway's PATH",
        ),
        ("full", "the program `/no/such/program` does not exist"),
    ] {
        let text = gate
            .agent()
            .fetch_error(502, upstream, &[], INITIALIZE)
            .await;
        assert_contains(
            &text,
            &[
                cause,
                &format!("correct `command` of the server `{upstream}`"),
            ],
        );
        let labels = [("upstream", upstream), ("side", "server")];
        assert_eq!(gate.metric("lychgate_failures_total", &labels), Some(1.0));
    }
    gate.running.drain().await;
}

#[tokio::test]
async fn a_web_page_in_the_place_of_mcp_is_named_and_only_the_log_has_its_words() {
    let page = "<!doctype html><html><head><title>Sign in to Orchard 8841</title></head><body><p>Ignore \u{1b}[2J me</p></body></html>";
    let server =
        Server::start(move |_| async move { reply(200, &[("content-type", "text/html")], page) })
            .await;
    let gate = Setup::new().http("paged", server.url()).start().await;
    let text = gate
        .agent()
        .fetch_error(502, "paged", &[], INITIALIZE)
        .await;
    assert_contains(
        &text,
        &["it is a web page (HTML), not MCP; `url` does not lead to an MCP endpoint"],
    );
    assert_text(&text, &["look at the server `paged`"], &["Orchard"]);
    let logged = log();
    let line = line_with(&logged, "Sign in to Orchard 8841");
    assert_contains(line, &["WARN", "paged", "check `url` of the upstream"]);
    assert!(
        !line.contains('\u{1b}'),
        "nothing in it steers a terminal: {line}"
    );
}
