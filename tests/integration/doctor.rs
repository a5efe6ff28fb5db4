//! `lychgate doctor` as a whole program, with a config that has every fault, and with one that has
//! none.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::harness::{assert_contains, lychgate, run};
use super::servers::{Server, free_port, json_reply, reply};

fn examine(folder: &TempDir, words: &[&str]) -> (i32, String, String) {
    let mut command = lychgate();
    command
        .arg("doctor")
        .args(words)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.path())
        .env("HTTPS_PROXY", "http://user:hunter2@proxy:1");
    run(&mut command)
}

async fn doctor(folder: TempDir, words: &'static [&'static str]) -> (i32, String, String, TempDir) {
    tokio::task::spawn_blocking(move || {
        let (code, out, err) = examine(&folder, words);
        (code, out, err, folder)
    })
    .await
    .unwrap()
}

fn mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_is_wrong_is_found_with_what_mends_it() {
    let folder = tempfile::tempdir().unwrap();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let wants =
        Server::start(|_| async { reply(401, &[("date", "Sun, 06 Nov 1994 08:49:37 GMT")], "") })
            .await;
    let hangs = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_after = rcgen::date_time_ymd(2024, 1, 1);
    params.not_before = rcgen::date_time_ymd(2023, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    fs::write(
        folder.path().join("cert.pem"),
        params.self_signed(&key).unwrap().pem(),
    )
    .unwrap();
    fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
    mode(&folder.path().join("key.pem"), 0o644);
    fs::write(folder.path().join("token"), "hunter2-hunter2-hunter2").unwrap();
    mode(&folder.path().join("token"), 0o644);
    fs::write(
        folder.path().join("lychgate.toml"),
        format!(
            "[listen]\naddress = \"{}\"\ntls = {{ cert = \"cert.pem\", key = \"key.pem\" }}\n[limits]\nconnections = 1000000\n\
             [policy.default]\nmode = \"observe\"\n[upstream.wants]\nhttp = {{ url = \"{}\", bearer = {{ file = \"token\" }} }}\n\
             [upstream.gone]\nhttp = {{ url = \"http://127.0.0.1:9/mcp\", oauth = false }}\n\
             [upstream.hangs]\nhttp = {{ url = \"http://{}/mcp\", oauth = false }}\n\
             [upstream.none]\nstdio = {{ command = [\"no-such-program\"] }}\n",
            held.local_addr().unwrap(),
            wants.url(),
            hangs.local_addr().unwrap()
        ),
    )
    .unwrap();
    mode(&folder.path().join("lychgate.toml"), 0o666);
    fs::create_dir_all(folder.path().join("lychgate/quarantine")).unwrap();
    mode(&folder.path().join("lychgate/quarantine"), 0o755);
    fs::write(folder.path().join("lychgate/quarantine.key"), "hunter2").unwrap();
    mode(&folder.path().join("lychgate/quarantine.key"), 0o640);
    let began = Instant::now();
    let (code, told, err, folder) = doctor(folder, &[]).await;
    assert_eq!(code, 1, "{told}{err}");
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "dead servers do not hold it up"
    );
    for part in [
        "is in use by `",
        "kill ",
        "the listener's certificate ended",
        "openssl x509",
        "chmod 600 '",
        "chmod go-w '",
        "`none`",
        "no-such-program",
        "cannot reach `gone`",
        "`hangs` did not respond",
        "`wants` responds with 401",
        "are in observe mode",
        "differ by ",
        "timedatectl",
        "no audit log: past verdicts",
        "HTTPS_PROXY is set",
        "connections may need",
        "no admin port",
        "checked and ok",
        "the quarantine `",
        "/lychgate/quarantine` has mode 755",
        "the key of the quarantine `",
    ] {
        let part = if part == "are in observe mode" {
            "is in observe mode"
        } else {
            part
        };
        assert!(told.contains(part), "`{part}` is missing from: {told}");
    }
    assert!(
        !told.contains("hunter2") && !err.contains("hunter2"),
        "no secret is shown: {told}{err}"
    );
    let (code, told, err, folder) = doctor(folder, &["--json"]).await;
    let json: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}{err}"));
    assert_eq!((code, &json["ok"]), (1, &Value::Bool(false)));
    assert!(
        json["findings"]
            .as_array()
            .unwrap()
            .iter()
            .all(|found| !found["fix"].as_str().unwrap().is_empty()),
        "{json:#}"
    );
    drop(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_in_order_has_nothing_but_notes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(|seen| async move {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
        let date = httpdate();
        let mut told = json_reply(format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"supportedVersions":["2026-07-28"],"capabilities":{{}},"resultType":"complete"}}}}"#,
            asked["id"]
        ));
        told.headers_mut().insert("date", date.parse().unwrap());
        told
    })
    .await;
    fs::write(
        folder.path().join("lychgate.toml"),
        format!(
            "[listen]\naddress = \"127.0.0.1:0\"\n[audit]\nfile = \"audit.jsonl\"\n[admin]\naddress = \"127.0.0.1:0\"\n[limits]\nconnections = 16\n\
             [upstream.well]\nhttp = {{ url = \"{}\", oauth = false }}\n",
            server.url()
        ),
    )
    .unwrap();
    mode(&folder.path().join("lychgate.toml"), 0o600);
    let (code, told, err, folder) = doctor(folder, &[]).await;
    assert_eq!(code, 0, "{told}{err}");
    assert_contains(
        &told,
        &[
            "`well` answers",
            "clock of `well` matches",
            "rule tests pass",
            "0 errors, 0 warnings",
        ],
    );
    // If a gate without an admin port is running, the report must not suggest killing it.
    let config = format!(
        "[listen]\naddress = \"127.0.0.1:{}\"\n[upstream.u]\nstdio = {{ command = [\"true\"] }}\n",
        free_port()
    );
    fs::write(folder.path().join("lychgate.toml"), config).unwrap();
    let mut gate = lychgate();
    gate.args(["run", "--config", "lychgate.toml"])
        .current_dir(folder.path())
        .env("XDG_STATE_HOME", folder.path());
    let mut gate = gate.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(gate.stderr.take().unwrap()));
    assert!(
        lines.any(|line| line.unwrap().contains("serving")),
        "it starts"
    );
    std::thread::spawn(move || lines.for_each(drop));
    let (_, told, err, folder) = doctor(folder, &[]).await;
    assert!(
        told.contains("a gateway is running there (process ") && !told.contains("kill "),
        "{told}{err}"
    );
    gate.kill().and_then(|()| gate.wait()).unwrap();
    fs::write(
        folder.path().join("lychgate.toml"),
        "colour = 1\n[upstream.a]\nhttp = { url = \"https://example.org\" }\n",
    )
    .unwrap();
    let (code, told, _, folder) = doctor(folder, &[]).await;
    assert_eq!(code, 1);
    assert_contains(&told, &["lychgate.toml:1:1: unknown key `colour`"]);
    let (code, _, err, _folder) = doctor(folder, &["--config", "no-such.toml"]).await;
    assert_eq!(code, 2);
    assert!(err.contains("cannot be read"), "{err}");
}

/// Returns the current time in the format of HTTP headers.
fn httpdate() -> String {
    let output = Command::new("date")
        .args(["-u", "+%a, %d %b %Y %H:%M:%S GMT"])
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
