//! `lychgate explain AUDIT-ID`: explains a verdict and how to allow the message.

mod print;

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;

use super::config_file::{ConfigArg, WrapConfig};
use super::exit::{Exit, error, fault_text};
use super::progress::run_with_progress;
use super::review_args;
use crate::review::explain::{
    Explanation, RepeatedRefusal, describe_repeated, explain, may_be_earlier,
};
use crate::review::{AuditIds, Entry, Log};
use crate::text::escape_invisible;

/// Which message, and where to look for it.
#[derive(clap::Args)]
pub(super) struct Query {
    /// Audit id from a notice, a refusal or the audit log; its last 8 characters are enough
    audit: String,
    #[command(flatten)]
    config: ConfigArg,
    /// Audit log; defaults to that of the config
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Policy for upstreams that the config does not name (`lychgate wrap`)
    #[arg(long, default_value = "default", value_name = "NAME")]
    policy: String,
}

impl Query {
    /// Returns the config file, if one is named or found.
    pub(super) fn config(&self) -> Option<PathBuf> {
        self.config.find_if_any()
    }

    /// Returns the config file that `lychgate wrap` uses, if one is named or found.
    pub(super) fn config_of_wrap(&self) -> Option<WrapConfig> {
        self.config.find_for_wrap()
    }

    /// Explains the lines with that id, of which there is at least one. Shows progress on `err`.
    pub(super) fn explain(&self, err: &mut dyn Write) -> Result<Vec<LineExplanation>, Exit> {
        let search = || explain_lines(self);
        let all = run_with_progress("searching the audit log", err, search)?.map_err(error)?;
        if all.is_empty() {
            return Err(error(format!(
                "the audit log contains no message with the id `{}`\n  hint: `lychgate audit tail` shows ids; it may have been \
                 rotated out and deleted, or be in another gateway's log (`--log FILE`)",
                escape_invisible(&self.audit)
            )));
        }
        Ok(all)
    }
}

/// What to explain.
#[derive(clap::Args)]
#[command(after_help = "\
Shows each reading of the text, what matched, the rule with its test cases, and
the suppression that would let the message pass. Overlapping findings form one
entry, strongest first; `lychgate suppress AUDIT-ID --finding N` suppresses one.
A call that was refused as a repeat was not inspected: the earlier call is named.

Examples:
  lychgate explain 4f2a9c1b
  lychgate explain --all --json 4f2a9c1b

Exit codes: 0 explained; 2 not found, ambiguous id, or an error.")]
pub(super) struct Args {
    #[command(flatten)]
    query: Query,
    /// Also explain findings that were only logged
    #[arg(long)]
    all: bool,
    /// Print one JSON document: a list with an entry for each message with the id
    #[arg(long)]
    json: bool,
}

/// The explanation of one line.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum LineExplanation {
    /// The line of a judged message.
    Judged(Box<Explanation>),
    /// The line of a call that was refused without being judged.
    Repeated(Box<RepeatedRefusal>),
}

impl Args {
    /// Explains the lines; exit code 0 if the message is found, 2 if the id is unknown or something
    /// cannot be read.
    ///
    /// # Errors
    /// The lines cannot be explained, or the output cannot be written.
    pub(super) fn run(&self, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
        let all = self.query.explain(err)?;
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &all).map_err(io::Error::from)?;
            writeln!(out)?;
            return Ok(0);
        }
        let style = print::Style {
            marks: print::marks(),
            includes_logged: self.all,
        };
        for explanation in &all {
            let text = match explanation {
                LineExplanation::Judged(one) => print::format_explanation(one, &style),
                LineExplanation::Repeated(one) => print::format_repeated(one),
            };
            out.write_all(text.as_bytes())?;
        }
        Ok(0)
    }
}

/// Explains the lines with that id.
fn explain_lines(args: &Query) -> Result<Vec<LineExplanation>, String> {
    let ids = AuditIds::read(&args.audit)?;
    let config = review_args::config(&args.config).map_err(fault_text)?;
    let judges = review_args::policy_set(&config, &args.policy).map_err(fault_text)?;
    let log = review_args::log(args.log.as_deref(), &config)?;
    let stores = review_args::stores(&config)?;
    let log = Log::open(&log).map_err(|error| error.to_string())?;
    let lines = || {
        log.entries()
            .flatten()
            .filter(|entry| matches!(&*entry.event(), "judged" | "refused_again"))
    };
    let Some(id) = ids.resolve(lines().filter_map(|entry| review_args::id(&entry)))? else {
        return Ok(Vec::new());
    };
    let has_id = |entry: &Entry| review_args::id(entry) == Some(id);
    let mut all = Vec::new();
    for entry in lines().filter(has_id) {
        if entry.event() == "refused_again" {
            let earlier_lines = lines().take_while(|line| !has_id(line));
            let earlier = earlier_lines
                .filter(|line| may_be_earlier(line, &entry))
                .last();
            all.push(LineExplanation::Repeated(Box::new(describe_repeated(
                &entry,
                earlier.as_ref(),
            ))));
            continue;
        }
        let stored = review_args::stored_message(&stores, id)?;
        let explanation = explain(&entry, stored.as_ref(), &judges);
        let explanation = explanation.map_err(|missing| {
            format!(
                "{}\n  hint: pass the config with `--config FILE`",
                missing.words()
            )
        })?;
        all.push(LineExplanation::Judged(Box::new(explanation)));
    }
    Ok(all)
}
