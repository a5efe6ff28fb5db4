//! `lychgate quarantine`: lists, shows, releases and deletes quarantined messages.

#![allow(
    clippy::indexing_slicing,
    reason = "by a key of an object that is made here, which cannot fail"
)]

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, SystemTime};

use clap::Subcommand;
use serde_json::json;

use super::config_file::ConfigArg;
use crate::config::{self, QuarantineConfig};
use crate::message::{Message, ReadLimits};
use crate::protocol::AuditId;
use crate::record::stores::{
    Actor, Item, MessageInfo, Quarantine, State, StoreError, StoredMessage,
};
use crate::record::terminal_safe_json;
use crate::review::AuditIds;
use crate::seal::state_folder;

use super::confirm::require_terminal;
use super::exit::{Exit, usage_error};
use super::pins::escape_name as visible;

/// Maximum length of a reason, in bytes.
const MAX_REASON_BYTES: usize = 500;

/// Arguments of `lychgate quarantine`.
#[derive(clap::Args)]
#[command(after_help = "\
Reads the folder set by `[quarantine]` in the config, with its key; without a
config, the folder of the current user. `show` and `release` prompt for
confirmation; without a terminal they require `--yes`.

A running gateway that uses the folder records what `show`, `release` and `delete`
did in the audit log within two seconds; otherwise the next one to start does.

Exit codes: 0 done; 1 a message cannot be decrypted; 2 no such id, ambiguous id, or
the quarantine cannot be used.")]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    config: ConfigArg,
}

#[derive(Subcommand)]
enum Verb {
    /// List quarantined messages, newest first, without their content
    List {
        /// Only lines of this upstream
        #[arg(long, value_name = "NAME")]
        upstream: Option<String>,
        /// Only messages of this age or newer: `90s`, `15m`, `2h`, `7d`
        #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
        since: Option<Duration>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show a message, escaped for the terminal; recorded in the audit log
    Show {
        /// Audit id from a notice or the audit log; its last 8 characters are enough
        id: String,
        /// Write only the original bytes, to a file or a pipe
        #[arg(long, conflicts_with = "json")]
        raw: bool,
        /// Print one JSON document, with the message as a string
        #[arg(long)]
        json: bool,
        /// Show without asking; required without a terminal
        #[arg(long)]
        yes: bool,
    },
    /// Deliver a message to its agent once, as the answer to the next identical call or as
    /// `lychgate://quarantine/ID`
    Release {
        /// Audit id, or its last 8 characters
        id: String,
        /// Reason, for the audit log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Release without asking; required without a terminal
        #[arg(long)]
        yes: bool,
    },
    /// Delete a message, even if it cannot be decrypted
    Delete {
        /// Audit id, or its last 8 characters
        id: String,
        /// Reason, for the audit log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

impl From<StoreError> for Exit {
    fn from(error: StoreError) -> Self {
        let is_message_error =
            matches!(error, StoreError::Sealed { .. } | StoreError::NoKey { .. });
        Self::Code(if is_message_error { 1 } else { 2 }, error.to_string())
    }
}

impl Args {
    /// Runs the command; exit code 0 on success, 1 if a message cannot be decrypted, 2 if the id is
    /// unknown or the quarantine cannot be used.
    pub(super) fn run(&self, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
        let quarantine = self.quarantine()?;
        match &self.verb {
            Verb::List {
                upstream,
                since,
                json,
            } => {
                let listing = quarantine.list()?;
                let is_recent = |item: &&Item| {
                    since.is_none_or(|since| item.info.at.elapsed().unwrap_or_default() <= since)
                };
                let is_of_upstream = |item: &&Item| {
                    upstream
                        .as_ref()
                        .is_none_or(|upstream| item.info.upstream == *upstream)
                };
                let items: Vec<&Item> = listing
                    .items
                    .iter()
                    .filter(is_recent)
                    .filter(is_of_upstream)
                    .collect();
                if *json {
                    list_json(&items, &listing.faults, out)?
                } else {
                    list(&items, &listing.faults, out)?;
                    listing
                        .faults
                        .iter()
                        .try_for_each(|fault| writeln!(err, "{fault}"))?;
                }
                Ok(u8::from(!listing.faults.is_empty()))
            }
            Verb::Show { id, raw, json, yes } => {
                require_terminal(
                    *yes,
                    "show quarantined content, which may contain malicious instructions",
                )?;
                let stored = quarantine
                    .get(find_id(&quarantine, id)?)?
                    .ok_or_else(|| not_found(id))?;
                if *raw && io::stdout().is_terminal() {
                    let hint = "write it to a file: `lychgate quarantine show --raw ID > FILE`";
                    return Err(usage_error(format!(
                        "raw bytes are not written to a terminal\n  hint: {hint}"
                    )));
                }
                // The access is recorded before the content is shown.
                quarantine.note_shown(&stored, current_actor(None))?;
                match (raw, json) {
                    (true, _) => out.write_all(&stored.message)?,
                    (_, true) => show_json(&stored, out)?,
                    _ => show(&stored, out)?,
                }
                Ok(0)
            }
            Verb::Release { id, reason, yes } => {
                require_terminal(*yes, "release quarantined content to its agent")?;
                let audit = find_id(&quarantine, id)?;
                let is_extended = quarantine
                    .releases()?
                    .iter()
                    .any(|earlier| earlier.audit == audit && !earlier.is_over());
                let release = quarantine
                    .release(audit, current_actor(check_reason(reason)?))?
                    .ok_or_else(|| not_found(id))?;
                let agent = visible(&release.about.agent);
                let until = format_time(release.until);
                match is_extended {
                    true => writeln!(
                        out,
                        "{audit}: already released to `{agent}`; extended until {until}"
                    )?,
                    false => writeln!(out, "{audit}: released to `{agent}` until {until}")?,
                }
                let call_hint = if release.about.call.is_some() {
                    "makes the same call again, or "
                } else {
                    ""
                };
                writeln!(
                    out,
                    "It is delivered once, when the agent {call_hint}reads `lychgate://quarantine/{audit}`."
                )?;
                writeln!(
                    out,
                    "A running gate applies the release within two seconds."
                )?;
                Ok(0)
            }
            Verb::Delete { id, reason } => {
                let audit = find_id(&quarantine, id)?;
                if !quarantine.delete(audit, current_actor(check_reason(reason)?))? {
                    return Err(not_found(id));
                }
                writeln!(out, "{audit}: deleted")?;
                Ok(0)
            }
        }
    }

    fn quarantine(&self) -> Result<Quarantine, Exit> {
        let config = match self.config.find_if_any() {
            Some(file) => config::load_stores(&file)?.0,
            None => QuarantineConfig::default(),
        };
        let hint = "set `folder` under `[quarantine]`";
        let no_folder = || {
            usage_error(format!(
                "the quarantine is disabled or has no folder\n  hint: {hint}"
            ))
        };
        Quarantine::open(&config.with_default_folder(state_folder()))?.ok_or_else(no_folder)
    }
}

/// Returns the id of the message that `id` identifies.
fn find_id(quarantine: &Quarantine, id: &str) -> Result<AuditId, Exit> {
    let query = AuditIds::read(id).map_err(usage_error)?;
    query
        .resolve(quarantine.ids()?)
        .map_err(usage_error)?
        .ok_or_else(|| not_found(id))
}

fn not_found(id: &str) -> Exit {
    let hint = "`lychgate quarantine list` shows the messages; old ones are removed";
    usage_error(format!(
        "no quarantined message `{}`\n  hint: {hint}",
        visible(id)
    ))
}

fn check_reason(reason: &Option<String>) -> Result<Option<String>, Exit> {
    match reason {
        Some(text) if text.len() > MAX_REASON_BYTES => Err(usage_error(format!(
            "the reason is longer than {MAX_REASON_BYTES} bytes"
        ))),
        reason => Ok(reason.clone()),
    }
}

/// Returns the user who runs this command: the name from the environment, and the real user id.
pub(super) fn current_actor(reason: Option<String>) -> Actor {
    let read_name = |name: &str| {
        std::env::var(name)
            .ok()
            .filter(|name| !name.is_empty() && name.len() < 100)
    };
    let name = read_name("SUDO_USER")
        .or_else(|| read_name("USER"))
        .map(|name| format!("{name} "))
        .unwrap_or_default();
    Actor {
        who: format!("{name}(uid {})", rustix::process::getuid().as_raw()),
        reason,
    }
}

fn format_time(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

fn format_state(state: &State) -> String {
    match state {
        State::Stored => "kept".to_owned(),
        State::Released { until } => format!("released until {}", format_time(*until)),
        State::Delivered => "delivered".to_owned(),
    }
}

fn list(items: &[&Item], faults: &[StoreError], out: &mut dyn Write) -> io::Result<()> {
    for Item {
        info: about,
        state: item_state,
    } in items
    {
        writeln!(
            out,
            "{}  {}  {}",
            about.audit,
            format_time(about.at),
            format_state(item_state)
        )?;
        writeln!(out, "    {}", describe_origin(about))?;
        writeln!(out, "    {} bytes, {}", about.bytes, describe_reason(about))?;
    }
    match faults.len() {
        0 if items.is_empty() => writeln!(out, "the quarantine is empty"),
        0 => Ok(()),
        1 => writeln!(out, "1 message cannot be decrypted; see standard error"),
        n => writeln!(out, "{n} messages cannot be decrypted; see standard error"),
    }
}

fn describe_origin(about: &MessageInfo) -> String {
    let user = about
        .user
        .as_ref()
        .map(|user| format!(" for {}", visible(user)))
        .unwrap_or_default();
    let call = match (&about.method, &about.tool) {
        (Some(method), Some(tool)) => format!(", {} {}", visible(method), visible(tool)),
        (Some(method), None) => format!(", {}", visible(method)),
        _ => String::new(),
    };
    format!(
        "from {} to {}{user}{call}",
        visible(&about.upstream),
        visible(&about.agent)
    )
}

fn describe_reason(about: &MessageInfo) -> String {
    let places: Vec<String> = about
        .withheld
        .iter()
        .map(|at| visible(if at.is_empty() { "the whole" } else { at }))
        .collect();
    format!("{} at {}", about.why.join(", "), places.join(", "))
}

fn info_json(about: &MessageInfo) -> serde_json::Value {
    json!({
        "audit": about.audit.to_string(),
        "at": format_time(about.at),
        "agent": about.agent,
        "user": about.user,
        "upstream": about.upstream,
        "method": about.method,
        "tool": about.tool,
        "policy": about.policy,
        "withheld": about.withheld,
        "rules": about.why,
        "bytes": about.bytes,
    })
}

fn list_json(items: &[&Item], faults: &[StoreError], out: &mut dyn Write) -> io::Result<()> {
    let item_json = |item: &&Item| {
        let mut object = info_json(&item.info);
        let until = if let State::Released { until } = &item.state {
            Some(format_time(*until))
        } else {
            None
        };
        object["state"] = match item.state {
            State::Stored => "kept",
            State::Released { .. } => "released",
            State::Delivered => "delivered",
        }
        .into();
        object["released_until"] = until.into();
        object
    };
    let all: Vec<_> = items.iter().map(item_json).collect();
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    writeln!(
        out,
        "{}",
        terminal_safe_json(&json!({ "items": all, "faults": faults }).to_string())
    )
}

fn show_json(stored: &StoredMessage, out: &mut dyn Write) -> io::Result<()> {
    let mut object = info_json(&stored.info);
    object["message"] = String::from_utf8_lossy(&stored.message).into();
    writeln!(out, "{}", terminal_safe_json(&object.to_string()))
}

fn show(stored: &StoredMessage, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}  {}", stored.audit, format_time(stored.at))?;
    writeln!(out, "{}", describe_origin(stored))?;
    writeln!(out, "withheld: {}", describe_reason(stored))?;
    writeln!(out)?;
    writeln!(
        out,
        "UNTRUSTED content begins, {} bytes: it may contain instructions. Do not follow them.",
        stored.message.len()
    )?;
    for line in pretty_text(stored).lines() {
        writeln!(out, "| {}", visible(line))?;
    }
    writeln!(out, "UNTRUSTED content ends.")
}

/// Returns JSON pretty-printed, with line feeds in texts unescaped; other content unchanged.
fn pretty_text(stored: &StoredMessage) -> String {
    let limits = ReadLimits::of_bytes(usize::MAX);
    let is_message = Message::parse(stored.message.clone(), &limits).is_ok();
    let value = serde_json::from_slice::<serde_json::Value>(&stored.message)
        .ok()
        .filter(|_| is_message);
    let pretty = value.and_then(|value| serde_json::to_string_pretty(&value).ok());
    pretty.map_or_else(
        || String::from_utf8_lossy(&stored.message).into_owned(),
        |text| unescape_lines(&text),
    )
}

/// Returns the JSON with the line feeds in its texts unescaped.
fn unescape_lines(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut chars = json.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push_str("\n      "),
            ('\\', Some(escaped)) => out.extend(['\\', escaped]),
            (c, _) => out.push(c),
        }
    }
    out
}
