//! Access control: tools, prompts and resources that a caller may not use are not listed and are
//! answered as unknown; the audit log records why.

use std::sync::Arc;

use lychgate::config::{AccessConfig, Agent as AgentConfig, AgentToken, AgentsFile, Lists};
use sha2::{Digest, Sha256};

use super::harness::{
    Agent, Setup, TestGate, assert_contains, json, raw, string, token, token_sha256, until,
    write_whole,
};
use super::servers::{Peer, Server, Wire, script};

const TOOLS: &str =
    r#"{"name":"find","annotations":{"readOnlyHint":true}},{"name":"drop"},{"name":"peek"}"#;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Starts a server with three tools, two prompts and two resources.
async fn peer(wire: Wire) -> Peer {
    let answers = script(|asked| {
        let asked = json(asked);
        let id = raw(&asked, &["id"]);
        let result = match string(&asked, &["method"]).as_deref() {
            Some("tools/list") => format!(r#"{{"tools":[{TOOLS}],"nextCursor":"more"}}"#),
            Some("prompts/list") => r#"{"prompts":[{"name":"plan"},{"name":"secret"}]}"#.to_owned(),
            Some("resources/list") => {
                r#"{"resources":[{"uri":"file:///a","name":"a"},{"uri":"file:///etc/b","name":"b"}]}"#.to_owned()
            }
            _ => r#"{"content":[]}"#.to_owned(),
        };
        id.map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#))
            .into_iter()
            .collect()
    });
    Peer::start(wire, answers).await
}

fn denying() -> AccessConfig {
    let deny = Lists {
        tools: words(&["up/drop"]),
        prompts: words(&["*/secret"]),
        resources: words(&["up/file:///etc/*"]),
        upstreams: words(&["closed"]),
    };
    AccessConfig {
        name: "all".into(),
        agents: words(&["*"]),
        deny,
        ..AccessConfig::default()
    }
}

fn ask(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

async fn said(agent: &Agent, session: Option<&str>, body: String) -> String {
    let headers: Vec<(&str, &str)> = session
        .map(|session| ("mcp-session-id", session))
        .into_iter()
        .collect();
    let mut answer = agent.post_ok("up", &headers, body).await;
    if answer
        .header("content-type")
        .starts_with("text/event-stream")
    {
        return answer.data_text().await;
    }
    answer.text().await
}

#[tokio::test]
async fn what_may_not_be_used_is_not_listed_and_reads_as_unknown_on_every_transport() {
    for wire in Wire::ALL {
        let peer = peer(wire).await;
        let setup = peer
            .behind(Setup::new(), "up")
            .with(|config| config.access = vec![Arc::new(denying())]);
        let gate = setup.start().await;
        let agent = gate.agent();
        let session = agent.initialize("up").await;
        let tell = |method, params| said(&agent, session.as_deref(), ask(method, params));
        for (method, params) in [("tools/list", "{}"), ("tools/list", r#"{"cursor":"more"}"#)] {
            let list = tell(method, params).await;
            assert!(
                list.contains("find") && list.contains("peek") && !list.contains("drop"),
                "{wire:?} {list}"
            );
            assert!(list.contains("nextCursor"), "{wire:?} {list}");
        }
        assert!(!tell("prompts/list", "{}").await.contains("secret"));
        assert!(!tell("resources/list", "{}").await.contains("/etc/b"));
        for (method, params, message) in [
            (
                "tools/call",
                r#"{"name":"drop","arguments":{}}"#,
                r#""code":-32602,"message":"Unknown tool: drop""#,
            ),
            (
                "prompts/get",
                r#"{"name":"secret"}"#,
                r#""code":-32602,"message":"Unknown prompt: secret""#,
            ),
            (
                "resources/read",
                r#"{"uri":"file:///etc/b"}"#,
                r#""code":-32002,"message":"Resource not found""#,
            ),
        ] {
            let answer = tell(method, params).await;
            assert!(answer.contains(message), "{wire:?} {answer}");
        }
        let fine = tell("tools/call", r#"{"name":"find","arguments":{}}"#).await;
        assert!(fine.contains(r#""content":[]"#), "{wire:?} {fine}");
        until("the audit line", || {
            gate.audit_text().contains("`[access.all]` denies it")
        })
        .await;
        gate.assert_series(r#"lychgate_turned_away_total{reason="access"}"#, 3.0);
        gate.running.drain().await;
    }
}

#[tokio::test]
async fn nothing_of_it_reaches_the_server_whatever_it_is_wrapped_in() {
    let server = Server::answering(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    let gate = server.setup().http("closed", server.url());
    let gate = gate
        .start_with(|config| config.access = vec![Arc::new(denying())])
        .await;
    let agent = gate.agent();
    let drop = r#"{"name":"drop","arguments":{}}"#;
    let notified = format!(r#"{{"jsonrpc":"2.0","method":"tools/call","params":{drop}}}"#);
    agent.post_expecting(202, "up", &[], notified.clone()).await;
    let batch = format!(
        "[{},{}]",
        ask("ping", "{}"),
        ask("tools/call", drop).replace(r#""id":1"#, r#""id":2"#)
    );
    let answers = agent
        .fetch("up", &[("mcp-protocol-version", "2025-03-26")], batch)
        .await;
    assert_contains(&answers, &["Unknown tool: drop", "same batch"]);
    agent
        .post_expecting(404, "closed", &[], ask("ping", "{}"))
        .await;
    let unknown = agent
        .fetch_expecting(404, "no-such", &[], ask("ping", "{}"))
        .await;
    assert_eq!(
        agent
            .post("closed", &[], ask("ping", "{}"))
            .await
            .text()
            .await,
        unknown
    );
    assert!(server.rest().await.is_empty());
}

#[tokio::test]
async fn read_only_counts_annotations_where_they_are_trusted_and_the_operators_words_first() {
    let peer = peer(Wire::Json).await;
    let trusting = |trust: &[&str]| AccessConfig {
        name: "look".into(),
        agents: words(&["*"]),
        read_only: true,
        reading_tools: words(&["up/peek"]),
        trust_annotations: words(trust),
        ..AccessConfig::default()
    };
    for (trust, shows) in [(&["up"][..], &["find", "peek"][..]), (&[], &["peek"])] {
        let table = trusting(trust);
        let setup = peer
            .behind(Setup::new(), "up")
            .with(|config| config.access = vec![Arc::new(table)]);
        let gate = setup.start().await;
        let agent = gate.agent();
        let list = said(&agent, None, ask("tools/list", "{}")).await;
        for tool in ["find", "drop", "peek"] {
            let shown = shows.contains(&tool);
            assert_eq!(list.contains(tool), shown, "{tool} {list}");
            let called = said(
                &agent,
                None,
                ask(
                    "tools/call",
                    &format!(r#"{{"name":"{tool}","arguments":{{}}}}"#),
                ),
            )
            .await;
            assert_eq!(called.contains("Unknown tool"), !shown, "{tool} {called}");
        }
        gate.running.drain().await;
    }
}

#[tokio::test]
async fn tables_are_for_agents_and_groups() {
    let server = Server::answering(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#).await;
    let only = |name: &str, groups: &[&str], agents: &[&str], tool: &str| AccessConfig {
        name: name.into(),
        agents: words(agents),
        groups: words(groups),
        allow: Lists {
            tools: Some(words(&[tool])),
            ..Lists::default()
        },
        ..AccessConfig::default()
    };
    let setup = server
        .setup()
        .agents(&["ann", "bob", "eve"])
        .with(|config| {
            config.agents[1].groups = words(&["ops"]);
            let tables = [
                only("of-ann", &[], &["ann"], "*/a*"),
                only("of-ops", &["ops"], &[], "up/b"),
            ];
            config.access = tables.into_iter().map(Arc::new).collect();
        });
    let gate = setup.start().await;
    for (agent, tool, status, known) in [
        ("ann", "abc", 200, true),
        ("ann", "b", 200, false),
        ("bob", "b", 200, true),
        ("bob", "abc", 200, false),
        ("eve", "b", 404, false),
    ] {
        let call = ask(
            "tools/call",
            &format!(r#"{{"name":"{tool}","arguments":{{}}}}"#),
        );
        let answer = gate
            .agent_named(agent)
            .fetch_expecting(status, "up", &[], call)
            .await;
        assert_eq!(
            answer.contains(r#""content""#),
            known,
            "{agent} {tool} {answer}"
        );
    }
    until("the audit line", || {
        gate.audit_text()
            .contains("no `[access]` table matches this caller")
    })
    .await;
}

/// Starts a gate that reads its agents from a file beside its config.
async fn with_file() -> (TestGate, std::path::PathBuf, Server) {
    let server = Server::answering(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#).await;
    let mut setup = server.setup();
    let folder = setup.folder.path().to_owned();
    let file = folder.join("agents.toml");
    let config = folder.join("gate.toml");
    write_whole(
        &config,
        &format!(
            "[listen]\naddress = \"127.0.0.1:0\"\n[agents]\nfile = \"agents.toml\"\n[[agent]]\nname = \"ann\"\ntoken_sha256 = \"{}\"\n\
             [audit]\nfile = \"audit.jsonl\"\n[policy.default]\nrules = [\"rules\"]\n[upstream.up]\nhttp = {{ url = \"{}\" }}\n",
            token_sha256("ann"),
            server.url()
        ),
    );
    setup.config = lychgate::config::load(&config).unwrap_or_else(|faults| panic!("{faults:?}"));
    assert_eq!(
        setup.config.agents_file,
        AgentsFile {
            file: Some(file.clone())
        }
    );
    let running = lychgate::app::start(setup.config, Some(config))
        .await
        .unwrap_or_else(|faults| panic!("{faults:?}"));
    (TestGate::new(running, setup.folder), file, server)
}

async fn status(gate: &TestGate, agent: &str) -> u16 {
    gate.agent_named(agent)
        .post("up", &[], ask("ping", "{}"))
        .await
        .status
}

#[tokio::test]
async fn tokens_in_the_file_count_as_long_as_they_stand_there() {
    let (gate, file, _server) = with_file().await;
    assert_eq!(status(&gate, "ann").await, 200);
    assert_eq!(status(&gate, "bob").await, 401);
    let made = |name: &str| AgentToken {
        agent: name.to_owned(),
        sha256: Sha256::digest(token(name).as_bytes()).into(),
        created: "2026-11-22T16:00:00Z".to_owned(),
    };
    let reloads = || {
        gate.metric("lychgate_reloads_total", &[("outcome", "applied")])
            .unwrap_or_default()
    };
    for (all, times, bob) in [(vec![made("bob")], 1.0, 200), (vec![], 2.0, 401)] {
        write_whole(&file, &AgentToken::to_text(&all));
        gate.running.reload();
        until("the reload", || reloads() >= times).await;
        assert_eq!(status(&gate, "ann").await, 200);
        assert_eq!(status(&gate, "bob").await, bob);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&token("bob")));
}

#[tokio::test]
async fn streams_end_when_who_listens_may_no_more() {
    let (gate, file, _server) = with_file().await;
    let made = |name: &str| AgentToken {
        agent: name.to_owned(),
        sha256: Sha256::digest(token(name).as_bytes()).into(),
        created: String::new(),
    };
    let open = async |agent: &str| {
        let mut answer = gate.agent_named(agent).get_ok("/sse/up", &[]).await;
        answer.event().await.unwrap();
        answer
    };
    let applied = || {
        gate.metric("lychgate_reloads_total", &[("outcome", "applied")])
            .unwrap_or_default()
    };
    write_whole(&file, &AgentToken::to_text(&[made("bob"), made("eve")]));
    gate.running.reload();
    until("the reload", || applied() >= 1.0).await;
    let mut bob = open("bob").await;
    let eve = open("eve").await;
    write_whole(&file, &AgentToken::to_text(&[made("eve")]));
    gate.running.reload();
    assert_eq!(bob.event().await, None, "taken back");
    assert_eq!(status(&gate, "eve").await, 200);
    drop(eve);
}

#[test]
fn an_agent_without_a_token_is_not_everyone() {
    let config = lychgate::config::Config {
        agents: vec![AgentConfig::default()],
        ..Default::default()
    };
    assert!(!config.is_open() && lychgate::config::Config::default().is_open());
}
