//! `lychgate install` and `uninstall`: moves the servers of an agent's own config behind the gate, and puts them back.

mod back;
mod client;
mod diff;
mod edit;
mod files;
mod gate;
mod jsonc;
mod list;
mod moved;
mod moving;
mod plan;
mod records;
mod server;
#[cfg(test)]
mod stopped_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod told_tests;
mod toml;

use std::fs;
use std::io::{self, BufRead, IsTerminal, Read as _, Write};
use std::path::PathBuf;

use client::{Client, ConfigFile, Places};

/// Longest config of a client that is read, in bytes.
const FILE_BYTES: u64 = 64 << 20;

/// Arguments of `lychgate install`.
#[derive(clap::Args)]
#[command(after_help = "\
Without CLIENT it lists the clients that are here, and which of their servers are behind the gate.

A server that is a command is started through `lychgate wrap`. One that is a URL is added to the gate's config, and the client is
sent to `lychgate run`, which has to run then; headers go along, secret ones into files of their own. What the gate cannot say is
left as it is, and why is told. Before anything is written the change is shown and a yes is asked for; what was there is kept,
and `lychgate uninstall` puts it back byte for byte.")]
pub(super) struct InstallArgs {
    /// Whose servers to move
    client: Option<Client>,
    /// Only these servers
    #[arg(long = "server", value_name = "NAME", requires = "client")]
    servers: Vec<String>,
    /// This file, written as the client writes its own
    #[arg(long, value_name = "FILE", requires = "client")]
    file: Option<PathBuf>,
    /// The gate's config; left out, `lychgate/lychgate.toml` in the user's folder for configs
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The policy for `wrap`, as the gate's config names it
    #[arg(long, value_name = "NAME", requires = "client")]
    policy: Option<String>,
    /// Where `wrap` writes audit lines
    #[arg(long, value_name = "FILE", requires = "client")]
    audit: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long, requires = "client")]
    dry_run: bool,
    /// Ask nothing
    #[arg(long, short, requires = "client")]
    yes: bool,
    /// The list as one JSON document
    #[arg(long, conflicts_with = "client")]
    json: bool,
}

/// Arguments of `lychgate uninstall`.
#[derive(clap::Args)]
pub(super) struct UninstallArgs {
    /// Whose servers to put back; left out, everybody's
    client: Option<Client>,
    /// This file only
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Leave the client's file as it is, and forget what was moved: what was added to the gate's config goes unless the file leads to it
    #[arg(long)]
    forget: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Ask nothing
    #[arg(long, short)]
    yes: bool,
}

/// Where things are, and who answers.
struct Desk<'a> {
    places: Places,
    /// What was moved is written down here.
    state: PathBuf,
    program: String,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    /// Answers a question.
    yes: &'a mut dyn FnMut(&mut dyn Write) -> io::Result<bool>,
}

/// Carries `install` out; 0 if all is done, 1 if something was left as it is or not agreed to, 2 on errors.
pub(super) fn install(args: &InstallArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    with_desk(args.yes, out, err, |desk| desk.install(args))
}

/// Carries `uninstall` out; exit codes as of `install`.
pub(super) fn uninstall(args: &UninstallArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    with_desk(args.yes, out, err, |desk| desk.uninstall(args))
}

fn with_desk(
    yes: bool,
    out: &mut dyn Write,
    err: &mut dyn Write,
    work: impl FnOnce(&mut Desk<'_>) -> io::Result<u8>,
) -> io::Result<u8> {
    let (Some(places), Ok(program)) = (Places::here(), std::env::current_exe()) else {
        writeln!(err, "neither the home folder nor this program's own place is known\n  hint: set `HOME`")?;
        return Ok(2);
    };
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.unwrap_or_else(|| places.home.join(".local/state")).join("lychgate/install");
    let mut ask = move |err: &mut dyn Write| if yes { Ok(true) } else { ask(err) };
    let mut desk = Desk { places, state, program: program.display().to_string(), out, err, yes: &mut ask };
    match work(&mut desk) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            writeln!(desk.err, "{error}")?;
            Ok(2)
        }
        told => told,
    }
}

fn ask(err: &mut dyn Write) -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        writeln!(err, "nothing was written: nobody is here to say yes\n  hint: `--yes` says it")?;
        return Ok(false);
    }
    write!(err, "Write this? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    io::Read::take(io::stdin().lock(), 64).read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// What a file holds; `None` where it is not there.
fn read(file: &ConfigFile) -> io::Result<Option<String>> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", file.path.display()));
    let opened = match fs::File::open(&file.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(named)?,
    };
    let mut text = String::new();
    let read = io::Read::take(opened, FILE_BYTES + 1).read_to_string(&mut text).map_err(named)?;
    if read as u64 > FILE_BYTES {
        return Err(named(io::Error::other(format!("longer than {FILE_BYTES} bytes"))));
    }
    Ok(Some(text))
}
