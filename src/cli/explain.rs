//! `lychgate explain AUDIT-ID`

mod print;

use std::io::{self, Write};
use std::path::PathBuf;

use super::judges;
use super::progress::patiently;
use crate::review::explain::{Explained, explain};
use crate::review::{Entry, Log};

/// Shortest part of an id that is looked for.
const LEAST: usize = 8;

/// What to explain.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The id, as it stands in the audit log and in what agents are told; its first 8 characters will do
    audit: String,
    /// Config file with the policies; `lychgate.toml` if it is there
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The audit log, in place of that of the config
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Policy for upstreams that the config does not name (`lychgate wrap`)
    #[arg(long, default_value = "default", value_name = "NAME")]
    policy: String,
    /// Explain what was only logged in full as well
    #[arg(long)]
    all: bool,
    /// One JSON document: a list with an entry for each message of that id
    #[arg(long)]
    json: bool,
}

/// Explains; 0 if the message is found, 1 if there is none of that id, 2 if something cannot be read.
///
/// # Errors
/// What cannot be written.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match patiently("looking through the audit log", err, || explained(args))? {
        Ok(all) if all.is_empty() => {
            writeln!(
                err,
                "no message of the audit log has the id `{}`\n  hint: `lychgate audit tail` shows ids",
                args.audit.escape_debug()
            )?;
            Ok(1)
        }
        Ok(all) if args.json => {
            serde_json::to_writer_pretty(&mut *out, &all).map_err(io::Error::from)?;
            writeln!(out)?;
            Ok(0)
        }
        Ok(all) => {
            let style = print::Style { marks: print::marks(), all: args.all };
            for one in &all {
                out.write_all(print::printed(one, &style).as_bytes())?;
            }
            Ok(0)
        }
        Err(message) => {
            writeln!(err, "error: {message}")?;
            Ok(2)
        }
    }
}

fn explained(args: &Args) -> Result<Vec<Explained>, String> {
    if args.audit.len() < LEAST {
        return Err(format!(
            "`{}` is too short\n  hint: give {LEAST} characters of the id at the least",
            args.audit.escape_debug()
        ));
    }
    let config = judges::config(args.config.as_deref()).map_err(|faults| judges::told(&faults))?;
    let judges = judges::judges(&config, &args.policy).map_err(|faults| judges::told(&faults))?;
    let log = judges::log(args.log.as_deref(), &config)?;
    let stores = judges::stores(&config)?;
    let entries = Log::open(&log).map_err(|error| error.to_string())?.entries();
    let is_it = |entry: &Entry| entry.event() == "judged" && entry.audit().is_some_and(|id| id.starts_with(&args.audit));
    let mut all = Vec::new();
    for entry in entries.flatten().filter(is_it) {
        let whole = judges::id(&entry).map(|id| judges::kept(&stores, id)).transpose()?.flatten();
        let one = explain(&entry, whole.as_ref(), &judges);
        all.push(one.map_err(|missing| format!("{}\n  hint: name the config with `--config FILE`", missing.words()))?);
    }
    let first = all.first().map(|one: &Explained| one.audit.clone()).unwrap_or_default();
    match all.iter().find(|one| one.audit != first) {
        Some(other) => Err(format!("several ids begin so: `{first}`, `{}`\n  hint: give more of it", other.audit)),
        None => Ok(all),
    }
}
