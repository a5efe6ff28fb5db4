//! Child processes are started exactly as the config says, answer within their timeouts, and always
//! end.

use std::time::{Duration, Instant};

use lychgate::config::{Secret, StdioTransport};

use super::harness::{
    Setup, assert_contains, call, error_message, json, modern_call, string, until,
};
use super::servers::{StdioServer, command, runs, says};

fn shell(folder: &std::path::Path, script: &str) -> StdioTransport {
    StdioTransport {
        env: vec!["PATH".into()],
        directory: Some(folder.into()),
        ..command(&["/bin/sh", "-c", script])
    }
}

fn lines(folder: &std::path::Path, name: &str) -> Vec<String> {
    std::fs::read_to_string(folder.join(name))
        .unwrap_or_default()
        .lines()
        .map(Into::into)
        .collect()
}

/// Answers every request with an empty result of id `"init"`, and prints output beside the
/// protocol.
const ANSWER: &str = r#"while read -r line; do echo "noise on stderr" >&2; echo 'noise on stdout'; echo '{"jsonrpc":"2.0","id":"init","result":{}}'; done"#;

#[tokio::test]
async fn arguments_are_exact_and_only_named_variables_get_through() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        format!(r#"for a in "$@"; do printf '<%s>\n' "$a"; done > args; env > env; {ANSWER}"#);
    let mut transport = shell(folder.path(), &script);
    let hard = [
        "name",
        "a b",
        "$HOME",
        "*",
        "; touch pwned",
        "",
        "\"'",
        "--x=$(touch pwned)",
    ];
    transport.command.extend(hard.map(String::from));
    transport.env = vec!["PATH".into(), "NOT_SET_ANYWHERE".into()];
    transport.set_env = vec![("GIVEN".into(), Secret("outright".into()))];
    let gate = Setup::new().command("up", transport).start().await;
    assert!(
        gate.agent().initialize("up").await.is_some(),
        "noise beside the protocol does no harm"
    );
    let expected: Vec<String> = hard[1..]
        .iter()
        .map(|argument| format!("<{argument}>"))
        .collect();
    assert_eq!(lines(folder.path(), "args"), expected);
    assert!(!folder.path().join("pwned").exists());
    let names: Vec<String> = lines(folder.path(), "env")
        .iter()
        .filter_map(|line| Some(line.split_once('=')?.0.to_owned()))
        .collect();
    // A shell sets these by itself.
    let mut let_in: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .collect();
    let_in.sort_unstable();
    assert_eq!(let_in, ["GIVEN", "PATH"]);
    gate.running.drain().await;
}

#[tokio::test]
async fn a_whole_process_group_ends_however_stubborn() {
    let folder = tempfile::tempdir().unwrap();
    // The child and the helper that it starts ignore every signal but SIGKILL.
    let script = format!(
        "trap '' TERM HUP; ( trap '' TERM HUP; exec sleep 300 ) & echo $! >> pids; echo $$ >> pids; {ANSWER}; exec sleep 300"
    );
    let gate = Setup::new()
        .command("up", shell(folder.path(), &script))
        .start()
        .await;
    gate.agent().initialize("up").await.unwrap();
    let pids = lines(folder.path(), "pids");
    assert!(
        pids.len() == 2 && pids.iter().all(|pid| runs(pid)),
        "{pids:?}"
    );
    gate.running.drain().await;
    until("the whole group to be gone", || {
        !pids.iter().any(|pid| runs(pid))
    })
    .await;
}

#[tokio::test]
async fn initialize_has_its_own_time() {
    let server = StdioServer::start().await;
    let setup = Setup::new().stdio("up", &server);
    let setup = setup.with(|config| {
        config.upstreams.get_mut("up").unwrap().initialize_timeout = Duration::from_millis(200)
    });
    let gate = setup.start().await;
    let answer = gate
        .agent()
        .post_expecting(504, "up", &[], super::harness::INITIALIZE)
        .await;
    assert_contains(
        &error_message(&json(&answer.text().await)),
        &["did not answer within 0.2 s"],
    );
    let mut child = server.next().await;
    assert!(child.text().await.contains("initialize"));
    assert_eq!(
        child.line().await,
        None,
        "a child that does not begin is ended, and `initialize` is never cancelled"
    );
    drop(child);
    gate.running.drain().await;
}

#[tokio::test]
async fn a_request_has_its_time_and_is_then_cancelled() {
    let server = StdioServer::start().await;
    let setup = Setup::new().stdio("up", &server);
    let setup = setup.with(|config| {
        config.upstreams.get_mut("up").unwrap().request_timeout = Duration::from_millis(200)
    });
    let gate = setup.start().await;
    let agent = gate.agent();
    let (session, mut child) = server.session(&agent, "up").await;
    let headers = [("mcp-session-id", session.as_str())];
    let answer = agent
        .post_expecting(504, "up", &headers, call("5", "x"))
        .await;
    assert!(answer.text().await.contains(r#""id":5,"#));
    assert!(child.text().await.contains(r#""id":5,"#));
    let line = child.text().await;
    assert_contains(&line, &["notifications/cancelled", r#""requestId":5"#]);
    // The session remains usable.
    let body = call("6", "x");
    let (answer, ()) = tokio::join!(agent.post("up", &headers, body.clone()), async {
        assert_eq!(child.text().await, body);
        child.say(says(&body, "back")[0].as_bytes()).await;
    });
    assert!(answer.expect_text(200).await.contains("back"));
    drop(child);
    gate.running.drain().await;
}

#[tokio::test]
async fn a_child_that_ends_is_replaced_and_one_that_keeps_ending_is_waited_for() {
    let server = StdioServer::start().await;
    let gate = Setup::new().stdio("up", &server).start().await;
    let mut pids = Vec::new();
    let mut ended = Instant::now();
    for round in 0..3 {
        let agent = gate.agent();
        let asking =
            tokio::spawn(async move { agent.post_modern("up", &modern_call("1", "x")).await });
        let mut child = server.next().await;
        if round > 0 {
            assert!(
                ended.elapsed() >= Duration::from_millis(200),
                "started anew without a pause"
            );
        }
        assert!(!pids.contains(&child.pid));
        pids.push(child.pid.clone());
        child.line().await.unwrap();
        // It crashes in the middle of a call, which fails at once and not at its timeout.
        drop(child);
        ended = Instant::now();
        let answer = asking.await.unwrap().expect(502).await;
        assert!(answer.text().await.contains(r#""id":1,"#));
    }
    let (_, ready) = gate.admin("/readyz").await;
    assert_eq!(
        string(&json(&ready), &["upstreams", "up", "state"]).as_deref(),
        Some("down"),
        "{ready}"
    );
    gate.running.drain().await;
}

#[tokio::test]
async fn a_program_that_is_not_there_is_the_servers_fault_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut transport = shell(folder.path(), "");
    transport.command = vec!["/nowhere/at/all".into()];
    let gate = Setup::new().command("up", transport).start().await;
    gate.agent()
        .post_expecting(502, "up", &[], super::harness::INITIALIZE)
        .await;
    gate.assert_series(
        r#"lychgate_failures_total{upstream="up",side="server"}"#,
        1.0,
    );
    gate.running.drain().await;
}
