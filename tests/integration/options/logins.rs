//! Keys of logins at servers.

use std::time::Instant;

use super::super::authority::{Ask, Authority};
use super::super::harness::{TestGate, assert_contains, call, token_sha256};
use super::super::logins::{folder, logged_in, owed, says, works};
use super::super::oauth_faults::change;
use super::super::servers::{Server, reply};
use super::{faults, start_at};

/// Starts a gate for a server that requires a login, with these keys under `[oauth]` and under that
/// of the upstream.
async fn gate(authority: &Authority, keys: &str, of_upstream: &str) -> TestGate {
    let text = format!(
        "[oauth]\nvault = \"vault\"\nvault_key = {{ file = \"vault.key\" }}\nallow_loopback_http = true\n{keys}\n\
         [upstream.up]\n[upstream.up.http]\nurl = \"{{url}}\"\n[upstream.up.http.oauth]\n{of_upstream}\n"
    );
    start_at(&text, &authority.url()).await
}

/// Returns the config of two agents, each with a login of its own.
fn two_agents() -> String {
    let agent = |name: &str| {
        format!(
            "[[agent]]\nname = \"{name}\"\ntoken_sha256 = \"{}\"\n",
            token_sha256(name)
        )
    };
    format!("token_of = \"agent\"\n{}{}", agent("ann"), agent("bob"))
}

#[tokio::test]
async fn logins_that_are_owed_are_few_and_wait_as_long_as_written() {
    let authority = Authority::start(60).await;
    for (keys, few) in [("pending_logins = 1", true), ("", false)] {
        let gate = gate(&authority, keys, &two_agents()).await;
        owed(&gate.agent_named("ann")).await;
        let answer = gate
            .agent_named("bob")
            .post("up", &[], call("1", "x"))
            .await
            .text()
            .await;
        assert_eq!(answer.contains("pending_logins"), few, "{answer}");
        assert_eq!(answer.contains("/oauth/login/"), !few, "{answer}");
    }
    for (keys, waits) in [
        ("login_wait_seconds = 1", true),
        ("login_wait_seconds = 0", false),
    ] {
        let gate = gate(&authority, keys, "").await;
        let began = Instant::now();
        assert!(says(&gate.agent()).await.contains("/oauth/login/"));
        assert_eq!(began.elapsed().as_millis() >= 1000, waits, "{keys}");
    }
}

#[tokio::test]
async fn logins_are_shared_or_of_each_agent() {
    let authority = Authority::start(60).await;
    for (keys, shared) in [
        (two_agents(), false),
        (two_agents().replace("\"agent\"", "\"gate\""), true),
    ] {
        let gate = gate(&authority, "", &keys).await;
        logged_in(&gate, &authority, &gate.agent_named("ann")).await;
        assert!(works(&gate.agent_named("ann")).await);
        assert_eq!(
            says(&gate.agent_named("bob"))
                .await
                .contains("/oauth/login/"),
            !shared
        );
        assert!(
            gate.folder.path().join("vault").is_dir()
                && gate.folder.path().join("vault.key").is_file()
        );
    }
}

#[tokio::test]
async fn tokens_are_renewed_so_long_before_their_end() {
    let (authority, (_kept, folder)) = (Authority::start(3600).await, folder());
    let with = async |seconds: u32| {
        let text = format!(
            "[oauth]\nvault = \"{0}/vault\"\nvault_key = {{ file = \"{0}/vault.key\" }}\nallow_loopback_http = true\n\
             renew_before_seconds = {seconds}\n",
            folder.display()
        );
        start_at(&text, &authority.url()).await
    };
    let gate = with(60).await;
    logged_in(&gate, &authority, &gate.agent()).await;
    // As if all but a hundred seconds of the hour had passed.
    change(&folder, |account| {
        let granted = account.granted.as_mut().unwrap();
        granted.given_unix -= 3500;
        granted.expires_unix = granted.expires_unix.map(|end| end - 3500);
    })
    .await;
    for (seconds, renewals) in [(20, 0), (300, 1)] {
        let gate = with(seconds).await;
        assert!(works(&gate.agent()).await);
        // A renewal that a call has started continues in the background.
        gate.running.drain().await;
        assert_eq!(authority.asked(Ask::Refresh), renewals, "{seconds}");
    }
}

#[tokio::test]
async fn the_metadata_document_is_shown_under_a_public_address_with_the_clients_name() {
    let authority = Authority::start(60).await;
    let shown = async |keys: &str| {
        let gate = gate(&authority, keys, "").await;
        let answer = gate.agent().get("/oauth/client.json", &[]).await;
        (answer.status, answer.text().await)
    };
    let hosted = "callback = \"https://gate.example.org\"\n";
    let (status, document) = shown(&format!("{hosted}client_name = \"Orchard gate\"")).await;
    assert_eq!(status, 200, "{document}");
    assert_contains(&document, &["https://gate.example.org/oauth/callback"]);
    assert!(document.contains("\"Orchard gate\""), "{document}");
    assert!(shown(hosted).await.1.contains("\"lychgate\""));
    assert!(!shown("").await.1.contains("https://gate.example.org"));
    let (_, document) = shown("client_document = \"https://example.org/lychgate.json\"").await;
    assert_contains(&document, &["https://example.org/lychgate.json"]);
}

#[tokio::test]
async fn a_client_that_is_registered_already_logs_in_by_itself() {
    let authority = Authority::start(60).await;
    let settings = authority.settings();
    let (_kept, folder) = folder();
    let secret = folder.join("client-secret");
    std::fs::write(&secret, &settings.client.1).unwrap();
    let client = format!(
        "issuer = \"{}\"\nclient_id = \"{}\"\nclient_secret = {{ file = \"{}\" }}\nscopes = [\"tools\"]\n",
        settings.issuer,
        settings.client.0,
        secret.display()
    );
    let by_itself = gate(
        &authority,
        "",
        &format!("grant = \"client_credentials\"\n{client}"),
    )
    .await;
    assert!(works(&by_itself.agent()).await, "no person is asked");
    std::fs::write(&secret, "not-the-secret-of-the-client").unwrap();
    let wrong = gate(
        &authority,
        "",
        &format!("grant = \"client_credentials\"\n{client}"),
    )
    .await;
    assert!(
        !says(&wrong.agent()).await.contains("tools"),
        "another secret is turned away"
    );
    assert_eq!(authority.asked(Ask::Register), 0);
    let by_a_person = gate(&authority, "", "").await;
    logged_in(&by_a_person, &authority, &by_a_person.agent()).await;
    assert_eq!(
        authority.asked(Ask::Register),
        1,
        "without an id the gate registers"
    );
}

#[test]
fn a_client_id_belongs_to_an_issuer_and_authorities_are_reached_as_written() {
    let upstream = "[upstream.up]\n[upstream.up.http]\nurl = \"{url}\"\n[upstream.up.http.oauth]\n";
    assert!(faults(&format!("{upstream}client_id = \"a\"\n")).contains("issuer"));
    assert_eq!(
        faults(&format!(
            "{upstream}client_id = \"a\"\nissuer = \"https://login.example.org\"\n"
        )),
        ""
    );
    assert_contains(
        &faults("[oauth]\nlease_seconds = 5\nrequest_seconds = 10\n"),
        &["`lease_seconds` must be longer"],
    );
    assert_eq!(
        faults("[oauth]\nlease_seconds = 11\nrequest_seconds = 10\n"),
        ""
    );
}

#[tokio::test]
async fn an_organisation_is_asked_as_the_config_says() {
    let authority = Authority::start(60).await;
    let sso = Server::start(|_| async { reply(404, &[], "") }).await;
    let there = format!("http://{}", sso.address);
    for (more, path, kind) in [
        (
            format!("token_endpoint = \"{there}/tokens\""),
            "/tokens",
            "token-type%3Aid_token",
        ),
        (
            format!("token_endpoint = \"{there}/tokens\"\nsaml = true"),
            "/tokens",
            "token-type%3Asaml2",
        ),
        (String::new(), "/.well-known/", ""),
    ] {
        let keys = format!(
            "issuer = \"{}\"\nclient_id = \"gate\"\n[upstream.up.http.oauth.grant.enterprise]\nissuer = \"{there}\"\n\
             client_id = \"gate-at-sso\"\nclient_secret = {{ file = \"token-of-bob\" }}\nid_token_file = \"secret\"\n{more}\n",
            authority.settings().issuer
        );
        let gate = gate(&authority, "", &keys).await;
        assert!(
            !works(&gate.agent()).await || says(&gate.agent()).await.contains("token"),
            "the organisation gives nothing"
        );
        let asked = sso.next().await;
        let body = String::from_utf8_lossy(&asked.body).into_owned();
        assert!(asked.path.starts_with(path), "{}", asked.path);
        if !more.is_empty() {
            let secret = asked.headers.contains_key("authorization")
                || body.contains("client_secret=token-of-bob");
            assert!(
                secret && body.contains(kind) && body.contains(super::SECRET),
                "{body}"
            );
        }
        sso.rest().await;
    }
}
