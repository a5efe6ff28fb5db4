//! `lychgate prove` as a whole program, against running gates and gates that it starts itself.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;

use super::harness::{assert_contains, assert_text, lychgate, run};
use super::servers::free_port;

/// A config in a folder of its own.
struct Place(TempDir);

impl Place {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lychgate.toml"), config).unwrap();
        Self(folder)
    }

    fn prove(&self, words: &[&str]) -> (i32, String, String) {
        let mut command = lychgate();
        command
            .arg("prove")
            .args(words)
            .arg("--config")
            .arg(self.0.path().join("lychgate.toml"));
        run(&mut command)
    }

    fn json(&self, words: &[&str]) -> (i32, Value) {
        let (code, told, err) = self.prove(&[words, &["--json"]].concat());
        (
            code,
            serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}{err}")),
        )
    }
}

fn became(told: &Value, upstream: &str, canary: &str) -> String {
    let upstream = told["upstreams"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["name"] == upstream)
        .unwrap();
    let of = upstream["canaries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["canary"] == canary)
        .unwrap();
    of["became"].as_str().unwrap().to_owned()
}

const UPSTREAM: &str = "[upstream.files]\nstdio = { command = [\"false\"] }\n";

#[test]
fn the_shipped_policy_catches_all_and_leaves_the_rest_alone() {
    let place = Place::new(&format!("{UPSTREAM}[pins]\nfile = \"own.lock\"\n"));
    let (code, told, err) = place.prove(&["--offline"]);
    assert!(!place.0.path().join("own.lock").exists(), "no pins");
    assert_eq!(code, 0, "{told}{err}");
    assert_contains(&told, &["files · policy default · enforce", "as expected"]);
    assert_text(&told, &[], &["MISSED", "DISTURBED", "UNTRIED"]);
    assert!(
        told.contains("foreign-host") && !told.contains('\x1b'),
        "{told}"
    );
}

#[test]
fn what_is_missed_is_told_with_its_reason() {
    let soon = SystemTime::now() + Duration::from_secs(30 * 86_400);
    let until = humantime::format_rfc3339_seconds(soon)
        .to_string()
        .split_once('T')
        .unwrap()
        .0
        .to_owned();
    let place = Place::new(&format!(
        "{UPSTREAM}[policy.default.override]\n\"url-internal\" = {{ enabled = false }}\n\"run-download\" = {{ action = \"log\" }}\n\
         [[policy.default.suppress]]\nrule = \"delete-tree\"\nupstream = \"files\"\nreason = \"a test\"\nuntil = {until}\n\
         [policy.lax]\nmode = \"observe\"\ntext = [\"run_command.command\"]\n[upstream.other]\npolicy = \"lax\"\n\
         stdio = {{ command = [\"false\"] }}\n"
    ));
    let (code, told, _) = place.prove(&["--offline"]);
    assert_eq!(code, 1, "{told}");
    assert_contains(
        &told,
        &[
            "`[policy.default.override]` contains `\"url-internal\" = { enabled = false }`",
            "`run-download` only logs",
            &format!(
                "`delete-tree` found it; a `[[policy.default.suppress]]` lets it pass until {until}"
            ),
            "other · policy lax · observe: findings are recorded, and messages pass",
            "observe mode; in enforce mode it would be caught by `override-instructions`",
            "`delete-tree` is in force, but does not inspect this location (`[policy.lax]` has `text`)",
        ],
    );
    let (code, told) = place.json(&[
        "--offline",
        "--upstream",
        "files",
        "--except",
        "internal-url",
        "--except",
        "dangerous-command",
        "--except",
        "destructive-command",
        "--except",
        "encoded-command",
    ]);
    assert_eq!((code, &told["ok"]), (0, &Value::Bool(true)), "{told}");
    assert_eq!(
        became(&told, "files", "internal-url"),
        "missed",
        "excepted, and told all the same"
    );
    let (code, told) = place.json(&["--offline", "--upstream", "other", "--allow-observe"]);
    assert_eq!(
        (code, &*became(&told, "other", "injection")),
        (1, "caught"),
        "what is read as text is missed for good: {told}"
    );
    assert_eq!(became(&told, "other", "dangerous-command"), "missed");
}

/// A gate that runs as a program.
struct Gate {
    child: Child,
    port: u16,
    /// The lines that it logged since it began to serve.
    log: Arc<Mutex<Vec<String>>>,
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn serve(more: &str) -> (Place, Gate) {
    let [port, admin] = [free_port(), free_port()];
    let place = Place::new("");
    let folder = place.0.path().display();
    fs::write(
        place.0.path().join("lychgate.toml"),
        format!(
            "[listen]\naddress = \"127.0.0.1:{port}\"\n[admin]\naddress = \"127.0.0.1:{admin}\"\n[approval]\n\
             token_file = \"{folder}/gate.token\"\n[pins]\nfile = \"{folder}/gate.lock\"\n[audit]\nfile = \"{folder}/audit.jsonl\"\nrequired = true\n{more}{UPSTREAM}"
        ),
    )
    .unwrap();
    let mut command = lychgate();
    command
        .arg("run")
        .arg("--config")
        .arg(place.0.path().join("lychgate.toml"))
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(
        lines.any(|line| line.unwrap().contains("serving")),
        "it starts"
    );
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let logged = log.clone();
    std::thread::spawn(move || lines.for_each(|line| logged.lock().unwrap().push(line.unwrap())));
    (place, Gate { child, port, log })
}

#[test]
fn a_gate_that_runs_is_tried_over_its_listener_by_the_holder_of_its_token() {
    let (place, gate) = serve(
        "[[agent]]\nname = \"a\"\ntoken_sha256 = \"3f5f7d6c9d2b6b1c0ed4d3e0a9bb86a0b5bb0c2b54ef3ed5f2f1c2a9d7b8e6f1\"\n",
    );
    let (code, told) = place.json(&[]);
    assert_eq!(code, 0, "{told}");
    assert_eq!(told["offline"], Value::Bool(false));
    assert_eq!(became(&told, "files", "injection"), "caught");
    assert_eq!(became(&told, "files", "plain-answer"), "passed");
    let door = told["listener"].as_array().unwrap();
    assert!(
        door.iter()
            .any(|check| check["canary"] == "no-token" && check["became"] == "caught"),
        "{told}"
    );
    let (code, told) = place.json(&["--except", "no-token"]);
    let door = told["listener"].as_array().unwrap();
    assert!(
        code == 0
            && door
                .iter()
                .any(|check| check["canary"] == "no-token" && check["excepted"] == true),
        "{told}"
    );
    // Repeated, as a probe does: no run leaves anything behind for the next.
    for _ in 0..8 {
        let (code, told) = place.json(&["--quick"]);
        assert_eq!(code, 0, "{told}");
    }
    let audit = fs::read_to_string(place.0.path().join("audit.jsonl")).unwrap();
    assert!(
        audit
            .lines()
            .filter(|line| line.contains("lychgate-prove"))
            .count()
            > 20,
        "canaries are on the record, by name"
    );
    let metrics = reply(&place, "GET /metrics HTTP/1.1", "");
    let counted: Vec<&str> = metrics
        .lines()
        .filter(|line| line.starts_with("lychgate_messages_total") && !line.ends_with(" 0"))
        .collect();
    assert!(
        metrics.contains("lychgate_messages_total") && counted.is_empty(),
        "and in no counter: {counted:?}"
    );
    let unmarked: Vec<&str> = audit
        .lines()
        .filter(|line| line.contains("lychgate-prove") && !line.contains(r#""prove":true"#))
        .collect();
    assert!(
        unmarked.is_empty(),
        "each of their lines is marked: {unmarked:?}"
    );
    let stats = |more: &[&str]| {
        let mut command = lychgate();
        command
            .args(["audit", "stats", "--json"])
            .args(more)
            .arg(place.0.path().join("audit.jsonl"));
        serde_json::from_slice::<Value>(&command.output().unwrap().stdout).unwrap()
    };
    assert_eq!(
        stats(&[])["verdicts"]["different"],
        0,
        "and `audit stats` leaves them out: {}",
        stats(&[])
    );
    assert!(
        stats(&["--prove"])["verdicts"]["first"][0]["count"]
            .as_u64()
            .unwrap()
            > 20
    );
    // The canary `poisoned-tool` lists a tool `add` of each upstream.
    let pinned = fs::read_to_string(place.0.path().join("gate.lock")).unwrap_or_default();
    assert!(
        !pinned.contains("add") && !pinned.contains("files"),
        "and nothing of them is pinned: {pinned}"
    );
    let log = gate.log.lock().unwrap().join("\n");
    assert!(
        !log.contains("lychgate-prove"),
        "and the gate logs nothing of them: {log}"
    );
    // A file that contains no token is reported as such.
    fs::write(
        place.0.path().join("cert.pem"),
        "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    let (code, _, err) = place.prove(&[
        "--token-file",
        place.0.path().join("cert.pem").to_str().unwrap(),
    ]);
    assert_eq!(code, 2, "{err}");
    assert_contains(&err, &["cert.pem` contains no token"]);
    // Another token is rejected.
    fs::write(
        place.0.path().join("other.token"),
        "not-the-token-of-the-gate",
    )
    .unwrap();
    let url = format!("http://127.0.0.1:{}", gate.port);
    let other = place.0.path().join("other.token");
    let (code, _, err) = place.prove(&["--url", &url, "--token-file", other.to_str().unwrap()]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("rejected the token"), "{err}");
    drop(gate);
    let (code, _, err) = place.prove(&[]);
    assert_eq!(code, 2);
    assert_contains(&err, &["does not answer", "hint:"]);
}

/// Sends a request to the admin port and returns its answer.
fn reply(place: &Place, line: &str, body: &str) -> String {
    use std::io::{Read, Write};
    let config = fs::read_to_string(place.0.path().join("lychgate.toml")).unwrap();
    let admin = config
        .split("[admin]\naddress = \"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let mut stream = std::net::TcpStream::connect(&admin).unwrap();
    write!(
        stream,
        "{line}\r\nhost: {admin}\r\nconnection: close\r\n\r\n{body}"
    )
    .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn without_a_way_to_try_it_says_what_is_missing() {
    let place = Place::new(UPSTREAM);
    let (code, _, err) = place.prove(&[]);
    assert_eq!(code, 2);
    assert_contains(&err, &["no admin port", "--offline"]);
    let (code, _, err) = place.prove(&["--offline", "--except", "no-such"]);
    assert_eq!(code, 2);
    assert_contains(&err, &["no canary `no-such`", "poisoned-tool"]);
}
