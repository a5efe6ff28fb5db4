//! `lychgate audit stats`: counts the contents of the log.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use super::filter_args::FilterArgs;
use crate::document::Fault;
use crate::message::quote;
use crate::record::terminal_safe;
use crate::review::{Log, NameCounts, Stats};
use crate::text::cut;

/// Maximum length of a bar, in cells.
const BAR: u64 = 24;
/// Interval between progress reports.
const NOTE: Duration = Duration::from_secs(1);

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
    all: &super::Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<io::Result<u8>, Vec<Fault>> {
    let (_, log) = all.open(args.file.as_ref())?;
    Ok(count(args, &log, err).and_then(|stats| {
        let most = usize::from(args.top);
        if args.json {
            document(&stats, most, out)
        } else {
            table(&stats, most, out)
        }
        .map(|()| 0)
    }))
}

fn count(args: &Args, log: &Log, err: &mut dyn Write) -> io::Result<Stats> {
    let filter = args.wanted.filter();
    let log = filter
        .since
        .map_or_else(|| log.clone(), |since| log.clone().since(since));
    let mut stats = Stats::default();
    let mut noted = Instant::now();
    let mut shown = false;
    let mut read = 0u64;
    let shows = io::stderr().is_terminal();
    for entry in log.entries() {
        match entry {
            Ok(entry) => {
                read += 1;
                if filter.matches_filter(&entry) {
                    stats.add(&entry);
                }
            }
            Err(_) => stats.add_bad(),
        }
        if shows && read.is_multiple_of(1024) && noted.elapsed() > NOTE {
            write!(err, "\r{read} lines…")?;
            err.flush()?;
            (noted, shown) = (Instant::now(), true);
        }
    }
    if shown {
        write!(err, "\r\u{1b}[K")?;
    }
    Ok(stats)
}

fn lists(stats: &Stats) -> [(&'static str, &NameCounts); 6] {
    [
        ("verdicts", &stats.verdicts),
        ("rules", &stats.rules),
        ("tools", &stats.tools),
        ("upstreams", &stats.upstreams),
        ("agents", &stats.agents),
        ("events", &stats.events),
    ]
}

fn time(time: Option<SystemTime>) -> Option<String> {
    time.map(|time| humantime::format_rfc3339_seconds(time).to_string())
}

fn table(stats: &Stats, most: usize, out: &mut dyn Write) -> io::Result<()> {
    let span = |at| time(at).unwrap_or_else(|| "-".to_owned());
    writeln!(
        out,
        "{} lines, {} to {}",
        stats.lines,
        span(stats.from),
        span(stats.to)
    )?;
    if stats.bad > 0 {
        writeln!(
            out,
            "{} unreadable lines: see `lychgate audit verify`",
            stats.bad
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
    for (name, top) in lists(stats) {
        let first = top.first(most);
        let Some((_, highest)) = first.first().copied().filter(|(_, highest)| *highest > 0) else {
            continue;
        };
        writeln!(out, "\n{name}")?;
        for (name, count) in &first {
            let bar = "█".repeat(count.saturating_mul(BAR).div_ceil(highest).min(BAR) as usize);
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

fn document(stats: &Stats, most: usize, out: &mut dyn Write) -> io::Result<()> {
    let moment = |at| time(at).map_or_else(|| "null".to_owned(), |text| quote(&text));
    write!(
        out,
        r#"{{"lines":{},"bad":{},"bytes":{},"from":{},"to":{},"partial":{},"uninspected_bytes":{},"injections":{},"injection_matches":{}"#,
        stats.lines,
        stats.bad,
        stats.bytes,
        moment(stats.from),
        moment(stats.to),
        stats.partial,
        stats.uninspected_bytes,
        stats.injections,
        stats.injection_matches
    )?;
    for (name, top) in lists(stats) {
        let first: Vec<String> = top
            .first(most)
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
