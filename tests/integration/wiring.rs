//! `install`, the servers that it moves behind the gate, and `service`, as programs with a home
//! folder of their own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::harness::{assert_contains, assert_text};

/// A server that answers one request with a list of one tool.
const SERVER: &str = r#"read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}}'"#;

struct Machine(TempDir);

impl Machine {
    /// Returns a machine with a link to this program on `PATH`, and a `systemctl` that records its
    /// arguments.
    fn new() -> Self {
        let machine = Self(TempDir::new().unwrap());
        fs::create_dir_all(machine.at("bin")).unwrap();
        fs::create_dir_all(machine.at("home/.cursor")).unwrap();
        symlink(env!("CARGO_BIN_EXE_lychgate"), machine.at("bin/lychgate")).unwrap();
        let script = format!(
            "#!/bin/sh\necho \"$*\" >> '{}'\n",
            machine.at("calls").display()
        );
        fs::write(machine.at("bin/systemctl"), script).unwrap();
        fs::set_permissions(
            machine.at("bin/systemctl"),
            fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path =
            std::env::join_paths([self.at("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
        command
            .env_clear()
            .env("HOME", self.at("home"))
            .env("PATH", path)
            .current_dir(self.at("home"));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn lychgate(&self, args: &[&str]) -> Output {
        self.command(&self.at("bin/lychgate").display().to_string())
            .args(args)
            .output()
            .unwrap()
    }

    fn calls(&self) -> String {
        let calls = fs::read_to_string(self.at("calls")).unwrap_or_default();
        calls
            .lines()
            .filter(|line| !line.contains("is-active") && !line.contains("show-environment"))
            .collect::<Vec<_>>()
            .join("\n")
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
#[cfg(target_os = "linux")]
fn an_install_leaves_a_gate_that_is_kept_running_and_one_log() {
    let machine = Machine::new();
    let file = machine.at("home/.cursor/mcp.json");
    let linked = machine.at("bin/lychgate").display().to_string();
    let servers = serde_json::json!({ "mcpServers": {
        "docs": { "url": "https://docs.invalid/mcp" },
        "files": { "command": "sh", "args": ["-c", SERVER] },
        "more": { "command": "sh", "args": ["-c", SERVER] },
    } });
    fs::write(&file, servers.to_string()).unwrap();
    let installed = machine.lychgate(&["install", "cursor", "--yes", "--service"]);
    assert_eq!(installed.status.code(), Some(0), "{}", text(&installed));
    assert_contains(&text(&installed), &["http://127.0.0.1:8800/mcp/docs"]);
    // The service starts the program by the path that stays the same after an update.
    let unit =
        fs::read_to_string(machine.at("home/.config/systemd/user/lychgate.service")).unwrap();
    assert_contains(&unit, &[&format!("ExecStart=\"{linked}\" run --config")]);
    assert_eq!(
        machine.calls(),
        "--user daemon-reload\n--user enable --now lychgate.service"
    );
    // The other verbs find its config.
    let checked = machine.lychgate(&["check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked));
    let status = machine.lychgate(&["service", "status"]);
    assert!(
        status.status.success() && text(&status).contains("service  running"),
        "{}",
        text(&status)
    );

    // Two servers that run at the same time, started as the client does, write to one log, each
    // under its own name.
    let wired: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let started: Vec<_> = ["files", "more"]
        .map(|name| {
            let server = &wired["mcpServers"][name];
            assert_eq!(server["command"], linked);
            let args = server["args"]
                .as_array()
                .unwrap()
                .iter()
                .map(|word| word.as_str().unwrap());
            let mut child = machine
                .command(&linked)
                .args(args)
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n")
                .unwrap();
            child
        })
        .into_iter()
        .map(|child| child.wait_with_output().unwrap())
        .collect();
    for output in &started {
        assert!(
            output.status.success() && text(output).contains("\"add\""),
            "{}",
            text(output)
        );
    }
    let state = machine.at("home/.local/state/lychgate");
    let log = fs::read_to_string(state.join("audit.jsonl")).unwrap();
    let pins = fs::read_to_string(state.join("lychgate.lock")).unwrap();
    for name in ["files", "more"] {
        assert!(log.contains(&format!("\"upstream\":\"{name}\"")), "{log}");
        assert!(pins.contains(name), "{pins}");
    }
    assert!(
        !log.contains("\"upstream\":\"sh\"") && !pins.contains("sh-"),
        "{log}{pins}"
    );
    let verified = machine.lychgate(&["audit", "verify"]);
    assert_eq!(verified.status.code(), Some(0), "{}", text(&verified));

    let removed = machine.lychgate(&["service", "uninstall", "--yes"]);
    assert!(
        removed.status.success()
            && machine
                .calls()
                .ends_with("--user disable --now lychgate.service\n--user daemon-reload")
    );
    assert!(machine.lychgate(&["uninstall", "--yes"]).status.success());
    assert_eq!(fs::read_to_string(&file).unwrap(), servers.to_string());
    assert!(!machine.at("home/.config/lychgate/lychgate.toml").exists());
}

/// A server that answers every line.
const ECHO: &str = r#"while read -r line; do printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"ran"}]}}'; done"#;
const BOMB: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{"command":":(){ :|:& };:"}}}"#;

impl Machine {
    /// Moves one server, `files`, behind the gate.
    fn install_files(&self) {
        let servers = serde_json::json!({ "mcpServers": { "files": { "command": "sh", "args": ["-c", ECHO] } } });
        fs::write(self.at("home/.cursor/mcp.json"), servers.to_string()).unwrap();
        let installed = self.lychgate(&["install", "cursor", "--yes"]);
        assert_eq!(installed.status.code(), Some(0), "{}", text(&installed));
    }

    /// Starts `files` as the client does, and sends it one call.
    fn call_files(&self, call: &str) -> Output {
        let wired: Value =
            serde_json::from_str(&fs::read_to_string(self.at("home/.cursor/mcp.json")).unwrap())
                .unwrap();
        let server = &wired["mcpServers"]["files"];
        let args = server["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap());
        let mut child = self
            .command(server["command"].as_str().unwrap())
            .args(args)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        // The write fails if the process ended at once.
        drop(
            child
                .stdin
                .take()
                .unwrap()
                .write_all(format!("{call}\n").as_bytes()),
        );
        child.wait_with_output().unwrap()
    }
}

#[test]
fn a_false_alarm_of_an_installed_server_is_suppressed_in_one_step() {
    let machine = Machine::new();
    machine.install_files();
    let refused = text(&machine.call_files(BOMB));
    assert_text(&refused, &[r#""isError":true"#], &["\"ran\""]);
    let (_, id) = refused.split_once("lychgate/audit\":\"").unwrap();
    let (id, _) = id.split_once('"').unwrap();
    let suppressed = machine.lychgate(&["suppress", id, "--reason", "Ada: a joke", "--yes"]);
    let told = text(&suppressed);
    assert!(
        suppressed.status.success() && told.contains("With this the message passes."),
        "{told}"
    );
    assert!(told.contains("at the next start of `files`"), "{told}");
    let passed = text(&machine.call_files(BOMB));
    assert_text(&passed, &["\"ran\""], &["isError"]);
    let other = text(&machine.call_files(&BOMB.replace(":(){ :|:& };:", "rm -rf /")));
    assert!(
        other.contains(r#""isError":true"#),
        "only that call: {other}"
    );

    // A gate with the same config starts, and `check` reports the name of the server.
    let config = machine.at("home/.config/lychgate/lychgate.toml");
    let upstream = "\n[upstream.w]\nhttp = { url = \"http://127.0.0.1:1/mcp\" }\n";
    fs::write(&config, fs::read_to_string(&config).unwrap() + upstream).unwrap();
    let checked = machine.lychgate(&["check"]);
    assert!(checked.status.success(), "{}", text(&checked));
    assert_contains(
        &text(&checked),
        &["warning: ", "no `[upstream.files]` exists"],
    );
}

#[test]
fn an_installed_server_follows_the_config_of_its_user_and_of_no_project() {
    let machine = Machine::new();
    machine.install_files();
    let observe = "[policy.default]\nmode = \"observe\"\n";
    fs::write(machine.at("home/lychgate.toml"), observe).unwrap();
    let refused = text(&machine.call_files(BOMB));
    assert!(
        refused.contains(r#""isError":true"#),
        "a project's file switches nothing off: {refused}"
    );
    // A table is not written to a file where it would have no effect, either.
    let (_, id) = refused.split_once("lychgate/audit\":\"").unwrap();
    let (id, _) = id.split_once('"').unwrap();
    let log = machine
        .at("home/.local/state/lychgate/audit.jsonl")
        .display()
        .to_string();
    let told = machine.lychgate(&["suppress", id, "--reason", "r", "--yes", "--log", &log]);
    assert_eq!(told.status.code(), Some(2), "{}", text(&told));
    assert_contains(&text(&told), &["which does not read `lychgate.toml`"]);
    assert_eq!(
        fs::read_to_string(machine.at("home/lychgate.toml")).unwrap(),
        observe
    );

    let config = machine.at("home/.config/lychgate/lychgate.toml");
    let own = fs::read_to_string(&config).unwrap();
    // Missing files and secrets of the listener, an agent or an upstream do not affect a wrapped
    // server.
    let missing = "[listen]\ntls = { cert = \"none.pem\", key = \"none.pem\" }\n[[agent]]\nname = \"a\"\ntoken = { env = \"NONE\" }\n\
                   [upstream.w.http]\nurl = \"http://127.0.0.1:1/mcp\"\nbearer = { env = \"NONE\" }\n";
    fs::write(&config, format!("{own}\n{observe}{missing}")).unwrap();
    let passed = text(&machine.call_files(BOMB));
    assert!(passed.contains("\"ran\""), "{passed}");
    fs::write(&config, format!("{own}\ncolour = 1\n")).unwrap();
    let faulty = machine.call_files(BOMB);
    assert_eq!(faulty.status.code(), Some(2), "{}", text(&faulty));
    assert_text(&text(&faulty), &["unknown key `colour`"], &["\"ran\""]);
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_is_done_without_a_terminal_or_a_yes() {
    let machine = Machine::new();
    let config = machine.at("home/lychgate.toml");
    fs::write(&config, "[upstream.w]\nhttp = { url = \"http://127.0.0.1:1/mcp\" }\n[listen]\naddress = \"127.0.0.1:1\"\n")
        .unwrap();
    let servers = r#"{"mcpServers":{"c":{"command":"c"}}}"#;
    fs::write(machine.at("home/.cursor/mcp.json"), servers).unwrap();
    for verb in [&["service", "install"][..], &["install", "cursor"]] {
        let output = machine.lychgate(verb);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert_contains(&text(&output), &["not a terminal; pass --yes to apply\n"]);
    }
    assert_eq!(machine.calls(), "");
    assert!(!machine.at("home/.config").exists());
    assert_eq!(
        fs::read_to_string(machine.at("home/.cursor/mcp.json")).unwrap(),
        servers
    );
}

#[test]
fn a_name_that_is_not_valid_is_refused() {
    let output = Machine::new().lychgate(&["wrap", "--name", "Not a name", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert_contains(&text(&output), &["use up to 64 of a-z, 0-9"]);
}

#[test]
fn the_help_of_run_documents_the_variable_of_the_log() {
    let help = text(&Machine::new().lychgate(&["run", "--help"]));
    assert_contains(
        &help,
        &["LYCHGATE_LOG sets the log filter", "warn,lychgate=debug"],
    );
}

#[test]
fn the_files_that_the_config_names_are_protected_wherever_they_are() {
    let machine = Machine::new();
    let own = machine.at("home/own");
    fs::create_dir_all(own.join("rules")).unwrap();
    fs::write(
        own.join("gate.toml"),
        "[audit]\nfile = \"log.jsonl\"\n[quarantine]\nfolder = \"kept\"\n[policy.default]\nrules = [\"builtin\", \"rules\"]\n",
    )
    .unwrap();
    let call = |tool: &str, arguments: Value| {
        let message = serde_json::json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": arguments },
        });
        let mut wrap = machine.command(&machine.at("bin/lychgate").display().to_string());
        wrap.args(["wrap", "--config"])
            .arg(own.join("gate.toml"))
            .args(["--", "sh", "-c", ECHO]);
        let mut child = wrap.stdin(Stdio::piped()).spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(format!("{message}\n").as_bytes())
            .unwrap();
        text(&child.wait_with_output().unwrap())
    };
    let at = |name: &str| own.join(name).display().to_string();
    for (tool, arguments, passes) in [
        (
            "write_file",
            serde_json::json!({ "path": at("gate.toml"), "content": "x" }),
            false,
        ),
        (
            "write_file",
            serde_json::json!({ "path": at("rules/mine.toml"), "content": "x" }),
            false,
        ),
        (
            "write_file",
            serde_json::json!({ "path": at("log.jsonl"), "content": "x" }),
            false,
        ),
        (
            "write_file",
            serde_json::json!({ "path": at("other.toml"), "content": "x" }),
            true,
        ),
        (
            "read_file",
            serde_json::json!({ "path": at("gate.toml") }),
            true,
        ),
        (
            "read_file",
            serde_json::json!({ "path": at("kept/key") }),
            false,
        ),
        (
            "run_command",
            serde_json::json!({ "command": format!("echo x > {}", at("gate.toml")) }),
            false,
        ),
        (
            "run_command",
            serde_json::json!({ "command": format!("cat {}", at("kept/key")) }),
            false,
        ),
        (
            "run_command",
            serde_json::json!({ "command": format!("cat {}", at("gate.toml")) }),
            true,
        ),
    ] {
        let told = call(tool, arguments.clone());
        assert_eq!(
            told.contains("\"ran\""),
            passes,
            "{tool} {arguments}: {told}"
        );
    }
}
