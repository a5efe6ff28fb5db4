//! `lychgate audit show`: prints all lines of one judgement, and of its call.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::summary::{brief, plain};
use crate::cli::progress::patiently;
use crate::cli::review_args;
use crate::document::Fault;
use crate::record::entry::member;
use crate::record::terminal_safe;
use crate::review::{AuditIds, Entry, Log};

/// Maximum number of lines that are shown for one id.
const LINES: usize = 1000;
/// Maximum time between a request and a response that is looked for.
const CALL: Duration = Duration::from_secs(3600);

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
    all: &super::Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<io::Result<u8>, Vec<Fault>> {
    let (path, log) = all.open(args.file.as_ref())?;
    let usage = |message: String| {
        let (what, hint) = message.split_once("\n  hint: ").unwrap_or((&message, ""));
        super::fault(what, hint)
    };
    let named = AuditIds::read(&args.id).map_err(usage)?;
    let looked = patiently(format!("searching `{}`", path.display()), err, || {
        let ids = log
            .entries()
            .flatten()
            .filter_map(|entry| review_args::id(&entry));
        Ok(named
            .one_of(ids)?
            .map(|id| call(&log, id.0))
            .unwrap_or_default())
    });
    let entries = match looked {
        Ok(entries) => entries.map_err(usage)?,
        Err(error) => return Ok(Err(error)),
    };
    if entries.is_empty() {
        let hint = "`lychgate audit tail` shows ids; it may have been rotated out and deleted, or be in another gateway's log";
        return Err(super::fault(
            &format!(
                "`{}` contains no line with the id `{}`",
                path.display(),
                named.display()
            ),
            hint,
        ));
    }
    Ok(entries
        .iter()
        .try_for_each(|entry| {
            if args.json {
                writeln!(out, "{}", entry.raw())
            } else {
                whole(entry, out)
            }
        })
        .map(|()| 0))
}

fn is(entry: &Entry, id: uuid::Uuid) -> bool {
    entry
        .get(member::audit)
        .is_some_and(|audit| *audit == *id.to_string())
}

/// Returns the lines of an id and of the call that it belongs to, in order.
fn call(log: &Log, id: uuid::Uuid) -> Vec<Entry> {
    // The id contains its time (UUID version 7), so older files are skipped.
    let made = id.get_timestamp().map(|stamp| stamp.to_unix());
    let made = made.map(|(seconds, nanos)| SystemTime::UNIX_EPOCH + Duration::new(seconds, nanos));
    let log = made
        .and_then(|made| made.checked_sub(CALL))
        .map_or_else(|| log.clone(), |since| log.clone().since(since));
    let mut found: Vec<Entry> = log
        .entries()
        .flatten()
        .filter(|entry| is(entry, id))
        .take(LINES)
        .collect();
    let Some(half) = found
        .iter()
        .find(|entry| entry.event() == "judged" && entry.get(member::request).is_some())
        .cloned()
    else {
        return found;
    };
    let wants = if half.get(member::direction).as_deref() == Some("outbound") {
        "inbound"
    } else {
        "outbound"
    };
    let same = |entry: &Entry| {
        entry.event() == "judged"
            && entry.get(member::direction).as_deref() == Some(wants)
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
    let mut before = true;
    let mut other: Option<Entry> = None;
    for entry in log.entries().flatten() {
        before &= !is(&entry, id);
        // For a request, the first response after it; for a response, the last request before it.
        if same(&entry) && before == (wants == "outbound") {
            other = Some(entry);
            if !before {
                break;
            }
        }
        if !before && wants == "outbound" {
            break;
        }
    }
    match other {
        Some(other) if wants == "outbound" => found.insert(0, other),
        Some(other) if found.iter().all(|entry| entry.raw() != other.raw()) => found.push(other),
        _ => {}
    }
    found
}

/// Writes a line with all its members.
fn whole(entry: &Entry, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", brief(entry, false))?;
    for (name, value) in entry.root().members() {
        match &*name {
            member::findings::NAME | member::uninspected::NAME => {
                for one in value.elements() {
                    let parts: Vec<String> = one
                        .members()
                        .map(|(name, value)| format!("{} {}", terminal_safe(&name), plain(value)))
                        .collect();
                    let what = if name == member::findings::NAME {
                        "found"
                    } else {
                        "not inspected"
                    };
                    writeln!(out, "    {what}: {}", parts.join(", "))?;
                }
            }
            _ => writeln!(out, "    {}: {}", terminal_safe(&name), plain(value))?,
        }
    }
    writeln!(out)
}
