//! `lychgate suppress AUDIT-ID`: suppresses a false positive.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use super::admin_client::{self, Reloads};
use super::confirm::{confirm, require_terminal};
use super::exit::{Exit, error, fault_text};
use super::explain::{LineExplanation, Query};
use crate::config;
use crate::document::Day;
use crate::review::explain::{Explanation, FindingExplanation};
use crate::review::suppress::{Decision, add_suppressions};
use crate::text::escape_invisible;

/// How long a running gate may take to apply a changed config.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which to check whether it has.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// What to suppress, and why.
#[derive(clap::Args)]
#[command(after_help = "\
Shows the tables to be added to the config, what else they cover, and whether the
message would pass; then prompts. The tables are as narrow as possible: the rules,
the tool, the location in the message, and the digest of the matched text. The rest
of the file is unchanged. A running gateway applies the change automatically.

Example:
  lychgate suppress 4f2a9c1b --reason \"ops: our own runbook\" --until 2027-01-31

Exit codes: 0 written; 1 not written or not applied; 2 error.")]
pub(super) struct Args {
    #[command(flatten)]
    query: Query,
    /// Only this finding, by its number in `lychgate explain`; defaults to all
    #[arg(long, value_name = "N")]
    finding: Option<usize>,
    /// Who decided this and why; recorded in the config and with each suppressed finding
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Last day on which it applies, at most a year ahead; defaults to 90 days from today
    #[arg(long, value_name = "YYYY-MM-DD")]
    until: Option<String>,
    /// Also suppress findings without a digest (secrets, personal data): this covers everything the
    /// rule finds there
    #[arg(long)]
    wide: bool,
    /// Write without asking
    #[arg(long)]
    yes: bool,
}

impl Args {
    /// Writes the suppressions; exit code 0 if they are written, 1 if they are not or a gate rejects
    /// them, 2 if they cannot be written.
    pub(super) fn run(&self, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
        let file = self.file()?;
        let decision = Decision::read(&self.reason, self.until.as_deref()).map_err(error)?;
        let all = self.query.explain(err)?;
        let mut messages = Vec::new();
        for explanation in &all {
            match explanation {
                LineExplanation::Judged(one) => messages.push(&**one),
                LineExplanation::Repeated(one) => {
                    return Err(error(repeat_error(one.earlier.as_deref())));
                }
            }
        }
        let findings = self.selected_findings(&messages)?;
        let policy = messages
            .first()
            .map(|one| one.policy.clone())
            .unwrap_or_default();
        let note = wrap_note(&file, &messages, &self.query)?;
        let suppressions = decision.suppressions(findings.iter().copied());
        let today = Day::after(SystemTime::now(), 0)
            .map(|day| day.text)
            .unwrap_or_default();
        let ids = messages
            .first()
            .map(|one| one.audit.clone())
            .unwrap_or_default();
        let actor = super::quarantine::current_actor(None).who;
        let comment = format!("lychgate suppress: audit {ids}, {today}, by {actor}");
        let edit = add_suppressions(&file, &policy, &suppressions, &comment).map_err(|faults| {
            error(format!(
                "`{}` is unchanged, since the result would be invalid:\n{}",
                file.display(),
                fault_text(&faults)
            ))
        })?;
        writeln!(
            out,
            "To be added to `{}`:\n\n{}",
            file.display(),
            edit.added_text()
        )?;
        for covers in findings
            .iter()
            .filter_map(|finding| finding.covers.as_ref())
        {
            writeln!(out, "{covers}")?;
        }
        writeln!(
            out,
            "{}",
            describe_outcome(&messages, self.finding.is_some())
        )?;
        if let Some(note) = &note {
            writeln!(out, "{note}")?;
        }
        out.flush()?;
        require_terminal(self.yes, "write it")?;
        if !self.yes && !confirm("Write this? [y/N] ", err)? {
            writeln!(err, "Nothing was written.")?;
            return Ok(1);
        }
        let admin = find_admin(&file);
        let reloads_before = admin.and_then(admin_client::fetch_reloads);
        edit.write().map_err(|failed| {
            let hint = "run this as the user who owns the file, or paste the tables into it";
            error(format!(
                "`{}` cannot be written: {failed}\n  hint: {hint}",
                file.display()
            ))
        })?;
        writeln!(out, "Written to `{}`.", file.display())?;
        if note.is_some() {
            return Ok(0);
        }
        wait_until_applied(admin, reloads_before, out, err)
    }

    /// Returns the config file to write to.
    fn file(&self) -> Result<PathBuf, Exit> {
        let file = match self.query.config() {
            Some(file) if file.is_file() => return Ok(file),
            Some(file) => format!("config file `{}`", file.display()),
            None => "config file".to_owned(),
        };
        let hint = "pass `--config FILE`, or create `~/.config/lychgate/lychgate.toml` with `[policy.default]`, which `lychgate wrap` reads too; pass the audit log with `--log FILE`";
        Err(error(format!("no {file} to write to\n  hint: {hint}")))
    }

    /// Returns the findings to suppress.
    fn selected_findings<'e>(
        &self,
        messages: &[&'e Explanation],
    ) -> Result<Vec<&'e FindingExplanation>, Exit> {
        let all: Vec<&FindingExplanation> = messages.iter().flat_map(|one| &one.findings).collect();
        let selected: Vec<&FindingExplanation> = match self.finding {
            None => all
                .into_iter()
                .filter(|finding| !finding.tables.is_empty())
                .collect(),
            Some(_) if messages.len() > 1 => {
                return Err(error(
                    "the id belongs to a batch of messages: remove `--finding`, or add the tables from `lychgate explain` manually",
                ));
            }
            Some(n) => match n.checked_sub(1).and_then(|at| all.get(at)) {
                Some(finding) if finding.tables.is_empty() => {
                    return Err(error(format!(
                        "finding {n} cannot be suppressed: {}",
                        finding.note.as_deref().unwrap_or_default()
                    )));
                }
                Some(finding) => vec![*finding],
                None => {
                    return Err(error(format!(
                        "no finding {n}: `lychgate explain` lists 1 to {}",
                        all.len()
                    )));
                }
            },
        };
        if selected.is_empty() {
            let notes = messages
                .iter()
                .flat_map(|one| &one.findings)
                .filter_map(|finding| finding.note.as_deref())
                .next();
            let why = notes
                .or_else(|| messages.iter().find_map(|one| one.lacks))
                .unwrap_or("it has no findings");
            return Err(error(format!("nothing to suppress: {why}")));
        }
        if let Some(finding) = selected.iter().find(|finding| finding.wide && !self.wide) {
            let covers = finding.covers.as_deref().unwrap_or_default();
            return Err(error(format!(
                "finding `{}` has no narrow suppression. {covers}\n  hint: `--wide` adds it anyway",
                finding.id
            )));
        }
        Ok(selected)
    }
}

/// Returns the error for a call that was refused without being judged.
fn repeat_error(earlier: Option<&str>) -> String {
    let hint = earlier.map_or(
        "suppress the earlier call, by its id in the audit log".to_owned(),
        |id| format!("`lychgate suppress {id}`"),
    );
    format!(
        "the call was refused as a repeat of an earlier one, without inspection\n  hint: {hint}"
    )
}

/// Returns a note for messages of a server that is not in the config: it was started by `lychgate
/// wrap`.
///
/// # Errors
/// The config was found in a place where `wrap` does not look, so that an edit of it would have no
/// effect.
fn wrap_note(
    file: &Path,
    messages: &[&Explanation],
    query: &Query,
) -> Result<Option<String>, Exit> {
    let config = config::load_policies(file).map_err(|faults| error(fault_text(&faults)))?;
    let is_configured = |one: &&&Explanation| config.upstreams.contains_key(&one.upstream);
    let Some(message) = messages.iter().find(|one| !is_configured(one)) else {
        return Ok(None);
    };
    let name = escape_invisible(&message.upstream);
    match query.config_of_wrap() {
        Some(read) if read.path() == file => {}
        read => {
            let hint = match read {
                Some(read) => format!(
                    "pass its config with `--config FILE`; the default is `{}`",
                    read.path().display()
                ),
                None => "pass its config with `--config FILE`".to_owned(),
            };
            return Err(error(format!(
                "`{name}` is served by `lychgate wrap`, which does not read `{}`\n  hint: {hint}",
                file.display()
            )));
        }
    }
    Ok(Some(format!(
        "`lychgate wrap` applies it at the next start of `{name}` with this config."
    )))
}

/// Describes the effect on the message.
fn describe_outcome(messages: &[&Explanation], only_one: bool) -> &'static str {
    if only_one {
        "Other findings of the message still apply."
    } else if messages
        .iter()
        .any(|one| one.suppressed_passes != Some(true))
    {
        "Even with this the message does not pass unchanged."
    } else if messages.iter().any(|one| one.lacks.is_some()) {
        "With this the logged text passes. The original message may not: the log does not contain all of it."
    } else {
        "With this the message passes."
    }
}

/// Returns the admin address of a config's gate.
fn find_admin(file: &Path) -> Option<SocketAddr> {
    config::load_admin(file)
        .ok()?
        .0
        .address
        .map(admin_client::reachable_address)
}

/// Reports when the change is in effect.
fn wait_until_applied(
    admin: Option<SocketAddr>,
    reloads_before: Option<Reloads>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Exit> {
    let (Some(admin), Some(before)) = (admin, reloads_before) else {
        writeln!(
            out,
            "A running gate with this config applies it within two seconds; otherwise it applies at the next start."
        )?;
        return Ok(0);
    };
    let start_time = Instant::now();
    while start_time.elapsed() < RELOAD_TIMEOUT {
        match admin_client::fetch_reloads(admin) {
            Some(now) if now.refused > before.refused => {
                writeln!(
                    err,
                    "The gate at {admin} rejected the config and keeps the old rules; see its log."
                )?;
                return Ok(1);
            }
            Some(now) if now.applied > before.applied => {
                writeln!(out, "In force at the gate at {admin}.")?;
                return Ok(0);
            }
            _ => sleep(POLL_INTERVAL),
        }
    }
    writeln!(
        err,
        "The gate at {admin} has not reloaded its config: it may use another one."
    )?;
    Ok(1)
}
