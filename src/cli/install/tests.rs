//! Moves the servers of every client's file, and restores them.

use serde_json::json;

use super::samples::{Sample, samples};
use super::*;

/// A machine without any files, and a user who answers.
pub(super) struct Machine(pub(super) tempfile::TempDir);

pub(super) struct Told {
    pub(super) code: u8,
    pub(super) out: String,
    pub(super) err: String,
}

impl Machine {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn home(&self) -> PathBuf {
        self.0.path().join("home")
    }

    pub(super) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(super) fn with(
        &self,
        answer: bool,
        work: impl FnOnce(&mut InstallContext<'_>) -> io::Result<u8>,
    ) -> Told {
        let mut out = vec![];
        let mut err = vec![];
        let home = self.home();
        let config = home.join(".config");
        let codex = home.join(".codex");
        let project = self.0.path().join("project");
        let places = Places {
            config,
            codex,
            project,
            is_mac: false,
            home,
        };
        let mut yes = move |_: &mut dyn Write| Ok(answer);
        let mut desk = InstallContext {
            places,
            state: self.0.path().join("state"),
            state_root: self.0.path().to_owned(),
            gate_config: self.gate(),
            user_config: self.gate(),
            program: "/opt/lychgate".to_owned(),
            unserved: None,
            out: &mut out,
            err: &mut err,
            confirm: &mut yes,
        };
        let code = work(&mut desk);
        let err = String::from_utf8(err).unwrap();
        let code = code.unwrap_or_else(|error| panic!("{error}\n{err}"));
        Told {
            code,
            out: String::from_utf8(out).unwrap(),
            err,
        }
    }

    pub(super) fn install(&self, client: Client) -> Told {
        self.with(true, |desk| desk.install(&install_args(Some(client))))
    }

    pub(super) fn uninstall(&self, client: Option<Client>) -> Told {
        self.with(true, |desk| desk.uninstall(&uninstall_args(client)))
    }

    /// Returns how many files lychgate keeps about its installations.
    pub(super) fn kept(&self) -> usize {
        fs::read_dir(self.0.path().join("state")).unwrap().count()
    }

    /// Replaces `WRAP(NAME)` in a text by what `install` writes before a command.
    pub(super) fn expected(&self, text: &str) -> String {
        let Some((before, rest)) = text.split_once("WRAP(") else {
            return text.to_owned();
        };
        let (name, rest) = rest.split_once(')').unwrap();
        let audit = self.0.path().join("audit.jsonl");
        format!(
            r#"{before}"wrap", "--name", "{name}", "--audit", "{}", "--",{rest}"#,
            audit.display()
        )
    }

    pub(super) fn gate(&self) -> PathBuf {
        self.home().join(".config/lychgate/lychgate.toml")
    }
}

pub(super) fn install_args(client: Option<Client>) -> InstallArgs {
    InstallArgs {
        client,
        servers: vec![],
        file: None,
        config: None,
        policy: None,
        audit: None,
        dry_run: false,
        yes: true,
        service: false,
        json: false,
    }
}

pub(super) fn uninstall_args(client: Option<Client>) -> UninstallArgs {
    UninstallArgs {
        client,
        file: None,
        forget: false,
        dry_run: false,
        yes: true,
    }
}

/// Reads a file of JSON.
fn read_json(file: &std::path::Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn every_client_goes_there_and_back_byte_for_byte() {
    for sample in samples() {
        let client = sample.client();
        let text = &sample.text;
        let machine = Machine::new();
        let file = machine.write(&sample.path, text);
        let output = machine.install(client);
        let now = fs::read_to_string(&file).unwrap();
        assert_eq!(output.code, 0, "{client:?}: {}", output.err);
        for wanted in sample.contains.iter().map(|part| machine.expected(part)) {
            assert!(now.contains(&wanted), "{client:?}: {wanted}\n{now}");
        }
        assert!(
            !output.out.contains("hunter2") && !output.err.contains("hunter2"),
            "{}",
            output.out
        );
        assert_contains!(output.out, "+", &*file.to_string_lossy());
        // A server that was moved already is not moved again.
        let again = machine.install(client).err;
        assert_eq!(
            again.trim(),
            format!(
                "nothing to move: the servers of {} are already behind the gate",
                client.name()
            )
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), now);
        assert_eq!(machine.uninstall(Some(client)).code, 0);
        assert_eq!(fs::read_to_string(&file).unwrap(), *text, "{client:?}");
        assert!(!machine.gate().exists(), "{client:?}");
        assert_eq!(machine.kept(), 0);
    }
}

#[test]
fn servers_over_http_go_to_the_gates_config_with_their_headers() {
    let machine = Machine::new();
    let sample = Sample::of(Client::ClaudeCode);
    machine.write(&sample.path, &sample.text);
    machine.write(".config/lychgate/lychgate.toml", "# mine\n");
    let output = machine.install(Client::ClaudeCode);
    let gate = fs::read_to_string(machine.gate()).unwrap();
    assert!(
        gate.starts_with("# mine\n\n[upstream.docs]\nhttp = { url = \"https://docs.example/mcp\""),
        "{gate}"
    );
    assert!(
        !gate.contains("hunter2") && !output.out.contains("hunter2"),
        "{gate}"
    );
    let secret = machine
        .home()
        .join(".config/lychgate/secrets/docs-authorization");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "Bearer hunter2\n");
    assert!(gate.contains(&*secret.to_string_lossy()));
    assert_contains!(output.err, "lychgate run --config");
    machine.uninstall(None);
    assert_eq!(fs::read_to_string(machine.gate()).unwrap(), "# mine\n");
    assert!(!secret.exists());
}

#[test]
fn two_clients_of_one_server_share_it_until_both_are_gone() {
    let machine = Machine::new();
    let text = r#"{"mcpServers":{"w":{"url":"https://w.example/mcp"}}}"#;
    let [cursor, gemini] =
        [".cursor/mcp.json", ".gemini/settings.json"].map(|path| machine.write(path, text));
    machine.install(Client::Cursor);
    machine.install(Client::GeminiCli);
    let gate = fs::read_to_string(machine.gate()).unwrap();
    assert_eq!(gate.matches("[upstream.").count(), 1);
    machine.uninstall(Some(Client::Cursor));
    assert_eq!(fs::read_to_string(machine.gate()).unwrap(), gate);
    assert!(fs::read_to_string(&gemini).unwrap().contains("8800/mcp/w"));
    machine.uninstall(Some(Client::GeminiCli));
    assert_eq!(fs::read_to_string(&cursor).unwrap(), text);
    assert_eq!(fs::read_to_string(&gemini).unwrap(), text);
    assert!(
        !machine.gate().exists(),
        "whoever is the last takes it along"
    );
    // Of three clients, the last one removes it, even if two are uninstalled at once.
    let codex = machine.write(
        ".codex/config.toml",
        "[mcp_servers.w]\nurl = \"https://w.example/mcp\"\n",
    );
    for client in [Client::Cursor, Client::GeminiCli, Client::Codex] {
        machine.install(client);
    }
    machine.uninstall(Some(Client::Cursor));
    assert_contains!(fs::read_to_string(machine.gate()).unwrap(), "[upstream.w]");
    machine.uninstall(None);
    assert!(!machine.gate().exists() && !fs::read_to_string(&codex).unwrap().contains("8800"));
}

#[test]
fn what_the_client_changed_since_stays_changed() {
    let machine = Machine::new();
    let Sample { path, text, .. } = Sample::of(Client::ClaudeCode);
    let file = machine.write(&path, &text);
    machine.install(Client::ClaudeCode);
    // The client counts its starts, rewrites the file and has a new server; one of the moved
    // servers was edited by hand.
    let mut now = read_json(&file);
    now["numStartups"] = 4.into();
    now["mcpServers"]["new"] = json!({ "command": "n" });
    now["projects"]["/home/me/p"]["mcpServers"]["db"]["args"] = json!(["mine"]);
    fs::write(&file, serde_json::to_string_pretty(&now).unwrap()).unwrap();
    // A second install moves the new server too, and keeps the earlier ones.
    let output = machine.install(Client::ClaudeCode);
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .contains("\"--\", \"n\"]"),
        "{}",
        output.out
    );
    let output = machine.uninstall(None);
    let back = read_json(&file);
    let was: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(back["numStartups"], 4);
    assert_eq!(back["mcpServers"]["files"], was["mcpServers"]["files"]);
    assert_eq!(back["mcpServers"]["docs"], was["mcpServers"]["docs"]);
    assert_eq!(back["mcpServers"]["new"], json!({ "command": "n" }));
    assert_eq!(
        back["projects"]["/home/me/p"]["mcpServers"]["db"]["args"],
        json!(["mine"]),
        "{}",
        output.err
    );
}

#[test]
fn an_uninstall_makes_no_file_where_there_is_none_any_more() {
    let machine = Machine::new();
    let sample = Sample::of(Client::ClaudeCode);
    let file = machine.write(&sample.path, &sample.text);
    machine.install(Client::ClaudeCode);
    fs::remove_file(&file).unwrap();
    let output = machine.uninstall(None);
    assert_eq!(output.code, 0, "{}", output.err);
    assert_contains!(output.err, "no longer exists and is not restored");
    assert!(!file.exists() && !machine.gate().exists());
    assert_eq!(machine.kept(), 0);
}

#[test]
fn a_file_is_put_back_by_its_name_alone() {
    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: UninstallArgs,
    }
    let machine = Machine::new();
    let text = r#"{"mcpServers":{"b":{"command":"b"}}}"#;
    let [one, other] =
        [".cursor/mcp.json", ".gemini/settings.json"].map(|path| machine.write(path, text));
    machine.install(Client::Cursor);
    machine.install(Client::GeminiCli);
    let args = <Line as clap::Parser>::try_parse_from(["x", "--file", one.to_str().unwrap()])
        .ok()
        .unwrap()
        .args;
    assert_eq!(machine.with(true, |desk| desk.uninstall(&args)).code, 0);
    assert_eq!(fs::read_to_string(&one).unwrap(), text);
    assert!(fs::read_to_string(&other).unwrap().contains("wrap"));
}

#[test]
fn what_was_changed_since_can_be_forgotten() {
    let machine = Machine::new();
    let text = r#"{"mcpServers":{"a":{"url":"https://a/mcp","headers":{"X-Key":"k"}},"b":{"url":"https://b/mcp","headers":{"X-Key":"k"}}}}"#;
    let file = machine.write(".cursor/mcp.json", text);
    machine.install(Client::Cursor);
    let now = fs::read_to_string(&file)
        .unwrap()
        .replace("mcp/a\"", "mcp/a\",\"timeout\":9");
    fs::write(&file, &now).unwrap();
    for _ in 0..2 {
        let output = machine.uninstall(None);
        assert_eq!(output.code, 1, "{}", output.err);
        assert!(output.err.contains("a` of"), "{}", output.err);
        assert!(!output.err.contains("b` of"), "{}", output.err);
        let (_, kept) = output.err.split_once("backup: ").unwrap();
        let kept = kept.lines().next().unwrap();
        assert_eq!(fs::read_to_string(kept).unwrap(), text);
        assert_contains!(output.err, "uninstall --forget --file /");
        assert_lacks!(output.err, ": restored");
    }
    let left = fs::read_to_string(&file).unwrap();
    assert_contains!(left, "https://b/mcp", "8800/mcp/a");
    let args = UninstallArgs {
        forget: true,
        ..uninstall_args(None)
    };
    let output = machine.with(true, |desk| desk.uninstall(&args));
    assert_eq!(output.code, 0, "{}", output.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), left, "{}", output.err);
    let gate = fs::read_to_string(machine.gate()).unwrap();
    assert!(
        gate.contains("[upstream.a]") && !gate.contains("[upstream.b]"),
        "what the file leads to stays: {gate}"
    );
    let secrets = machine.gate().with_file_name("secrets");
    assert!(secrets.join("a-x-key").exists() && !secrets.join("b-x-key").exists());
    assert_eq!(
        machine.uninstall(None).err.trim(),
        "lychgate is not installed there"
    );
}

#[test]
fn a_changed_file_of_codex_gets_its_servers_back() {
    let machine = Machine::new();
    let Sample { path, text, .. } = Sample::of(Client::Codex);
    let file = machine.write(&path, &text);
    machine.install(Client::Codex);
    let now = fs::read_to_string(&file)
        .unwrap()
        .replace("model = \"o\"", "model = \"p\"");
    fs::write(&file, now).unwrap();
    let output = machine.uninstall(Some(Client::Codex));
    assert_eq!(output.code, 0, "{}", output.err);
    let root: toml_edit::DocumentMut = fs::read_to_string(&file).unwrap().parse().unwrap();
    let was: toml_edit::DocumentMut = text
        .replace("model = \"o\"", "model = \"p\"")
        .parse()
        .unwrap();
    assert_eq!(root.to_string(), was.to_string());
}

#[test]
fn nothing_is_written_without_a_yes_and_what_cannot_be_moved_is_told() {
    let machine = Machine::new();
    let text = r#"{"servers":{"a":{"url":"https://a/mcp","headers":{"X":"${input:t}"}},"b":{"command":"b"},"c":7,"d":{"url":"ws://d"}}}"#;
    let file = machine.write(".config/Code/User/mcp.json", text);
    let output = machine.with(false, |desk| {
        desk.install(&install_args(Some(Client::VsCode)))
    });
    assert_eq!(output.code, 1);
    assert_eq!(fs::read_to_string(&file).unwrap().as_str(), text);
    assert!(output.out.contains("+"), "{}", output.out);
    assert_contains!(output.err, "`a`", "`c`", "`d`");
    let dry = InstallArgs {
        dry_run: true,
        ..install_args(Some(Client::VsCode))
    };
    assert_eq!(machine.with(true, |desk| desk.install(&dry)).code, 1);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    assert_eq!(machine.uninstall(None).code, 1);
}

#[test]
fn a_link_stays_a_link_and_a_mode_a_mode() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let real = machine.write(
        "dotfiles/mcp.json",
        r#"{"mcpServers":{"b":{"command":"b"}}}"#,
    );
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let link = machine.home().join(".cursor/mcp.json");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert_eq!(machine.install(Client::Cursor).code, 0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("wrap"));
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone() {
    let machine = Machine::new();
    for text in [
        "{ not json",
        "{\"mcpServers\": {'a': 1}}",
        "[]",
        r#"{"mcpServers": ["a"]}"#,
    ] {
        let file = machine.write(".cursor/mcp.json", text);
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            machine.install(Client::Cursor)
        }))
        .is_err();
        assert!(failed, "{text}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn a_file_is_moved_once_where_the_home_folder_is_the_project() {
    for client in [Client::Codex, Client::Cursor] {
        let Sample { path, text, .. } = Sample::of(client);
        let machine = Machine::new();
        let file = machine.write(&path, &text);
        std::os::unix::fs::symlink(machine.home(), machine.0.path().join("project")).unwrap();
        let output = machine.install(client);
        let shown = output
            .out
            .lines()
            .filter(|line| line.starts_with("--- ") && line.ends_with(&path))
            .count();
        assert_eq!((output.code, shown), (0, 1), "{}{}", output.out, output.err);
        assert!(fs::read_to_string(&file).unwrap().contains("/opt/lychgate"));
        let list = machine
            .with(true, |desk| desk.install(&install_args(None)))
            .out;
        assert_eq!(
            list.lines()
                .filter(|line| line.starts_with(&client.name()))
                .count(),
            1,
            "{list}"
        );
        assert_eq!(machine.uninstall(None).code, 0);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn an_uninstall_that_fails_half_way_can_be_tried_again() {
    let machine = Machine::new();
    let Sample { path, text, .. } = Sample::of(Client::ClaudeCode);
    let file = machine.write(&path, &text);
    assert_eq!(machine.install(Client::ClaudeCode).code, 0);
    let (gate, aside) = (machine.gate(), machine.gate().with_extension("aside"));
    fs::rename(&gate, &aside).unwrap();
    fs::create_dir(&gate).unwrap();
    machine.with(true, |desk| {
        let failed = desk.uninstall(&uninstall_args(None));
        assert!(failed.unwrap_err().to_string().contains("lychgate.toml"));
        Ok(0)
    });
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        text,
        "what could be put back was"
    );
    fs::remove_dir(&gate).unwrap();
    fs::rename(&aside, &gate).unwrap();
    let output = machine.uninstall(None);
    assert_eq!(output.code, 0, "{}", output.err);
    assert!(!output.err.contains("changed since"), "{}", output.err);
    assert!(!gate.exists() && machine.kept() == 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}
