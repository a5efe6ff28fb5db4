//! `lychgate audit stats`: counts the contents of the log.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use super::filter_args::FilterArgs;
use crate::cli::exit::Exit;
use crate::message::quote;
use crate::record::terminal_safe;
use crate::review::{Log, NameCounts, Stats};
use crate::text::cut;

/// Maximum length of a bar, in cells.
const BAR_CELLS: u64 = 24;
/// Interval between progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Arguments of `lychgate audit stats`.
#[derive(clap::Args)]
#[command(after_help = "\
Counts the selected lines of the log and its rotated files.")]
pub(super) struct Args {
    /// Audit log; defaults to that of the config
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Number of entries to show of each
    #[arg(short = 'n', long, value_name = "NAMES", default_value_t = 10)]
    top: u16,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    wanted: FilterArgs,
}

pub(super) fn run(
    args: &Args,
    audit_args: &super::Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Exit> {
    let (_, log) = audit_args.open(args.file.as_ref())?;
    let stats = count(args, &log, err)?;
    let limit = usize::from(args.top);
    if args.json {
        document(&stats, limit, out)?;
    } else {
        table(&stats, limit, out)?;
    }
    Ok(0)
}

fn count(args: &Args, log: &Log, err: &mut dyn Write) -> io::Result<Stats> {
    let filter = args.wanted.filter();
    let log = log.clone().since(filter.since);
    let mut stats = Stats::default();
    let mut last_report = Instant::now();
    let mut has_progress = false;
    let mut line_count = 0u64;
    let shows_progress = io::stderr().is_terminal();
    for entry in log.entries() {
        match entry {
            Ok(entry) => {
                line_count += 1;
                if filter.matches_filter(&entry) {
                    stats.add(&entry);
                }
            }
            Err(_) => stats.add_bad(),
        }
        if shows_progress
            && line_count.is_multiple_of(1024)
            && last_report.elapsed() > PROGRESS_INTERVAL
        {
            write!(err, "\r{line_count} lines…")?;
            err.flush()?;
            (last_report, has_progress) = (Instant::now(), true);
        }
    }
    if has_progress {
        write!(err, "\r\u{1b}[K")?;
    }
    Ok(stats)
}

fn named_counts(stats: &Stats) -> [(&'static str, &NameCounts); 6] {
    [
        ("verdicts", &stats.verdicts),
        ("rules", &stats.rules),
        ("tools", &stats.tools),
        ("upstreams", &stats.upstreams),
        ("agents", &stats.agents),
        ("events", &stats.events),
    ]
}

fn format_time(time: Option<SystemTime>) -> Option<String> {
    time.map(|time| humantime::format_rfc3339_seconds(time).to_string())
}

fn table(stats: &Stats, limit: usize, out: &mut dyn Write) -> io::Result<()> {
    let span = |at| format_time(at).unwrap_or_else(|| "-".to_owned());
    writeln!(
        out,
        "{} lines, {} to {}",
        stats.lines,
        span(stats.from),
        span(stats.to)
    )?;
    if stats.bad_lines > 0 {
        writeln!(
            out,
            "{} unreadable lines: see `lychgate audit verify`",
            stats.bad_lines
        )?;
    }
    if stats.partial > 0 {
        writeln!(
            out,
            "{} messages were only partially inspected: {} bytes were not",
            stats.partial, stats.uninspected_bytes
        )?;
    }
    if stats.injections > 0 {
        let matches = stats.injection_matches;
        writeln!(
            out,
            "injections found in {} messages ({matches} matches)",
            stats.injections
        )?;
    }
    for (name, top) in named_counts(stats) {
        let first = top.first(limit);
        let Some((_, highest)) = first.first().copied().filter(|(_, highest)| *highest > 0) else {
            continue;
        };
        writeln!(out, "\n{name}")?;
        for (name, count) in &first {
            let bar = "█".repeat(
                count
                    .saturating_mul(BAR_CELLS)
                    .div_ceil(highest)
                    .min(BAR_CELLS) as usize,
            );
            writeln!(
                out,
                "  {count:>9}  {bar:<24}  {}",
                terminal_safe(cut(name, 80))
            )?;
        }
        let rest = top.len().saturating_sub(first.len());
        if rest > 0 {
            writeln!(out, "             and {rest} more")?;
        }
        if top.others() > 0 {
            writeln!(out, "  {:>9}  of other names", top.others())?;
        }
    }
    Ok(())
}

fn document(stats: &Stats, limit: usize, out: &mut dyn Write) -> io::Result<()> {
    let json_time = |at| format_time(at).map_or_else(|| "null".to_owned(), |text| quote(&text));
    write!(
        out,
        r#"{{"lines":{},"bad":{},"bytes":{},"from":{},"to":{},"partial":{},"uninspected_bytes":{},"injections":{},"injection_matches":{}"#,
        stats.lines,
        stats.bad_lines,
        stats.bytes,
        json_time(stats.from),
        json_time(stats.to),
        stats.partial,
        stats.uninspected_bytes,
        stats.injections,
        stats.injection_matches
    )?;
    for (name, top) in named_counts(stats) {
        let first: Vec<String> = top
            .first(limit)
            .iter()
            .map(|(name, count)| format!(r#"{{"name":{},"count":{count}}}"#, quote(name)))
            .collect();
        write!(
            out,
            r#","{name}":{{"different":{},"others":{},"first":[{}]}}"#,
            top.len(),
            top.others(),
            first.join(",")
        )?;
    }
    writeln!(out, "}}")
}
