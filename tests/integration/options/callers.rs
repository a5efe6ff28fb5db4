//! Keys of `[[agent]]` and `[access]`.

use super::super::harness::{Agent, call, json, raw, string, token_sha256};
use super::super::servers::{Peer, Wire, says, script};
use super::serving::posted;
use super::{done, start};

/// Returns the config of two agents, one of them in a group, and two upstreams.
fn agents() -> String {
    format!(
        "[[agent]]\nname = \"ann\"\ntoken_sha256 = \"{}\"\ngroups = [\"staff\"]\n\
         [[agent]]\nname = \"bob\"\ntoken = {{ file = \"token-of-bob\" }}\n{{more}}\n\
         [upstream.other]\nhttp = {{ url = \"{{url}}\" }}\n",
        token_sha256("ann")
    )
}

async fn status(agent: &Agent, upstream: &str) -> u16 {
    agent.post(upstream, &[], call("1", "x")).await.status
}

#[tokio::test]
async fn agents_have_tokens_and_upstreams() {
    let server = done().await;
    let with = start(&agents().replace("{more}", "upstreams = [\"up\"]"), &server).await;
    let without = start(&agents().replace("{more}", ""), &server).await;
    for gate in [&with, &without] {
        for (agent, wanted) in [
            (gate.agent(), 401),
            (gate.agent_named("eve"), 401),
            (gate.agent_named("ann"), 200),
        ] {
            assert_eq!(status(&agent, "up").await, wanted);
        }
        assert_eq!(status(&gate.agent_named("bob"), "up").await, 200);
    }
    assert_eq!(status(&with.agent_named("bob"), "other").await, 404);
    assert_eq!(status(&without.agent_named("bob"), "other").await, 200);
    let audit = with.audit_text();
    assert!(
        ["ann", "bob"]
            .iter()
            .all(|name| audit.contains(&format!(r#""gen_ai.agent.name":"{name}""#))),
        "{audit}"
    );
    assert_eq!(
        status(&start("", &server).await.agent(), "up").await,
        200,
        "where nobody is named, everybody may call"
    );
}

pub(super) const LISTED: &str = r#"{"name":"find","annotations":{"readOnlyHint":true}},{"name":"drop","description":"Drops."},{"name":"peek","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}"#;

/// Starts a server that lists three tools.
pub(super) async fn listing() -> Peer {
    let answers = script(|asked| {
        let read = json(asked);
        match (string(&read, &["method"]).as_deref(), raw(&read, &["id"])) {
            (Some("tools/list"), Some(id)) => vec![format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{LISTED}]}}}}"#
            )],
            _ => says(asked, "harvested"),
        }
    });
    Peer::start(Wire::Json, answers).await
}

/// Requests: the method, its params, and the answer to a caller that may not make the request.
const REQUESTS: [(&str, &str, &str); 3] = [
    (
        "tools/call",
        r#"{"name":"NAME","arguments":{}}"#,
        "Unknown tool",
    ),
    ("prompts/get", r#"{"name":"NAME"}"#, "Unknown prompt"),
    ("resources/read", r#"{"uri":"NAME"}"#, "Resource not found"),
];

async fn may(agent: &Agent, upstream: &str, kind: usize, name: &str) -> bool {
    let (method, params, refused) = REQUESTS[kind];
    let params = params.replace("NAME", name);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
    let answer = agent.post(upstream, &[], body).await.text().await;
    !answer.contains(refused)
}

#[tokio::test]
async fn tables_of_access_allow_and_deny() {
    let server = listing().await;
    for (kind, what) in ["tools", "prompts", "resources"].into_iter().enumerate() {
        for (key, allowed, denied) in [
            (format!("allow_{what}"), "in-1", "out"),
            (format!("deny_{what}"), "out", "in-1"),
        ] {
            let text = agents().replace("{more}", "")
                + &format!("[access.staff]\ngroups = [\"staff\"]\n{key} = [\"up/in-*\"]\n");
            let gate = start(&text, &server).await;
            let ann = gate.agent_named("ann");
            assert!(may(&ann, "up", kind, allowed).await, "{key}");
            assert!(!may(&ann, "up", kind, denied).await, "{key}");
            assert_eq!(
                status(&gate.agent_named("bob"), "up").await,
                404,
                "no table is for bob"
            );
        }
    }
    let gate = start(&agents().replace("{more}", ""), &server).await;
    for kind in 0..3 {
        assert!(
            may(&gate.agent_named("bob"), "up", kind, "out").await,
            "without a table all is allowed"
        );
    }
    for (key, up, other) in [("allow_upstreams", 200, 404), ("deny_upstreams", 404, 200)] {
        let text = agents().replace("{more}", "")
            + &format!("[access.everyone]\nagents = [\"*\"]\n{key} = [\"up\"]\n");
        let gate = start(&text, &server).await;
        for agent in ["ann", "bob"] {
            let agent = gate.agent_named(agent);
            assert_eq!(status(&agent, "up").await, up, "{key}");
            assert_eq!(status(&agent, "other").await, other, "{key}");
        }
    }
}

#[tokio::test]
async fn read_only_callers_get_tools_that_read() {
    let server = listing().await;
    let table = "[access.visitors]\nagents = [\"*\"]\n";
    for (keys, find, drop, peek) in [
        ("", true, true, true),
        ("read_only = true\n", false, false, false),
        (
            "read_only = true\nreading_tools = [\"up/peek\"]\n",
            false,
            false,
            true,
        ),
        (
            "read_only = true\ntrust_annotations = [\"up\"]\n",
            true,
            false,
            false,
        ),
        (
            "read_only = true\ntrust_annotations = [\"up\"]\nwriting_tools = [\"up/find\"]\n",
            false,
            false,
            false,
        ),
    ] {
        let gate = start(&format!("{table}{keys}"), &server).await;
        let listed = posted(
            &gate,
            "up",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
        )
        .await;
        for (tool, wanted) in [("find", find), ("drop", drop), ("peek", peek)] {
            assert_eq!(
                listed.contains(&format!(r#""name":"{tool}""#)),
                wanted,
                "{keys}{tool}: {listed}"
            );
            assert_eq!(
                may(&gate.agent(), "up", 0, tool).await,
                wanted,
                "{keys}{tool}"
            );
        }
    }
}
