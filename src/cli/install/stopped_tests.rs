//! Tests commands that are stopped with their work half done.

use std::collections::BTreeMap;

use super::client::Client;
use super::files::STEPS_LEFT;
use super::tests::{Machine, install_args, uninstall_args};
use super::*;

/// Collects all files in a folder.
fn files(folder: &std::path::Path, out: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            files(&entry.path(), out);
        } else {
            out.insert(entry.path(), fs::read_to_string(entry.path()).unwrap());
        }
    }
}

fn all(machine: &Machine) -> BTreeMap<PathBuf, String> {
    let mut out = BTreeMap::new();
    files(machine.0.path(), &mut out);
    out
}

/// Creates a machine with two files of one client, with all kinds of servers, and another client
/// that shares one of them.
fn machine() -> Machine {
    let machine = Machine::new();
    let text = |name: &str| {
        format!(
            r#"{{"mcpServers":{{"{name}":{{"command":"c"}},"w":{{"url":"https://w.example/mcp"}},
"s":{{"url":"https://{name}.example/mcp","headers":{{"Authorization":"Bearer hunter2"}}}}}}}}"#
        )
    };
    machine.write(".cursor/mcp.json", &text("a"));
    machine.write("../project/.cursor/mcp.json", &text("b"));
    machine.write(
        ".codex/config.toml",
        "[mcp_servers.w]\nurl = \"https://w.example/mcp\"\n[mcp_servers.x]\ncommand = \"x\"\n",
    );
    machine.write(".config/lychgate/lychgate.toml", "# mine\n");
    machine
}

/// Runs `work` on fresh machines, stopped after each number of steps, and passes each machine to
/// `then`.
fn stopped_anywhere(
    machine: impl Fn() -> Machine,
    work: impl Fn(&mut InstallContext<'_>) -> io::Result<u8>,
    mut then: impl FnMut(Machine, u32),
) {
    for steps in 0..200 {
        let machine = machine();
        let mut is_stopped = false;
        machine.with(true, |desk| {
            STEPS_LEFT.set(Some(steps));
            let done = work(desk);
            STEPS_LEFT.set(None);
            is_stopped = done
                .as_ref()
                .is_err_and(|error| error.to_string().contains("stopped here"));
            done.or(Ok(0))
        });
        if !is_stopped {
            assert!(steps > 5, "it was not stopped at all");
            return;
        }
        then(machine, steps);
    }
    panic!("it is never done");
}

fn relative(machine: &Machine) -> BTreeMap<PathBuf, String> {
    let root = machine.0.path().display().to_string();
    let plain = |(path, text): (PathBuf, String)| {
        (
            path.strip_prefix(&root).unwrap().to_owned(),
            text.replace(&root, "ROOT"),
        )
    };
    // The names of records contain hashes of paths, which differ between machines.
    all(machine)
        .into_iter()
        .map(plain)
        .filter(|(path, _)| !path.starts_with("state"))
        .collect()
}

#[test]
fn an_install_that_was_stopped_anywhere_is_put_back_without_a_trace() {
    let was = relative(&machine());
    stopped_anywhere(
        machine,
        |desk| desk.install(&install_args(Some(Client::Cursor))),
        |machine, steps| {
            machine.uninstall(None);
            assert_eq!(relative(&machine), was, "stopped after {steps}");
            let state = machine.0.path().join("state");
            assert_eq!(
                fs::read_dir(state).unwrap().count(),
                0,
                "stopped after {steps}"
            );
        },
    );
}

#[test]
fn an_install_that_was_stopped_anywhere_is_done_by_the_next_one() {
    let done = machine();
    done.install(Client::Cursor);
    let done = relative(&done);
    stopped_anywhere(
        machine,
        |desk| desk.install(&install_args(Some(Client::Cursor))),
        |machine, steps| {
            machine.install(Client::Cursor);
            assert_eq!(relative(&machine), done, "stopped after {steps}");
        },
    );
}

#[test]
fn an_uninstall_that_was_stopped_anywhere_is_done_by_the_next_one() {
    let was = relative(&machine());
    let installed = || {
        let machine = machine();
        machine.install(Client::Cursor);
        machine.install(Client::Codex);
        machine
    };
    for first in [Some(Client::Cursor), None] {
        stopped_anywhere(
            installed,
            |desk| desk.uninstall(&uninstall_args(first)),
            |machine, steps| {
                machine.uninstall(None);
                assert_eq!(relative(&machine), was, "{first:?} stopped after {steps}");
            },
        );
    }
}

#[test]
fn a_second_install_that_was_stopped_anywhere_is_put_back() {
    // Between the two installs, one server was added and one removed.
    let changed = |text: &str| {
        let text = text.replace(
            r#""a":{"command""#,
            r#""new":{"url":"https://new.example/mcp","headers":{"X-Key":"hunter3"}},"a":{"command""#,
        );
        format!("{}}}}}", text.split_once(",\n\"s\"").unwrap().0)
    };
    let installed = || {
        let machine = machine();
        machine.install(Client::Cursor);
        let file = machine.home().join(".cursor/mcp.json");
        fs::write(&file, changed(&fs::read_to_string(&file).unwrap())).unwrap();
        machine
    };
    let wanted = machine();
    let file = wanted.home().join(".cursor/mcp.json");
    fs::write(&file, changed(&fs::read_to_string(&file).unwrap())).unwrap();
    let wanted = relative(&wanted);
    stopped_anywhere(
        installed,
        |desk| desk.install(&install_args(Some(Client::Cursor))),
        |machine, steps| {
            machine.uninstall(None);
            assert_eq!(relative(&machine), wanted, "stopped after {steps}");
        },
    );
}
