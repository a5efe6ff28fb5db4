//! `lychgate pins`: shows pinned definitions and their changes, and approves or rejects changes.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Subcommand;

use super::config_file::ConfigArg;
use super::exit::Exit;
use crate::config::{self, ChangeClass, PinsConfig};
use crate::document::Fault;
use crate::inspect::definitions::{Content, Key, Kind, Pin, diff_lines};
use crate::pins::{Lock, LockFile};
use crate::seal::state_folder;

/// Arguments of `lychgate pins`.
#[derive(clap::Args)]
#[command(after_help = "\
A running gateway applies approvals and resets within two seconds, and notifies
agents of the changed list if their connection and the server support it. The
lock file is `file` under `[pins]`; otherwise the one that `lychgate run` keeps
in the state folder for this config or, without a config, that of `lychgate wrap`.

Examples:
  lychgate pins diff
  lychgate pins approve github")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    config: ConfigArg,
    /// Lock file; defaults to that of the config
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// List pinned definitions and changes held for approval
    List {
        #[command(flatten)]
        which: PinFilter,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show the differences between held and pinned definitions
    Diff(PinFilter),
    /// Approve held changes
    Approve(SelectedPins),
    /// Remove pins; the next list of the server is pinned as new
    Reset(SelectedPins),
}

#[derive(clap::Args)]
struct PinFilter {
    /// The upstream; left out, all
    upstream: Option<String>,
    /// The tool, prompt, resource or template; left out, all
    name: Option<String>,
}

#[derive(clap::Args)]
struct SelectedPins {
    /// The upstream
    #[arg(required_unless_present = "all")]
    upstream: Option<String>,
    /// The tool, prompt, resource or template; left out, all of the upstream
    name: Option<String>,
    /// Those of every upstream
    #[arg(long, conflicts_with = "upstream")]
    all: bool,
}

/// Runs the command; exit code 0 on success without held changes, 1 if changes are held or nothing
/// matches, 2 if the file cannot be used.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let outcome = args.file().and_then(|file| match &args.verb {
        Verb::List { which, json: false } => file.read().map(|lock| list(&lock, which, out)),
        Verb::List { which, json: true } => file.read().map(|lock| list_json(&lock, which, out)),
        Verb::Diff(which) => file.read().map(|lock| diff(&lock, which, out)),
        Verb::Approve(selection) => file
            .edit(|lock| approve(lock, selection))
            .map(|changed| report_changes(&changed, "approved", out, err)),
        Verb::Reset(selection) => file
            .edit(|lock| reset(lock, selection))
            .map(|changed| report_changes(&changed, "reset", out, err)),
    });
    outcome.unwrap_or_else(|faults| Exit::from(faults).report(err))
}

impl Args {
    fn file(&self) -> Result<LockFile, Vec<Fault>> {
        let lock_file = match &self.file {
            Some(file) => Some(file.clone()),
            None => match self.config.find_if_any() {
                Some(config) => {
                    config::load_pins(&config)?
                        .with_default_file(state_folder(), &config)
                        .file
                }
                None => None,
            },
        };
        let hint = "pass `--file FILE`, or set `file` under `[pins]`";
        let no_file = || vec![Fault::of_file("--file", "no lock file", Some(hint))];
        lock_file
            .or_else(PinsConfig::user_lock_file)
            .map(LockFile::new)
            .ok_or_else(no_file)
    }
}

/// Reports whether a pin matches the names given on the command line.
fn is_selected(upstream: Option<&str>, name: Option<&str>, pin_upstream: &str, key: &Key) -> bool {
    upstream.is_none_or(|upstream| upstream == pin_upstream)
        && name.is_none_or(|name| name == &*key.name)
}

fn selected_pins<'l>(
    lock: &'l Lock,
    filter: &'l PinFilter,
) -> impl Iterator<Item = (&'l str, &'l Key, &'l Pin)> {
    let all = lock
        .iter()
        .flat_map(|(upstream, pins)| pins.iter().map(move |(key, pin)| (upstream, key, pin)));
    all.filter(|(upstream, key, _)| {
        is_selected(
            filter.upstream.as_deref(),
            filter.name.as_deref(),
            upstream,
            key,
        )
    })
}

fn list(lock: &Lock, filter: &PinFilter, out: &mut dyn Write) -> io::Result<u8> {
    let mut has_held = false;
    let mut found_any = false;
    for (upstream, key, pin) in selected_pins(lock, filter) {
        (found_any, has_held) = (true, has_held || pin.pending.is_some());
        let digest = pin
            .content
            .as_ref()
            .map_or_else(|| "-".repeat(12), |content| shorten(&content.digest()));
        write!(
            out,
            "{digest}  {}  {} {}",
            escape_name(upstream),
            key.kind.name(),
            escape_name(&key.name)
        )?;
        match &pin.pending {
            Some(held) => writeln!(out, "  waits: {}", class_names(&held.classes))?,
            None => writeln!(out)?,
        }
    }
    if !found_any {
        writeln!(out, "no pins")?;
    }
    Ok(u8::from(has_held))
}

fn list_json(lock: &Lock, filter: &PinFilter, out: &mut dyn Write) -> io::Result<u8> {
    let mut has_held = false;
    let all: Vec<_> = selected_pins(lock, filter)
        .map(|(upstream, key, pin)| {
            has_held |= pin.pending.is_some();
            serde_json::json!({
                "upstream": upstream,
                "kind": key.kind.name(),
                "name": &*key.name,
                "sha256": pin.content.as_ref().map(Content::digest),
                "waits": pin.pending.as_ref().map(|held| held.classes.iter().map(|class| class.name()).collect::<Vec<_>>()),
            })
        })
        .collect();
    writeln!(out, "{}", serde_json::Value::from(all))?;
    Ok(u8::from(has_held))
}

fn diff(lock: &Lock, filter: &PinFilter, out: &mut dyn Write) -> io::Result<u8> {
    let mut found_any = false;
    for (upstream, key, pin) in selected_pins(lock, filter) {
        let Some(held) = &pin.pending else { continue };
        found_any = true;
        writeln!(
            out,
            "{} {} {}: {}",
            escape_name(upstream),
            key.kind.name(),
            escape_name(&key.name),
            class_names(&held.classes)
        )?;
        let old = pin
            .content
            .as_ref()
            .map(Content::pretty)
            .unwrap_or_default();
        for (mark, line) in diff_lines(&old, &held.content.pretty()) {
            writeln!(out, "{mark} {line}")?;
        }
        writeln!(out)?;
    }
    if !found_any {
        writeln!(out, "no held changes")?;
    }
    Ok(u8::from(found_any))
}

/// The changed pins: upstream, kind and name.
type ChangedPins = Vec<(String, Kind, String)>;

fn approve(lock: &mut Lock, selection: &SelectedPins) -> ChangedPins {
    change_pins(
        lock,
        selection,
        |pin| pin.pending.is_some(),
        |pins, key, pin| {
            if let Some(held) = pin.pending {
                pins.insert(
                    key,
                    Pin {
                        content: Some(held.content),
                        pending: None,
                    },
                );
            }
        },
    )
}

fn reset(lock: &mut Lock, selection: &SelectedPins) -> ChangedPins {
    change_pins(
        lock,
        selection,
        |_| true,
        |pins, key, _| {
            pins.remove(&key);
        },
    )
}

fn change_pins(
    lock: &mut Lock,
    selection: &SelectedPins,
    is_eligible: impl Fn(&Pin) -> bool,
    apply: impl Fn(&mut crate::inspect::definitions::Pins, Key, Pin),
) -> ChangedPins {
    let all = lock.iter().flat_map(|(upstream, pins)| {
        pins.iter()
            .map(move |(key, pin)| (upstream.to_owned(), key, pin))
    });
    let matching = all.filter(|(upstream, key, pin)| {
        is_selected(
            selection.upstream.as_deref(),
            selection.name.as_deref(),
            upstream,
            key,
        ) && is_eligible(pin)
    });
    let selected: Vec<(String, Key, Pin)> = matching
        .map(|(upstream, key, pin)| (upstream, key.clone(), pin.clone()))
        .collect();
    let mut changed = ChangedPins::new();
    for (upstream, key, pin) in selected {
        changed.push((upstream.clone(), key.kind, key.name.to_string()));
        apply(lock.upstream_mut(&upstream), key, pin);
    }
    changed
}

fn report_changes(
    changed: &ChangedPins,
    action: &str,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    for (upstream, kind, name) in changed {
        writeln!(
            out,
            "{} {} {}: {action}",
            escape_name(upstream),
            kind.name(),
            escape_name(name)
        )?;
    }
    if changed.is_empty() {
        writeln!(
            err,
            "no match\n  hint: `lychgate pins list` shows pins and held changes"
        )?;
    }
    Ok(u8::from(changed.is_empty()))
}

fn class_names(classes: &[ChangeClass]) -> String {
    classes
        .iter()
        .map(|class| class.name())
        .collect::<Vec<_>>()
        .join(", ")
}

fn shorten(digest: &str) -> String {
    digest.chars().take(12).collect()
}

/// Escapes a name from a server for display on a terminal.
pub(super) fn escape_name(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            if c.is_alphanumeric() || (' '..='~').contains(&c) {
                c.to_string()
            } else {
                c.escape_unicode().to_string()
            }
            .chars()
            .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests;
