//! systemd's user manager and launchd, each through its own command-line tool.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::unit::{self, Gate, LABEL, UNIT};
use crate::record::terminal_safe;

/// Number of checks, and the delay after each, until a started service is running.
const MAX_CHECKS: usize = 10;
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum length of a command's error message that is shown, in characters.
const MAX_MESSAGE_CHARACTERS: usize = 300;

/// The service manager of the user.
pub(super) struct Manager {
    is_mac: bool,
    /// The search path for its command-line tool.
    path: OsString,
    /// The user id, which launchd uses in the name of its domain.
    user: u32,
}

/// Returns the file to which launchd writes the gate's standard error.
pub(super) fn launchd_log(home: &Path) -> PathBuf {
    home.join("Library/Logs/lychgate.log")
}

impl Manager {
    pub(super) fn new(is_mac: bool, path: OsString) -> Self {
        Self {
            is_mac,
            path,
            user: rustix::process::getuid().as_raw(),
        }
    }

    /// Returns the search path for commands.
    pub(super) fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// Returns the path of the service's file.
    pub(super) fn file(&self, home: &Path, config: &Path) -> PathBuf {
        if self.is_mac {
            home.join(format!("Library/LaunchAgents/{LABEL}.plist"))
        } else {
            config.join("systemd/user").join(UNIT)
        }
    }

    /// Returns the contents of the file.
    pub(super) fn text(&self, gate: &Gate) -> String {
        if self.is_mac {
            unit::launchd(gate)
        } else {
            unit::systemd(gate)
        }
    }

    /// Returns the location of the gate's own log.
    pub(super) fn log(&self, home: &Path) -> String {
        if self.is_mac {
            launchd_log(home).display().to_string()
        } else {
            format!("journalctl --user -u {UNIT}")
        }
    }

    /// # Errors
    /// The reason why the manager is not available.
    pub(super) fn check(&self) -> Result<(), String> {
        let command = if self.is_mac {
            to_strings(&["launchctl", "print", &self.domain()])
        } else {
            to_strings(&["systemctl", "--user", "show-environment"])
        };
        let name = if self.is_mac {
            "launchd does not manage this session"
        } else {
            "no systemd user manager is running"
        };
        match self.output(&command) {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("{name}: {}", error_line(&output))),
            Err(error) => Err(format!("{name}: `{}`: {error}", command.join(" "))),
        }
    }

    /// Reports whether the service is running.
    pub(super) fn is_active(&self) -> bool {
        if self.is_mac {
            let print = self.output(&to_strings(&["launchctl", "print", &self.service()]));
            print.is_ok_and(|output| {
                output.status.success()
                    && String::from_utf8_lossy(&output.stdout).contains("state = running")
            })
        } else {
            let command = to_strings(&["systemctl", "--user", "is-active", "--quiet", UNIT]);
            self.output(&command)
                .is_ok_and(|output| output.status.success())
        }
    }

    /// Waits up to two seconds until a started service is running.
    pub(super) fn wait_until_active(&self) {
        for _ in 0..MAX_CHECKS {
            if self.is_active() {
                return;
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    /// Returns the commands that start the service now and at each login. An existing service is
    /// restarted with its new file.
    pub(super) fn commands_to_start(&self, file: &Path, is_installed: bool) -> Vec<Vec<String>> {
        if self.is_mac {
            let file = file.display().to_string();
            let bootout = to_strings(&["launchctl", "bootout", &self.service()]);
            let bootstrap = to_strings(&["launchctl", "bootstrap", &self.domain(), &file]);
            // `bootout` fails if the service is not loaded.
            if is_installed && self.is_loaded() {
                vec![bootout, bootstrap]
            } else {
                vec![bootstrap]
            }
        } else {
            let mut commands = vec![
                to_strings(&["systemctl", "--user", "daemon-reload"]),
                to_strings(&["systemctl", "--user", "enable", "--now", UNIT]),
            ];
            if is_installed {
                commands.push(to_strings(&["systemctl", "--user", "restart", UNIT]));
            }
            commands
        }
    }

    /// Returns the commands that stop the service: those before its file is removed, and those
    /// after.
    pub(super) fn commands_to_stop(&self) -> (Vec<Vec<String>>, Vec<Vec<String>>) {
        if self.is_mac {
            let bootout = to_strings(&["launchctl", "bootout", &self.service()]);
            (
                if self.is_loaded() {
                    vec![bootout]
                } else {
                    vec![]
                },
                vec![],
            )
        } else {
            let disable = to_strings(&["systemctl", "--user", "disable", "--now", UNIT]);
            (
                vec![disable],
                vec![to_strings(&["systemctl", "--user", "daemon-reload"])],
            )
        }
    }

    /// Returns what to do so that the service outlives a logout, if anything is needed.
    pub(super) fn logout_hint(&self) -> Option<&'static str> {
        (!self.is_mac)
            .then_some("It stops when you log out. To keep it running: loginctl enable-linger")
    }

    /// # Errors
    /// The command cannot be run, or it fails.
    pub(super) fn run(&self, command: &[String]) -> io::Result<()> {
        let line = command.join(" ");
        let output = self
            .output(command)
            .map_err(|error| io::Error::new(error.kind(), format!("`{line}`: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        let hint =
            "`lychgate service status` shows the state; lychgate service uninstall removes it";
        Err(io::Error::other(format!(
            "`{line}` failed ({}): {}\n  hint: {hint}",
            output.status,
            error_line(&output)
        )))
    }

    fn output(&self, command: &[String]) -> io::Result<Output> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        Command::new(program)
            .args(arguments)
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .output()
    }

    fn is_loaded(&self) -> bool {
        self.output(&to_strings(&["launchctl", "print", &self.service()]))
            .is_ok_and(|output| output.status.success())
    }

    fn domain(&self) -> String {
        format!("gui/{}", self.user)
    }

    fn service(&self) -> String {
        format!("{}/{LABEL}", self.domain())
    }
}

fn to_strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns the first line that a failed command wrote.
fn error_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let line: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(MAX_MESSAGE_CHARACTERS)
        .collect();
    if line.is_empty() {
        output.status.to_string()
    } else {
        terminal_safe(&line).into_owned()
    }
}
