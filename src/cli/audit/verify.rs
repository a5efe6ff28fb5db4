//! `lychgate audit verify`: verifies that the log has not been modified.

use std::io::{self, Write};
use std::path::PathBuf;

use super::{fault, key};
use crate::cli::exit::Exit;
use crate::cli::format_count;
use crate::cli::progress::run_with_progress;
use crate::record::PublicKey;
use crate::record::verify::{Report, TrustAnchors, verify};

/// Arguments of `lychgate audit verify`.
#[derive(clap::Args)]
#[command(after_help = "\
Each line carries the digest of the line before it. A file beside the log holds
checkpoints: signed records of its length and digest. Rotated files, compressed
or not, by the gateway or by logrotate, are included.

Undetectable changes by someone who can write to these files
  without the key: editing or truncating lines after the last checkpoint;
    truncating both the log and its checkpoints to the same point
  with the key, or if verified with the key beside the log: rewriting everything
  with `--anchors` and `--key` from another machine: nothing before the last anchor
Therefore export checkpoints (`anchor_command`, `anchor_url` under `[audit]`) and
store the output of `lychgate audit key` elsewhere.

An incomplete last line (after a crash) is reported; it is not tampering.

Exit codes: 0 verified; 1 not verified; 2 error.")]
pub(super) struct Args {
    /// Audit log; defaults to that of the config
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Trusted public key, as `lychgate audit key` prints it; may be repeated
    #[arg(long, value_name = "PUBLIC")]
    key: Vec<String>,
    /// File of checkpoints stored elsewhere, one per line; may be repeated
    #[arg(long, value_name = "FILE")]
    anchors: Vec<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(super) fn run(
    args: &Args,
    audit_args: &super::Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Exit> {
    let log = audit_args.log(args.file.as_ref())?;
    let mut keys = Vec::new();
    for text in &args.key {
        let hint = "use the format that `lychgate audit key` prints: `ed25519:` and 44 characters";
        keys.push(
            PublicKey::parse(text)
                .ok_or_else(|| fault("`--key` is not a valid public key", hint))?,
        );
    }
    // If the log is given, no config is needed: one that cannot be read only prevents its key from
    // being found.
    let config = if args.file.is_some() {
        audit_args.audit().unwrap_or_default()
    } else {
        audit_args.audit()?
    };
    let log_key = if keys.is_empty() {
        key::find_log_key(&log, &config)
    } else {
        None
    };
    keys.extend(log_key.as_ref().map(|(_, key)| *key));
    let trust = match (&log_key, args.key.is_empty()) {
        (_, false) => Trust::Given,
        (Some(_), true) => Trust::Beside,
        (None, true) => Trust::None,
    };
    let trust_anchors = TrustAnchors {
        keys,
        anchors: args.anchors.clone(),
    };
    let activity = format!("reading `{}` and its rotated files", log.display());
    let report = run_with_progress(activity, err, || verify(&log, &trust_anchors))?;
    let report = report.map_err(|error| {
        fault(
            &error.to_string(),
            "name the log, as in `lychgate audit verify audit.jsonl`",
        )
    })?;
    if args.json {
        print_json(&report, trust, out)?;
    } else {
        print_text(&report, trust, out, err)?;
    }
    Ok(u8::from(!report.is_verified()))
}

enum_with_names! {
    /// The origin of the key.
    #[derive(Clone, Copy)]
    enum Trust {
        Given = "given",
        Beside = "found",
        None = "none",
    }
}

fn print_json(report: &Report, trust: Trust, out: &mut dyn Write) -> io::Result<()> {
    let mut document = serde_json::to_value(report)?;
    if let Some(members) = document.as_object_mut() {
        members.insert("sound".to_owned(), report.is_verified().into());
        members.insert("key".to_owned(), trust.name().into());
    }
    writeln!(out, "{document}")
}

fn print_text(
    report: &Report,
    trust: Trust,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<()> {
    for flaw in &report.flaws {
        let line = flaw.line.map(|line| format!(":{line}")).unwrap_or_default();
        writeln!(out, "{}{line}: {}", flaw.file.escape_debug(), flaw.what)?;
    }
    if report.more_flaws > 0 {
        writeln!(out, "and {} more", report.more_flaws)?;
    }
    for torn in &report.torn {
        let explanation = if torn.closed {
            "the gateway resumed after it, and the log records that"
        } else {
            "the log ends there"
        };
        let file = torn.file.escape_debug();
        let line = torn.line;
        let bytes = torn.bytes;
        // If there are other problems, the incomplete line may be part of them.
        let harmless = if report.is_verified() {
            ". This is not tampering."
        } else {
            ""
        };
        writeln!(
            out,
            "{file}:{line}: {bytes} bytes of an incomplete line: {explanation}{harmless}"
        )?;
    }
    if let Some(through) = report.removed_through {
        writeln!(
            out,
            "lines 1 to {through} were removed by retention, as recorded"
        )?;
    }
    let files = report.files.len();
    let files = format_count(files, "file");
    let lines = format_count(report.lines, "line");
    match (report.first_seq, report.last_seq) {
        (Some(first), Some(last)) => writeln!(out, "{lines} in {files}: {first} to {last}")?,
        _ => writeln!(out, "no line in {files}")?,
    }
    let anchors = if report.anchors > 0 {
        format!(", {}", format_count(report.anchors, "anchor"))
    } else {
        String::new()
    };
    let signature_text = match trust {
        Trust::Given | Trust::Beside => format!("{} with a valid signature", report.signed),
        Trust::None => "signatures not checked".to_owned(),
    };
    write!(
        out,
        "{}{anchors}, {signature_text}",
        format_count(report.checkpoints, "checkpoint")
    )?;
    match report.vouched_through {
        Some(through) => writeln!(out, "; they cover the log up to line {through}")?,
        None => writeln!(out)?,
    }
    writeln!(
        out,
        "{}",
        if report.is_verified() {
            "the log is verified"
        } else {
            "the log is NOT verified"
        }
    )?;
    match trust {
        Trust::Beside => writeln!(
            err,
            "hint: the key was read from this machine; for stronger evidence pass a copy kept elsewhere with `--key`"
        ),
        Trust::None => writeln!(
            err,
            "hint: without a key, checkpoint signatures are not checked: pass `--key`"
        ),
        Trust::Given => Ok(()),
    }
}
