use std::time::{Duration, Instant};

use super::overlay::Overlays;
use super::*;
use crate::config::{ArgumentConfig, PathFormat, PolicyConfig, SchemaConfig, ToolConfig};
use crate::detect::work;
use crate::inspect::tests::{answer, call as call_of, context, message};
use crate::inspect::{InspectContext, Inspection, Mode, Policy, Verdict};
use crate::message::{Direction, quote};
use crate::protocol::AuditId;
use crate::rules::Library;

fn list_of(tools: &str) -> Message {
    message(&answer(&format!(r#"{{"tools":[{tools}]}}"#)))
}

/// Records a list of tools; returns whether there were more than are remembered.
fn record_tools(tools: &Tools, list: &str) -> bool {
    tools.record_list(&list_of(list), &context("tools/list", None))
}

/// Records the only tool `t`, with this schema.
fn record_schema(tools: &Tools, schema: &str) {
    record_tools(tools, &format!(r#"{{"name":"t","inputSchema":{schema}}}"#));
}

fn policy(config: &PolicyConfig) -> Policy {
    let none = PolicyConfig {
        builtin: false,
        ..config.clone()
    };
    Policy::new("p", &none, &Library::load(false, &[]).unwrap()).unwrap()
}

fn call(policy: &Policy, tools: &Arc<Tools>, tool: &str, arguments: &str) -> Inspection {
    let inspect_context = InspectContext {
        tools: Some(tools.clone()),
        ..InspectContext::default()
    };
    policy.inspect(
        Direction::Outbound,
        &message(&call_of(tool, arguments)),
        &context("x", None),
        AuditId::generate(),
        &inspect_context,
    )
}

fn passes(policy: &Policy, tools: &Arc<Tools>, tool: &str, arguments: &str) -> bool {
    matches!(call(policy, tools, tool, arguments).verdict, Verdict::Pass)
}

/// Returns the rule that refuses a call; empty if there is none.
fn rule_of(policy: &Policy, tools: &Arc<Tools>, tool: &str, arguments: &str) -> String {
    refusal_of(&call(policy, tools, tool, arguments)).0
}

/// Returns the rule and the words of a refusal; empty if there is none.
fn refusal_of(inspection: &Inspection) -> (String, String) {
    match &inspection.verdict {
        Verdict::Block(refusals) => (refusals[0].rule.to_string(), refusals[0].why.clone()),
        _ => Default::default(),
    }
}

const RUN: &str = r#"{"name":"run","inputSchema":{"type":"object","additionalProperties":false,"required":["n","mode"],"properties":{
    "n":{"type":"integer","minimum":1,"maximum":10},"mode":{"enum":["fast","slow"]},"tags":{"type":"array","items":{"type":"string"}}}}}"#;

#[test]
fn pages_add_and_what_is_listed_again_replaces() {
    let tools = Arc::<Tools>::default();
    tools.record_list(&list_of(r#"{"name":"no"}"#), &context("tools/call", None));
    record_tools(
        &tools,
        r#"{"name":"a","description":"first","inputSchema":{"type": "object"}}"#,
    );
    let second = r#"{"name":"a","description":"second","inputSchema":{"properties":{"q":{"format":"uri"},"p":{}}}}"#;
    record_tools(&tools, &format!(r#"{{"name":"b"}},{second}"#));
    assert!(tools.definition("no").is_none());
    assert!(tools.definition("b").unwrap().schema.is_none());
    let a = tools.definition("a").unwrap();
    assert!(a.argument_head("q") == Some(Head::Url) && a.argument_head("p").is_none());
    assert_eq!(tools.0.read().bytes, "ab".len() + a.bytes());
    record_tools(&tools, second);
    assert!(
        Arc::ptr_eq(&a, &tools.definition("a").unwrap()),
        "what stays the same is compiled once"
    );
}

#[test]
fn what_is_remembered_is_bounded() {
    let tools = Arc::<Tools>::default();
    record_tools(&tools, r#"{"name":"long","description":"short"}"#);
    let long = quote(&"x".repeat(DEFINITION_BYTES + 1));
    assert!(record_tools(
        &tools,
        &format!(r#"{{"name":"long","inputSchema":{{"title":{long}}}}}"#)
    ));
    assert!(tools.definition("long").is_none());
    let many: Vec<String> = (0..TOOLS + 1)
        .map(|n| format!(r#"{{"name":"{n}"}}"#))
        .collect();
    assert!(
        record_tools(&tools, &many.join(",")),
        "says that there was more"
    );
    assert!(
        tools.definition(&(TOOLS - 1).to_string()).is_some()
            && tools.definition(&TOOLS.to_string()).is_none()
    );
}

#[test]
fn calls_are_held_to_the_schema_that_was_listed() {
    let (policy, tools) = (policy(&PolicyConfig::default()), Arc::<Tools>::default());
    let unknown = rule_of(&policy, &tools, "run", r#"{"n":"x"}"#);
    assert_eq!(unknown, "", "nothing is known yet");
    record_tools(&tools, RUN);
    for fits in [
        r#"{"n":1,"mode":"fast"}"#,
        r#"{"n":10,"mode":"slow","tags":["a"]}"#,
    ] {
        assert!(passes(&policy, &tools, "run", fits), "{fits}");
    }
    for (arguments, at, words) in [
        (
            r#"{"n":11,"mode":"fast"}"#,
            "/n",
            "`n` is greater than the maximum of 10.",
        ),
        (
            r#"{"n":"hunter2","mode":"fast"}"#,
            "/n",
            "`n` is not of type \"integer\".",
        ),
        (r#"{"n":1}"#, "", "`mode` is missing."),
        (
            r#"{"n":1,"mode":"fast","tags":["a",7]}"#,
            "/tags/1",
            "`tags.1` is not of type",
        ),
        (
            r#"{"n":1,"mode":"fast","evil":1}"#,
            "",
            "The call has `evil`",
        ),
        (r#"{"n":1e999,"mode":"fast"}"#, "", "out of range"),
    ] {
        let inspection = call(&policy, &tools, "run", arguments);
        let (rule, why) = refusal_of(&inspection);
        assert!(
            rule == "argument-schema" && why.contains(words),
            "{arguments}: {rule} {why}"
        );
        assert!(!why.contains("hunter2"), "a refusal shows what was sent");
        let at = format!("/params/arguments{at}");
        assert_eq!(inspection.findings[0].at, at, "{arguments}");
        if !words.contains("range") {
            assert_contains!(why, r#"An example that fits: {"#, r#""mode":"fast""#);
        }
    }
    let changed = message(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    tools.record_list(&changed, &context("x", None));
    assert!(
        passes(&policy, &tools, "run", "{}"),
        "what has changed is not known"
    );
    record_tools(&tools, RUN);
    assert_eq!(rule_of(&policy, &tools, "run", "{}"), "argument-schema");
}

#[test]
fn a_policy_says_what_is_enforced() {
    let tools = Arc::<Tools>::default();
    record_tools(&tools, RUN);
    let off = PolicyConfig {
        schema: SchemaConfig {
            enforce: false,
            unlisted: false,
        },
        ..PolicyConfig::default()
    };
    let off = policy(&off);
    assert!(passes(&off, &tools, "run", "{}"));
    assert_eq!(rule_of(&off, &tools, "other", "{}"), "unlisted-tool");
    let watch = policy(&PolicyConfig::default()).with_mode(Mode::Observe);
    assert_eq!(
        call(&watch, &tools, "run", "{}").findings.len(),
        1,
        "recorded, whatever is done about it"
    );
}

#[test]
fn what_cannot_be_compiled_is_said_to_be_unchecked() {
    let (policy, tools) = (policy(&PolicyConfig::default()), Arc::<Tools>::default());
    for (schema, reason) in [
        (
            r#"{"$ref":"https://example.org/x.json"}"#,
            "remote-reference",
        ),
        (
            r#"{"properties":{"a":{"$ref":"other.json"}}}"#,
            "remote-reference",
        ),
        (r##"{"$dynamicRef":"#a"}"##, "dynamic-reference"),
        (r#"{"$schema":"https://example.org/own"}"#, "dialect"),
        (r#"{"properties":{"a":{"pattern":"(?=x)y"}}}"#, "invalid"),
        (
            r#"{"properties":{"a":{"pattern":"a{9999999}"}}}"#,
            "invalid",
        ),
        (r#"{"type":"int"}"#, "invalid"),
        (
            r#"{"properties":{"a":{"$id":"b","type":"string"}}}"#,
            "embedded",
        ),
    ] {
        record_schema(&tools, schema);
        let inspection = call(&policy, &tools, "t", r#"{"a":1}"#);
        assert!(matches!(inspection.verdict, Verdict::Pass), "{schema}");
        let unchecked = inspection.coverage.uninspected[0].reason.name();
        assert_eq!(unchecked, format!("schema-{reason}"), "{schema}");
    }
    // Names are not keywords, and drafts are distinguished.
    record_schema(
        &tools,
        r#"{"properties":{"$id":{"type":"string"},"$ref":{"const":"x"}}}"#,
    );
    let rule = |arguments: &str| rule_of(&policy, &tools, "t", arguments);
    assert_eq!(rule(r#"{"$ref":"y"}"#), "argument-schema");
    let seven = r##"{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"type":"number"}},
        "properties":{"a":{"items":[{"$ref":"#/definitions/n"}]}}}"##;
    record_schema(&tools, seven);
    assert!(passes(&policy, &tools, "t", r#"{"a":[1,"x"]}"#));
    assert_eq!(rule(r#"{"a":["x"]}"#), "argument-schema");
}

#[test]
fn hostile_schemas_cost_no_more_than_their_bound() {
    let (policy, tools) = (policy(&PolicyConfig::default()), Arc::<Tools>::default());
    let nested = format!("{}1{}", r#"{"a":"#.repeat(40), "}".repeat(40));
    let doubling: Vec<String> = (0..60)
        .map(|n| {
            format!(
                r##""d{n}":{{"anyOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##,
                n + 1
            )
        })
        .collect();
    let doubling = format!(
        r##"{{"$ref":"#/$defs/d0","$defs":{{{},"d60":false}}}}"##,
        doubling.join(",")
    );
    let wide = format!(r#"{{"a":[{}0]}}"#, "0,".repeat(150_000));
    for (schema, arguments) in [
        (r##"{"$ref":"#"}"##, "{}"),
        (
            r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##,
            "{}",
        ),
        (
            r##"{"properties":{"a":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}"##,
            &nested,
        ),
        (&doubling, "{}"),
        (r#"{"properties":{"a":{"items":{"type":"string"}}}}"#, &wide),
    ] {
        record_schema(&tools, schema);
        let start = Instant::now();
        let inspection = call(&policy, &tools, "t", arguments);
        assert_eq!(refusal_of(&inspection).0, "schema-too-costly", "{schema}");
        assert_eq!(inspection.findings[0].reading, work::SCHEMA);
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{:?} for {schema}",
            start.elapsed()
        );
    }
    // A schema that refers to itself as trees do is accepted.
    let tree = r##"{"properties":{"a":{"anyOf":[{"type":"number"},{"$ref":"#"}]}}}"##;
    record_schema(&tools, tree);
    assert!(passes(&policy, &tools, "t", &nested));
}

fn overlaid() -> PolicyConfig {
    let keywords = |all: &[(&'static str, &str)]| {
        all.iter()
            .map(|(key, value)| (*key, (*value).to_owned()))
            .collect()
    };
    let n = ArgumentConfig {
        keywords: keywords(&[("maximum", "5")]),
        description: Some("Few.".into()),
        ..Default::default()
    };
    let path = ArgumentConfig {
        format: Some(PathFormat::Absolute),
        required: true,
        ..Default::default()
    };
    let deep = ArgumentConfig {
        keywords: keywords(&[("pattern", r#""^[a-z]+$""#)]),
        ..Default::default()
    };
    let arguments = [
        ("n".to_owned(), n),
        ("path".to_owned(), path),
        ("o.deep".to_owned(), deep),
    ]
    .into();
    let run = ToolConfig {
        description: Some("Runs \"it\".".into()),
        arguments,
        ..Default::default()
    };
    let hidden = |hidden| ToolConfig {
        hidden: Some(hidden),
        ..Default::default()
    };
    let tools = vec![
        ("run".to_owned(), run),
        ("safe_one".to_owned(), hidden(false)),
        ("safe_*".to_owned(), hidden(true)),
    ];
    PolicyConfig {
        tools,
        ..PolicyConfig::default()
    }
}

#[test]
fn overlays_hold_before_a_list_was_seen() {
    let (policy, tools) = (policy(&overlaid()), Arc::<Tools>::default());
    for (arguments, words) in [
        (
            r#"{"n":6,"path":"/a"}"#,
            "`n` is greater than the maximum of 5.",
        ),
        (r#"{"n":"6","path":"/a"}"#, "`n` is not of type"),
        (r#"{"n":5}"#, "`path` is missing."),
        (r#"{"path":"a/b"}"#, "`path` is not a \"absolute-path\""),
        (r#"{"path":"/a/../b"}"#, "`path` is not a \"absolute-path\""),
        (
            r#"{"path":"/a","o":{"deep":"A"}}"#,
            "`o.deep` does not match",
        ),
    ] {
        let (rule, why) = refusal_of(&call(&policy, &tools, "run", arguments));
        assert!(
            rule == "argument-schema" && why.contains(words),
            "{arguments}: {why}"
        );
        assert!(why.contains(r#""path":"/srv/files/report.txt""#), "{why}");
    }
    let fits = r#"{"n":5,"path":"/a","o":{"deep":"a"}}"#;
    assert!(passes(&policy, &tools, "run", fits));
    assert_eq!(rule_of(&policy, &tools, "safe_two", "{}"), "hidden-tool");
    assert!(passes(&policy, &tools, "safe_one", "{}"));
}

#[test]
fn agents_read_the_overlay_and_every_other_byte_stays() {
    let overlays = Overlays::new("p", &overlaid()).unwrap();
    let shown = |tools: &str| {
        let shown = overlays.apply_to_lists(&list_of(tools), &context("tools/list", None))?;
        let text = String::from_utf8(shown.to_vec()).unwrap();
        let (_, tools) = text.split_once(r#""tools":["#).unwrap();
        Some(tools.trim_end_matches("]}}").to_owned())
    };
    let run = r#"{ "name":"run" ,"description":"x","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9},"z":{}},"required":["n"]}, "x": 1e2 }"#;
    assert_eq!(
        shown(run).unwrap(),
        r#"{ "name":"run" ,"description":"Runs \"it\".","inputSchema":{"type":"object","properties":{"o":{"properties":{"deep":{"pattern":"^[a-z]+$"}}},"path":{"pattern":"^(/|[A-Za-z]:[\\\\/])"},"n":{"description":"Few.","type":"integer","maximum":5},"z":{}},"required":["path","n"]}, "x": 1e2 }"#
    );
    let bare = shown(r#"{"name":"run"}"#).unwrap();
    assert!(
        bare.starts_with(r#"{"description":"Runs \"it\".","inputSchema":{"properties":{"#),
        "{bare}"
    );
    assert!(
        bare.ends_with(r#""required":["path"]},"name":"run"}"#),
        "{bare}"
    );
    let tool = |name: &str| format!(r#"{{"name":"{name}"}}"#);
    let list = |names: &[&str]| names.iter().map(|name| tool(name)).collect::<Vec<_>>();
    for (names, left) in [
        (&["safe_a", "x", "y"][..], &["x", "y"][..]),
        (&["x", "safe_a", "safe_b", "y", "safe_c"], &["x", "y"]),
        (&["safe_a", "safe_b", "x"], &["x"]),
        (&["x", "safe_a", "safe_b"], &["x"]),
        (&["safe_a", "safe_b"], &[]),
    ] {
        assert_eq!(
            shown(&list(names).join(" , ")).unwrap().replace(' ', ""),
            list(left).join(","),
            "{names:?}"
        );
    }
    let unchanged = shown(r#"{"name":"x"},{"name":"safe_one"}"#);
    assert_eq!(unchanged, None, "nothing to change");
    let other = overlays.apply_to_lists(&list_of(run), &context("tools/call", None));
    assert_eq!(other, None, "a result that only looks like a list");
}
