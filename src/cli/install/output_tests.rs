//! Tests the output of `install`.

use super::tests::{Machine, install_args};
use super::*;

#[test]
fn why_there_is_nothing_to_move_is_told_apart() {
    let machine = Machine::new();
    let cursor = |args: InstallArgs| machine.with(true, |desk| desk.install(&args));
    let plain = || install_args(Some(Client::Cursor));
    let output = cursor(plain());
    assert!(
        output.code == 0
            && output.err.contains("has no config")
            && output.err.contains(".cursor/mcp.json"),
        "{}",
        output.err
    );
    let file = machine.write(".cursor/mcp.json", r#"{"mcpServers":{}}"#);
    let output = cursor(plain());
    assert!(
        output.code == 0 && output.err.contains("no servers in"),
        "{}",
        output.err
    );
    let text = r#"{"mcpServers":{"b":{"command":"b"},"c":{"command":"c"}}}"#;
    fs::write(&file, text).unwrap();
    let output = cursor(InstallArgs {
        servers: vec!["b".into(), "nope".into()],
        ..plain()
    });
    assert!(
        output.code == 2
            && output
                .err
                .contains("no server `nope`\n  hint: it has `b`, `c`"),
        "{}",
        output.err
    );
    let output = cursor(InstallArgs {
        file: Some("nope.json".into()),
        ..plain()
    });
    assert!(
        output.code == 2
            && output
                .err
                .contains("`nope.json` does not exist\n  hint: there is `/"),
        "{}",
        output.err
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(
        cursor(InstallArgs {
            servers: vec!["b".into()],
            ..plain()
        })
        .code,
        0
    );
    let now = fs::read_to_string(&file).unwrap();
    assert_contains!(now, r#""--", "b"]"#, r#"{"command":"c"}"#);
}

#[test]
fn what_the_gate_needs_to_start_is_told_at_the_end() {
    let machine = Machine::new();
    let text = r#"{"mcpServers":{"w":{"url":"https://w/mcp","headers":{"Authorization":"Bearer ${env:W_TOKEN}","X":"${W_X}"}},"v":{"url":"https://v/mcp"}}}"#;
    machine.write(".cursor/mcp.json", text);
    let output = machine.install(Client::Cursor);
    assert_eq!(
        output
            .err
            .matches("must be set in its environment: W_TOKEN, W_X\n")
            .count(),
        1,
        "{}",
        output.err
    );
    // A client that is led to the gate needs it, even if the gate's config already has the server.
    machine.write(
        ".gemini/settings.json",
        r#"{"mcpServers":{"v":{"httpUrl":"https://v/mcp"}}}"#,
    );
    let output = machine.install(Client::GeminiCli);
    assert_contains!(output.err, "need the gate: lychgate run");
    assert_lacks!(output.err, "variables");
    machine.write(".codex/config.toml", "[mcp_servers.x]\ncommand = \"x\"\n");
    let output = machine.install(Client::Codex);
    assert_contains!(output.err, "Done");
    assert_lacks!(output.err, "need the gate");
}

#[test]
fn whoever_shares_a_file_is_thought_of() {
    let command = r#"{"mcpServers":{"b":{"command":"b"}},"servers":{"b":{"command":"b"}}}"#;
    let of_project = [
        (Client::ClaudeCode, "../project/.mcp.json"),
        (Client::VsCode, "../project/.vscode/mcp.json"),
        (Client::Cursor, "../project/.cursor/mcp.json"),
    ];
    let of_user = [
        (Client::ClaudeCode, ".claude.json"),
        (Client::VsCode, ".config/Code/User/mcp.json"),
        (Client::Cursor, ".cursor/mcp.json"),
        (Client::GeminiCli, ".gemini/settings.json"),
    ];
    for (client, path) in of_project.into_iter().chain(of_user) {
        let machine = Machine::new();
        machine.write(path, command);
        let output = machine.install(client);
        let is_told = output.err.contains("warning: `")
            && output
                .err
                .contains("paths of this machine: the program `/opt/lychgate`");
        assert_eq!(output.code, 0, "{path}: {}", output.err);
        assert_eq!(is_told, path.contains("project"), "{path}: {}", output.err);
    }
    // A URL contains no path of this machine.
    let machine = Machine::new();
    machine.write(
        "../project/.mcp.json",
        r#"{"mcpServers":{"w":{"url":"https://w/mcp"}}}"#,
    );
    assert!(!machine.install(Client::ClaudeCode).err.contains("warning"));
}

#[test]
fn what_a_program_of_another_name_has_moved_is_known_again() {
    let machine = Machine::new();
    let named = |program: &str, args: InstallArgs| {
        machine.with(true, |desk| {
            desk.program = program.to_owned();
            desk.install(&args)
        })
    };
    let text = r#"{"mcpServers":{"b":{"command":"b"},"u":{"url":"https://u/mcp"}}}"#;
    let file = machine.write(".cursor/mcp.json", text);
    assert_eq!(
        named("/opt/lg-1.2", install_args(Some(Client::Cursor))).code,
        0
    );
    // Since then, the address of the gate and the program have changed, and somebody has edited the
    // entries.
    let gate = fs::read_to_string(machine.gate()).unwrap();
    fs::write(
        machine.gate(),
        format!("[listen]\naddress = \"127.0.0.1:9000\"\n{gate}"),
    )
    .unwrap();
    let now = fs::read_to_string(&file)
        .unwrap()
        .replace(r#""b"]"#, r#""b", "c"]"#)
        .replace("mcp/u\"", "mcp/u\",\"timeout\":9");
    fs::write(&file, &now).unwrap();
    for program in ["/opt/lg-1.2", "/opt/lychgate"] {
        let list = named(program, install_args(None)).out;
        assert_eq!(list.matches("behind the gate").count(), 2, "{list}");
        let output = named(program, install_args(Some(Client::Cursor)));
        assert_eq!(fs::read_to_string(&file).unwrap(), now, "{}", output.err);
        assert!(
            fs::read_to_string(machine.gate())
                .unwrap()
                .contains("[upstream.u]"),
            "{}",
            output.err
        );
    }
}

#[test]
fn the_list_shows_who_is_behind_the_gate() {
    let machine = Machine::new();
    machine.write(
        ".cursor/mcp.json",
        r#"{"mcpServers":{"b":{"command":"b"}}}"#,
    );
    machine.write(".gemini/settings.json", "{ not json");
    let list = |json| {
        machine
            .with(true, |desk| {
                desk.install(&InstallArgs {
                    json,
                    ..install_args(None)
                })
            })
            .out
    };
    assert!(
        list(false).contains("b                        stdio")
            && list(false).contains("cannot be read"),
        "{}",
        list(false)
    );
    machine.install(Client::Cursor);
    let all: serde_json::Value = serde_json::from_str(&list(true)).unwrap();
    assert_eq!(all[0]["servers"][0]["reached"], "behind the gate");
}
