//! `lychgate install` and `uninstall`: moves the servers of an agent's own config behind the gate, and puts them back.

mod back;
mod client;
mod diff;
mod edit;
mod gate;
mod jsonc;
mod list;
mod moved;
mod plan;
mod records;
mod server;
#[cfg(test)]
mod tests;
mod toml;

use std::fs;
use std::io::{self, BufRead, IsTerminal, Read as _, Write};
use std::path::PathBuf;

use client::{Client, ConfigFile, Places};
use gate::GateConfig;
use moved::{Moved, hex, put};
use plan::{Plan, Wrap};

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
    #[arg(long, value_name = "FILE", requires = "client")]
    file: Option<PathBuf>,
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

impl Desk<'_> {
    fn install(&mut self, args: &InstallArgs) -> io::Result<u8> {
        let config = args.config.clone().unwrap_or_else(|| self.places.config.join("lychgate/lychgate.toml"));
        let mut gate = GateConfig::read(&config)?;
        let Some(client) = args.client else {
            return self.list(&gate, args.json);
        };
        let wrap = self.wrap(args, &gate)?;
        let mut code = 0;
        let mut steps = vec![];
        for file in self.files(client, args.file.as_ref())? {
            let Some(text) = read(&file)? else { continue };
            let place = Moved::place(&self.state, &file);
            let before = Moved::read(&place)?;
            // As it would be without lychgate, so that what is kept is the whole of it.
            let own = before.as_ref().map_or_else(|| text.clone(), |moved| moved.put_back(&text, file.format).text);
            let again = |name: &str| {
                before.iter().flat_map(|moved| &moved.servers).any(|server| server.path.last().is_some_and(|last| last == name))
            };
            if let Some(before) = &before {
                before.servers.iter().for_each(|server| {
                    gate.remove(&server.block);
                });
            }
            let wanted = |name: &str| args.servers.is_empty() || args.servers.iter().any(|wanted| wanted == name) || again(name);
            let plan = plan::plan(&file, &own, &wrap, &mut gate, wanted)
                .map_err(|why| io::Error::other(format!("`{}` cannot be read: {why}", file.path.display())))?;
            for (name, why) in &plan.left {
                writeln!(self.err, "left as it is: `{}` of {}: {why}", name.escape_debug(), file.path.display())?;
                code = 1;
            }
            if plan.text != text {
                write!(self.out, "{}", diff::diff(&file.path, file.format, &text, &plan.text))?;
                steps.push((file, text, own, place, plan));
            }
        }
        if steps.is_empty() {
            writeln!(self.err, "nothing to move for {}", client.name())?;
            return Ok(code);
        }
        if gate.old.as_deref().unwrap_or_default() != gate.new {
            write!(
                self.out,
                "{}",
                diff::diff(&gate.path, client::Format::Toml { servers: "" }, gate.old.as_deref().unwrap_or_default(), &gate.new)
            )?;
        }
        if args.dry_run || !(self.yes)(self.err)? {
            return Ok(1);
        }
        self.write_gate(&gate)?;
        for (file, text, own, place, plan) in steps {
            self.carry_out(&file, &text, &own, &place, plan, &gate)?;
        }
        let more = if gate.old.as_deref().unwrap_or_default() == gate.new {
            String::new()
        } else {
            format!("\nServers over HTTP need the gate: lychgate run --config {}", gate.path.display())
        };
        writeln!(self.err, "Done; {}.{more}\nTo put it back: lychgate uninstall {}", client.restart(), client.name())?;
        Ok(code)
    }

    fn wrap(&self, args: &InstallArgs, gate: &GateConfig) -> io::Result<Wrap> {
        let mut options = vec![];
        if args.config.is_some() || args.policy.is_some() {
            options.extend(["--config".to_owned(), gate.path.display().to_string()]);
        }
        options.extend(args.policy.iter().flat_map(|policy| ["--policy".to_owned(), policy.clone()]));
        if let Some(audit) = &args.audit {
            options.extend(["--audit".to_owned(), std::path::absolute(audit)?.display().to_string()]);
        }
        Ok(Wrap { program: self.program.clone(), options })
    }

    fn files(&self, client: Client, named: Option<&PathBuf>) -> io::Result<Vec<ConfigFile>> {
        match named {
            None => Ok(client.files(&self.places)),
            Some(path) => ConfigFile::named(client, path, &self.places)
                .map(|file| vec![file])
                .ok_or_else(|| io::Error::other(format!("`{}` is no path", path.display()))),
        }
    }

    fn write_gate(&self, gate: &GateConfig) -> io::Result<()> {
        for (path, secret) in &gate.secrets {
            put(path, secret.as_bytes(), Some(0o600))?;
        }
        if gate.old.as_deref().unwrap_or_default() != gate.new {
            put(&gate.path, gate.new.as_bytes(), None)?;
        }
        Ok(())
    }

    fn carry_out(
        &mut self,
        file: &ConfigFile,
        text: &str,
        own: &str,
        place: &std::path::Path,
        plan: Plan,
        gate: &GateConfig,
    ) -> io::Result<()> {
        // Clients write their files too: what was shown is what is changed, or nothing is.
        if read(file)?.as_deref() != Some(text) {
            let told = format!("`{}` has changed meanwhile; nothing was written to it\n  hint: try again", file.path.display());
            return Err(io::Error::other(told));
        }
        let backup = place.with_extension("before");
        put(&backup, own.as_bytes(), Some(0o600))?;
        let gate = plan.moved.iter().any(|server| server.upstream.is_some()).then(|| gate.path.clone());
        let moved = Moved {
            file: file.path.clone(),
            backup: backup.clone(),
            written_sha256: hex(plan.text.as_bytes()),
            servers: plan.moved,
            gate,
        };
        // First how to put it back, then the change.
        moved.write(place)?;
        put(&file.path, plan.text.as_bytes(), None)?;
        writeln!(
            self.err,
            "{}: {} behind the gate; as it was: {}",
            file.path.display(),
            count(moved.servers.len()),
            backup.display()
        )
    }
}

fn count(servers: usize) -> String {
    format!("{servers} server{}", if servers == 1 { "" } else { "s" })
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
