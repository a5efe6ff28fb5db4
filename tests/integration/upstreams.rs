//! A fault of one upstream affects no other and is reported by name; upstreams are added and
//! removed while the gate runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lychgate::config::Transport;
use rcgen::{CertificateParams, KeyPair};
use rustls_pki_types::PrivateKeyDer;

use super::harness::{
    Agent, INITIALIZE, Setup, TestGate, call, http, json, log, soon, string, until, write_whole,
};
use super::servers::{Server, StdioServer, json_reply, reply, streamed};

const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

/// Starts a gate from a config file with these upstreams.
async fn gate(setup: Setup, upstreams: &str) -> TestGate {
    let file = write_config(setup.folder.path(), upstreams);
    setup.start_from(file).await
}

fn write_config(folder: &Path, upstreams: &str) -> std::path::PathBuf {
    let file = folder.join("lychgate.toml");
    let text = "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[approval]\ntoken_file = \"approve.token\"\n\
                [policy.default]\nrules = [\"rules\"]\n";
    write_whole(&file, &format!("{text}{upstreams}"));
    file
}

async fn ok_server() -> Server {
    Server::answering(OK).await
}

/// Returns the state of an upstream and its reason, as `/readyz` reports them.
async fn ready(gate: &TestGate, upstream: &str) -> (String, String) {
    let (status, text) = gate.admin("/readyz").await;
    assert_eq!(status, 200, "{text}");
    let of = |key: &str| string(&json(&text), &["upstreams", upstream, key]).unwrap_or_default();
    (of("state"), of("why"))
}

fn is_up(gate: &TestGate, upstream: &str) -> Option<f64> {
    gate.metric("lychgate_upstream_up", &[("upstream", upstream)])
}

/// Changes the config and waits for the reload.
async fn reload(gate: &TestGate, upstreams: &str) {
    let applied = || {
        gate.metric("lychgate_reloads_total", &[("outcome", "applied")])
            .unwrap_or_default()
    };
    let before = applied();
    write_config(gate.folder.path(), upstreams);
    gate.running.reload();
    until("the reload", || applied() > before).await;
}

#[tokio::test]
async fn an_upstream_with_a_fault_is_down_with_the_reason_and_the_others_serve() {
    let well = ok_server().await;
    let secret = ok_server().await;
    let setup = Setup::new();
    std::fs::write(setup.folder.path().join("bad.pem"), "no certificate").unwrap();
    let upstreams = format!(
        "[upstream.well]\nhttp = {{ url = \"{}\" }}\n\
         [upstream.unset]\nhttp = {{ url = \"{}\", bearer = {{ env = \"LYCHGATE_TEST_UNSET\" }} }}\n\
         [upstream.secret]\nhttp = {{ url = \"{}\", bearer = {{ file = \"secret\" }} }}\n\
         [upstream.authority]\nhttp = {{ url = \"https://localhost/mcp\", ca = \"bad.pem\" }}\n\
         [upstream.program]\nstdio = {{ command = [\"no-such-program-here\"] }}\n\
         [upstream.variable]\nstdio = {{ command = [\"sh\"], set_env = {{ API_KEY = {{ env = \"LYCHGATE_TEST_UNSET\" }} }} }}\n",
        well.url(),
        well.url(),
        secret.url()
    );
    let gate = gate(setup, &upstreams).await;
    let faults = lychgate::config::load(&gate.folder.path().join("lychgate.toml")).unwrap_err();
    let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
    assert_eq!(
        lines,
        [12, 14, 20],
        "`lychgate check` names them all: {faults:?}"
    );

    gate.agent().post_ok("well", &[], call("1", "x")).await;
    assert_eq!(ready(&gate, "well").await.0, "up");
    let unset =
        "the environment variable `LYCHGATE_TEST_UNSET` is not set; set it before lychgate starts";
    for (name, expected) in [
        ("unset", &[unset, "lychgate.toml:12:"][..]),
        (
            "secret",
            &["secret` cannot be read: No such file", "lychgate.toml:14:"],
        ),
        ("authority", &["bad.pem", "certificate"]),
        (
            "program",
            &["the program `no-such-program-here` is not on the gate's PATH; install it"],
        ),
        ("variable", &[unset, "lychgate.toml:20:"]),
    ] {
        let (state, reason) = ready(&gate, name).await;
        assert_eq!(state, "down", "{name}");
        assert!(
            expected.iter().all(|part| reason.contains(part)),
            "{name}: {reason}"
        );
        gate.agent()
            .post_expecting(502, name, &[], INITIALIZE)
            .await;
        until("the metric", || is_up(&gate, name) == Some(0.0)).await;
        until("the warning", || {
            log().contains(&format!("upstream is down upstream={name} "))
        })
        .await;
    }
    assert!(
        secret.rest().await.is_empty(),
        "nothing is sent without the secret"
    );

    // The secret appears and changes: each time the gate loads it by itself.
    for token in ["the-first-token", "the-second-token"] {
        write_whole(&gate.folder.path().join("secret"), &format!("{token}\n"));
        soon("the token at the server", async {
            loop {
                gate.agent()
                    .post("secret", &[], call("1", "x"))
                    .await
                    .bytes()
                    .await;
                let seen = secret.rest().await;
                if seen
                    .iter()
                    .any(|seen| seen.headers["authorization"] == format!("Bearer {token}"))
                {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        })
        .await;
    }
    assert_eq!(ready(&gate, "secret").await.0, "up");
    until("the metric", || is_up(&gate, "secret") == Some(1.0)).await;
}

#[tokio::test]
async fn an_open_port_is_not_up_and_the_reason_says_what_to_change() {
    let repaired = Arc::new(AtomicBool::new(false));
    let answers = repaired.clone();
    let page = Server::start_with_probes(None, move |_| {
        let answers = answers.load(Ordering::Relaxed);
        async move {
            let page = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>";
            if answers {
                json_reply(OK)
            } else {
                reply(200, &[("content-type", "text/html")], page)
            }
        }
    })
    .await;
    let login = Server::start_with_probes(None, |_| async { reply(401, &[], "") }).await;
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2024, 5, 6);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let tls = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_no_client_auth()
    .with_single_cert(
        vec![certificate.der().clone()],
        PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    )
    .unwrap();
    let expired =
        Server::start_with_probes(Some(Arc::new(tls)), |_| async { json_reply(OK) }).await;
    let port = expired.address.port();

    let setup = Setup::new();
    let ca = setup.folder.path().join("own.pem");
    std::fs::write(&ca, certificate.pem()).unwrap();
    let mut secure = http(format!("https://localhost:{port}/mcp?key=hidden-key"));
    secure.ca = Some(ca.clone());
    let mut plain = http(format!("https://{}/mcp", page.address));
    plain.ca = Some(ca);
    let gate = setup
        .http("page", page.url())
        .http("login", login.url())
        .http("expired", String::new())
        .http("plain", String::new())
        .http("tls", format!("http://localhost:{port}/mcp"))
        .http("name", "http://no-such-host.invalid/mcp".into())
        .with(|config| {
            config.upstreams.get_mut("expired").unwrap().transport = Transport::Http(secure);
            config.upstreams.get_mut("plain").unwrap().transport = Transport::Http(plain);
        })
        .start()
        .await;
    for (name, expected) in [
        (
            "page",
            &[
                "answers with a web page, not MCP (200, \"Sign in\")",
                "correct the path in `url`",
            ][..],
        ),
        (
            "expired",
            &[
                "certificate of localhost:",
                "expired on 2024-05-06 (",
                "its operator must renew it",
            ],
        ),
        ("plain", &["does not use TLS; write `http://` in `url`"]),
        ("tls", &["if it expects TLS, write `https://` in `url`"]),
        (
            "name",
            &["the host name `no-such-host.invalid` does not resolve"],
        ),
    ] {
        let (state, reason) = ready(&gate, name).await;
        assert_eq!(state, "down", "{name}: {reason}");
        assert!(
            expected.iter().all(|part| reason.contains(part)),
            "{name}: {reason}"
        );
        assert!(!reason.contains("hidden-key"), "{name}: {reason}");
    }
    assert_eq!(ready(&gate, "login").await.0, "auth_required");
    assert_eq!(
        gate.metric("lychgate_messages_total", &[])
            .unwrap_or_default(),
        0.0,
        "a probe is no agent's call"
    );
    assert!(!gate.audit_text().contains("ping"), "{}", gate.audit_text());
    for (name, up) in [("page", 0.0), ("expired", 0.0), ("login", 1.0)] {
        until("the metric", || is_up(&gate, name) == Some(up)).await;
    }
    let probe = page.next().await;
    assert_eq!(probe.headers["mcp-session-id"], "lychgate-health");
    assert!(probe.body.windows(6).any(|part| part == b"\"ping\""));

    repaired.store(true, Ordering::Relaxed);
    soon("the repaired server", async {
        while ready(&gate, "page").await.0 != "up" {}
    })
    .await;
}

#[tokio::test]
async fn upstreams_are_added_changed_and_removed_by_a_reload() {
    let (tap, streaming) = streamed();
    let streaming = Arc::new(std::sync::Mutex::new(Some(streaming)));
    let before = Server::start(move |_| {
        let reply = streaming.lock().unwrap().take();
        async move { reply.unwrap_or_else(|| json_reply(OK)) }
    })
    .await;
    let after = ok_server().await;
    let added = ok_server().await;
    let kept = StdioServer::start().await;
    let removed = StdioServer::start().await;
    let stdio = |name: &str, server: &StdioServer| {
        let transport = server.command();
        let command: Vec<String> = transport
            .command
            .iter()
            .map(|part| format!("'{part}'"))
            .collect();
        let (variable, value) = &transport.set_env[0];
        format!(
            "[upstream.{name}]\nstdio = {{ command = [{}], set_env = {{ {variable} = \"{}\" }} }}\n",
            command.join(", "),
            value.0
        )
    };
    let web = |name: &str, server: &Server| {
        format!(
            "[upstream.{name}]\nhttp = {{ url = \"{}\" }}\n",
            server.url()
        )
    };
    let first = [
        web("web", &before),
        stdio("kept", &kept),
        stdio("removed", &removed),
    ]
    .concat();
    let gate = gate(Setup::new(), &first).await;
    let agent = gate.agent();
    let (session, mut child) = kept.session(&agent, "kept").await;
    let (_, gone) = removed.session(&agent, "removed").await;
    until("the metric", || is_up(&gate, "removed").is_some()).await;
    tap.say(": open\n\n").await;
    let mut open = agent.post_ok("web", &[], call("1", "x")).await;
    open.event().await.unwrap();

    reload(
        &gate,
        &[
            web("web", &after),
            stdio("kept", &kept),
            web("added", &added),
        ]
        .concat(),
    )
    .await;
    agent.post_ok("added", &[], call("1", "x")).await;
    added.next().await;
    agent.post_ok("web", &[], call("1", "x")).await;
    after.next().await;
    agent
        .post_expecting(404, "removed", &[], call("1", "x"))
        .await;
    until("the end of the removed upstream's process", || !gone.runs()).await;
    until("the end of its series", || {
        is_up(&gate, "removed").is_none()
    })
    .await;
    assert!(!gate.admin("/readyz").await.1.contains("removed"));
    until("the added upstream's metric", || {
        is_up(&gate, "added") == Some(1.0)
    })
    .await;

    // An upstream whose address has not changed keeps its session and its process.
    let asked = with_session(agent.clone(), "kept", session);
    let answered = async {
        child.line().await.unwrap();
        child.say(OK.as_bytes()).await;
    };
    let (answer, ()) = tokio::join!(asked, answered);
    assert_eq!(answer, (200, OK.to_owned()));
    assert!(!kept.started_another().await);

    // The open call continues at the server with which it began.
    tap.say(format!("data: {OK}\n\n")).await;
    assert_eq!(open.data().await.unwrap(), OK.as_bytes());

    // A faulty upstream among those that are added does not prevent the reload.
    let faulty = "[upstream.faulty]\nhttp = { url = \"http://127.0.0.1:1/\", bearer = { file = \"nowhere\" } }\n";
    reload(&gate, &[&web("web", &after), faulty].concat()).await;
    let (state, reason) = ready(&gate, "faulty").await;
    assert!(
        state == "down" && reason.contains("nowhere` cannot be read"),
        "{state}: {reason}"
    );
    agent.post_ok("web", &[], call("1", "x")).await;
    gate.running.drain().await;
    assert!(!child.runs());
}

async fn with_session(agent: Agent, upstream: &str, session: String) -> (u16, String) {
    let answer = agent
        .post(upstream, &[("mcp-session-id", &session)], call("1", "x"))
        .await;
    (answer.status, answer.text().await)
}
