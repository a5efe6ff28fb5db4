//! Tests the gate's config after an install: names, secrets, and the report about it.

use std::io::Write as _;
use std::net::TcpListener;

use super::client::Client;
use super::tests::{Machine, Told, install_args};
use super::*;
use crate::config;

fn install_with(machine: &Machine, args: &InstallArgs) -> Told {
    machine.with(true, |desk| desk.install(args))
}

/// Returns the values of `--name` in a client's file.
fn names(file: &std::path::Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap();
    let after = text.split(r#""--name", ""#).skip(1);
    after
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_config_has_an_audit_log_pins_and_an_admin_port() {
    let machine = Machine::new();
    let text = r#"{"mcpServers":{"w":{"url":"https://w.example/mcp"},"c":{"command":"c"}}}"#;
    let file = machine.write(".cursor/mcp.json", text);
    let output = machine.install(Client::Cursor);
    let config = config::load(&machine.gate()).unwrap();
    let audit = machine.0.path().join("audit.jsonl");
    assert_eq!(config.audit.to, Some(config::AuditTo::File(audit.clone())));
    assert_eq!(
        config.pins.file,
        Some(machine.0.path().join("lychgate.lock"))
    );
    assert_eq!(
        config.admin.address,
        Some("127.0.0.1:8801".parse().unwrap())
    );
    assert!(config.upstreams.contains_key("w"));
    assert_contains!(output.out, "+[audit]", "+[pins]");
    // The wrapped server writes to the same log.
    assert_contains!(
        fs::read_to_string(&file).unwrap(),
        &format!(r#""--audit", "{}""#, audit.display())
    );
    machine.uninstall(None);
    assert!(!machine.gate().exists());
}

#[test]
fn a_config_of_ones_own_is_kept_and_its_audit_log_used() {
    let machine = Machine::new();
    let own = "[audit]\nfile = \"/var/log/gate.jsonl\"\n";
    machine.write(".config/lychgate/lychgate.toml", own);
    let file = machine.write(
        ".cursor/mcp.json",
        r#"{"mcpServers":{"c":{"command":"c"}}}"#,
    );
    assert_eq!(machine.install(Client::Cursor).code, 0);
    assert_contains!(
        fs::read_to_string(&file).unwrap(),
        r#""--audit", "/var/log/gate.jsonl""#
    );
    assert_eq!(fs::read_to_string(machine.gate()).unwrap(), own);
    machine.uninstall(None);
    assert_eq!(fs::read_to_string(machine.gate()).unwrap(), own);
}

#[test]
fn a_config_that_was_extended_by_hand_stays() {
    let machine = Machine::new();
    machine.write(
        ".cursor/mcp.json",
        r#"{"mcpServers":{"w":{"url":"https://w.example/mcp"}}}"#,
    );
    machine.install(Client::Cursor);
    let extended = format!(
        "{}\n[policy.default]\nmode = \"observe\"\n",
        fs::read_to_string(machine.gate()).unwrap()
    );
    fs::write(machine.gate(), extended).unwrap();
    machine.uninstall(None);
    let left = fs::read_to_string(machine.gate()).unwrap();
    assert_contains!(left, "[audit]", "observe");
    assert_lacks!(left, "[upstream");
}

#[test]
fn servers_of_one_name_in_two_projects_have_two_names() {
    let machine = Machine::new();
    let text = |command: &str| {
        format!(
            r#"{{"mcpServers":{{"DB":{{"command":"{command}"}},"w":{{"url":"https://{command}/mcp"}}}}}}"#
        )
    };
    let of_user = machine.write(".cursor/mcp.json", &text("u"));
    let files = ["one/web", "one/shop", "two/web"].map(|project| {
        let file = machine.write(
            &format!("../{project}/.cursor/mcp.json"),
            &text(&project.replace('/', "-")),
        );
        fs::canonicalize(file).unwrap()
    });
    machine.install(Client::Cursor);
    let install = |file: &PathBuf| {
        let args = InstallArgs {
            file: Some(file.clone()),
            ..install_args(Some(Client::Cursor))
        };
        assert_eq!(install_with(&machine, &args).code, 0);
        names(file)
    };
    let first: Vec<_> = files.iter().map(install).collect();
    assert_eq!(names(&of_user), ["db"]);
    assert_eq!(&*first[0], &["db-web".to_owned()][..]);
    assert_eq!(&*first[1], &["db-shop".to_owned()][..]);
    // The folder of a third project has the same name as that of the first.
    assert_eq!(first[2], ["db-web-cursor"]);
    // The names remain the same, regardless of which file is installed again first.
    let again: Vec<_> = files.iter().rev().map(install).collect();
    assert_eq!(again, first.iter().rev().cloned().collect::<Vec<_>>());
    let gate = fs::read_to_string(machine.gate()).unwrap();
    for name in ["w", "w-web", "w-shop", "w-web-cursor"] {
        assert!(
            gate.contains(&format!("[upstream.{name}]\n")),
            "{name}: {gate}"
        );
    }
    // A server of another client with the same name is a different server.
    let gemini = machine.write(
        ".gemini/settings.json",
        r#"{"mcpServers":{"db":{"command":"other"}}}"#,
    );
    machine.install(Client::GeminiCli);
    assert_eq!(names(&gemini), ["db-gemini-cli"]);
}

#[test]
fn names_fit_the_gate_however_long_or_odd() {
    let machine = Machine::new();
    let long =
        "Ä very long name of a server, longer than any that a gate takes, in capitals AND spaces";
    let project = "a-folder-with-a-name-that-is-longer-than-most-of-them";
    let text = format!(
        r#"{{"mcpServers":{{"{long}":{{"command":"c"}},"{long}!":{{"command":"d"}},"{long}?":{{"command":"e"}}}}}}"#
    );
    let file = machine.write(&format!("../{project}/.mcp.json"), &text);
    let args = InstallArgs {
        file: Some(file.clone()),
        ..install_args(Some(Client::ClaudeCode))
    };
    assert_eq!(install_with(&machine, &args).code, 0);
    let names = names(&file);
    assert!(names.iter().all(|name| config::is_name(name)), "{names:?}");
    assert_eq!(
        names
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        3,
        "{names:?}"
    );
}

#[test]
fn a_file_of_somebody_elses_secret_is_not_overwritten() {
    let machine = Machine::new();
    let text = r#"{"mcpServers":{"w":{"url":"https://w/mcp","headers":{"Authorization":"Bearer hunter2"}}}}"#;
    let file = machine.write(".cursor/mcp.json", text);
    let theirs = machine.write(".config/lychgate/secrets/w-authorization", "theirs\n");
    for _ in 0..2 {
        machine.install(Client::Cursor);
        let ours = theirs.with_file_name("w-authorization-2");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs\n");
        assert_eq!(fs::read_to_string(&ours).unwrap(), "Bearer hunter2\n");
        assert_contains!(
            fs::read_to_string(machine.gate()).unwrap(),
            "secrets/w-authorization-2\""
        );
        assert!(!theirs.with_file_name("w-authorization-3").exists());
        // The client requests it again.
        fs::write(&file, text).unwrap();
    }
    machine.install(Client::Cursor);
    machine.uninstall(None);
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs\n");
    assert!(!theirs.with_file_name("w-authorization-2").exists());
}

#[test]
fn a_byte_order_mark_stays() {
    for (client, path, text) in [
        (
            Client::Cursor,
            ".cursor/mcp.json",
            "\u{feff}{\"mcpServers\":{\"b\":{\"command\":\"b\"}}}\r\n",
        ),
        (
            Client::Codex,
            ".codex/config.toml",
            "\u{feff}[mcp_servers.b]\ncommand = \"b\"\n",
        ),
    ] {
        let machine = Machine::new();
        let file = machine.write(path, text);
        assert_eq!(machine.install(client).code, 0);
        let now = fs::read_to_string(&file).unwrap();
        assert!(
            now.starts_with('\u{feff}') && now.matches('\u{feff}').count() == 1,
            "{now}"
        );
        assert!(now.contains(r#""--name", "b""#), "{now}");
        let mut backups = fs::read_dir(machine.0.path().join("state"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let backup = backups
            .find(|path| path.extension().is_some_and(|end| end == "before"))
            .unwrap();
        assert_eq!(fs::read_to_string(backup).unwrap(), text);
        assert_eq!(machine.uninstall(None).code, 0);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn codex_is_found_where_its_variable_says() {
    let machine = Machine::new();
    let text = "[mcp_servers.b]\ncommand = \"b\"\n";
    let usual = machine.write(".codex/config.toml", text);
    let moved = machine.write("elsewhere/config.toml", text);
    machine.with(true, |desk| {
        desk.places.codex = moved.parent().unwrap().to_owned();
        desk.install(&install_args(Some(Client::Codex)))
    });
    assert_eq!(fs::read_to_string(&usual).unwrap(), text);
    assert!(fs::read_to_string(&moved).unwrap().contains("wrap"));
}

#[test]
fn opencode_is_read_in_both_of_its_versions() {
    let machine = Machine::new();
    let text = r#"{"mcp":{"servers":{"a":{"type":"local","command":["npx","a"],"disabled":true},
"b":{"type":"remote","url":"https://b/mcp","headers":{"X-Key":"{file:~/key}"}},"c":{"type":"local","command":[]}}}}"#;
    let file = machine.write("../project/opencode.json", text);
    let output = machine.install(Client::OpenCode);
    let now = fs::read_to_string(&file).unwrap();
    assert_contains!(
        now,
        &machine.expected(r#"["/opt/lychgate", WRAP(a-project) "npx","a"]"#)
    );
    assert_contains!(output.err, "`b` of", "values that only the client has");
    assert!(output.err.contains("`c` of"), "{}", output.err);
    machine.uninstall(None);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    // In the first version, a server may be called `servers`.
    fs::write(
        &file,
        r#"{"mcp":{"servers":{"type":"local","command":["npx"]}}}"#,
    )
    .unwrap();
    machine.install(Client::OpenCode);
    assert_eq!(names(&file), ["servers-project"]);
}

#[test]
fn what_runs_and_what_does_not_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let admin = listener.local_addr().unwrap();
    let machine = Machine::new();
    machine.write(
        ".config/lychgate/lychgate.toml",
        &format!("[admin]\naddress = \"{admin}\"\n"),
    );
    let text = r#"{"mcpServers":{"docs":{"url":"https://d/mcp"},"files":{"command":"f"}}}"#;
    let file = machine.write(".cursor/mcp.json", text);
    let gate = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(&stream), &mut head).unwrap();
        assert!(head.starts_with("GET /healthz"), "{head}");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nalive\n")
            .unwrap();
    });
    let output = machine.install(Client::Cursor);
    gate.join().unwrap();
    assert!(
        output
            .err
            .contains("docs                 http   http://127.0.0.1:8800/mcp/docs\n"),
        "{}",
        output.err
    );
    assert_contains!(
        output.err,
        "files                stdio  starts with the client; `files` in the audit log\n"
    );
    assert_contains!(output.err, "The gate is running at 127.0.0.1:8800");
    // Now nothing listens there.
    machine.uninstall(None);
    fs::write(&file, text).unwrap();
    let mut unserved = None;
    let output = machine.with(true, |desk| {
        let code = desk.install(&install_args(Some(Client::Cursor)));
        unserved = desk.unserved.take();
        code
    });
    assert_contains!(output.err, "The gate is not running");
    assert_contains!(output.err, "lychgate service install --config");
    assert_eq!(unserved, Some(machine.gate()));
}

#[test]
fn a_service_is_offered_on_a_terminal() {
    let wanted = |args: InstallArgs, answer: Option<bool>| {
        let mut asked = 0;
        let mut ask = |question: &str, _: &mut dyn std::io::Write| {
            assert!(question.starts_with("Run the gate as a service of this user now?"));
            asked += 1;
            Ok(answer == Some(true))
        };
        let ask: Option<&mut super::Ask<'_>> = if answer.is_some() {
            Some(&mut ask)
        } else {
            None
        };
        let wanted = super::is_service_wanted(&args, ask, &mut Vec::new()).unwrap();
        (wanted, asked)
    };
    let args = || InstallArgs {
        yes: false,
        ..install_args(Some(Client::Cursor))
    };
    assert_eq!(wanted(args(), Some(true)), (true, 1));
    assert_eq!(wanted(args(), Some(false)), (false, 1));
    assert_eq!(wanted(args(), None), (false, 0), "not a terminal");
    assert_eq!(
        wanted(
            InstallArgs {
                yes: true,
                ..args()
            },
            Some(true)
        ),
        (false, 0),
        "--yes does not accept it"
    );
    assert_eq!(
        wanted(
            InstallArgs {
                service: true,
                yes: true,
                ..args()
            },
            None
        ),
        (true, 0)
    );
}
