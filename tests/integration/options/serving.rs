//! Keys of the gate's own parts: each is tested with the text of a config file, in a gate with the
//! key and one without it.

use std::net::SocketAddr;
use std::process::{Child, Stdio};

use super::super::harness::{
    Agent, TestGate, assert_contains, call, lychgate, token_sha256, until,
};
use super::super::servers::{Peer, Server, Wire, free_port, json_reply, says, script};
use super::{done, faults, prepare, start};

pub(super) const OWN: &str = "[policy.default]\nrules = [\"rules\"]\n";

pub(super) async fn posted(gate: &TestGate, upstream: &str, body: &str) -> String {
    let headers = [("mcp-protocol-version", "2025-03-26")];
    gate.agent()
        .post(upstream, &headers, body.to_owned())
        .await
        .text()
        .await
}

#[tokio::test]
async fn messages_are_read_within_their_limits() {
    let server = done().await;
    let limits = "[limits]\nmessage_bytes = 4096\ndepth = 8\nstrings_per_message = 100\nvalues_per_message = 1000\n\
                  batch_items = 2\nargument_bytes = 20\nheader_bytes = 8192\n";
    let tight = start(limits, &server).await;
    let wide = start("", &server).await;
    let list = |item: &str, count: usize| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"a":[{}0]}}}}"#,
            item.repeat(count)
        )
    };
    for (key, body) in [
        ("message_bytes", call("1", &"x".repeat(5000))),
        (
            "depth",
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{{"a":{}{}}}}}"#,
                "[".repeat(7),
                "]".repeat(7)
            ),
        ),
        ("strings_per_message", list("\"\",", 120)),
        ("values_per_message", list("0,", 1200)),
        ("batch_items", format!("[{0},{0},{0}]", call("1", "x"))),
        ("argument_bytes", call("1", "longer than twenty bytes")),
    ] {
        assert!(posted(&tight, "up", &body).await.contains(key), "{key}");
        assert_eq!(tight.limit_hits(key), 1.0, "{key}");
        let answer = posted(&wide, "up", &body).await;
        assert!(!answer.contains(key), "{key}: {answer}");
    }
    let long = "y".repeat(9000);
    let headed = async |gate: &TestGate| {
        gate.agent()
            .post("up", &[("x-long", &long)], call("1", "x"))
            .await
            .status
    };
    assert_eq!((headed(&tight).await, headed(&wide).await), (431, 200));
    assert!(
        posted(&tight, "up", &call("1", "x"))
            .await
            .contains("harvested"),
        "what is within all of them passes"
    );
}

#[tokio::test]
async fn calls_are_counted_by_agent_upstream_and_session() {
    let server = done().await;
    let other = "[upstream.other]\nhttp = { url = \"{url}\" }\n";
    for key in [
        "calls_per_minute_per_agent",
        "calls_per_minute_per_upstream",
        "calls_per_session",
    ] {
        let gate = start(&format!("[limits]\n{key} = 2\n{other}"), &server).await;
        for _ in 0..2 {
            assert!(
                posted(&gate, "up", &call("1", "x"))
                    .await
                    .contains("harvested"),
                "{key}"
            );
        }
        assert!(posted(&gate, "up", &call("1", "x")).await.contains(key));
        let elsewhere = posted(&gate, "other", &call("1", "x")).await;
        assert_eq!(
            elsewhere.contains("harvested"),
            key != "calls_per_minute_per_agent",
            "{key}: {elsewhere}"
        );
    }
    let gate = start(other, &server).await;
    for _ in 0..5 {
        assert_contains(&posted(&gate, "up", &call("1", "x")).await, &["harvested"]);
    }
}

#[tokio::test]
async fn refusals_again_and_again_are_answered_in_short() {
    let server = done().await;
    let limits = "[limits]\nrepeated_refusals = 2\n";
    for (text, short) in [
        (limits.to_owned(), true),
        (format!("{limits}repeated_refusal_seconds = 1\n"), false),
        (String::new(), false),
    ] {
        let gate = start(&text, &server).await;
        for _ in 0..2 {
            assert_contains(
                &posted(&gate, "up", &call("1", "detonate")).await,
                &["Blocked by lychgate"],
            );
        }
        if text.contains("seconds") {
            // The key is about the age of refusals, so they have to become old.
            tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        }
        let answer = posted(&gate, "up", &call("1", "detonate")).await;
        assert_eq!(answer.contains("Stop"), short, "{text}{answer}");
        assert_contains(
            &posted(&gate, "up", &call("1", "hello")).await,
            &["harvested"],
        );
    }
}

#[tokio::test]
async fn long_results_are_kept_to_be_read_on() {
    let long = "harvested and so on; ".repeat(200);
    let server = Peer::start(Wire::Json, script(move |asked| says(asked, &long))).await;
    let policy = format!("{OWN}result_text_bytes = {{ \"*\" = 300 }}\n");
    for (limits, kept) in [
        ("", true),
        ("[limits]\nkept_results = 0\n", false),
        ("[limits]\nkept_result_bytes = 1024\n", false),
    ] {
        let gate = start(&format!("{limits}{policy}"), &server).await;
        let answer = posted(&gate, "up", &call("1", "x")).await;
        assert_eq!(
            answer.contains("lychgate://result/"),
            kept,
            "{limits}{answer}"
        );
        assert!(answer.contains("harvested and so on"), "{answer}");
    }
}

#[tokio::test]
async fn hosts_and_origins_are_those_of_the_config() {
    let server = done().await;
    let named = "[listen]\naddress = \"127.0.0.1:0\"\nhosts = [\"gate.example\"]\norigins = [\"https://app.example\"]\n\
                 [admin]\naddress = \"127.0.0.1:0\"\nhosts = [\"probe.example\"]\n";
    let with = start(named, &server).await;
    let without = start("", &server).await;
    for (header, value) in [("host", "gate.example"), ("origin", "https://app.example")] {
        let ask = async |gate: &TestGate, value: &str| {
            gate.agent()
                .post("up", &[(header, value)], call("1", "x"))
                .await
                .status
        };
        assert_eq!(ask(&with, value).await, 200, "{header}");
        assert_eq!(ask(&without, value).await, 403, "{header}");
        assert_eq!(
            ask(&with, &value.replace("example", "evil")).await,
            403,
            "{header}"
        );
    }
    let probe = async |gate: &TestGate, host: &str| {
        Agent::new(gate.running.admin.unwrap(), None)
            .get("/healthz", &[("host", host)])
            .await
            .status
    };
    assert_eq!(probe(&with, "probe.example").await, 200);
    assert_eq!(probe(&without, "probe.example").await, 403);
    assert_eq!(probe(&with, "other.example").await, 403);
}

#[tokio::test]
async fn addresses_are_listened_on_as_written() {
    let server = done().await;
    let gate = start(
        "[listen]\naddress = \"127.0.0.2:0\"\n[admin]\naddress = \"127.0.0.3:0\"\n",
        &server,
    )
    .await;
    assert_eq!(gate.running.address.ip().to_string(), "127.0.0.2");
    assert_eq!(gate.running.admin.unwrap().ip().to_string(), "127.0.0.3");
    assert_contains(&posted(&gate, "up", &call("1", "x")).await, &["harvested"]);
    let gate = start("# no [admin]\n", &server).await;
    assert!(gate.running.admin.is_none() && gate.running.address.ip().is_loopback());
}

#[test]
fn anyone_may_call_from_elsewhere_only_where_the_config_says_so() {
    let open = "[listen]\naddress = \"0.0.0.0:0\"\n";
    let key = "allow_unauthenticated_agents_off_loopback";
    assert!(faults(open).contains(key));
    assert_eq!(faults(&format!("{open}{key} = true\n")), "");
    let agent = format!(
        "[[agent]]\nname = \"ann\"\ntoken_sha256 = \"{}\"\n",
        token_sha256("ann")
    );
    assert_eq!(faults(&format!("{open}{agent}")), "");
}

#[tokio::test]
async fn the_console_is_there_unless_it_is_switched_off() {
    let server = done().await;
    for (text, status) in [
        ("", 200),
        ("[admin]\naddress = \"127.0.0.1:0\"\nconsole = false\n", 404),
    ] {
        let gate = start(text, &server).await;
        assert_eq!(gate.admin("/console").await.0, status, "{text}");
        assert_eq!(gate.admin("/healthz").await.0, 200);
    }
}

#[tokio::test]
async fn the_audit_log_is_written_as_the_config_says() {
    let server = done().await;
    let written = "[audit]\nfile = \"log/a.jsonl\"\nkey_file = \"keys/a.key\"\n";
    let count = |gate: &TestGate, name: &str| {
        std::fs::read_to_string(gate.folder.path().join(name))
            .map_or(0, |text| text.lines().count())
    };
    let checkpoints = "log/a.jsonl.checkpoints";
    let plain = start(written, &server).await;
    let often = start(&format!("{written}checkpoint_lines = 1\n"), &server).await;
    let timed = start(&format!("{written}checkpoint_seconds = 1\n"), &server).await;
    for gate in [&plain, &often, &timed] {
        for _ in 0..5 {
            posted(gate, "up", &call("1", "hello")).await;
        }
        // Without a flush, because that writes a checkpoint too.
        until("the lines", || count(gate, "log/a.jsonl") >= 5).await;
        assert!(
            gate.folder.path().join("keys/a.key").is_file()
                && !gate.folder.path().join("audit.jsonl").exists()
        );
    }
    until("checkpoints by lines", || count(&often, checkpoints) > 2).await;
    until("a checkpoint by time", || count(&timed, checkpoints) > 2).await;
    assert!(
        count(&plain, checkpoints) <= 2,
        "those of a new key and of the start"
    );
    let default = start("", &server).await;
    posted(&default, "up", &call("1", "hello")).await;
    default.running.gate().recorder().flush();
    assert!(default.folder.path().join("audit.jsonl.key").is_file());
}

#[test]
fn secrets_and_suppressions_are_complete() {
    let secret = |more: &str| {
        faults(&format!(
            "[policy.default]\n[[policy.default.secret]]\n{more}\n"
        ))
    };
    assert!(secret("file = \"secret\"").contains("`name` is missing"));
    assert_eq!(secret("name = \"a\"\nfile = \"secret\""), "");
    let twice = secret(
        "name = \"a\"\nfile = \"secret\"\n[[policy.default.secret]]\nname = \"a\"\nfile = \"token-of-bob\"",
    );
    assert!(twice.contains("two secrets `a`"), "{twice}");
    let slow = "name = \"a\"\ncommand = [\"sh\", \"-c\", \"sleep 2; echo a-long-secret-value\"]\ntimeout_seconds =";
    assert!(secret(&format!("{slow} 1")).contains("cannot read the secret"));
    assert_eq!(secret(&format!("{slow} 20")), "");
    let suppress = "[policy.default]\n[[policy.default.suppress]]\nrule = \"delete-tree\"\n";
    let in_a_while = std::time::SystemTime::now() + std::time::Duration::from_secs(100 * 86_400);
    let until = format!(
        "until = \"{}\"\n",
        &humantime::format_rfc3339_seconds(in_a_while).to_string()[..10]
    );
    assert!(faults(&format!("{suppress}{until}")).contains("reason"));
    assert_eq!(
        faults(&format!("{suppress}{until}reason = \"A test.\"\n")),
        ""
    );
}

#[tokio::test]
async fn the_token_for_people_is_in_the_file_that_is_named() {
    let server = done().await;
    let mut tokens = Vec::new();
    for (named, other) in [("desk.token", "other.token"), ("other.token", "desk.token")] {
        let gate = start(&format!("[approval]\ntoken_file = \"{named}\"\n"), &server).await;
        assert!(!gate.folder.path().join(other).exists(), "{other}");
        tokens.push(
            std::fs::read_to_string(gate.folder.path().join(named))
                .unwrap()
                .trim()
                .to_owned(),
        );
        let ask = async |token: &String| {
            let agent = Agent::new(gate.running.admin.unwrap(), Some(token.clone()));
            agent.get("/approvals", &[]).await.status
        };
        let expected: &[u16] = if tokens.len() == 1 {
            &[200]
        } else {
            &[401, 200]
        };
        for (token, status) in tokens.iter().zip(expected) {
            assert_eq!(ask(token).await, *status, "{named}");
        }
    }
}

/// A gate that runs as a program until this is dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn pins_outlive_the_gate_unless_the_config_says_otherwise() {
    let tools = r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}}"#;
    let server = Server::start(move |_| async move { json_reply(tools) }).await;
    for (pins, kept) in [
        ("", true),
        ("[pins]\npersistent = true\n", true),
        ("[pins]\npersistent = false\n", false),
    ] {
        let port = free_port();
        let text = format!("# no [admin]\n[listen]\naddress = \"127.0.0.1:{port}\"\n{pins}");
        let (setup, text) = prepare(&text, &server.url());
        let file = setup.folder.path().join("lychgate.toml");
        let state = setup.folder.path().join("state");
        std::fs::write(&file, text).unwrap();
        let mut command = lychgate();
        command
            .args(["run", "--config"])
            .arg(&file)
            .env("XDG_STATE_HOME", &state)
            .stderr(Stdio::null());
        let gate = Program(command.spawn().unwrap());
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        until("the gate to listen", || {
            std::net::TcpStream::connect(address).is_ok()
        })
        .await;
        let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
        let listed = Agent::new(address, None)
            .post("up", &[("mcp-protocol-version", "2025-03-26")], list)
            .await
            .text()
            .await;
        assert!(listed.contains("add"), "{listed}");
        drop(gate);
        let files = std::fs::read_dir(state.join("lychgate"))
            .into_iter()
            .flatten();
        let locks: Vec<_> = files
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension() == Some("lock".as_ref()))
            .collect();
        assert_eq!(locks.len(), usize::from(kept), "{pins}{locks:?}");
        for lock in locks {
            assert!(
                std::fs::read_to_string(lock).unwrap().contains("add"),
                "{pins}"
            );
        }
    }
}
