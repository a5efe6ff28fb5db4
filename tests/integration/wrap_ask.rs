//! Lines of `lychgate wrap` that wait for approval.

use serde_json::Value;

use super::wrap::{KEEPS, Wrapped, text};

const DEADLINE: &str = "\n[approval]\ndeadline_seconds = 1\n";

fn call(id: u32, meta: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\", \"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"t\",\"arguments\":{{\"a\":\"deploy\"}}{meta}}}}}\n"
    )
}

fn initialize(capabilities: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{capabilities}}}}}\n"
    )
}

fn answer(question: &Value, action: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"action\":\"{action}\",\"content\":{{\"allow\":\"once\"}}}}}}\n",
        question["id"]
    )
}

#[test]
fn an_agent_is_asked_by_a_line_and_the_call_arrives_as_it_was() {
    let mut wrapped = Wrapped::start(&["--audit", "$DIR/audit"], KEEPS);
    wrapped.say(&initialize(r#"{"elicitation":{}}"#));
    wrapped.say(&call(1, ""));
    let question = wrapped.hear_json();
    assert_eq!(question["method"], "elicitation/create");
    assert!(
        question["params"]["message"]
            .as_str()
            .unwrap()
            .contains("| t\n|   \"a\": \"deploy\""),
        "{question}"
    );
    let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/other\"}\n";
    wrapped.say(note);
    wrapped.say(&answer(&question, "accept"));
    wrapped.until_file_has("got", "deploy", 1);
    wrapped.say(&call(2, ""));
    let question = wrapped.hear_json();
    wrapped.say(&answer(&question, "decline"));
    let refused = wrapped.hear_json();
    assert!(
        refused["id"] == 2 && text(&refused).contains("request was denied"),
        "{refused}"
    );
    assert!(wrapped.end().success());
    // Other lines passed while the call waited; no answer to the gate did.
    assert_eq!(
        wrapped.read("got"),
        [
            initialize(r#"{"elicitation":{}}"#),
            note.to_owned(),
            call(1, "")
        ]
        .concat()
    );
    let audit = wrapped.read("audit");
    assert_eq!(audit.matches(r#""event":"approval""#).count(), 4, "{audit}");
}

#[test]
fn silence_is_a_no_and_where_nobody_can_be_asked_too() {
    let mut wrapped = Wrapped::start_with(&["--audit", "$DIR/audit"], KEEPS, DEADLINE);
    wrapped.say(&initialize(r#"{"elicitation":{}}"#));
    wrapped.say(&call(1, ""));
    let question = wrapped.hear_json();
    let refused = wrapped.hear_json();
    assert!(
        text(&refused).contains("expired without an answer"),
        "{refused}"
    );
    wrapped.say(&answer(&question, "accept"));
    wrapped.say(&initialize("{}"));
    wrapped.say(&call(2, ""));
    let refused = wrapped.hear_json();
    assert!(
        text(&refused).contains("no approver is available"),
        "{refused}"
    );
    assert!(wrapped.end().success());
    assert!(
        !wrapped.read("got").contains("deploy"),
        "a late yes is none"
    );
}

#[test]
fn a_modern_agent_is_answered_with_a_question() {
    let mut wrapped = Wrapped::start(&["--audit", "$DIR/audit"], KEEPS);
    let meta = ",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}";
    wrapped.say(&call(1, meta));
    let question = wrapped.hear_json();
    assert_eq!(question["result"]["resultType"], "input_required");
    let state = question["result"]["requestState"].as_str().unwrap();
    let given = format!(
        "{meta},\"requestState\":\"{state}\",\"inputResponses\":{{\"lychgate-approval\":{{\"action\":\"accept\",\"content\":{{\"allow\":\"once\"}}}}}}"
    );
    wrapped.say(&call(2, &given.replace("lychgate.1.", "lychgate.1.x")));
    assert_eq!(wrapped.hear_json()["error"]["code"], -32602);
    wrapped.say(&call(3, &given));
    wrapped.until_file_has("got", "\n", 1);
    assert_eq!(wrapped.read("got"), call(3, meta));
    assert!(wrapped.end().success());
}

#[test]
fn an_approved_call_keeps_its_place_among_the_calls_of_its_tool() {
    let limit = "\n[policy.default.tool.t]\nconcurrent_calls = 1\n";
    let mut wrapped = Wrapped::start_with(&[], KEEPS, limit);
    wrapped.say(&initialize(r#"{"elicitation":{}}"#));
    wrapped.say(&call(1, ""));
    let question = wrapped.hear_json();
    wrapped.say(&answer(&question, "accept"));
    wrapped.until_file_has("got", "deploy", 1);
    wrapped.say(&call(2, "").replace("deploy", "look"));
    let refused = wrapped.hear_json();
    assert!(
        refused["id"] == 2 && refused.to_string().contains("concurrent_calls"),
        "{refused}"
    );
    assert!(wrapped.end().success());
}
