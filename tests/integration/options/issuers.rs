//! Keys of `[[issuer]]`.

use super::super::harness::{Agent, TestGate, call, until};
use super::super::servers::Peer;
use super::super::vouched::{Claims, Issuer};
use super::{done, start};

/// Starts a gate for `server` that trusts `issuer`, with these keys in the issuer's table.
async fn gate(server: &Peer, issuer: &Issuer, keys: &str) -> TestGate {
    let text = format!(
        "[oauth]\nallow_loopback_http = true\n[[issuer]]\nissuer = \"{}\"\n{keys}\n",
        issuer.url
    );
    start(&text, server).await
}

fn own(gate: &TestGate) -> String {
    format!("http://{}/mcp/up", gate.running.address)
}

async fn status(gate: &TestGate, issuer: &Issuer, claims: &Claims) -> u16 {
    let agent = Agent::new(gate.running.address, Some(issuer.sign(claims)));
    agent.post("up", &[], call("1", "x")).await.status
}

#[tokio::test]
async fn tokens_are_for_an_audience_have_scopes_and_end() {
    let server = done().await;
    let issuer = Issuer::start().await;
    let plain = gate(&server, &issuer, "").await;
    let named = gate(&server, &issuer, "audience = [\"https://gate.example\"]").await;
    let scoped = gate(&server, &issuer, "scopes = [\"mcp:admin\"]").await;
    let exact = gate(&server, &issuer, "leeway_seconds = 0").await;
    let patient = gate(&server, &issuer, "leeway_seconds = 300").await;
    let for_name = issuer.claims("ann", "https://gate.example");
    assert_eq!(status(&named, &issuer, &for_name).await, 200);
    assert_eq!(status(&plain, &issuer, &for_name).await, 401);
    assert_eq!(
        status(&named, &issuer, &issuer.claims("ann", &own(&named))).await,
        401
    );
    assert_eq!(
        status(&plain, &issuer, &issuer.claims("ann", &own(&plain))).await,
        200
    );
    let claims = issuer.claims("ann", &own(&scoped));
    assert_eq!(status(&scoped, &issuer, &claims).await, 403);
    assert_eq!(
        status(
            &scoped,
            &issuer,
            &Claims {
                scope: "mcp:admin".into(),
                ..claims
            }
        )
        .await,
        200
    );
    for (gate, wanted) in [(&exact, 401), (&patient, 200)] {
        let mut claims = issuer.claims("ann", &own(gate));
        assert_eq!(status(gate, &issuer, &claims).await, 200);
        claims.exp -= 160;
        claims.iat -= 160;
        assert_eq!(
            status(gate, &issuer, &claims).await,
            wanted,
            "it ended a hundred seconds ago"
        );
    }
    let stranger = Issuer::start().await;
    assert_eq!(
        status(&plain, &stranger, &stranger.claims("ann", &own(&plain))).await,
        401,
        "nobody vouches for it"
    );
}

#[tokio::test]
async fn keys_are_where_the_config_says() {
    let server = done().await;
    let issuer = Issuer::start().await;
    for (keys, wanted) in [
        (format!("jwks_uri = \"{}/keys\"", issuer.url), 200),
        (format!("jwks_uri = \"{}/elsewhere\"", issuer.url), 401),
    ] {
        let gate = gate(&server, &issuer, &keys).await;
        let answer = status(&gate, &issuer, &issuer.claims("ann", &own(&gate))).await;
        assert_eq!(answer == 200, wanted == 200, "{keys}: {answer}");
    }
}

#[tokio::test]
async fn claims_say_who_calls() {
    let server = done().await;
    let issuer = Issuer::start().await;
    let table = "[access.staff]\ngroups = [\"staff\"]\n";
    let of_user = format!("[access.ann]\nusers = [\"{}#ann\"]\n", issuer.url);
    for (keys, wanted, in_audit) in [
        (String::new(), 200, "#ann\""),
        ("user_claim = \"client_id\"".into(), 200, "#some-client\""),
        (
            "agent = \"robot\"".into(),
            200,
            "\"gen_ai.agent.name\":\"robot\"",
        ),
        (table.into(), 200, "#ann\""),
        (format!("groups_claim = \"teams\"\n{table}"), 404, ""),
        (of_user.clone(), 200, "#ann\""),
        (of_user.replace("#ann", "#bob"), 404, ""),
        (
            format!(
                "agent_claim = \"client_id\"\n[[agent]]\nname = \"some-client\"\ntoken_sha256 = \"{}\"\n",
                super::super::harness::token_sha256("some-client")
            ),
            200,
            "\"gen_ai.agent.name\":\"some-client\"",
        ),
    ] {
        let gate = gate(&server, &issuer, &keys).await;
        assert_eq!(
            status(&gate, &issuer, &issuer.claims("ann", &own(&gate))).await,
            wanted,
            "{keys}"
        );
        until("the caller in the audit log", || {
            gate.audit_text().contains(in_audit)
        })
        .await;
    }
}

#[tokio::test]
async fn metadata_names_the_public_url() {
    let server = done().await;
    let issuer = Issuer::start().await;
    let text = format!(
        "[oauth]\nallow_loopback_http = true\n[[issuer]]\nissuer = \"{}\"\n",
        issuer.url
    );
    let listen = "[listen]\naddress = \"127.0.0.1:0\"\npublic_url = \"https://gate.example\"\n";
    for (text, named) in [(format!("{listen}{text}"), true), (text, false)] {
        let gate = start(&text, &server).await;
        let path = "/.well-known/oauth-protected-resource/mcp/up";
        let metadata = gate.agent().get_text(path, &[]).await;
        assert_eq!(
            metadata.contains("https://gate.example/mcp/up"),
            named,
            "{metadata}"
        );
        let claims = issuer.claims("ann", "https://gate.example/mcp/up");
        assert_eq!(
            status(&gate, &issuer, &claims).await,
            if named { 200 } else { 401 }
        );
    }
}
