//! People are notified of approval requests, by a program and by a webhook.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lychgate::config::{self, HttpTransport};
use serde_json::Value;

use super::approval::{asking, decide, question};
use super::harness::{TestGate, assert_contains, call, json, result_text, until};
use super::servers::{Server, Wire, reply};

/// A key in a call that waits for approval.
const KEY: &str = "AKIAIOSFODNN7EXAMPL3";

/// Makes a call that waits, and denies it; returns the id of the request.
async fn asked(gate: &TestGate, text: &str) -> String {
    let agent = gate.agent();
    let (answer, id) = tokio::join!(agent.post("up", &[], call("1", text)), async {
        let id = question(gate).await;
        decide(gate, &id, r#"{"decision":"deny"}"#).await;
        id
    });
    result_text(&json(&answer.text().await));
    id
}

fn count(gate: &TestGate, way: &str, outcome: &str) -> f64 {
    gate.metric(
        "lychgate_approval_notifications_total",
        &[("way", way), ("outcome", outcome)],
    )
    .unwrap()
}

#[tokio::test]
async fn a_webhook_gets_the_request_without_secrets_and_is_tried_again() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = attempts.clone();
    let hook = Server::start(move |_| {
        let status = if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            503
        } else {
            204
        };
        async move { reply(status, &[], "") }
    })
    .await;
    let (_peer, setup, _) = asking(Wire::Json).await;
    let mut webhook = HttpTransport::new(hook.url());
    webhook.login = None;
    webhook.bearer = Some("of-the-hook".to_owned());
    let gate = setup
        .start_with(|config| config.notify.webhook = Some(webhook))
        .await;
    let id = asked(&gate, &format!("deploy with {KEY}")).await;
    let first = hook.next().await;
    let second = hook.next().await;
    assert_eq!(first.body, second.body, "the same again");
    assert_eq!(second.headers["authorization"], "Bearer of-the-hook");
    let text = String::from_utf8(second.body.to_vec()).unwrap();
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["event"], "approval_requested");
    assert_eq!(told["id"], id);
    assert_eq!(told["tool"], "echo");
    assert_eq!(told["upstream"], "up");
    assert_eq!(told["rules"][0], "ask-first");
    assert!(
        told["arguments"]["text"]
            .as_str()
            .unwrap()
            .starts_with("deploy with"),
        "{text}"
    );
    assert!(!text.contains(KEY), "secrets are masked: {text}");
    until("the count", || count(&gate, "webhook", "sent") == 1.0).await;
    assert_eq!(count(&gate, "webhook", "failed"), 0.0);
    assert_eq!(count(&gate, "command", "sent"), 0.0);
}

#[tokio::test]
async fn a_program_gets_the_request_on_its_input() {
    let (_peer, setup, _) = asking(Wire::Json).await;
    let file = setup.folder.path().join("asked.json");
    let script = format!("cat > '{0}.part' && mv '{0}.part' '{0}'", file.display());
    let command = ["sh", "-c", &script].map(str::to_owned).to_vec();
    let gate = setup
        .start_with(|config| config.notify.command = command)
        .await;
    let id = asked(&gate, "deploy it").await;
    until("the program", || file.exists()).await;
    let told: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(told["id"], id);
    assert_eq!(told["arguments"]["text"], "deploy it");
    until("the count", || count(&gate, "command", "sent") == 1.0).await;
}

#[tokio::test]
async fn no_call_waits_for_a_notification_and_failures_are_counted() {
    let (_peer, setup, _) = asking(Wire::Json).await;
    let gate = setup
        .with(|config| {
            config.notify.command = ["sleep", "600"].map(str::to_owned).to_vec();
            config.notify.timeout = Duration::from_millis(300);
        })
        .start()
        .await;
    asked(&gate, "deploy it").await;
    until("the count", || count(&gate, "command", "failed") == 1.0).await;
}

#[test]
fn a_webhook_is_reached_over_tls_and_its_secrets_are_no_business_of_other_verbs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lychgate.toml");
    let faults = |approval: &str| {
        let upstream = "[upstream.up]\nhttp = { url = \"http://127.0.0.1:9/mcp\" }\n";
        std::fs::write(&file, format!("{upstream}[approval]\n{approval}\n")).unwrap();
        let told = config::load(&file).err().unwrap_or_default();
        told.iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(
        faults(
            "webhook = { url = \"https://chat.example.org/hook\" }\nnotify_command = [\"notify\"]"
        ),
        ""
    );
    assert_contains(
        &faults("webhook = { url = \"http://chat.example.org/hook\" }"),
        &["without encryption"],
    );
    assert!(faults("notify_seconds = 3").contains("nobody is notified"));
    assert!(faults("notify_command = [\"\"]").contains("is empty"));
    let unset = faults("webhook = { url = { env = \"LYCHGATE_TEST_UNSET_HOOK\" } }");
    assert_contains(&unset, &["LYCHGATE_TEST_UNSET_HOOK", "not set"]);
    assert!(
        config::load_admin(&file).is_ok(),
        "`lychgate approve` does not need the webhook's secrets"
    );
}
