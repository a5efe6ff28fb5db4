//! `lychgate service`: runs the gate in the background as the installing user, under systemd or
//! launchd.
//!
//! The file and the commands are shown first and applied after confirmation. Only a file that this
//! command wrote is replaced or removed.

mod manager;
#[cfg(test)]
mod tests;
mod unit;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::config_file::ConfigArg;
use super::install::files::{read_if_exists, remove_if_exists, replace_file};
use super::{confirm, liveness, program};
use crate::config::{self, AuditTo, Transport, path_from_env};
use crate::document::Fault;
use crate::record::terminal_safe;
use manager::Manager;

/// Arguments of `lychgate service`.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Start the gateway now and at each login
    Install(Install),
    /// Stop the gateway and remove the service
    Uninstall(Uninstall),
    /// Show the gateway's status, address, config and logs; exits with 1 if it is not running
    Status(Status),
}

#[derive(clap::Args)]
struct Install {
    #[command(flatten)]
    config: ConfigArg,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not prompt
    #[arg(long, short)]
    yes: bool,
}

#[derive(clap::Args)]
struct Uninstall {
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not prompt
    #[arg(long, short)]
    yes: bool,
}

#[derive(clap::Args)]
struct Status {}

/// Carries the verb out; 0 if done or running, 1 if not agreed to or not running, 2 on errors.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    with_host(out, err, |host| match &args.verb {
        Verb::Install(args) => match args.config.find() {
            Ok(config) => host.install(&config, args.dry_run, args.yes),
            Err(faults) => host.report_faults(&faults),
        },
        Verb::Uninstall(args) => host.uninstall(args.dry_run, args.yes),
        Verb::Status(Status {}) => host.status(),
    })
}

/// Installs the service for a config, with the exit codes of [`run`].
pub(super) fn install(
    config: &Path,
    yes: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    with_host(out, err, |host| host.install(config, false, yes))
}

/// The machine on which the service is installed, and the output streams.
struct Host<'a> {
    home: PathBuf,
    /// `XDG_CONFIG_HOME`, or `~/.config`.
    config: PathBuf,
    manager: Manager,
    program: String,
    /// `XDG_CONFIG_HOME` and `XDG_STATE_HOME`, if they are set.
    folders: Vec<(String, String)>,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

fn with_host(
    out: &mut dyn Write,
    err: &mut dyn Write,
    work: impl FnOnce(&mut Host<'_>) -> io::Result<u8>,
) -> io::Result<u8> {
    let (Some(home), Ok(program)) = (path_from_env("HOME"), program::stable_path()) else {
        writeln!(
            err,
            "the home folder or the path of this program is unknown\n  hint: set `HOME`"
        )?;
        return Ok(2);
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = ["XDG_CONFIG_HOME", "XDG_STATE_HOME"].into_iter();
    let folders = folders
        .filter_map(|name| Some((name.to_owned(), path_from_env(name)?.to_str()?.to_owned())))
        .collect();
    let mut host = Host {
        config: path_from_env("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
        manager: Manager::new(cfg!(target_os = "macos"), path),
        program: program.display().to_string(),
        folders,
        home,
        out,
        err,
    };
    match work(&mut host) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            writeln!(host.err, "{error}")?;
            Ok(2)
        }
        result => result,
    }
}

impl Host<'_> {
    fn install(&mut self, config: &Path, dry_run: bool, yes: bool) -> io::Result<u8> {
        let config = std::path::absolute(config)?;
        let has_child = match config::load(&config) {
            Ok(read) => read
                .upstreams
                .values()
                .any(|upstream| matches!(upstream.transport, Transport::Stdio(_))),
            Err(faults) => return self.report_faults(&faults),
        };
        let command = format!("lychgate run --config {}", config.display());
        if let Err(why) = self.manager.check() {
            writeln!(self.err, "{why}\n  hint: start the gate by hand: {command}")?;
            return Ok(2);
        }
        let (file, existing) = self.installed_file()?;
        if existing
            .as_ref()
            .is_some_and(|text| !text.contains(unit::MARK))
        {
            return self.report_foreign_file(&file);
        }
        let was_active = self.manager.is_active();
        if let (Some((address, true)), false) = (liveness::gate_status(&config), was_active) {
            writeln!(
                self.err,
                "a gate is already running at {address}\n  hint: stop it, then run this again"
            )?;
            return Ok(2);
        }
        let text = self.text(&config, has_child)?;
        let commands = self.manager.commands_to_start(&file, existing.is_some());
        writeln!(self.out, "{}:\n\n{}", file.display(), indent(&text))?;
        self.show(&commands)?;
        if dry_run || !self.is_agreed(yes)? {
            return Ok(1);
        }
        replace_file(&file, text.as_bytes(), Some(0o644))?;
        self.carry_out(&commands)?;
        self.manager.wait_until_active();
        let code = self.status()?;
        if let Some(hint) = self.manager.logout_hint() {
            writeln!(self.err, "{hint}")?;
        }
        Ok(code)
    }

    fn uninstall(&mut self, dry_run: bool, yes: bool) -> io::Result<u8> {
        let (file, existing) = self.installed_file()?;
        let Some(text) = existing else {
            writeln!(
                self.err,
                "no service is installed: `{}` does not exist",
                file.display()
            )?;
            return Ok(1);
        };
        if !text.contains(unit::MARK) {
            return self.report_foreign_file(&file);
        }
        let has_manager = self.manager.check();
        let (before, after) = if has_manager.is_ok() {
            self.manager.commands_to_stop()
        } else {
            (vec![], vec![])
        };
        if let Err(why) = has_manager {
            writeln!(self.err, "{why}")?;
        }
        self.show(&before)?;
        writeln!(self.out, "remove {}", file.display())?;
        self.show(&after)?;
        if dry_run || !self.is_agreed(yes)? {
            return Ok(1);
        }
        self.carry_out(&before)?;
        remove_if_exists(&file)?;
        self.carry_out(&after)?;
        writeln!(
            self.err,
            "The service is removed. Config, logs and state stay."
        )?;
        Ok(0)
    }

    fn status(&mut self) -> io::Result<u8> {
        let (file, found) = self.installed_file()?;
        let Some(text) = found else {
            writeln!(
                self.out,
                "service  not installed ({} does not exist)",
                file.display()
            )?;
            writeln!(self.err, "  hint: lychgate service install")?;
            return Ok(1);
        };
        let is_active = match self.manager.check() {
            Ok(()) => self.manager.is_active(),
            Err(why) => {
                writeln!(self.err, "{why}")?;
                false
            }
        };
        writeln!(
            self.out,
            "service  {} ({})",
            if is_active { "running" } else { "not running" },
            file.display()
        )?;
        if let Some(config) = unit::find_config(&text).map(PathBuf::from) {
            if let Some((address, is_answering)) = liveness::gate_status(&config) {
                let state = if is_answering {
                    "answers"
                } else {
                    "does not answer"
                };
                writeln!(self.out, "address  http://{address}/mcp/UPSTREAM ({state})")?;
            }
            writeln!(self.out, "config   {}", config.display())?;
            if let Ok(config::AuditConfig {
                to: Some(AuditTo::File(audit)),
                ..
            }) = config::load_audit(&config)
            {
                writeln!(self.out, "audit    {}", audit.display())?;
            }
        }
        writeln!(self.out, "log      {}", self.manager.log(&self.home))?;
        Ok(u8::from(!is_active))
    }

    /// Reports why the service could not start with the config.
    fn report_faults(&mut self, faults: &[Fault]) -> io::Result<u8> {
        faults
            .iter()
            .try_for_each(|fault| writeln!(self.err, "{fault}"))?;
        writeln!(
            self.err,
            "the service was not installed: it would not start"
        )?;
        Ok(2)
    }

    /// Returns the path of the service's file, and its contents if it exists.
    fn installed_file(&self) -> io::Result<(PathBuf, Option<String>)> {
        let file = self.manager.file(&self.home, &self.config);
        let text = read_if_exists(&file)?;
        Ok((file, text))
    }

    /// Returns the contents of the file. Upstreams that the gate starts are looked up on the `PATH`
    /// of the installing user, since that of a service manager does not contain version managers
    /// for Node or Python.
    fn text(&self, config: &Path, has_child: bool) -> io::Result<String> {
        let mut variables = self.folders.clone();
        if has_child {
            variables.push(("PATH".to_owned(), self.manager.path().display().to_string()));
        }
        let Some(config) = config.to_str() else {
            return Err(io::Error::other(format!(
                "`{}`: a service needs a path in UTF-8",
                config.display()
            )));
        };
        let words = variables
            .iter()
            .map(|(_, value)| value.as_str())
            .chain([config, self.program.as_str()]);
        if let Some(word) = words
            .into_iter()
            .find(|word| word.chars().any(char::is_control))
        {
            let path = terminal_safe(word).into_owned();
            return Err(io::Error::other(format!(
                "`{path}`: a service cannot name a path with control characters"
            )));
        }
        let gate = unit::Gate {
            program: self.program.clone(),
            config: config.to_owned(),
            variables,
            log: manager::launchd_log(&self.home).display().to_string(),
        };
        Ok(self.manager.text(&gate))
    }

    fn report_foreign_file(&mut self, file: &Path) -> io::Result<u8> {
        let file = file.display();
        writeln!(
            self.err,
            "`{file}` was not written by `lychgate service`\n  hint: remove it by hand if it is not needed"
        )?;
        Ok(2)
    }

    fn show(&mut self, commands: &[Vec<String>]) -> io::Result<()> {
        commands
            .iter()
            .try_for_each(|command| writeln!(self.out, "{}", command.join(" ")))
    }

    fn carry_out(&mut self, commands: &[Vec<String>]) -> io::Result<()> {
        commands
            .iter()
            .try_for_each(|command| self.manager.run(command))
    }

    fn is_agreed(&mut self, yes: bool) -> io::Result<bool> {
        if yes {
            Ok(true)
        } else {
            confirm::confirm("Do this? [y/N] ", self.err)
        }
    }
}

fn indent(text: &str) -> String {
    text.lines()
        .map(|line| {
            if line.is_empty() {
                "\n".to_owned()
            } else {
                format!("    {line}\n")
            }
        })
        .collect()
}
