//! Keys, tokens and personal data do not reach the model where the policy requires it; the rest of
//! the answer does.

use super::harness::{Setup, TestGate, assert_contains, assert_text, call, json, raw, string};
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
    let server = Server::start(move |_| {
        let body = body.clone();
        async move { json_reply(body) }
    })
    .await;
    let gate = Setup::new()
        .http("up", server.url())
        .with(|config| config.policies = [("default".to_owned(), policy(line))].into());
    (gate.start().await, server, sent)
}

async fn asked(gate: &TestGate) -> String {
    gate.agent().fetch("up", &[], call("1", "go")).await
}

/// Returns the text of the first block of an answer.
fn first_text(answer: &str) -> String {
    let json = json(answer);
    let content = json.root().at(&["result", "content"]).unwrap();
    content
        .elements()
        .next()
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
    let inner = json(&got)
        .root()
        .at(&["result", "content"])
        .unwrap()
        .elements()
        .nth(1)
        .unwrap()
        .get("text")
        .unwrap()
        .str()
        .unwrap()
        .into_owned();
    assert!(
        raw(&json(&inner), &["key"])
            .unwrap()
            .starts_with(r#""[redacted: "#),
        "{inner}"
    );
    let line = "[lychgate redacted 1 passage: rules `secret-named`, `secret-source`, audit ";
    let first = first_text(&got);
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
    for gone in [
        "ann@example.org",
        "bob@example.org",
        "555-0132",
        "4111 1111",
    ] {
        assert!(!got.contains(gone), "{gone}: {got}");
    }
    assert_contains(
        &got,
        &[
            "Mail [redacted: email-address] or [redacted: phone-number].",
            r#"\"mail\":\"[redacted: email-address]\""#,
            r#""card":"[redacted: payment-card]""#,
        ],
    );
    assert!(got.contains(&token()), "not asked for: {got}");
    let text = first_text(&got);
    let (line, left) = text.split_once('\n').unwrap();
    let named = line.strip_prefix(
        "[lychgate redacted 2 passages: rules `email-address`, `phone-number`, audit ",
    );
    let audit = named
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or_else(|| panic!("{line}"));
    assert!(left.starts_with("Token "), "{left}");
    let logged = gate.audit_text();
    let logged = logged
        .lines()
        .find(|line| line.contains(audit))
        .unwrap_or_else(|| panic!("{audit}: {logged}"));
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
    let config = policy(r#"redact_results = ["emails"]"#);
    let gate = Setup::new()
        .http("up", server.url())
        .start_with(|all| all.policies = [("default".to_owned(), config)].into())
        .await;
    let got = asked(&gate).await;
    let mark = "[redacted: email-address]";
    let inner = json(&first_text(&got));
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
    let config = policy(r#"redact_results = ["cards", "phones"]"#);
    let gate = Setup::new()
        .http("up", server.url())
        .start_with(|all| all.policies = [("default".to_owned(), config)].into())
        .await;
    let got = asked(&gate).await;
    assert_text(&got, &[], &["41111111", "4155550132"]);
    let read = json(&got);
    let kept = r#""time":1763812345678,"rows":["[redacted: "#;
    assert_contains(&got, &[kept, r#"\"n\":1234567890123"#]);
    let text = super::harness::result_text(&read);
    assert!(
        json(&text)
            .root()
            .get("card")
            .unwrap()
            .str()
            .unwrap()
            .starts_with("[redacted: "),
        "{text}"
    );
}
