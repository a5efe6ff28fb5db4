//! `lychgate audit key`: prints the public key, to be stored safely elsewhere.

use std::io::Write;
use std::path::PathBuf;

use super::fault;
use crate::cli::exit::Exit;
use crate::config::AuditConfig;
use crate::record::PublicKey;

/// Arguments of `lychgate audit key`.
#[derive(clap::Args)]
#[command(after_help = "\
Store the output on another machine and pass it to `lychgate audit verify --key`.
A key that is stored beside the log is weak evidence: anyone who can replace the
log can replace the key too.")]
pub(super) struct Args {
    /// Key file; defaults to that of the config
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print one JSON document, with the key id that checkpoints use
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, audit_args: &super::Args, out: &mut dyn Write) -> Result<u8, Exit> {
    let file = match &args.file {
        Some(file) => file.clone(),
        None => audit_args.audit()?.key().ok_or_else(|| {
            fault(
                "no key configured",
                "name its file with `--file FILE`, or a config with `--config FILE`",
            )
        })?,
    };
    let hint = "the gateway creates it when it first opens its log; reading it may require the gateway's user";
    let key = PublicKey::of_file(&file).map_err(|error| fault(&error.to_string(), hint))?;
    if args.json {
        writeln!(
            out,
            "{}",
            serde_json::json!({ "public_key": key.to_string(), "id": key.id() })
        )?;
    } else {
        writeln!(out, "{key}")?;
    }
    Ok(0)
}

/// Returns the key that signs a log's checkpoints, if it can be found on this machine.
pub(super) fn find_log_key(
    log: &std::path::Path,
    config: &AuditConfig,
) -> Option<(PathBuf, PublicKey)> {
    let file = config
        .key_file
        .clone()
        .unwrap_or_else(|| AuditConfig::key_beside(log));
    PublicKey::of_file(&file).ok().map(|key| (file, key))
}
