//! JWTs of issuers, valid for this gate and nothing else; metadata and challenges lead to the
//! issuers.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use lychgate::config::{AccessConfig, IssuerConfig, Lists};
use lychgate::oauth::assertion::SigningKey;
use rcgen::KeyPair;
use serde::Serialize;

use super::harness::{Agent, Setup, TestGate, assert_contains, call, json, raw, tool_call, until};
use super::servers::{Server, json_reply, reply};

const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

/// An issuer: a key, and a server with its metadata and its key set.
pub(crate) struct Issuer {
    pub(crate) url: String,
    key: SigningKey,
    _server: Server,
}

#[derive(Clone, Serialize)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    pub(crate) sub: String,
    pub(crate) aud: String,
    pub(crate) exp: u64,
    pub(crate) iat: u64,
    pub(crate) client_id: String,
    pub(crate) scope: String,
    pub(crate) groups: Vec<String>,
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

pub(crate) fn signing_key(id: &str) -> SigningKey {
    SigningKey::from_pem(
        &KeyPair::generate().unwrap().serialize_pem(),
        Some(id.to_owned()),
    )
    .unwrap()
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        let key = signing_key("one");
        let jwks = key.jwks();
        let site = Arc::new(Mutex::new(String::new()));
        let of_server = site.clone();
        let server = Server::start(move |seen| {
            let jwks = jwks.clone();
            let site = of_server.lock().unwrap().clone();
            async move {
                match seen.path.as_str() {
                    "/.well-known/openid-configuration" => {
                        json_reply(format!(r#"{{"issuer":"{site}","jwks_uri":"{site}/keys"}}"#))
                    }
                    "/keys" => json_reply(jwks),
                    _ => reply(404, &[], ""),
                }
            }
        })
        .await;
        let url = format!("http://{}", server.address);
        site.lock().unwrap().clone_from(&url);
        Self {
            url,
            key,
            _server: server,
        }
    }

    pub(crate) fn config(&self) -> IssuerConfig {
        IssuerConfig {
            issuer: self.url.clone(),
            jwks_uri: None,
            ca: None,
            audience: vec![],
            leeway: std::time::Duration::from_secs(5),
            keys_keep: std::time::Duration::from_secs(3600),
            agent: "oauth".into(),
            agent_claim: Some("client_id".into()),
            user_claim: "sub".into(),
            groups_claim: "groups".into(),
            scopes: vec!["mcp:tools".into()],
        }
    }

    pub(crate) fn claims(&self, user: &str, audience: &str) -> Claims {
        Claims {
            iss: self.url.clone(),
            sub: user.to_owned(),
            aud: audience.to_owned(),
            exp: now() + 60,
            iat: now(),
            client_id: "some-client".into(),
            scope: "other mcp:tools".into(),
            groups: vec!["staff".into()],
        }
    }

    pub(crate) fn sign(&self, claims: &Claims) -> String {
        self.key.sign(claims, &[]).unwrap().expose().to_owned()
    }
}

fn trusting(setup: Setup, issuer: &Issuer) -> Setup {
    setup.with(|config| {
        config.issuers = vec![issuer.config()];
        config.oauth.allow_loopback_http = true;
    })
}

fn url(gate: &TestGate, path: &str) -> String {
    format!("http://{}{path}", gate.running.address)
}

fn showing(gate: &TestGate, token: &str) -> Agent {
    Agent::new(gate.running.address, Some(token.to_owned()))
}

#[tokio::test]
async fn a_token_counts_that_is_signed_valid_and_for_this_gate() {
    let issuer = Issuer::start().await;
    let server = Server::answering(OK).await;
    let gate = trusting(server.setup().http("other", server.url()), &issuer)
        .start()
        .await;
    let own = url(&gate, "/mcp/up");
    let good = issuer.claims("ann", &own);
    let status = async |claims: &Claims| {
        showing(&gate, &issuer.sign(claims))
            .post("up", &[], call("1", "x"))
            .await
            .status
    };
    assert_eq!(status(&good).await, 200);
    assert_eq!(server.next().await.headers.get("authorization"), None);
    assert_eq!(
        status(&issuer.claims("ann", &url(&gate, ""))).await,
        200,
        "for the gate as a whole"
    );
    server.rest().await;
    let bad = [
        (
            "an upstream's",
            Claims {
                aud: server.url(),
                ..good.clone()
            },
        ),
        (
            "another path's",
            Claims {
                aud: url(&gate, "/mcp/other"),
                ..good.clone()
            },
        ),
        (
            "a longer path's",
            Claims {
                aud: format!("{own}/"),
                ..good.clone()
            },
        ),
        (
            "expired",
            Claims {
                exp: now() - 60,
                ..good.clone()
            },
        ),
        (
            "another issuer's",
            Claims {
                iss: "https://other.example".into(),
                ..good.clone()
            },
        ),
        (
            "no user's",
            Claims {
                sub: String::new(),
                ..good.clone()
            },
        ),
    ];
    for (what, claims) in bad {
        assert_eq!(status(&claims).await, 401, "{what}");
    }
    let forged = signing_key("one")
        .sign(&good, &[])
        .unwrap()
        .expose()
        .to_owned();
    let token = issuer.sign(&good);
    let unsigned = format!("{}.", token.rsplit_once('.').unwrap().0);
    for token in [forged.as_str(), &unsigned, "a.b.c", "nonsense"] {
        let answer = showing(&gate, token)
            .post_expecting(401, "up", &[], call("1", "x"))
            .await;
        assert_contains(
            answer.header("www-authenticate"),
            &[r#"error="invalid_token""#],
        );
    }
    // A token in the query is ignored.
    let path = format!("/mcp/up?access_token={token}");
    let answer = gate.agent().post_json(&path, call("1", "x")).await;
    assert_eq!(answer.status, 401);
    assert!(!answer.header("www-authenticate").contains("error="));
    assert!(server.rest().await.is_empty());
    until("the user in the audit log", || {
        gate.audit_text()
            .contains(&format!(r#""actor.user.name":"{}#ann""#, issuer.url))
    })
    .await;
}

#[tokio::test]
async fn a_token_that_was_verified_before_is_checked_for_audience_and_time_at_every_call() {
    let issuer = Issuer::start().await;
    let server = Server::answering(OK).await;
    let setup = trusting(server.setup().http("other", server.url()), &issuer);
    let gate = setup
        .start_with(|config| config.limits.verified_tokens = 1)
        .await;
    let own = url(&gate, "/mcp/up");
    let ann = showing(&gate, &issuer.sign(&issuer.claims("ann", &own)));
    for _ in 0..3 {
        ann.post_ok("up", &[], call("1", "x")).await;
    }
    ann.post_expecting(401, "other", &[], call("1", "x")).await;
    assert_eq!(gate.limit_hits("verified_tokens"), 0.0);
    // The leeway of this issuer is 5 s.
    let short = showing(
        &gate,
        &issuer.sign(&Claims {
            exp: now() - 2,
            ..issuer.claims("bob", &own)
        }),
    );
    short.post_ok("up", &[], call("1", "x")).await;
    assert_eq!(
        gate.limit_hits("verified_tokens"),
        1.0,
        "there is room for one"
    );
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    short.post_expecting(401, "up", &[], call("1", "x")).await;
    ann.post_ok("up", &[], call("1", "x")).await;
    assert_eq!(
        gate.limit_hits("verified_tokens"),
        1.0,
        "an expired token makes room by itself"
    );
}

#[tokio::test]
async fn refusals_lead_to_where_tokens_are() {
    let issuer = Issuer::start().await;
    let server = Server::answering(OK).await;
    let gate = trusting(server.setup(), &issuer).start().await;
    let metadata = url(&gate, "/.well-known/oauth-protected-resource/mcp/up");
    let stranger = gate.agent();
    let answer = stranger
        .post_expecting(401, "up", &[], call("1", "x"))
        .await;
    let challenge = format!(r#"Bearer resource_metadata="{metadata}", scope="mcp:tools""#);
    assert_eq!(answer.header("www-authenticate"), challenge);
    for (path, resource) in [
        ("/mcp/up", "/mcp/up"),
        ("/sse/up", "/sse/up"),
        ("", "/mcp/up"),
        ("/mcp/no-such", "/mcp/no-such"),
    ] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let said = json(&stranger.get_text(&path, &[]).await);
        let member = |name: &str| raw(&said, &[name]).unwrap();
        assert_eq!(member("resource"), format!(r#""{}""#, url(&gate, resource)));
        assert_eq!(
            member("authorization_servers"),
            format!(r#"["{}"]"#, issuer.url)
        );
        assert_eq!(member("scopes_supported"), r#"["mcp:tools"]"#);
        assert_eq!(member("bearer_methods_supported"), r#"["header"]"#);
    }
    let poor = issuer.sign(&Claims {
        scope: "other".into(),
        ..issuer.claims("ann", &url(&gate, "/mcp/up"))
    });
    let answer = showing(&gate, &poor)
        .post_expecting(403, "up", &[], call("1", "x"))
        .await;
    let expected = format!(
        r#"Bearer error="insufficient_scope", resource_metadata="{metadata}", scope="mcp:tools""#
    );
    assert_eq!(answer.header("www-authenticate"), expected);
    for malformed in ["Bearer", "Bearer a b", "Bearer "] {
        let answer = stranger
            .post_expecting(400, "up", &[("authorization", malformed)], call("1", "x"))
            .await;
        assert!(
            answer
                .header("www-authenticate")
                .contains(r#"error="invalid_request""#),
            "{malformed}"
        );
    }
    assert!(server.rest().await.is_empty());
    let without = server.setup().agents(&["ann"]).start().await;
    without
        .agent_named("ann")
        .get("/.well-known/oauth-protected-resource/mcp/up", &[])
        .await
        .expect(404)
        .await;
    let plain = without
        .agent()
        .post_expecting(401, "up", &[], call("1", "x"))
        .await;
    assert_eq!(
        plain.header("www-authenticate"),
        "Bearer",
        "there is no issuer to lead to"
    );
}

#[tokio::test]
async fn claims_say_which_agent_user_and_groups_and_sessions_are_one_users() {
    let issuer = Issuer::start().await;
    let server = Server::start(|_| async {
        reply(
            200,
            &[
                ("content-type", "application/json"),
                ("mcp-session-id", "s-1"),
            ],
            OK,
        )
    })
    .await;
    let table = |name: &str, agents: &[&str], groups: &[&str], tool: &str| {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let allow = Lists {
            tools: Some(words(&[tool])),
            ..Lists::default()
        };
        Arc::new(AccessConfig {
            name: name.into(),
            agents: words(agents),
            groups: words(groups),
            allow,
            ..AccessConfig::default()
        })
    };
    let setup = trusting(server.setup().agents(&["builder"]), &issuer);
    let setup = setup.with(|config| {
        config.access = vec![
            table("b", &["builder"], &[], "*/build"),
            table("s", &[], &["staff"], "*/echo"),
        ];
    });
    let gate = setup.start().await;
    let own = url(&gate, "/mcp/up");
    let ann = issuer.claims("ann", &own);
    let ask = |tool: &str| tool_call(tool, "{}");
    for (claims, tool, fits) in [
        (ann.clone(), "echo", true),
        (ann.clone(), "build", false),
        (
            Claims {
                client_id: "builder".into(),
                ..ann.clone()
            },
            "build",
            true,
        ),
        (
            Claims {
                client_id: "builder".into(),
                ..ann.clone()
            },
            "echo",
            false,
        ),
    ] {
        let answer = showing(&gate, &issuer.sign(&claims))
            .fetch("up", &[], ask(tool))
            .await;
        assert_eq!(answer.contains("content"), fits, "{tool} {answer}");
    }
    let of_ann = showing(&gate, &issuer.sign(&ann));
    let session = of_ann.initialize("up").await.unwrap();
    let headers = [("mcp-session-id", session.as_str())];
    of_ann.post_ok("up", &headers, ask("echo")).await;
    let bob = showing(&gate, &issuer.sign(&issuer.claims("bob", &own)));
    bob.post_expecting(404, "up", &headers, ask("echo")).await;
}
