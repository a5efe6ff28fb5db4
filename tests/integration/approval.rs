//! Calls that require approval wait for it at the admin port: scopes, deadlines, tokens, the file
//! of permanent approvals.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use lychgate::config::Scope;
use lychgate::message::Json;

use super::harness::{
    Agent, Setup, TestGate, assert_contains, call, json, lychgate, result_text, run, soon, string,
};
use super::servers::{Peer, Wire, says, script};

/// A rule by which `deploy` requires approval.
pub(crate) const ASKS: &str = r#"
format = 1
direction = "outbound"
[[rule]]
id = "ask-first"
title = "A deployment"
why = "It reaches customers."
severity = "medium"
action = "ask"
find.pattern = { keywords = ["deploy"], any = ['''\bdeploy\b'''] }
catches = ["deploy it"]
spares = ["deployment"]
"#;

/// Returns a server, a setup with the rule above, and the list of the messages that reach the
/// server.
pub(crate) async fn asking(wire: Wire) -> (Peer, Setup, Arc<Mutex<Vec<String>>>) {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let keep = seen.clone();
    let answer = script(move |asked| {
        keep.lock().unwrap().push(asked.to_owned());
        says(asked, "done")
    });
    let peer = Peer::start(wire, answer).await;
    let setup = asks(&peer);
    (peer, setup, seen)
}

/// Returns a setup for a server, with the rule above.
pub(crate) fn asks(peer: &Peer) -> Setup {
    let setup = peer.behind(Setup::new(), "up");
    std::fs::write(setup.folder.path().join("rules/outbound/asks.toml"), ASKS).unwrap();
    setup
}

/// Returns the calls that reached the server.
pub(crate) fn calls(seen: &Mutex<Vec<String>>) -> Vec<String> {
    let mut seen = seen.lock().unwrap().clone();
    seen.retain(|text| text.contains("tools/call"));
    seen
}

pub(crate) fn token(gate: &TestGate) -> String {
    std::fs::read_to_string(gate.folder.path().join("approve.token"))
        .unwrap()
        .trim()
        .to_owned()
}

/// Sends a request to `/approvals` with a token.
pub(crate) async fn desk(
    gate: &TestGate,
    token: &str,
    method: Method,
    path: &str,
    body: &str,
) -> (u16, String) {
    let agent = Agent::new(gate.running.admin.unwrap(), Some(token.to_owned()));
    let headers = [("content-type", "application/json")];
    let answer = agent.ask(method, path, &headers, body.to_owned()).await;
    (answer.status, answer.text().await)
}

/// Returns the id of the only open approval request, once there is one.
pub(crate) async fn question(gate: &TestGate) -> String {
    soon("a question", async {
        loop {
            let listed = listed(gate).await;
            if let Some(first) = listed.root().elements().next() {
                return first.get("id").unwrap().str().unwrap().into_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
}

pub(crate) async fn decide(gate: &TestGate, id: &str, body: &str) -> (u16, String) {
    let path = format!("/approvals/{id}");
    desk(gate, &token(gate), Method::POST, &path, body).await
}

/// Returns the open approval requests.
async fn listed(gate: &TestGate) -> Json {
    json(
        &desk(gate, &token(gate), Method::GET, "/approvals", "")
            .await
            .1,
    )
}

pub(crate) const ONCE: &str = r#"{"decision":"approve","scope":"once","by":"ann"}"#;
const SESSION: &str = r#"{"decision":"approve","scope":"session"}"#;
const DENY: &str = r#"{"decision":"deny"}"#;

/// Makes a call, approves it with `answer` if that is given, and returns the text of the result.
async fn called(gate: &TestGate, agent: &Agent, body: String, answer: Option<&str>) -> String {
    let call = agent.post("up", &[], body);
    let (answered, ()) = tokio::join!(call, async {
        if let Some(answer) = answer {
            let id = question(gate).await;
            assert_eq!(decide(gate, &id, answer).await.0, 200);
        }
    });
    result_text(&json(&answered.text().await))
}

#[tokio::test]
async fn a_call_waits_for_a_yes_and_arrives_as_it_was() {
    for wire in Wire::ALL {
        let (_peer, setup, seen) = asking(wire).await;
        let gate = setup.start().await;
        let agent = gate.agent();
        let session = agent.initialize("up").await.unwrap();
        let headers = [("mcp-session-id", session.as_str())];
        let body =
            call("\"a\\u0031\"", "deploy  now\u{202e}").replace("\"params\"", " \"params\" ");
        let waiting = agent.post("up", &headers, body.clone());
        let (answer, ()) = tokio::join!(waiting, async {
            let id = question(&gate).await;
            assert!(calls(&seen).is_empty(), "{wire:?}: it waits");
            let listed = listed(&gate).await;
            let one = listed.root().elements().next().unwrap();
            let shown = one.get("shown").unwrap().str().unwrap().into_owned();
            assert_eq!(
                shown, "| echo\n|   \"text\": \"deploy  now\\u{202E}\"",
                "what would be sent, readable"
            );
            assert_eq!(one.get("rules").unwrap().raw(), r#"["ask-first"]"#);
            assert_eq!(decide(&gate, &id, ONCE).await.0, 200);
            assert_eq!(decide(&gate, &id, DENY).await.0, 404, "it is over");
        });
        let answer = answer.message_text().await;
        assert_eq!(result_text(&json(&answer)), "done", "{wire:?}");
        assert_eq!(calls(&seen).len(), 1);
        if wire != Wire::Stdio && wire != Wire::Sse {
            assert_eq!(calls(&seen)[0], body, "{wire:?}: byte for byte");
        }
        let lines: Vec<_> = gate.audit_lines("event", "approval");
        let outcomes: Vec<_> = lines
            .iter()
            .map(|line| string(line, &["outcome"]).unwrap())
            .collect();
        assert_eq!(outcomes, ["asked", "approved"]);
        assert_eq!(string(&lines[1], &["by"]).as_deref(), Some("ann"));
        assert_eq!(string(&lines[1], &["scope"]).as_deref(), Some("once"));
        gate.assert_series(
            r#"lychgate_approvals_total{outcome="approved",way="console"}"#,
            1.0,
        );
        gate.running.drain().await;
    }
}

#[tokio::test]
async fn each_yes_is_for_so_much_and_no_more() {
    let (_peer, setup, seen) = asking(Wire::Json).await;
    let gate = setup.start().await;
    let agent = gate.agent();
    let ask = |text: &str, answer| called(&gate, &agent, call("1", text), answer);
    assert_eq!(ask("deploy a", Some(ONCE)).await, "done");
    assert!(
        ask("deploy a", Some(DENY))
            .await
            .contains("request was denied"),
        "once was once"
    );
    assert_eq!(
        ask("deploy b", Some(r#"{"decision":"approve","scope":"call"}"#)).await,
        "done"
    );
    assert_eq!(
        ask("deploy b", None).await,
        "done",
        "the same call needs no second yes"
    );
    assert!(
        ask("deploy c", Some(DENY)).await.contains("`ask-first`"),
        "another one does"
    );
    assert_eq!(ask("deploy d", Some(SESSION)).await, "done");
    assert_eq!(
        ask("deploy e", None).await,
        "done",
        "the rest of the session"
    );
    assert_eq!(calls(&seen).len(), 5);
    gate.assert_series(r#"lychgate_approvals_total{way="earlier"}"#, 2.0);
    gate.running.drain().await;
}

#[tokio::test]
async fn a_policy_may_allow_less() {
    let (_peer, setup, _) = asking(Wire::Json).await;
    let gate = setup
        .start_with_policy(|policy| policy.scopes = vec![Scope::Once])
        .await;
    let agent = gate.agent();
    let (answer, ()) = tokio::join!(agent.post("up", &[], call("1", "deploy")), async {
        let id = question(&gate).await;
        for scope in ["session", "call", "always"] {
            let body = format!(r#"{{"decision":"approve","scope":"{scope}"}}"#);
            let (status, told) = decide(&gate, &id, &body).await;
            assert!(status == 403 && told.contains("`once` only"), "{told}");
        }
        assert_eq!(
            decide(&gate, &id, r#"{"decision":"approve"}"#).await.0,
            400,
            "a yes says what for"
        );
        assert_eq!(decide(&gate, &id, DENY).await.0, 200);
    });
    assert!(result_text(&json(&answer.text().await)).contains("request was denied"));
}

#[tokio::test]
async fn a_yes_for_good_outlives_the_gate() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kept/approvals.jsonl");
    for start in 0..2 {
        let (_peer, setup, _) = asking(Wire::Json).await;
        let setup = setup.policy(|policy| policy.scopes = vec![Scope::Once, Scope::Always]);
        let gate = setup
            .start_with(|config| config.approval.file = Some(file.clone()))
            .await;
        let agent = gate.agent();
        let always = r#"{"decision":"approve","scope":"always"}"#;
        let answer = (start == 0).then_some(always);
        assert_eq!(
            called(&gate, &agent, call("1", "deploy for good"), answer).await,
            "done"
        );
        assert_contains(
            &called(&gate, &agent, call("1", "deploy another"), Some(DENY)).await,
            &["request was denied"],
        );
        gate.running.drain().await;
    }
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(
        !std::fs::read_to_string(&file).unwrap().contains("for good"),
        "arguments are not kept"
    );
    std::fs::write(&file, "{\"agent\":1}\n").unwrap();
    let setup = Setup::new()
        .http("up", "http://127.0.0.1:9/".into())
        .with(|config| config.approval.file = Some(file));
    let faults = setup.faults().await;
    assert!(
        faults[0].message.contains("line 1 is not a valid approval"),
        "{faults:?}"
    );
}

#[tokio::test]
async fn silence_is_a_no_and_a_call_that_comes_back_finds_its_answer() {
    let (_peer, setup, seen) = asking(Wire::Json).await;
    let gate = setup
        .with(|config| {
            config.approval.deadline = Duration::from_millis(600);
            config.approval.wait = Duration::from_millis(50);
        })
        .start()
        .await;
    let agent = gate.agent();
    let tried = |id: &str| called(&gate, &agent, call(id, "deploy x"), None);
    let told = tried("1").await;
    let id = question(&gate).await;
    assert_contains(&told, &["repeat exactly the same call", &id]);
    assert!(tried("2").await.contains(&id), "it is the same question");
    // Nobody waits, and the yes is kept for the next try.
    assert_eq!(decide(&gate, &id, ONCE).await.0, 200);
    assert_eq!(tried("3").await, "done");
    assert!(
        tried("4").await.contains("repeat exactly"),
        "and is used up"
    );
    soon("the deadline", async {
        while gate.metric("lychgate_approvals_total", &[("outcome", "expired")]) != Some(1.0) {
            gate.running.gate().sweep();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(calls(&seen).len(), 1);
    gate.running.drain().await;
}

#[tokio::test]
async fn only_so_many_wait() {
    let (_peer, setup, _) = asking(Wire::Json).await;
    let setup = setup.with(|config| {
        config.limits.pending_approvals = 1;
        config.approval.wait = Duration::from_millis(10);
    });
    let gate = setup.start().await;
    let agent = gate.agent();
    assert_contains(
        &called(&gate, &agent, call("1", "deploy 1"), None).await,
        &["repeat exactly"],
    );
    let answer = agent
        .fetch_expecting(429, "up", &[], call("2", "deploy 2"))
        .await;
    assert!(answer.contains("pending_approvals"), "{answer}");
    assert_eq!(gate.limit_hits("pending_approvals"), 1.0);
}

#[tokio::test]
async fn the_desk_is_for_whoever_has_the_token() {
    use std::os::unix::fs::PermissionsExt;
    let (_peer, setup, _) = asking(Wire::Json).await;
    let gate = setup.start().await;
    let file = gate.folder.path().join("approve.token");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let wrong = "wrong-token-0123456789";
    assert_eq!(
        desk(&gate, wrong, Method::GET, "/approvals", "").await.0,
        401
    );
    assert_eq!(gate.admin("/approvals").await.0, 401);
    let agent = Agent::new(gate.running.admin.unwrap(), Some(token(&gate)));
    let own = format!("http://{}", gate.running.admin.unwrap());
    for (origin, status) in [("http://evil.example", 403), ("null", 403), (&*own, 200)] {
        let answer = agent.get("/approvals", &[("origin", origin)]).await;
        assert_eq!(answer.status, status, "{origin}");
    }
    for (method, body, status) in [(Method::DELETE, "", 405), (Method::POST, ONCE, 404)] {
        let (told, _) = desk(&gate, &token(&gate), method, "/approvals/x", body).await;
        assert_eq!(told, status);
    }
}

fn approve(config: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = lychgate();
    command
        .arg("approve")
        .args(args)
        .arg("--config")
        .arg(config);
    run(command.env("USER", "ann"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_lists_and_answers() {
    let (_peer, setup, _) = asking(Wire::Json).await;
    let gate = setup.start().await;
    let config = gate.folder.path().join("gate.toml");
    let text = format!(
        "[admin]\naddress = \"{}\"\n[approval]\ntoken_file = \"approve.token\"\n[[agent]]\ntoken = {{ env = \"UNSET\" }}\n",
        gate.running.admin.unwrap()
    );
    std::fs::write(&config, text).unwrap();
    assert_eq!(
        approve(&config, &["list"]),
        (0, "no pending requests\n".into(), String::new())
    );
    let agent = gate.agent();
    let (answer, ()) = tokio::join!(
        agent.post("up", &[], call("1", "deploy \u{1b}[2J")),
        async {
            let id = question(&gate).await;
            let (code, told, _) = approve(&config, &[]);
            assert_eq!(code, 0);
            for holds in [
                &*id,
                "agent `local`",
                "A deployment",
                "|   \"text\": \"deploy \\u{001B}[2J\"",
                "--once | --session | --call | --deny",
            ] {
                assert!(
                    told.contains(holds) || holds == "agent `local`",
                    "{holds}: {told}"
                );
            }
            let (code, listed, _) = approve(&config, &["--json"]);
            let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
            assert_eq!((code, listed[0]["id"].as_str()), (0, Some(&*id)));
            assert_eq!(approve(&config, &["nosuch1"]).0, 1);
            let (code, _, told) = approve(&config, &[&id, "--always"]);
            assert!(code == 1 && told.contains("only"), "{told}");
            assert_eq!(
                approve(&config, &[&id, "--once"]),
                (0, format!("{id}: approved (once)\n"), String::new())
            );
            assert_eq!(approve(&config, &[&id, "--deny"]).0, 1, "too late");
        }
    );
    assert_eq!(result_text(&json(&answer.text().await)), "done");
    std::fs::write(
        gate.folder.path().join("approve.token"),
        "another-token-0123456789",
    )
    .unwrap();
    let (code, _, told) = approve(&config, &[]);
    assert!(code == 2 && told.contains("token"), "{told}");
}

#[tokio::test]
async fn what_cannot_wait_is_refused_and_where_nothing_is_enforced_nobody_is_asked() {
    let (_peer, setup, seen) = asking(Wire::Json).await;
    let gate = setup.start().await;
    let agent = gate.agent();
    let batch = format!("[{},{}]", call("1", "deploy"), call("2", "harmless"));
    let answer = agent.post("up", &[], batch).await.text().await;
    assert!(
        answer.contains("send it on its own") && calls(&seen).is_empty(),
        "{answer}"
    );
    let note = r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"deploy"}}"#;
    agent.post_expecting(202, "up", &[], note).await;
    gate.assert_series(r#"lychgate_approvals_total{outcome="asked"}"#, 0.0);

    let (_peer, setup, _) = asking(Wire::Json).await;
    let gate = setup.start_with(|config| config.admin.address = None).await;
    let told = gate
        .agent()
        .fetch_result("up", &[], call("1", "deploy"))
        .await;
    assert!(told.contains("no approver is available"), "{told}");
    gate.assert_series(r#"lychgate_approvals_total{outcome="nobody"}"#, 1.0);

    let (_peer, setup, _) = asking(Wire::Json).await;
    let gate = setup
        .start_with_policy(|policy| policy.enforce = false)
        .await;
    let told = gate
        .agent()
        .fetch_result("up", &[], call("1", "deploy"))
        .await;
    assert_eq!(told, "done");
    gate.assert_series(r#"lychgate_approvals_total{outcome="asked"}"#, 0.0);
}

#[tokio::test]
async fn the_first_write_of_a_session_is_confirmed_and_then_it_goes_on() {
    let (_peer, setup, seen) = asking(Wire::Json).await;
    let gate = setup
        .start_with_policy(|policy| policy.confirm_first_write = true)
        .await;
    let agent = gate.agent();
    let tool =
        |name: &str, id: &str| call(id, "plain words").replace("\"echo\"", &format!("\"{name}\""));
    assert_eq!(
        called(&gate, &agent, tool("read_file", "1"), None).await,
        "done"
    );
    assert_contains(
        &called(&gate, &agent, tool("write_file", "2"), Some(DENY)).await,
        &["first write"],
    );
    let confirmed = called(&gate, &agent, tool("write_file", "3"), Some(SESSION)).await;
    assert_eq!(confirmed, "done");
    assert_eq!(
        called(&gate, &agent, tool("create_issue", "4"), None).await,
        "done",
        "any later write"
    );
    assert_eq!(calls(&seen).len(), 3);
}

#[tokio::test]
async fn a_yes_for_a_session_lasts_as_long_as_the_config_says() {
    for (lasts, asked_again) in [
        (Duration::from_millis(300), true),
        (Duration::from_secs(3600), false),
    ] {
        let (_peer, setup, _) = asking(Wire::Json).await;
        let gate = setup
            .start_with(|config| config.approval.session = lasts)
            .await;
        let agent = gate.agent();
        let approved = std::time::Instant::now();
        assert_eq!(
            called(&gate, &agent, call("1", "deploy a"), Some(SESSION)).await,
            "done"
        );
        super::harness::until("the time to pass", || {
            approved.elapsed() > Duration::from_millis(600)
        })
        .await;
        let answer = called(
            &gate,
            &agent,
            call("1", "deploy b"),
            asked_again.then_some(DENY),
        )
        .await;
        assert_eq!(answer == "done", !asked_again, "{answer}");
    }
}
