//! The ways in which an agent asks its own user for approval: elicitation on the stream of the
//! reply, on the stream of HTTP+SSE, as `input_required`, and on the lines of `wrap` (see `wrap`).

use std::time::Duration;

use lychgate::message::Json;

use super::approval::{asking, calls, decide, question};
use super::harness::{
    Agent, Answer, INITIALIZE, assert_contains, call, json, message, modern_call, raw, result_text,
    soon, string,
};
use super::servers::Wire;

/// Returns the `initialize` request of a client that supports elicitation.
fn initialize() -> String {
    INITIALIZE.replace(
        r#""capabilities":{}"#,
        r#""capabilities":{"elicitation":{}}"#,
    )
}

fn answered(question: &Json, action: &str) -> String {
    let id = raw(question, &["id"]).unwrap();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"{action}","content":{{"allow":"once"}}}}}}"#
    )
}

async fn open(agent: &Agent, body: String) -> String {
    let answer = agent.post("up", &[], body).await;
    answer.header("mcp-session-id").to_owned()
}

async fn next(stream: &mut Answer) -> Json {
    json(&stream.data_text().await)
}

fn result_type(answer: &Json) -> String {
    string(answer, &["result", "resultType"]).unwrap()
}

fn error_code(answer: &Json) -> String {
    raw(answer, &["error", "code"]).unwrap()
}

#[tokio::test]
async fn an_agent_asks_its_user_on_the_stream_of_the_call() {
    for wire in Wire::ALL {
        let (_peer, setup, seen) = asking(wire).await;
        let gate = setup.agents(&["ann", "bob"]).start().await;
        let agent = gate.agent_named("ann");
        let session = open(&agent, initialize()).await;
        let headers = [("mcp-session-id", session.as_str())];
        for (action, text) in [
            ("accept", "done"),
            ("decline", "request was denied"),
            ("cancel", "request was denied"),
        ] {
            let before = calls(&seen).len();
            let body = call("\"c\"", "deploy it");
            let mut stream = agent.post_ok("up", &headers, body.clone()).await;
            assert_eq!(
                stream.header("content-type"),
                "text/event-stream; charset=utf-8"
            );
            let asked = next(&mut stream).await;
            assert_eq!(string(&asked, &["method"]).unwrap(), "elicitation/create");
            let told = string(&asked, &["params", "message"]).unwrap();
            assert_contains(&told, &["`ask-first`", "|   \"text\": \"deploy it\""]);
            let allow = ["params", "requestedSchema", "properties", "allow", "enum"];
            assert_eq!(raw(&asked, &allow).unwrap(), r#"["once","session","call"]"#);
            // An answer from another agent is ignored.
            let bob = gate.agent_named("bob");
            bob.post_expecting(202, "up", &[], answered(&asked, "accept"))
                .await;
            assert_eq!(
                calls(&seen).len(),
                before,
                "{wire:?}: another agent's yes counts for nothing"
            );
            agent
                .post_expecting(202, "up", &headers, answered(&asked, action))
                .await;
            let answer = next(&mut stream).await;
            assert!(
                result_text(&answer).contains(text),
                "{wire:?} {action}: {}",
                result_text(&answer)
            );
            assert_eq!(raw(&answer, &["id"]).unwrap(), "\"c\"");
            assert!(stream.data().await.is_none(), "and the stream ends");
            assert_eq!(calls(&seen).len() - before, usize::from(action == "accept"));
        }
        assert!(
            seen.lock()
                .unwrap()
                .iter()
                .all(|text| !text.contains("lychgate")),
            "{wire:?}: no answer went on"
        );
        gate.running.drain().await;
    }
}

#[tokio::test]
async fn whichever_answers_first_counts_and_a_call_taken_back_is_not_carried_out() {
    let (_peer, setup, seen) = asking(Wire::Json).await;
    let gate = setup.start().await;
    let agent = gate.agent();
    let session = open(&agent, initialize()).await;
    let headers = [("mcp-session-id", session.as_str())];
    let mut stream = agent.post_ok("up", &headers, call("1", "deploy a")).await;
    let asked = next(&mut stream).await;
    let id = question(&gate).await;
    assert_eq!(decide(&gate, &id, r#"{"decision":"deny"}"#).await.0, 200);
    assert!(result_text(&next(&mut stream).await).contains("request was denied"));
    agent
        .post_expecting(202, "up", &headers, answered(&asked, "accept"))
        .await;

    let mut stream = agent.post_ok("up", &headers, call("2", "deploy b")).await;
    let asked = next(&mut stream).await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#;
    agent.post_expecting(202, "up", &headers, note).await;
    assert!(
        stream.data().await.is_none(),
        "no answer is wanted any more"
    );
    agent
        .post_expecting(202, "up", &headers, answered(&asked, "accept"))
        .await;

    // The client cannot show the request after all; it can still be approved in another way.
    let mut stream = agent.post_ok("up", &headers, call("3", "deploy c")).await;
    let asked = next(&mut stream).await;
    let error = format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32601,"message":"no"}}}}"#,
        raw(&asked, &["id"]).unwrap()
    );
    agent.post_expecting(202, "up", &headers, error).await;
    let id = question(&gate).await;
    assert_eq!(decide(&gate, &id, super::approval::ONCE).await.0, 200);
    assert_eq!(result_text(&next(&mut stream).await), "done");
    assert_eq!(calls(&seen).len(), 1);
    gate.assert_series(r#"lychgate_approvals_total{outcome="cancelled"}"#, 1.0);

    // An answer to the gate is not accepted in a batch with other messages.
    let batch = format!("[{},{}]", answered(&asked, "accept"), call("9", "x"));
    agent.post_expecting(400, "up", &headers, batch).await;
}

#[tokio::test]
async fn silence_ends_the_stream_with_a_no() {
    let (_peer, setup, seen) = asking(Wire::Events).await;
    let gate = setup
        .start_with(|config| config.approval.deadline = Duration::from_millis(200))
        .await;
    let agent = gate.agent();
    let session = open(&agent, initialize()).await;
    let mut stream = agent
        .post_ok(
            "up",
            &[("mcp-session-id", session.as_str())],
            call("1", "deploy"),
        )
        .await;
    next(&mut stream).await;
    assert!(result_text(&next(&mut stream).await).contains("expired without an answer"));
    assert!(calls(&seen).is_empty());
    gate.assert_series(r#"lychgate_approvals_total{outcome="expired"}"#, 1.0);
}

#[tokio::test]
async fn an_agent_of_the_first_revision_is_asked_on_its_stream() {
    let (_peer, setup, seen) = asking(Wire::Json).await;
    let gate = setup.start().await;
    let agent = gate.agent();
    let mut stream = agent
        .get_ok("/sse/up", &[("accept", "text/event-stream")])
        .await;
    let path = stream.data_text().await;
    let post = |body: String| {
        let agent = agent.clone();
        let path = path.clone();
        async move { agent.post_json(&path, body).await.expect(202).await }
    };
    post(initialize()).await;
    next(&mut stream).await;
    post(call("1", "deploy")).await;
    let asked = next(&mut stream).await;
    assert_eq!(string(&asked, &["method"]).unwrap(), "elicitation/create");
    post(answered(&asked, "accept")).await;
    assert_eq!(result_text(&next(&mut stream).await), "done");
    assert_eq!(calls(&seen).len(), 1);
}

/// Returns a modern call whose client supports elicitation.
fn asks(id: &str, text: &str) -> String {
    modern_call(id, text).replace(
        r#"clientCapabilities":{}"#,
        r#"clientCapabilities":{"elicitation":{}}"#,
    )
}

/// Returns the same call again, with an answer to the request.
fn again(body: &str, id: &str, state: &str, action: &str) -> String {
    let given = format!(
        r#","inputResponses":{{"lychgate-approval":{{"action":"{action}","content":{{"allow":"once"}}}}}}"#
    );
    let state = format!(r#","requestState":{}"#, lychgate::message::quote(state));
    let body = body.replacen(r#""id":1"#, &format!(r#""id":{id}"#), 1);
    format!("{}{given}{state}}}}}", body.strip_suffix("}}").unwrap())
}

async fn posted(agent: &Agent, body: &str) -> Json {
    json(&agent.post_modern("up", body).await.text().await)
}

#[tokio::test]
async fn a_modern_agent_is_answered_with_a_question_and_calls_again() {
    let (_peer, setup, seen) = asking(Wire::Json).await;
    let gate = setup.agents(&["ann", "bob"]).start().await;
    let agent = gate.agent_named("ann");
    let body = asks("1", "deploy it");
    let asked = posted(&agent, &body).await;
    assert_eq!(result_type(&asked), "input_required");
    let form = ["result", "inputRequests", "lychgate-approval"];
    assert_eq!(
        string(&asked, &[&form[..], &["method"]].concat()).unwrap(),
        "elicitation/create"
    );
    let state = string(&asked, &["result", "requestState"]).unwrap();

    // Without an answer the request is repeated. The state of another agent, a modified one, and
    // the state of another call are rejected.
    let unanswered = again(&body, "2", &state, "accept").replace("lychgate-approval", "other");
    assert_eq!(
        result_type(&posted(&agent, &unanswered).await),
        "input_required"
    );
    let bob = gate.agent_named("bob");
    let answer = posted(&bob, &again(&body, "2", &state, "accept")).await;
    assert_eq!(error_code(&answer), "-32602");
    let mut forged = state.clone();
    let last = forged.pop().unwrap();
    forged.push(if last == 'A' { 'Q' } else { 'A' });
    let answer = posted(&agent, &again(&body, "2", &forged, "accept")).await;
    assert_eq!(error_code(&answer), "-32602");
    let other = asks("1", "deploy something else");
    let answer = posted(&agent, &again(&other, "2", &state, "accept")).await;
    assert_eq!(
        result_type(&answer),
        "input_required",
        "a yes is for its own call"
    );
    assert!(calls(&seen).is_empty());

    let answer = posted(&agent, &again(&body, "3", &state, "accept")).await;
    assert_eq!(result_text(&answer), "done");
    let sent = calls(&seen);
    assert_eq!(sent.len(), 1);
    assert_eq!(
        sent[0],
        body.replacen(r#""id":1"#, r#""id":3"#, 1),
        "the server sees the call, and nothing of the gate's"
    );
    let answer = posted(&agent, &again(&body, "4", &state, "accept")).await;
    assert_eq!(result_type(&answer), "input_required", "once is once");
    let fresh = string(&answer, &["result", "requestState"]).unwrap();
    assert_contains(
        &result_text(&posted(&agent, &again(&body, "5", &fresh, "decline")).await),
        &["request was denied"],
    );
    assert_eq!(calls(&seen).len(), 1);
}

#[tokio::test]
async fn what_a_call_carries_for_its_server_comes_back_after_the_question() {
    let (_peer, setup, seen) = asking(Wire::Json).await;
    let gate = setup.start().await;
    let agent = gate.agent();
    let rest = r#","inputResponses":{"theirs":{"action":"accept","content":{"n":1}}},"requestState":"the server's own"}}"#;
    let body = asks("1", "deploy it");
    let carrying = format!("{}{rest}", body.strip_suffix("}}").unwrap());
    let asked = posted(&agent, &carrying).await;
    let state = string(&asked, &["result", "requestState"]).unwrap();
    assert_eq!(
        result_text(&posted(&agent, &again(&body, "2", &state, "accept")).await),
        "done"
    );
    let sent = message(calls(&seen)[0].as_bytes());
    let envelope = sent.single().unwrap();
    let params = sent.body(envelope).unwrap();
    assert_eq!(
        params.get("requestState").unwrap().str().unwrap(),
        "the server's own"
    );
    assert_eq!(
        params.get("inputResponses").unwrap().raw(),
        r#"{"theirs":{"action":"accept","content":{"n":1}}}"#
    );
}

#[tokio::test]
async fn a_modern_agent_without_forms_waits_for_the_console() {
    let (_peer, setup, _) = asking(Wire::Json).await;
    let gate = setup.start().await;
    let agent = gate.agent();
    let body = modern_call("1", "deploy");
    let (answer, ()) = soon("both", async {
        tokio::join!(posted(&agent, &body), async {
            let id = question(&gate).await;
            assert_eq!(decide(&gate, &id, super::approval::ONCE).await.0, 200);
        })
    })
    .await;
    assert_eq!(result_text(&answer), "done");
}

#[tokio::test]
async fn a_servers_own_question_about_an_approved_call_needs_no_second_yes() {
    let script = super::servers::script(|asked| {
        if asked.contains("theirs") {
            return super::servers::says(asked, "done");
        }
        let asked = message(asked.as_bytes());
        let id = asked.id(asked.single().unwrap()).unwrap();
        vec![format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{{"theirs":{{"method":"elicitation/create","params":{{"message":"m","requestedSchema":{{"type":"object","properties":{{}}}}}}}}}},"requestState":"s"}}}}"#
        )]
    });
    let peer = super::servers::Peer::start(Wire::Json, script).await;
    let gate = super::approval::asks(&peer).start().await;
    let agent = gate.agent();
    let body = asks("1", "deploy it");
    let asked = posted(&agent, &body).await;
    let state = string(&asked, &["result", "requestState"]).unwrap();
    let theirs = posted(&agent, &again(&body, "2", &state, "accept")).await;
    assert_eq!(
        string(&theirs, &["result", "requestState"]).unwrap(),
        "s",
        "the server's own question passes"
    );
    let rest = r#","inputResponses":{"theirs":{"action":"accept"}},"requestState":"s"}}"#;
    let answered = format!("{}{rest}", body.strip_suffix("}}").unwrap());
    assert_eq!(result_text(&posted(&agent, &answered).await), "done");
    let again = posted(&agent, &answered).await;
    assert_eq!(result_type(&again), "input_required", "one more time");
    gate.assert_series(r#"lychgate_approvals_total{outcome="asked"}"#, 2.0);
}

#[tokio::test]
async fn a_policy_may_leave_the_agents_own_user_out() {
    let (_peer, setup, seen) = asking(Wire::Json).await;
    let gate = setup
        .start_with_policy(|policy| policy.through_agent = false)
        .await;
    let agent = gate.agent();
    let session = open(&agent, initialize()).await;
    let headers = [("mcp-session-id", session.as_str())];
    let legacy = call("1", "deploy");
    let modern = asks("1", "deploy");
    let (legacy, modern, ()) = tokio::join!(
        agent.post("up", &headers, legacy),
        posted(&agent, &modern),
        async {
            for _ in 0..2 {
                let id = question(&gate).await;
                assert_eq!(decide(&gate, &id, super::approval::ONCE).await.0, 200);
            }
        }
    );
    assert_eq!(legacy.header("content-type"), "application/json");
    assert_eq!(result_text(&json(&legacy.text().await)).as_str(), "done");
    assert_eq!(result_text(&modern).as_str(), "done");
    assert_eq!(calls(&seen).len(), 2);
}
