//! Keys, tokens and personal data do not reach the model where the policy requires it; the rest of
//! the answer does.

use super::harness::{TestGate, assert_contains, assert_text, call, json, line_with, raw, string};
use super::servers::{Server, json_reply};
use lychgate::config::{PolicyConfig, load_policies};

/// Returns a token of a known shape, composed here so that no scanner reports this file as a leak.
fn token() -> String {
    format!("ghp_{}", "x7Kq2LmZ9RtVb4WnY8PdC3sHjF6gTa1EuQ5o")
}

fn policy(line: &str) -> PolicyConfig {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lychgate.toml");
    std::fs::write(&file, format!("[policy.default]\n{line}\n")).unwrap();
    load_policies(&file)
        .unwrap()
        .policies
        .remove("default")
        .unwrap()
}

async fn gate(line: &str) -> (TestGate, Server, String) {
    let result = format!(
        r#"{{"content":[{{"type":"text","text":"Token {0}.\nMail ann@example.org or +1 (415) 555-0132."}},{{"type":"text","text":"{{\"key\":\"{0}\",\"n\":1e2,\"mail\":\"bob@example.org\"}}"}}],"structuredContent":{{"key":"{0}","card":"4111 1111 1111 1111","n":-0}},"nextCursor":"{0}"}}"#,
        token()
    );
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    let sent = body.clone();
    let server = Server::start(move |_| std::future::ready(json_reply(body.clone()))).await;
    (redacting(&server, line).await, server, sent)
}

async fn redacting(server: &Server, line: &str) -> TestGate {
    let policies = [("default".to_owned(), policy(line))].into();
    server
        .setup()
        .start_with(|config| config.policies = policies)
        .await
}

async fn asked(gate: &TestGate) -> String {
    gate.agent().fetch("up", &[], call("1", "go")).await
}

/// Returns the text of a block of an answer.
fn block_text(answer: &str, index: usize) -> String {
    let json = json(answer);
    let block = json
        .root()
        .at(&["result", "content"])
        .unwrap()
        .elements()
        .nth(index);
    block
        .unwrap()
        .get("text")
        .unwrap()
        .str()
        .unwrap()
        .into_owned()
}

#[tokio::test]
async fn nothing_is_redacted_unless_the_policy_says_so() {
    let (gate, _server, sent) = gate("").await;
    assert_eq!(asked(&gate).await, sent);
}

#[tokio::test]
async fn secrets_are_replaced_by_what_they_were() {
    let (gate, _server, sent) = gate(r#"redact_results = ["secrets"]"#).await;
    let got = asked(&gate).await;
    let (texts, cursor) = got.rsplit_once(r#""nextCursor""#).unwrap();
    assert!(
        !texts.contains(&token()) && cursor.contains(&token()),
        "{got}"
    );
    assert_eq!(texts.matches("[redacted: secret-").count(), 3, "{got}");
    for kept in [
        "Mail ann@example.org",
        "4111 1111",
        r#"\"n\":1e2"#,
        r#""n":-0"#,
    ] {
        assert!(got.contains(kept) && sent.contains(kept), "{kept}: {got}");
    }
    let inner = block_text(&got, 1);
    assert!(
        raw(&json(&inner), &["key"])
            .unwrap()
            .starts_with(r#""[redacted: "#),
        "{inner}"
    );
    let line = "[lychgate redacted 1 passage: rules `secret-named`, `secret-source`, audit ";
    let first = block_text(&got, 0);
    assert!(first.starts_with(line), "{first}");
    assert!(
        !inner.contains(line),
        "a field that is redacted as a whole is the mark alone: {inner}"
    );
    assert!(!gate.audit_text().contains(&token()));
    let counted: f64 = gate
        .metric("lychgate_findings_total", &[("action", "redact")])
        .unwrap();
    assert!(counted >= 3.0, "{counted}");
}

#[tokio::test]
async fn data_of_people_by_kind() {
    let (gate, _server, _) = gate(r#"redact_results = ["emails", "phones", "cards"]"#).await;
    let got = asked(&gate).await;
    assert_text(
        &got,
        &[],
        &[
            "ann@example.org",
            "bob@example.org",
            "555-0132",
            "4111 1111",
        ],
    );
    assert_contains(
        &got,
        &[
            "Mail [redacted: email-address] or [redacted: phone-number].",
            r#"\"mail\":\"[redacted: email-address]\""#,
            r#""card":"[redacted: payment-card]""#,
        ],
    );
    assert!(got.contains(&token()), "not asked for: {got}");
    let text = block_text(&got, 0);
    let (line, left) = text.split_once('\n').unwrap();
    let named = line.strip_prefix(
        "[lychgate redacted 2 passages: rules `email-address`, `phone-number`, audit ",
    );
    let audit = named
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or_else(|| panic!("{line}"));
    assert!(left.starts_with("Token "), "{left}");
    let logged = gate.audit_text();
    let logged = line_with(&logged, audit);
    assert!(
        logged.contains("email-address"),
        "the ID is that of the line in the audit log: {logged}"
    );
    gate.assert_series(
        r#"lychgate_findings_total{rule="email-address",action="redact"}"#,
        2.0,
    );
}

/// In JSON the notice cannot be a line above the content, so it is in the string that was changed,
/// as for other changes.
#[tokio::test]
async fn in_json_the_line_is_within_the_string() {
    let server = Server::start(|_| async {
        json_reply(
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"note\":\"Mail ann@example.org or bob@example.org.\",\"mail\":\"ann@example.org\"}"},{"type":"text","text":"ann@example.org"}],"structuredContent":{"note":"Mail ann@example.org.","mail":"ann@example.org"}}}"#,
        )
    })
    .await;
    let gate = redacting(&server, r#"redact_results = ["emails"]"#).await;
    let got = asked(&gate).await;
    let mark = "[redacted: email-address]";
    let inner = json(&block_text(&got, 0));
    let structured = json(&raw(&json(&got), &["result", "structuredContent"]).unwrap());
    for (data, line, left) in [
        (
            &inner,
            "[lychgate redacted 2 passages: rule `email-address`, audit ",
            format!("\nMail {mark} or {mark}."),
        ),
        (
            &structured,
            "[lychgate redacted 1 passage: rule `email-address`, audit ",
            format!("\nMail {mark}."),
        ),
    ] {
        let note = string(data, &["note"]).unwrap();
        assert!(note.starts_with(line) && note.ends_with(&left), "{note}");
        assert_eq!(string(data, &["mail"]).unwrap(), mark);
    }
    assert!(
        got.contains(r#""text":"[lychgate redacted 1 passage: rule `email-address`, audit "#),
        "a whole text has room: {got}"
    );
}

#[tokio::test]
async fn numbers_that_are_somebodys_are_taken_out_too() {
    let server = Server::start(|_| async {
        json_reply(
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"card\":4111111111111111,\"n\":1234567890123}"}],"structuredContent":{"card":4111111111111111,"phone":4155550132,"time":1763812345678,"rows":[4111111111111111,7]}}}"#,
        )
    })
    .await;
    let gate = redacting(&server, r#"redact_results = ["cards", "phones"]"#).await;
    let got = asked(&gate).await;
    assert_text(&got, &[], &["41111111", "4155550132"]);
    let read = json(&got);
    let kept = r#""time":1763812345678,"rows":["[redacted: "#;
    assert_contains(&got, &[kept, r#"\"n\":1234567890123"#]);
    let text = super::harness::result_text(&read);
    let card = string(&json(&text), &["card"]).unwrap();
    assert!(card.starts_with("[redacted: "), "{text}");
}
