//! No credential passes in either direction: agents' tokens reach no server, servers' tokens no
//! agent, and neither any log, audit line, metric, page, error or answer.

use std::sync::Arc;

use http::Method;
use lychgate::config::{AccessConfig, Lists, Transport};

use super::harness::{Agent, Answer, TestGate, call, http, log, modern_call, soon, token};
use super::servers::{Seen, Server, json_reply, reply};
use super::vouched::Issuer;

const UPSTREAM: &str = "planted-upstream-bearer-5c1f0d7e93";
const KEY: &str = "planted-upstream-key-77aa01be55";
const STRAY: &str = "planted-stray-token-e0b9aa4417";
const CHALLENGE: &str = "planted-upstream-challenge-1d6c";

/// Everything that is visible from outside, with the place where it was seen.
#[derive(Default)]
struct Visible(Vec<(String, String)>);

impl Visible {
    async fn answer(&mut self, what: &str, answer: Answer) -> u16 {
        let status = answer.status;
        let headers = format!("{:?}", answer.headers);
        let body = String::from_utf8_lossy(&answer.bytes().await).into_owned();
        self.0.push((what.to_owned(), headers + "\n" + &body));
        status
    }

    fn upstream(&mut self, seen: &Seen) {
        let Seen {
            method,
            path,
            headers,
            body,
            ..
        } = seen;
        self.0.push((
            "upstream request".into(),
            format!(
                "{method} {path}\n{headers:?}\n{}",
                String::from_utf8_lossy(body)
            ),
        ));
    }

    async fn gate(&mut self, gate: &TestGate) {
        for page in ["/metrics", "/healthz", "/readyz", "/approvals"] {
            let (_, text) = gate.admin(page).await;
            self.0.push((page.to_owned(), text));
        }
        self.0.push(("log".into(), log()));
        self.0.push(("audit".into(), gate.audit_text()));
    }

    fn holds(&self, secret: &str, but: &str) -> Vec<&str> {
        let there = self
            .0
            .iter()
            .filter(|(place, text)| place != but && text.contains(secret));
        there.map(|(place, _)| place.as_str()).collect()
    }
}

#[tokio::test]
async fn planted_secrets_are_seen_nowhere_but_where_they_belong() {
    let issuer = Issuer::start().await;
    let server = Server::start(|seen| async move {
        let modern = seen.headers.contains_key("mcp-method");
        let asks = |word: &str| {
            seen.body
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        };
        if asks("unauthorized") {
            let challenge = format!(
                r#"Bearer realm="{CHALLENGE}", resource_metadata="https://{CHALLENGE}.example/x""#
            );
            return reply(
                401,
                &[("www-authenticate", &challenge), ("set-cookie", CHALLENGE)],
                "",
            );
        }
        if asks("broken") {
            return reply(
                500,
                &[("content-type", "text/html"), ("x-trace", "t")],
                "<h1>failed</h1>",
            );
        }
        let id = if modern { "2" } else { "1" };
        json_reply(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#
        ))
    })
    .await;
    let gone = Server::start(|_| async { reply(404, &[], "") }).await;
    let gone_url = gone.url();
    drop(gone);
    let setup = server
        .setup()
        .http("gone", gone_url)
        .agents(&["ann", "bob"])
        .with(|config| {
            let mut own = http(server.url());
            own.bearer = Some(UPSTREAM.into());
            own.headers = vec![("x-api-key".into(), KEY.into())];
            config.upstreams.get_mut("up").unwrap().transport = Transport::Http(own);
            config.issuers = vec![issuer.config()];
            config.oauth.allow_loopback_http = true;
            let deny = Lists {
                tools: vec!["up/denied".into()],
                ..Lists::default()
            };
            config.access = vec![Arc::new(AccessConfig {
                name: "all".into(),
                agents: vec!["*".into()],
                deny,
                ..AccessConfig::default()
            })];
        });
    let gate = setup.start().await;
    let own = format!("http://{}/mcp/up", gate.running.address);
    let claims = issuer.claims("ann", &own);
    let jwt = issuer.sign(&claims);
    let (old, foreign, poor) = (
        issuer.sign(&super::vouched::Claims {
            exp: claims.iat - 600,
            ..claims.clone()
        }),
        issuer.sign(&issuer.claims("ann", &server.url())),
        issuer.sign(&super::vouched::Claims {
            scope: "other".into(),
            ..claims.clone()
        }),
    );
    let mut visible = Visible::default();
    let shown = [
        token("ann"),
        token("bob"),
        jwt.clone(),
        old.clone(),
        foreign.clone(),
        poor.clone(),
        STRAY.to_owned(),
    ];
    let mut statuses = Vec::new();
    for token in &shown {
        let agent = Agent::new(gate.running.address, Some(token.clone()));
        for (upstream, text) in [
            ("up", "hello"),
            ("up", "unauthorized"),
            ("up", "broken"),
            ("up", "detonate it"),
            ("gone", "hello"),
        ] {
            let answer = agent.post(upstream, &[], call("1", text)).await;
            statuses.push(visible.answer("answer", answer).await);
        }
        let answer = agent.post_modern("up", &modern_call("2", "hello")).await;
        visible.answer("answer", answer).await;
        let denied = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"denied","arguments":{}}}"#;
        let answer = agent.post("up", &[], denied).await;
        visible.answer("answer", answer).await;
        for method in [Method::GET, Method::DELETE] {
            let answer = agent
                .ask(method, "/mcp/up", &[("mcp-session-id", "made-up")], "")
                .await;
            visible.answer("answer", answer).await;
        }
        let answer = agent
            .get("/.well-known/oauth-protected-resource/mcp/up", &[])
            .await;
        visible.answer("metadata", answer).await;
    }
    assert!(
        [200, 401, 403]
            .iter()
            .all(|status| statuses.contains(status)),
        "{statuses:?}"
    );
    // In places where credentials do not belong.
    let stranger = gate.agent();
    for (headers, path) in [
        (
            vec![("authorization", format!("Basic {STRAY}"))],
            "/mcp/up".to_owned(),
        ),
        (
            vec![("authorization", format!("Bearer {STRAY} {STRAY}"))],
            "/mcp/up".to_owned(),
        ),
        (
            vec![
                ("authorization", format!("Bearer {}", token("ann"))),
                ("x-forwarded-access-token", STRAY.to_owned()),
            ],
            "/mcp/up".to_owned(),
        ),
        (
            vec![
                ("authorization", format!("Bearer {}", token("ann"))),
                ("cookie", format!("token={STRAY}")),
            ],
            "/mcp/up".to_owned(),
        ),
        (
            vec![
                ("authorization", format!("Bearer {}", token("ann"))),
                ("proxy-authorization", STRAY.to_owned()),
            ],
            "/mcp/up".to_owned(),
        ),
        (
            vec![("authorization", format!("Bearer {}", token("ann")))],
            format!("/mcp/up?access_token={STRAY}"),
        ),
        (vec![], format!("/mcp/up?access_token={}", token("ann"))),
    ] {
        let mut all: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        all.extend([
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ]);
        let answer = stranger
            .ask(Method::POST, &path, &all, call("1", "hello"))
            .await;
        visible.answer("answer", answer).await;
    }
    soon("the audit log", async {
        while !gate.audit_text().contains("denied") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let requests = server.rest().await;
    assert!(
        requests
            .iter()
            .all(|seen| seen.headers["authorization"] == format!("Bearer {UPSTREAM}").as_str())
    );
    assert!(requests.iter().all(|seen| seen.headers["x-api-key"] == KEY) && requests.len() > 10);
    requests.iter().for_each(|seen| visible.upstream(seen));
    visible.gate(&gate).await;
    for secret in shown.iter().map(String::as_str) {
        // The signature alone is useless to anyone, but its presence would show that the token is
        // visible.
        let end = secret.rsplit('.').next().unwrap();
        assert_eq!(visible.holds(end, ""), [""; 0], "{end}");
    }
    for secret in [UPSTREAM, KEY, CHALLENGE] {
        assert_eq!(
            visible.holds(secret, "upstream request"),
            [""; 0],
            "{secret}"
        );
    }
    assert!(
        visible
            .holds("hello", "answer")
            .contains(&"upstream request"),
        "the test looks where things are"
    );
}
