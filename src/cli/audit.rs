//! `lychgate audit`: reads, searches and verifies the audit log.

mod filter_args;
mod key;
mod show;
mod stats;
mod summary;
mod tail;
mod verify;

pub(super) use filter_args::time;

use std::io::Write;
use std::path::PathBuf;

use clap::Subcommand;

use super::config_file::ConfigArg;
use super::exit::Exit;
use crate::config::{self, AuditConfig, AuditTo};
use crate::document::Fault;
use crate::review::Log;

/// Arguments of `lychgate audit`.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    config: ConfigArg,
}

#[derive(Subcommand)]
enum Verb {
    /// Show the last lines and follow the log
    Tail(tail::Args),
    /// Show all lines with an id, and both halves of its call
    Show(show::Args),
    /// Count rules, tools, upstreams, agents and verdicts
    Stats(stats::Args),
    /// Verify that no line was changed, removed, truncated or replaced
    Verify(verify::Args),
    /// Show the public key that verifies checkpoints
    Key(key::Args),
}

/// Runs the command; exit code 0 if verified, 1 if not, 2 on an error.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
    match &args.verb {
        Verb::Tail(tail) => tail::run(tail, args, out, err),
        Verb::Show(show) => show::run(show, args, out, err),
        Verb::Stats(stats) => stats::run(stats, args, out, err),
        Verb::Verify(verify) => verify::run(verify, args, out, err),
        Verb::Key(key) => key::run(key, args, out),
    }
}

impl Args {
    /// Returns the audit section of the config; the default without a config file.
    fn audit(&self) -> Result<AuditConfig, Vec<Fault>> {
        self.config.find_if_any().map_or_else(
            || Ok(AuditConfig::default()),
            |file| config::load_audit(&file),
        )
    }

    /// Opens the given log, or that of the config, for reading.
    fn open(&self, log_file: Option<&PathBuf>) -> Result<(PathBuf, Log), Exit> {
        let path = self.log(log_file)?;
        let log = Log::open(&path).map_err(|error| {
            fault(
                &error.to_string(),
                "name its file, or start the gateway that writes it",
            )
        })?;
        Ok((path, log))
    }

    /// Returns the path of the given log, or that of the config.
    fn log(&self, log_file: Option<&PathBuf>) -> Result<PathBuf, Exit> {
        if let Some(file) = log_file {
            return Ok(file.clone());
        }
        match self.audit()?.to {
            Some(AuditTo::File(file)) => Ok(file),
            Some(AuditTo::Stdout) => Err(fault(
                "the log is written to standard output",
                "pass the file in which it is stored",
            )),
            None => Err(fault(
                "no audit log configured",
                "name its file, or the gateway's config with `--config FILE`",
            )),
        }
    }
}

fn fault(message: &str, hint: &str) -> Exit {
    vec![Fault::of_file("audit", message.to_owned(), Some(hint))].into()
}
