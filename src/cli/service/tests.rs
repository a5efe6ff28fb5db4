//! Tests the service's files, and its calls to a manager that records them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

const UNIT: &str = include_str!("tests/lychgate.service");
const PLIST: &str = include_str!("tests/lychgate.plist");

fn gate() -> unit::Gate {
    unit::Gate {
        program: "/usr/local/bin/lychgate".to_owned(),
        config: "/home/me/100% \"mine\" & $co/lychgate.toml".to_owned(),
        variables: vec![("XDG_STATE_HOME".to_owned(), "/home/me/state".to_owned())],
        log: "/home/me/Library/Logs/lychgate.log".to_owned(),
    }
}

#[test]
fn the_files_are_as_documented_and_name_their_config() {
    for (text, wanted) in [
        (unit::systemd(&gate()), UNIT),
        (unit::launchd(&gate()), PLIST),
    ] {
        assert_eq!(text, wanted);
        assert_eq!(unit::find_config(&text), Some(gate().config));
    }
    assert_eq!(unit::find_config("[Service]\nExecStart=/bin/true\n"), None);
}

struct Machine(tempfile::TempDir);

impl Machine {
    /// Creates a machine with a `systemctl` and a `launchctl` that record their arguments; calls
    /// that match `fails` fail.
    fn new(fails: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        let calls = machine.at("calls");
        let script = format!(
            "#!/bin/sh\necho \"${{0##*/}} $*\" >> '{}'\ncase \"$*\" in {fails}) echo 'No medium found' >&2; exit 1;; esac\necho 'state = running'\n",
            calls.display()
        );
        fs::create_dir_all(machine.at("bin")).unwrap();
        for name in ["systemctl", "launchctl"] {
            fs::write(machine.at("bin").join(name), &script).unwrap();
            fs::set_permissions(
                machine.at("bin").join(name),
                fs::Permissions::from_mode(0o755),
            )
            .unwrap();
        }
        fs::create_dir_all(machine.at("home/.config/lychgate")).unwrap();
        let config = "[listen]\naddress = \"127.0.0.1:1\"\n[upstream.w]\nhttp = { url = \"http://127.0.0.1:1/mcp\" }\n";
        fs::write(machine.config(), config).unwrap();
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.at("home/.config/lychgate/lychgate.toml")
    }

    fn with(
        &self,
        is_mac: bool,
        work: impl FnOnce(&mut Host<'_>) -> io::Result<u8>,
    ) -> (u8, String, String) {
        let mut out = vec![];
        let mut err = vec![];
        let path =
            std::env::join_paths([self.at("bin"), "/usr/bin".into(), "/bin".into()]).unwrap();
        let mut host = Host {
            home: self.at("home"),
            config: self.at("home/.config"),
            manager: Manager::new(is_mac, path),
            program: "/opt/lychgate".to_owned(),
            folders: vec![],
            out: &mut out,
            err: &mut err,
        };
        let code = work(&mut host).unwrap_or_else(|error| {
            writeln!(host.err, "{error}").unwrap();
            2
        });
        (
            code,
            String::from_utf8(out).unwrap(),
            String::from_utf8(err).unwrap(),
        )
    }

    fn install(&self, is_mac: bool) -> (u8, String, String) {
        self.with(is_mac, |host| host.install(&self.config(), false, true))
    }

    /// Returns the calls since the last check that change something.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.at("calls")).unwrap_or_default();
        fs::remove_file(self.at("calls")).unwrap_or_default();
        let asks = ["show-environment", "is-active", "launchctl print"];
        text.lines()
            .filter(|line| !asks.iter().any(|ask| line.contains(ask)))
            .map(str::to_owned)
            .collect()
    }
}

/// Makes `systemctl --user is-active` fail, as it does if the service is not running.
const IDLE: &str = "*is-active*";

#[test]
fn a_unit_is_shown_written_started_and_removed() {
    let machine = Machine::new(IDLE);
    let unit = machine.at("home/.config/systemd/user/lychgate.service");
    let (code, out, _) = machine.with(false, |host| host.install(&machine.config(), true, false));
    assert_eq!((code, unit.exists(), machine.calls()), (1, false, vec![]));
    assert_contains!(out, "    ExecStart=\"/opt/lychgate\" run --config");
    assert_contains!(
        out,
        "\nsystemctl --user daemon-reload\nsystemctl --user enable --now lychgate.service\n"
    );
    machine.install(false);
    assert_eq!(
        machine.calls(),
        [
            "systemctl --user daemon-reload",
            "systemctl --user enable --now lychgate.service"
        ]
    );
    assert_eq!(
        unit::find_config(&fs::read_to_string(&unit).unwrap()),
        Some(machine.config().display().to_string())
    );
    assert!(!fs::read_to_string(&unit).unwrap().contains("PATH="));
    // A second install with another config, whose upstream is found on `PATH`: the gate is
    // restarted with it.
    let other = machine.at("other.toml");
    let child = "[upstream.c]\nstdio = { command = [\"npx\"] }\n";
    fs::write(
        &other,
        fs::read_to_string(machine.config()).unwrap() + child,
    )
    .unwrap();
    machine.with(false, |host| host.install(&other, false, true));
    assert_eq!(
        machine.calls().last().map(String::as_str),
        Some("systemctl --user restart lychgate.service")
    );
    let text = fs::read_to_string(&unit).unwrap();
    assert_contains!(
        text,
        "other.toml",
        &format!("PATH={}:/usr/bin", machine.at("bin").display())
    );
    let (code, out, _) = machine.with(false, |host| host.uninstall(false, true));
    assert_eq!((code, unit.exists()), (0, false), "{out}");
    assert_eq!(
        machine.calls(),
        [
            "systemctl --user disable --now lychgate.service",
            "systemctl --user daemon-reload"
        ]
    );
    let (code, _, err) = machine.with(false, |host| host.uninstall(false, true));
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("no service is installed"), "{err}");
}

#[test]
fn an_agent_of_launchd_is_loaded_and_removed() {
    let machine = Machine::new("'print gui/'*'/lychgate'");
    let plist = machine.at("home/Library/LaunchAgents/lychgate.plist");
    let domain = format!("gui/{}", rustix::process::getuid().as_raw());
    machine.install(true);
    assert_eq!(
        machine.calls(),
        [format!("launchctl bootstrap {domain} {}", plist.display())]
    );
    assert_contains!(
        fs::read_to_string(&plist).unwrap(),
        "<string>/opt/lychgate</string>"
    );
    let loaded = Machine::new("never");
    fs::create_dir_all(loaded.at("home/Library/LaunchAgents")).unwrap();
    fs::copy(
        &plist,
        loaded.at("home/Library/LaunchAgents/lychgate.plist"),
    )
    .unwrap();
    let (code, ..) = loaded.with(true, |host| host.uninstall(false, true));
    assert_eq!(
        (code, loaded.calls()),
        (0, vec![format!("launchctl bootout {domain}/lychgate")])
    );
    assert!(
        !loaded
            .at("home/Library/LaunchAgents/lychgate.plist")
            .exists()
    );
}

#[test]
fn without_a_manager_the_command_to_run_by_hand_is_shown() {
    for (is_mac, fails) in [(false, "*show-environment*"), (true, "'print gui/'*")] {
        let machine = Machine::new(fails);
        let (code, out, err) = machine.install(is_mac);
        assert_eq!((code, out.as_str(), machine.calls()), (2, "", vec![]));
        assert_contains!(err, "No medium found", "lychgate run --config /");
        assert!(
            !machine.at("home/.config/systemd").exists() && !machine.at("home/Library").exists()
        );
    }
    let machine = Machine::new("never");
    fs::remove_file(machine.at("bin/systemctl")).unwrap();
    let (code, _, err) = machine.with(false, |host| {
        host.manager = Manager::new(false, machine.at("bin").into());
        host.install(&machine.config(), false, true)
    });
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("no systemd user manager is running"), "{err}");
}

#[test]
fn status_names_address_config_and_logs() {
    let machine = Machine::new("never");
    let (code, out, _) = machine.with(false, |host| host.status());
    assert_eq!((code, out.contains("not installed")), (1, true), "{out}");
    let unit = machine.at("home/.config/systemd/user/lychgate.service");
    let (code, out, err) = machine.install(false);
    assert_eq!(code, 0, "{out}{err}");
    let audit = format!(
        "{}[audit]\nfile = \"/log/audit.jsonl\"\n",
        fs::read_to_string(machine.config()).unwrap()
    );
    fs::write(machine.config(), audit).unwrap();
    let (code, out, _) = machine.with(false, |host| host.status());
    let wanted = [
        format!("service  running ({})", unit.display()),
        "address  http://127.0.0.1:1/mcp/UPSTREAM (does not answer)".to_owned(),
        format!("config   {}", machine.config().display()),
        "audit    /log/audit.jsonl".to_owned(),
        "log      journalctl --user -u lychgate.service".to_owned(),
    ];
    assert_eq!((code, out), (0, wanted.join("\n") + "\n"));
}

#[test]
fn a_file_of_somebody_else_and_a_config_with_faults_are_refused() {
    let machine = Machine::new(IDLE);
    let unit = machine.at("home/.config/systemd/user/lychgate.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(&unit, "[Service]\nExecStart=/bin/true\n").unwrap();
    for (code, _, err) in [
        machine.install(false),
        machine.with(false, |host| host.uninstall(false, true)),
    ] {
        assert_eq!(
            (code, err.contains("was not written by `lychgate service`")),
            (2, true),
            "{err}"
        );
    }
    assert_eq!(
        fs::read_to_string(&unit).unwrap(),
        "[Service]\nExecStart=/bin/true\n"
    );
    fs::remove_file(&unit).unwrap();
    fs::write(machine.config(), "[listen]\naddress = 7\n").unwrap();
    let (code, _, err) = machine.install(false);
    assert_eq!(code, 2, "{err}");
    assert!(!unit.exists(), "{err}");
    assert!(err.contains("was not installed"), "{err}");
    let odd = machine.at("a\nExecStartPre=evil.toml");
    fs::write(
        &odd,
        "[upstream.w]\nhttp = { url = \"http://127.0.0.1:1/mcp\" }\n",
    )
    .unwrap();
    let (code, _, err) = machine.with(false, |host| host.install(&odd, false, true));
    assert_eq!(code, 2, "{err}");
    assert!(!unit.exists(), "{err}");
    assert!(err.contains("control characters"), "{err}");
}

#[test]
fn a_command_that_fails_is_named_with_what_it_wrote() {
    let machine = Machine::new("*is-active*|*enable*");
    let (code, _, err) = machine.install(false);
    assert_eq!(code, 2);
    assert_contains!(
        err,
        "`systemctl --user enable --now lychgate.service` failed",
        "No medium found"
    );
}
