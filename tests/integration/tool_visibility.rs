//! The buttons of the console that hide and show a tool.

use std::path::PathBuf;

use http::Method;
use serde_json::{Value, json};

use super::console::Page;
use super::harness::{Setup, TestGate, assert_contains, log, message, write_whole};
use super::servers::{Server, json_reply};

const TOOLS: &str = r#"{"tools":[{"name":"mail","inputSchema":{"type":"object"}},{"name":"db.drop","inputSchema":{"type":"object"}},{"name":"a*","inputSchema":{"type":"object"}}]}"#;

/// Starts a gate with a config file that ends with `more`, for a server with three tools.
async fn gate(more: &str) -> (Server, TestGate, PathBuf) {
    let server = Server::start(|asked| async move {
        let asked = message(&asked.body);
        let id = asked
            .single()
            .and_then(|envelope| asked.id(envelope))
            .unwrap_or("null");
        json_reply(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{TOOLS}}}"#))
    })
    .await;
    let setup = Setup::new();
    let file = setup.folder.path().join("gate.toml");
    let url = server.url();
    let text = format!(
        "# by hand\n[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[approval]\n\
         token_file = \"approve.token\"\n[audit]\nfile = \"log.jsonl\"\n[pins]\npersistent = false\n\
         [upstream.up]\nhttp = {{ url = \"{url}\" }}\n[upstream.twin]\nhttp = {{ url = \"{url}\" }}\n\
         [upstream.calm]\nhttp = {{ url = \"{url}\" }}\nmode = \"observe\"\npolicy = \"calm\"\n{more}"
    );
    write_whole(&file, &text);
    (server, setup.start_from(file.clone()).await, file)
}

/// Returns the names of the tools that an agent receives.
async fn listed(gate: &TestGate, upstream: &str) -> Vec<String> {
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    let answer = gate.agent().fetch(upstream, &[], body.to_owned()).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let tools = answer["result"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns what the page shows about a tool, and what its button sends.
async fn shown(gate: &TestGate, page: &Page, upstream: &str, tool: &str) -> (Value, Value) {
    let all: Value = serde_json::from_str(&page.get(gate, "pins").await.1).unwrap();
    let of_name = |list: &Value, name: &str| {
        list.as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == name)
            .unwrap()
            .clone()
    };
    let known = of_name(&all["upstreams"], upstream);
    let one = of_name(&known["definitions"], tool);
    let hidden = !one["hidden"].as_bool().unwrap();
    let policy = &known["policy"];
    let upstreams = &known["shares_policy"];
    let body = json!({ "upstream": upstream, "tool": tool, "hidden": hidden, "policy": policy, "upstreams": upstreams });
    (one, body)
}

async fn press(gate: &TestGate, page: &Page, body: &Value) -> (u16, String) {
    page.ask(gate, Method::POST, "pins/hide", &[], &body.to_string())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_hidden_and_shown_by_one_key_of_the_config() {
    let (_server, gate, file) = gate("[policy.calm]\n").await;
    let all = ["mail", "db.drop", "a*"];
    assert_eq!(listed(&gate, "up").await, all);
    let page = Page::open(&gate).await;
    let before = std::fs::read_to_string(&file).unwrap();
    let (one, body) = shown(&gate, &page, "up", "db.drop").await;
    assert_eq!(one["hidden"], json!(false));
    assert_eq!(one["can_toggle"], json!(true));
    assert_eq!(
        body["upstreams"],
        json!(["twin", "up"]),
        "the dialog names all that are affected"
    );
    assert_eq!(
        press(&gate, &Page::default(), &body).await.0,
        401,
        "only in a session"
    );

    let (status, told) = press(&gate, &page, &body).await;
    assert_eq!(status, 200, "{status} {told}");
    assert_contains(&told, &[r#""in_force":true"#]);
    let after = std::fs::read_to_string(&file).unwrap();
    let added = after.strip_prefix(&before).unwrap();
    assert!(
        added.starts_with("\n# lychgate console: 20") && added.contains(", by console\n"),
        "{added}"
    );
    assert!(
        added.ends_with("\n[policy.default.tool.\"db.drop\"]\nhidden = true\n"),
        "{added}"
    );
    for upstream in ["up", "twin"] {
        assert_eq!(listed(&gate, upstream).await, ["mail", "a*"]);
    }
    assert!(
        log().contains("tool `db.drop` hidden in policy `default`"),
        "it is in the log"
    );

    let (one, body) = shown(&gate, &page, "up", "db.drop").await;
    assert_eq!(
        (&one["hidden"], &body["hidden"]),
        (&json!(true), &json!(false)),
        "it is still there to be shown again"
    );
    let (status, told) = press(&gate, &page, &body).await;
    assert_eq!(status, 200, "{status} {told}");
    assert_contains(&told, &[r#""in_force":true"#]);
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        after.replace("hidden = true", "hidden = false")
    );
    assert_eq!(listed(&gate, "up").await, all);
    let (one, _) = shown(&gate, &page, "up", "db.drop").await;
    assert_eq!(one["hidden"], json!(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_written_is_refused_and_the_file_is_left_alone() {
    let (_server, gate, file) =
        gate("[policy.calm]\n[policy.default.tool]\nmail = { ask = \"always\" }\n").await;
    for upstream in ["up", "calm"] {
        listed(&gate, upstream).await;
    }
    let page = Page::open(&gate).await;
    let before = std::fs::read_to_string(&file).unwrap();
    let (pattern, of_pattern) = shown(&gate, &page, "up", "a*").await;
    assert_eq!(pattern["toggle"], Value::Null);
    assert_eq!(pattern["can_toggle"], json!(false));
    let (observed, of_observed) = shown(&gate, &page, "calm", "mail").await;
    assert_eq!(observed["can_toggle"], json!(false));
    let (_, right) = shown(&gate, &page, "up", "mail").await;
    let with = |key: &str, value: Value| {
        let mut body = right.clone();
        body[key] = value;
        body
    };
    for (body, wanted, why) in [
        (of_pattern, 409, "which is a pattern in the config"),
        (of_observed, 409, "observe mode"),
        (
            with("tool", json!("never-listed")),
            409,
            "lists no such tool",
        ),
        (with("upstream", json!("none")), 409, "lists no such tool"),
        (
            with("upstreams", json!(["up"])),
            409,
            "have changed: try again",
        ),
        (
            with("policy", json!("calm")),
            409,
            "have changed: try again",
        ),
        (with("hidden", json!("yes")), 400, "send `upstream`"),
        (json!([]), 400, "send `upstream`"),
    ] {
        let (status, told) = press(&gate, &page, &body).await;
        assert!(
            status == wanted && told.contains(why),
            "{body}: {status} {told}"
        );
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    // A file that would not load is not written, even if the key could be.
    let broken = before.replace("[policy.calm]", "colour = 1\n[policy.calm]");
    write_whole(&file, &broken);
    let (status, told) = press(&gate, &page, &right).await;
    assert_eq!(status, 409, "{told}");
    assert_contains(
        &told,
        &["the config was not changed", "unknown key `colour`"],
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), broken);
    write_whole(&file, &before);
    let (status, told) = press(&gate, &page, &right).await;
    assert_eq!(status, 200, "{status} {told}");
    assert_contains(&told, &[r#""in_force":true"#]);
    let wanted = before.replace("mail = { ask", "mail = { hidden = true, ask");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), wanted);
    assert_eq!(listed(&gate, "up").await, ["db.drop", "a*"]);
}
