//! `lychgate audit show`: prints all lines of one judgement, and of its call.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::summary::{format_brief, format_value};
use crate::cli::exit::Exit;
use crate::cli::progress::run_with_progress;
use crate::cli::review_args;
use crate::record::entry::member;
use crate::record::terminal_safe;
use crate::review::{AuditIds, Entry, Log};

/// Maximum number of lines that are shown for one id.
const MAX_LINES: usize = 1000;
/// Maximum time between a request and a response that is looked for.
const MAX_CALL_DURATION: Duration = Duration::from_secs(3600);

/// Arguments of `lychgate audit show`.
#[derive(clap::Args)]
#[command(after_help = "\
Shows each line with the id, and the other half of its call: the request of an
answer, or the answer to a request.

Exit codes: 0 found; 2 not found, or ambiguous id.")]
pub(super) struct Args {
    /// Audit id from a refusal, notice or log line; its last 8 characters are enough
    #[arg(value_name = "ID")]
    id: String,
    /// Audit log; defaults to that of the config
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the lines as written
    #[arg(long)]
    json: bool,
}

pub(super) fn run(
    args: &Args,
    audit_args: &super::Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Exit> {
    let (path, log) = audit_args.open(args.file.as_ref())?;
    let usage = |message: String| {
        let (what, hint) = message.split_once("\n  hint: ").unwrap_or((&message, ""));
        super::fault(what, hint)
    };
    let query = AuditIds::read(&args.id).map_err(usage)?;
    let result = run_with_progress(format!("searching `{}`", path.display()), err, || {
        let ids = log
            .entries()
            .flatten()
            .filter_map(|entry| review_args::id(&entry));
        Ok(query
            .resolve(ids)?
            .map(|id| find_call(&log, id.0))
            .unwrap_or_default())
    });
    let entries = result?.map_err(usage)?;
    if entries.is_empty() {
        let hint = "`lychgate audit tail` shows ids; it may have been rotated out and deleted, or be in another gateway's log";
        return Err(super::fault(
            &format!(
                "`{}` contains no line with the id `{}`",
                path.display(),
                query.display()
            ),
            hint,
        ));
    }
    for entry in &entries {
        if args.json {
            writeln!(out, "{}", entry.raw())?;
        } else {
            write_entry(entry, out)?;
        }
    }
    Ok(0)
}

fn has_id(entry: &Entry, id: uuid::Uuid) -> bool {
    entry
        .get(member::audit)
        .is_some_and(|audit| *audit == *id.to_string())
}

/// Returns the lines of an id and of the call that it belongs to, in order.
fn find_call(log: &Log, id: uuid::Uuid) -> Vec<Entry> {
    // The id contains its time (UUID version 7), so older files are skipped.
    let created = id.get_timestamp().map(|stamp| stamp.to_unix());
    let created =
        created.map(|(seconds, nanos)| SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos));
    let since = created.and_then(|created| created.checked_sub(MAX_CALL_DURATION));
    let log = log.clone().since(since);
    let mut entries: Vec<Entry> = log
        .entries()
        .flatten()
        .filter(|entry| has_id(entry, id))
        .take(MAX_LINES)
        .collect();
    let Some(half) = entries
        .iter()
        .find(|entry| entry.event() == "judged" && entry.get(member::request).is_some())
        .cloned()
    else {
        return entries;
    };
    let other_direction = if half.get(member::direction).as_deref() == Some("outbound") {
        "inbound"
    } else {
        "outbound"
    };
    let is_other_half = |entry: &Entry| {
        entry.event() == "judged"
            && entry.get(member::direction).as_deref() == Some(other_direction)
            && [
                member::request::NAME,
                member::agent::NAME,
                member::upstream::NAME,
                member::session::NAME,
                member::user::NAME,
                member::method::NAME,
            ]
            .iter()
            .all(|name| entry.text(name) == half.text(name))
    };
    let mut is_before = true;
    let mut other: Option<Entry> = None;
    for entry in log.entries().flatten() {
        is_before &= !has_id(&entry, id);
        // For a request, the first response after it; for a response, the last request before it.
        if is_other_half(&entry) && is_before == (other_direction == "outbound") {
            other = Some(entry);
            if !is_before {
                break;
            }
        }
        if !is_before && other_direction == "outbound" {
            break;
        }
    }
    match other {
        Some(other) if other_direction == "outbound" => entries.insert(0, other),
        Some(other) if entries.iter().all(|entry| entry.raw() != other.raw()) => {
            entries.push(other)
        }
        _ => {}
    }
    entries
}

/// Writes a line with all its members.
fn write_entry(entry: &Entry, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", format_brief(entry, false))?;
    for (name, value) in entry.root().members() {
        match &*name {
            member::findings::NAME | member::uninspected::NAME => {
                for item in value.elements() {
                    let parts: Vec<String> = item
                        .members()
                        .map(|(name, value)| {
                            format!("{} {}", terminal_safe(&name), format_value(value))
                        })
                        .collect();
                    let what = if name == member::findings::NAME {
                        "found"
                    } else {
                        "not inspected"
                    };
                    writeln!(out, "    {what}: {}", parts.join(", "))?;
                }
            }
            _ => writeln!(out, "    {}: {}", terminal_safe(&name), format_value(value))?,
        }
    }
    writeln!(out)
}
