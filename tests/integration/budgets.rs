//! Limits on tool calls: their number, rate and size.

use std::sync::{Arc, Mutex};

use lychgate::config::{PolicyConfig, ToolConfig, ToolLimits};

use super::harness::{argument_call, assert_contains, assert_text, call, tool_call};
use super::servers::{Server, json_reply, streamed};
use super::wrap::{KEEPS, Wrapped, text};

const OK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

fn of_tool(limits: ToolLimits) -> impl FnOnce(&mut lychgate::config::Config) {
    |config| {
        let policy: &mut PolicyConfig = config.policies.entry("default".into()).or_default();
        policy.tools = vec![(
            "sl*".into(),
            ToolConfig {
                limits,
                ..ToolConfig::default()
            },
        )];
    }
}

fn named(tool: &str) -> String {
    tool_call(tool, "{}")
}

fn told(answer: &str) -> String {
    assert!(answer.contains("\"isError\":true"), "{answer}");
    answer.to_owned()
}

#[tokio::test]
async fn a_tool_called_too_fast_says_how_long_to_wait() {
    let server = Server::answering(OK).await;
    let limits = ToolLimits {
        per_minute: Some(2),
        ..ToolLimits::default()
    };
    let gate = server.setup().start_with(of_tool(limits)).await;
    for _ in 0..2 {
        gate.agent().post_ok("up", &[], named("slow")).await;
    }
    let answer = gate.agent().fetch("up", &[], named("slower")).await;
    let text = told(&answer);
    assert_contains(&text, &["calls_per_minute", "Wait 30 s"]);
    assert_eq!(gate.limit_hits("calls_per_minute"), 1.0);
    // Other tools have budgets of their own.
    gate.agent().post_ok("up", &[], named("other")).await;
    assert_eq!(server.rest().await.len(), 3);
}

#[tokio::test]
async fn a_session_has_so_many_calls_and_no_more() {
    let server = Server::answering(OK).await;
    let gate = server
        .setup()
        .start_with(|config| config.limits.calls.per_session = Some(1))
        .await;
    gate.agent().post_ok("up", &[], call("1", "x")).await;
    let text = told(&gate.agent().fetch("up", &[], call("2", "x")).await);
    assert_contains(&text, &["calls_per_session", "Tell your user"]);
    assert_eq!(gate.limit_hits("calls_per_session"), 1.0);
    assert_eq!(server.rest().await.len(), 1);
}

#[tokio::test]
async fn reading_on_in_an_answer_counts_as_well() {
    let server = Server::saying(&"word ".repeat(20_000)).await;
    let gate = server
        .setup()
        .start_with(|config| config.limits.calls.per_session = Some(2))
        .await;
    let first = gate.agent().fetch("up", &[], call("1", "x")).await;
    let (_, more) = first.split_once("more: ").unwrap();
    let uri = more.split(' ').next().unwrap();
    let read = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{{"uri":"{uri}"}}}}"#
    );
    let more = gate.agent().fetch("up", &[], read.clone()).await;
    assert_contains(&more, &["word word"]);
    let spent = gate.agent().post("up", &[], read).await.text().await;
    assert_text(&spent, &["calls_per_session"], &["word word"]);
    assert_eq!(gate.limit_hits("calls_per_session"), 1.0);
}

#[tokio::test]
async fn arguments_are_as_long_as_allowed() {
    let server = Server::answering(OK).await;
    let gate = server
        .setup()
        .start_with(|config| config.limits.calls.argument_bytes = Some(20))
        .await;
    let of = |length: usize| argument_call("t", "a", &"x".repeat(length));
    gate.agent().post_ok("up", &[], of(12)).await;
    let text = told(&gate.agent().fetch("up", &[], of(13)).await);
    assert_contains(&text, &["argument_bytes", "20 bytes"]);
    assert_eq!(gate.limit_hits("argument_bytes"), 1.0);
    assert_eq!(server.rest().await.len(), 1);
}

#[tokio::test]
async fn a_batch_has_so_many_messages_and_no_more() {
    let server = Server::answering(OK).await;
    let gate = server
        .setup()
        .start_with(|config| config.limits.read.batch_items = 2)
        .await;
    let batch = format!("[{0},{0},{0}]", call("1", "x"));
    let answer = gate.agent().fetch_error(400, "up", &[], batch).await;
    assert_contains(&answer, &["batch_items"]);
    assert_eq!(gate.limit_hits("batch_items"), 1.0);
    assert!(server.rest().await.is_empty());
}

#[tokio::test]
async fn a_tool_has_so_many_calls_at_once_and_no_more() {
    let (tap, reply) = streamed();
    let held = Arc::new(Mutex::new(Some(reply)));
    let server = Server::start(move |_| {
        let first = held.lock().unwrap().take();
        async move { first.unwrap_or_else(|| json_reply(OK)) }
    })
    .await;
    let limits = ToolLimits {
        concurrent: Some(1),
        ..ToolLimits::default()
    };
    let gate = server.setup().start_with(of_tool(limits)).await;
    let open = gate.agent().post_ok("up", &[], named("slow")).await;
    let text = told(&gate.agent().fetch("up", &[], named("slow")).await);
    assert!(text.contains("concurrent_calls"), "{text}");
    assert_eq!(gate.limit_hits("concurrent_calls"), 1.0);
    // Other tools have places of their own, and a place is free again when the answer is complete.
    gate.agent().post_ok("up", &[], named("other")).await;
    tap.say(format!("data: {OK}\n\n")).await;
    drop(tap);
    open.text().await;
    let again = gate.agent().fetch("up", &[], named("slow")).await;
    assert!(!again.contains("isError"), "{again}");
    assert_eq!(server.rest().await.len(), 3);
}

#[test]
fn wrapped_servers_have_the_same_budgets() {
    let more = "calls_per_session = 3\nargument_bytes = 100\n[policy.few.tool.slow]\ncalls_per_minute = 1\n";
    let mut wrapped = Wrapped::start_with(&["--policy", "few"], KEEPS, more);
    let long = named("t").replace("{}", &format!(r#"{{"a":"{}"}}"#, "x".repeat(100)));
    let pass = |wrapped: &mut Wrapped, body: &str| wrapped.say(&(body.to_owned() + "\n"));
    let refused = |wrapped: &mut Wrapped, body: &str, limit: &str| {
        let answer = wrapped.ask(body);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert_contains(text(&answer), &[limit]);
    };
    refused(&mut wrapped, &long, "argument_bytes");
    pass(&mut wrapped, &named("slow"));
    refused(&mut wrapped, &named("slow"), "calls_per_minute");
    // Refused calls do not count.
    pass(&mut wrapped, &named("other"));
    pass(&mut wrapped, &named("other"));
    refused(&mut wrapped, &named("other"), "calls_per_session");
    assert!(wrapped.end().success());
    assert_eq!(
        wrapped.read("got"),
        ["slow", "other", "other"]
            .map(|tool| named(tool) + "\n")
            .concat()
    );
}
