//! `lychgate replay --rules CANDIDATE [AUDIT…]`: tests rule changes against recorded messages.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use uuid::Uuid;

use super::audit::time;
use super::config_file::ConfigArg;
use super::exit::{Exit, error, fault_text};
use super::review_args::{self, EvidenceReader};
use crate::config::{self, Config};
use crate::review::replay::{Class, Replay, Report};
use crate::review::{AuditIds, Log, PolicySet};
use crate::rules::Library;

/// Interval between progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// What to judge, and by which rules.
#[derive(clap::Args)]
#[command(after_help = "\
Judges each recorded message with the rules in force, as a control, and with the
candidate, and reports what only the candidate would change. Messages that are
masked or truncated in the log are skipped; `evidence = \"sealed\"` in a policy
stores whole messages.

Examples:
  lychgate replay --rules ./rules --since 7d
  lychgate replay --policy-config new.toml --fail-on newly-blocked

Exit codes: 0 no change; 1 changes, as selected by `--fail-on`; 2 nothing was
tested (no message left to judge, unknown id), or an error.")]
#[command(group = clap::ArgGroup::new("candidate").required(true))]
pub(super) struct Args {
    /// Candidate rules: a folder that replaces each policy's own folders, or a file added to them
    #[arg(long, value_name = "PATH", group = "candidate")]
    rules: Option<PathBuf>,
    /// Candidate config file
    #[arg(long, value_name = "FILE", group = "candidate")]
    policy_config: Option<PathBuf>,
    /// Only messages with these ids (or their last 8 characters); defaults to the whole log
    audit: Vec<String>,
    #[command(flatten)]
    config: ConfigArg,
    /// Audit log; defaults to that of the config
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Policy for upstreams that the config does not name (`lychgate wrap`)
    #[arg(long, default_value = "default", value_name = "NAME")]
    policy: String,
    /// Only messages since this time: an age (`36h`), a date, or a time (`2026-11-22T06:00:00Z`)
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<SystemTime>,
    /// Changes for which the exit code is 1
    #[arg(long, value_enum, default_value = "any")]
    fail_on: FailOn,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    NewlyBlocked,
    NewlyPassed,
    Any,
}

/// Replays the messages; exit code 0 if there are no changes, 1 if there are changes selected by
/// `--fail-on`, 2 if nothing was tested or something cannot be read.
///
/// # Errors
/// The output cannot be written.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
    let (report, duration) = run_replay(args, err).map_err(error)?;
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &report).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        out.write_all(format_report(&report).as_bytes())?;
    }
    let a_second = report.replayed as f64 / duration.as_secs_f64().max(1e-9);
    writeln!(
        err,
        "{} messages judged twice in {:.1} s ({a_second:.0} a second)",
        report.replayed,
        duration.as_secs_f64()
    )?;
    if let Some(why) = untested_reason(&report, args) {
        return Err(error(format!("nothing was tested: {why}")));
    }
    let failed = match args.fail_on {
        FailOn::NewlyBlocked => report.count(Class::NewlyBlocked) > 0,
        FailOn::NewlyPassed => report.count(Class::NewlyPassed) > 0,
        FailOn::Any => !report.is_unchanged(),
    };
    Ok(u8::from(failed))
}

/// Returns why no message was judged, if none was.
fn untested_reason(report: &Report, args: &Args) -> Option<String> {
    let none_read = report.messages == 0 && report.bad_lines > 0;
    match report {
        Report { replayed: 1.., .. } => None,
        Report {
            messages: all @ 1..,
            ..
        } => Some(format!(
            "none of the {all} recorded messages could be judged again; see the report\n  hint: `evidence = \"sealed\"` in a policy stores whole messages"
        )),
        _ if none_read => Some(format!(
            "no message was left to judge, and {} lines cannot be read",
            report.bad_lines
        )),
        _ if args.since.is_some() => Some("the log contains no message since `--since`".to_owned()),
        _ => Some("the log contains no judged message".to_owned()),
    }
}

fn run_replay(args: &Args, err: &mut dyn Write) -> Result<(Report, Duration), String> {
    let config = review_args::config(&args.config).map_err(fault_text)?;
    let since = args.since;
    let log = Log::open(&review_args::log(args.log.as_deref(), &config)?)
        .map_err(|error| error.to_string())?
        .since(since);
    let selected = args
        .audit
        .iter()
        .map(|id| find_message(id, &log))
        .collect::<Result<BTreeSet<_>, _>>()?;
    let mut seen = BTreeSet::new();
    let start = Instant::now();
    let mut last_progress = Instant::now();
    let shows_progress = io::stderr().is_terminal();
    let stores = review_args::stores(&config)?;
    let mut evidence = EvidenceReader::open(&stores)?;
    // Loading rules runs their test cases, so arguments and the log are checked first.
    let current = review_args::policy_set(&config, &args.policy).map_err(fault_text)?;
    let candidate = load_candidate(args, &config, err)?;
    let mut replay = Replay::new(&current, &candidate);
    for (n, entry) in log.entries().enumerate() {
        let Ok(entry) = entry else {
            replay.count_bad_line();
            continue;
        };
        let is_old = since.is_some_and(|since| entry.time().is_some_and(|time| time < since));
        let id = review_args::id(&entry);
        if !selected.is_empty() {
            let Some(id) = id.filter(|id| entry.event() == "judged" && selected.contains(&id.0))
            else {
                continue;
            };
            seen.insert(id.0);
        }
        if is_old {
            continue;
        }
        let stored_message = id.and_then(|id| evidence.get(id));
        replay.add(&entry, stored_message.as_ref());
        if shows_progress && last_progress.elapsed() > PROGRESS_INTERVAL {
            last_progress = Instant::now();
            write!(err, "\r{n} lines")
                .and_then(|()| err.flush())
                .map_err(|error| error.to_string())?;
        }
    }
    if shows_progress && start.elapsed() > PROGRESS_INTERVAL {
        write!(err, "\r").map_err(|error| error.to_string())?;
    }
    match selected.difference(&seen).next() {
        Some(id) => Err(not_found(&id.to_string())),
        None => Ok((replay.report(), start.elapsed())),
    }
}

/// Returns the id of the judged message that an argument identifies.
fn find_message(id: &str, log: &Log) -> Result<Uuid, String> {
    let query = AuditIds::read(id)?;
    let judged = log
        .entries()
        .flatten()
        .filter(|entry| entry.event() == "judged");
    let found = query.resolve(judged.filter_map(|entry| review_args::id(&entry)))?;
    found
        .map(|id| id.0)
        .ok_or_else(|| not_found(query.display()))
}

fn not_found(id: &str) -> String {
    format!(
        "the audit log contains no message with the id `{id}`\n  hint: `lychgate audit tail` shows ids"
    )
}

fn load_candidate(args: &Args, config: &Config, err: &mut dyn Write) -> Result<PolicySet, String> {
    let mut candidate_config = match &args.policy_config {
        Some(file) => config::load_policies(file).map_err(fault_text)?,
        None => config.clone(),
    };
    if let Some(path) = &args.rules {
        if !path.exists() {
            return Err(format!("there is no `{}`", path.display()));
        }
        if Library::read(false, std::slice::from_ref(path))
            .is_ok_and(|library| library.rules().is_empty())
        {
            let rest = if path.is_dir() {
                "only the built-in rules, if its policy uses them"
            } else {
                "only the rules in force"
            };
            writeln!(
                err,
                "note: `{}` contains no rules: the candidate consists of {rest}",
                path.display()
            )
            .map_err(|error| error.to_string())?;
        }
        for policy in candidate_config.policies.values_mut() {
            if path.is_dir() {
                policy.rules.clear();
            }
            policy.rules.push(path.clone());
        }
    }
    review_args::policy_set(&candidate_config, &args.policy).map_err(fault_text)
}

fn format_report(report: &Report) -> String {
    let mut out = format!(
        "{} recorded messages, {} judged again\n\n",
        report.messages, report.replayed
    );
    for class in Class::ALL {
        out += &format!("{:>9}  {}\n", report.count(class), class.name());
    }
    if report.only_observed > 0 {
        out += &format!(
            "{:>9}  of the newly passed are due to observe mode of the candidate (`mode = \"observe\"`)\n",
            report.only_observed
        );
    }
    for (missing, count) in &report.not_replayed {
        out += &format!("{count:>9}  not judged again: {}\n", missing.words());
    }
    if report.bad_lines > 0 {
        out += &format!("{:>9}  lines that cannot be read\n", report.bad_lines);
    }
    if report.rules.values().any(|hits| hits.before != hits.after) {
        out += "\nMessages matched per rule, before and after:\n";
    }
    for (rule, hits) in report
        .rules
        .iter()
        .filter(|(_, hits)| hits.before != hits.after)
    {
        out += &format!("{:>9} {:>9}  {rule}\n", hits.before, hits.after);
    }
    for class in Class::ALL {
        let examples: Vec<_> = report
            .examples
            .iter()
            .filter(|example| example.class == class)
            .collect();
        if examples.is_empty() {
            continue;
        }
        out += &format!("\nFor example, {}:\n", class.name());
        for example in examples {
            let tool = example
                .tool
                .as_deref()
                .map(|tool| format!(" `{tool}`"))
                .unwrap_or_default();
            let verdict_then = &example.recorded;
            let rules = if example.rules.is_empty() {
                String::new()
            } else {
                format!("  ({})", example.rules.join(", "))
            };
            out += &format!(
                "  {}  {} `{}` `{}`{tool}\n",
                example.audit, example.time, example.agent, example.upstream
            );
            out += &format!(
                "    was `{verdict_then}`, now `{}`, would be `{}`{rules}\n",
                example.before, example.after
            );
            if !example.shown.is_empty() {
                out += &format!("    {}\n", example.shown);
            }
        }
    }
    out
}
