//! `lychgate install` and `uninstall`: moves the servers of a client's config behind the gate, and
//! restores them.

mod client;
mod diff;
mod edit;
pub(super) mod files;
mod gate;
mod jsonc;
mod list;
mod move_record;
mod move_servers;
mod names;
#[cfg(test)]
mod output_tests;
mod plan;
mod records;
mod restore;
#[cfg(test)]
mod samples;
mod server;
mod state;
#[cfg(test)]
mod stopped_tests;
#[cfg(test)]
mod tests;
mod toml;
#[cfg(test)]
mod wiring_tests;

use std::fs;
use std::io::{self, IsTerminal, Read as _, Write};
use std::path::PathBuf;

use client::{Client, ConfigFile, Places};
pub(super) use gate::{ADDRESS, new_config};
pub(super) use toml::quoted;

use super::config_file::{ConfigArg, user_file};
use super::{confirm, program, service};
use crate::seal::state_folder;

/// Maximum size of a client's config that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Arguments of `lychgate install`.
#[derive(clap::Args)]
#[command(after_help = "\
Without CLIENT, lists the installed clients and which of their servers are behind
the gateway.

Servers started by a command are run through `lychgate wrap`. Servers at a URL are
added to the gateway's config, and the client connects to `lychgate run`, which
must be running; their headers are moved too, secrets to separate files. Servers
that the gateway cannot reach in the same way are left unchanged, with the
reason. The changes are shown before anything is written; `lychgate uninstall`
restores the file byte for byte.

Examples:
  lychgate install
  lychgate install claude-code --dry-run")]
pub(super) struct InstallArgs {
    /// MCP client to configure
    client: Option<Client>,
    /// Only these servers
    #[arg(long = "server", value_name = "NAME", requires = "client")]
    servers: Vec<String>,
    /// Edit this file, in the client's format
    #[arg(long, value_name = "FILE", requires = "client")]
    file: Option<PathBuf>,
    /// The gateway's config, created if missing [default: $LYCHGATE_CONFIG, or
    /// ~/.config/lychgate/lychgate.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Policy for `wrap`
    #[arg(long, value_name = "NAME", requires = "client")]
    policy: Option<String>,
    /// Audit log of `wrap`; defaults to that of the gateway's config, or `lychgate/audit.jsonl` in
    /// the state folder
    #[arg(long, value_name = "FILE", requires = "client")]
    audit: Option<PathBuf>,
    /// Show the changes without applying them
    #[arg(long, requires = "client")]
    dry_run: bool,
    /// Do not prompt
    #[arg(long, short, requires = "client")]
    yes: bool,
    /// Also start the gateway as a user service (`lychgate service install`) if a server needs it
    #[arg(long, requires = "client", conflicts_with = "dry_run")]
    service: bool,
    /// Print the list as one JSON document
    #[arg(long, conflicts_with = "client")]
    json: bool,
}

/// Arguments of `lychgate uninstall`.
#[derive(clap::Args)]
pub(super) struct UninstallArgs {
    /// MCP client to restore; defaults to all
    client: Option<Client>,
    /// Only this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Keep the client's file unchanged and drop its records; upstreams it does not use are removed
    /// from the gateway's config
    #[arg(long)]
    forget: bool,
    /// Show the changes without applying them
    #[arg(long)]
    dry_run: bool,
    /// Do not prompt
    #[arg(long, short)]
    yes: bool,
}

/// The paths, the output and the source of the user's confirmation.
struct InstallContext<'a> {
    places: Places,
    /// The folder with the records of moved servers.
    state: PathBuf,
    /// The folder for all state of lychgate.
    state_root: PathBuf,
    /// The gate's config if the command line names none.
    gate_config: PathBuf,
    /// The config that `wrap` finds by default.
    user_config: PathBuf,
    /// The path of this program that clients run.
    program: String,
    /// The gate's config, if a server needs a running gate and none responds.
    unserved: Option<PathBuf>,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// Asks for confirmation.
    confirm: &'a mut dyn FnMut(&mut dyn Write) -> io::Result<bool>,
}

/// Runs `install`; exit code 0 if all is done, 1 if something was left unchanged or declined, 2 on
/// errors.
pub(super) fn install(
    args: &InstallArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let mut unserved = None;
    let code = with_context(args.yes, out, err, |context| {
        let code = context.install(args)?;
        unserved = context.unserved.take();
        Ok(code)
    })?;
    let Some(config) = unserved else {
        return Ok(code);
    };
    let mut ask = |question: &str, err: &mut dyn Write| confirm::confirm(question, err);
    let ask: Option<&mut Ask<'_>> = if io::stdin().is_terminal() {
        Some(&mut ask)
    } else {
        None
    };
    if is_service_wanted(args, ask, err)? {
        return Ok(code.max(service::install(&config, args.yes, out, err)?));
    }
    Ok(code)
}

/// Asks a question on the terminal.
type Ask<'a> = dyn FnMut(&str, &mut dyn Write) -> io::Result<bool> + 'a;

/// Returns whether to run the gate as a service: as set by `--service`, or else by the user's
/// answer on the terminal.
fn is_service_wanted(
    args: &InstallArgs,
    ask: Option<&mut Ask<'_>>,
    err: &mut dyn Write,
) -> io::Result<bool> {
    match ask {
        _ if args.service => Ok(true),
        Some(ask) if !args.yes => ask("Run the gate as a service of this user now? [y/N] ", err),
        _ => Ok(false),
    }
}

/// Runs `uninstall`, with the exit codes of `install`.
pub(super) fn uninstall(
    args: &UninstallArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    with_context(args.yes, out, err, |context| context.uninstall(args))
}

fn with_context(
    yes: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
    work: impl FnOnce(&mut InstallContext<'_>) -> io::Result<u8>,
) -> io::Result<u8> {
    let parts = (
        Places::from_environment(),
        program::stable_path(),
        state_folder(),
        user_file(),
    );
    let (Some(places), Ok(program), Some(state_root), Some(user_config)) = parts else {
        writeln!(
            err,
            "the home folder or the path of this program is unknown\n  hint: set `HOME`"
        )?;
        return Ok(2);
    };
    let gate_config = ConfigArg::default()
        .named_file()
        .unwrap_or_else(|| user_config.clone());
    let state = state_root.join("install");
    let program = program.display().to_string();
    let mut ask = move |err: &mut dyn Write| {
        if yes {
            Ok(true)
        } else {
            confirm::confirm("Write this? [y/N] ", err)
        }
    };
    let mut context = InstallContext {
        places,
        state,
        state_root,
        gate_config,
        user_config,
        program,
        unserved: None,
        out,
        err,
        confirm: &mut ask,
    };
    match work(&mut context) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            writeln!(context.err, "{error}")?;
            Ok(2)
        }
        result => result,
    }
}

/// Returns the contents of a file without a byte order mark; `None` if the file does not exist.
fn read(file: &ConfigFile) -> io::Result<Option<String>> {
    let with_path = |error: io::Error| {
        io::Error::new(error.kind(), format!("`{}`: {error}", file.path.display()))
    };
    let opened = match fs::File::open(&file.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(with_path)?,
    };
    let mut text = String::new();
    let length = io::Read::take(opened, MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(with_path)?;
    if length as u64 > MAX_FILE_BYTES {
        return Err(with_path(io::Error::other(format!(
            "longer than {MAX_FILE_BYTES} bytes"
        ))));
    }
    Ok(Some(files::strip_mark(text)))
}
