//! Calls are checked against the server's lists and the operator's overlays, on every transport and
//! in both eras.

use std::collections::BTreeMap;

use super::harness::{META, Setup, TestGate, json, message, raw, result_text};
use super::servers::{Peer, Server, Wire, json_reply, says, script};
use lychgate::config::{ArgumentConfig, PathFormat, SchemaConfig, ToolConfig};

const TOOLS: &str = r#"{ "tools" : [ {"name":"scale","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":100}},"required":["n"]}} ,
 {"name":"drop_all","inputSchema":{"type":"object"}},{"name":"remote","inputSchema":{"$ref":"https://example.org/never-fetched.json"}} ], "x" : 1e2 }"#;

/// Answers `tools/list` with the tools, and any call with `done`.
fn answer(asked: &str) -> Vec<String> {
    let message = message(asked.as_bytes());
    let lists = message
        .single()
        .is_some_and(|envelope| envelope.method() == Some("tools/list"));
    let id = message
        .single()
        .and_then(|envelope| message.id(envelope))
        .map(str::to_owned);
    match id {
        Some(id) if lists => vec![format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#,
            TOOLS.replace('\n', "")
        )],
        _ => says(asked, "done"),
    }
}

fn list(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#)
}

fn call(id: u32, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// Returns the text of the only answer in a body, which may be a stream.
fn text(body: &str) -> String {
    let line = body.lines().rev().find_map(|line| {
        line.strip_prefix("data: ")
            .or(line.starts_with('{').then_some(line))
    });
    let answer = json(line.unwrap());
    format!(
        "{} {}",
        raw(&answer, &["result", "isError"]).unwrap_or_default(),
        result_text(&answer)
    )
    .trim()
    .to_owned()
}

#[tokio::test]
async fn a_call_that_breaks_the_listed_schema_is_refused_on_every_transport() {
    for wire in Wire::ALL {
        let peer = Peer::start(wire, script(answer)).await;
        let gate = peer.behind(Setup::new(), "up").start().await;
        let agent = gate.agent();
        let session = agent.initialize("up").await.unwrap();
        let headers = [("mcp-session-id", session.as_str())];
        let bad = call(1, "scale", r#"{"n":"hunter2"}"#);
        let before = agent.fetch("up", &headers, bad.clone()).await;
        assert_eq!(
            text(&before),
            "done",
            "{wire:?}: what was never listed is not known"
        );
        let listed = agent.fetch("up", &headers, list(2)).await;
        assert!(
            listed.contains(&TOOLS.replace('\n', "")),
            "{wire:?}: not a byte changes: {listed}"
        );
        let refused = text(&agent.fetch("up", &headers, bad).await);
        assert!(
            refused.starts_with("true Blocked by lychgate"),
            "{wire:?}: {refused}"
        );
        for part in [
            "`argument-schema`",
            r#"`n` is not of type "integer""#,
            r#"An example that fits: {"n":1}"#,
        ] {
            assert!(refused.contains(part), "{wire:?}: {refused}");
        }
        assert!(!refused.contains("hunter2"), "{wire:?}: {refused}");
        let fine = agent
            .fetch("up", &headers, call(3, "scale", r#"{"n":100}"#))
            .await;
        assert_eq!(text(&fine), "done", "{wire:?}");
        let unchecked = agent.fetch("up", &headers, call(4, "remote", "{}")).await;
        assert_eq!(text(&unchecked), "done", "{wire:?}");
        assert!(
            gate.audit_text().contains("schema-remote-reference"),
            "{wire:?}: said to be unchecked"
        );
        assert!(counted(&gate) >= 1.0, "{wire:?}");
        gate.running.drain().await;
    }
}

fn counted(gate: &TestGate) -> f64 {
    gate.metric("lychgate_findings_total", &[("rule", "argument-schema")])
        .unwrap_or_default()
}

#[tokio::test]
async fn a_modern_call_is_held_to_it_too_and_observing_only_records() {
    for (enforce, refused) in [(true, true), (false, false)] {
        let server = Server::start(|seen| async move {
            let asked = std::str::from_utf8(&seen.body).unwrap().to_owned();
            json_reply(answer(&asked).remove(0))
        })
        .await;
        let gate = Setup::new()
            .policy(|policy| policy.enforce = enforce)
            .http("up", server.url())
            .start()
            .await;
        let agent = gate.agent();
        let listing =
            format!(r#"{{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{{{META}}}}}"#);
        agent.fetch_modern("up", &listing).await;
        let bad = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"scale","arguments":{{"n":101}},{META}}}}}"#
        );
        let told = json(&agent.fetch_modern("up", &bad).await);
        assert_eq!(raw(&told, &["result", "isError"]).is_some(), refused);
        assert_eq!(
            raw(&told, &["result", "resultType"]).is_some(),
            refused,
            "a modern result says that it is complete"
        );
        assert_eq!(
            result_text(&told).contains("greater than the maximum of 100"),
            refused
        );
        assert!(counted(&gate) >= 1.0, "found either way");
    }
}

/// Sets an overlay: `n` of `scale` is at most 5, and `path` must be absolute; `drop_*` is hidden.
fn overlay(tools: &mut Vec<(String, ToolConfig)>) {
    let n = ArgumentConfig {
        keywords: BTreeMap::from([("maximum", "5".to_owned())]),
        ..ArgumentConfig::default()
    };
    let path = ArgumentConfig {
        format: Some(PathFormat::Absolute),
        required: true,
        ..ArgumentConfig::default()
    };
    let arguments = [("n".to_owned(), n), ("path".to_owned(), path)].into();
    let scale = ToolConfig {
        description: Some("Scales a little.".into()),
        arguments,
        ..ToolConfig::default()
    };
    tools.push(("scale".into(), scale));
    tools.push((
        "drop_*".into(),
        ToolConfig {
            hidden: Some(true),
            ..ToolConfig::default()
        },
    ));
}

#[tokio::test]
async fn an_overlay_is_what_agents_read_and_what_calls_are_held_to() {
    for wire in Wire::ALL {
        let peer = Peer::start(wire, script(answer)).await;
        let gate = peer
            .behind(
                Setup::new().policy(|policy| overlay(&mut policy.tools)),
                "up",
            )
            .start()
            .await;
        let agent = gate.agent();
        let session = agent.initialize("up").await.unwrap();
        let headers = [("mcp-session-id", session.as_str())];
        let post = async |body: String| agent.fetch("up", &headers, body).await;
        // Before the gate has seen any list.
        let refused = text(&post(call(1, "scale", r#"{"n":6,"path":"/a"}"#)).await);
        assert!(
            refused.contains("`n` is greater than the maximum of 5"),
            "{wire:?}: {refused}"
        );
        assert!(
            refused.contains(r#""path":"/srv/files/report.txt""#),
            "{wire:?}: an example: {refused}"
        );
        let hidden = text(&post(call(2, "drop_all", "{}")).await);
        assert!(hidden.contains("`hidden-tool`"), "{wire:?}: {hidden}");
        let listed = post(list(3)).await;
        for part in [
            r#""maximum":5"#,
            r#""description":"Scales a little.""#,
            r#""required":["path","n"]"#,
            r#""x" : 1e2"#,
        ] {
            assert!(listed.contains(part), "{wire:?}: no {part} in {listed}");
        }
        let told = gate.audit_lines("event", "overlaid").len();
        assert_eq!(told, 1, "{wire:?}");
        assert!(
            !listed.contains("drop_all") && listed.contains("never-fetched"),
            "{wire:?}: {listed}"
        );
        // The server's own schema applies too.
        let refused = text(&post(call(4, "scale", r#"{"n":1.5,"path":"/a"}"#)).await);
        assert!(
            refused.contains(r#"`n` is not of type "integer""#),
            "{wire:?}: {refused}"
        );
        assert_eq!(
            text(&post(call(5, "scale", r#"{"n":5,"path":"/a"}"#)).await),
            "done",
            "{wire:?}"
        );
        gate.running.drain().await;
    }
}

#[tokio::test]
async fn what_no_list_had_may_be_refused() {
    let peer = Peer::start(Wire::Json, script(answer)).await;
    let strict = SchemaConfig {
        enforce: true,
        unlisted: false,
    };
    let gate = peer
        .behind(Setup::new().policy(|policy| policy.schema = strict), "up")
        .start()
        .await;
    let agent = gate.agent();
    let session = agent.initialize("up").await.unwrap();
    let headers = [("mcp-session-id", session.as_str())];
    let post = async |body: String| agent.fetch("up", &headers, body).await;
    assert!(text(&post(call(1, "scale", r#"{"n":1}"#)).await).contains("`unlisted-tool`"));
    post(list(2)).await;
    assert_eq!(text(&post(call(3, "scale", r#"{"n":1}"#)).await), "done");
    assert!(text(&post(call(4, "other", "{}")).await).contains("`unlisted-tool`"));
}
