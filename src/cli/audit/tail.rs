//! `lychgate audit tail`: prints the log as it grows, in readable form.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::filter_args::FilterArgs;
use super::summary::format_brief;
use crate::cli::exit::Exit;
use crate::review::{Entries, Entry, Filter, Follow, Log};

/// Interval at which the file is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `lychgate audit tail`.
#[derive(clap::Args)]
#[command(after_help = "\
Follows the log across rotation and truncation until interrupted. Rotated files
are searched for the first lines.

Examples:
  lychgate audit tail --verdict block
  lychgate audit tail --since 24h --upstream github --no-follow")]
pub(super) struct Args {
    /// Audit log; defaults to that of the config
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Number of lines to show first
    #[arg(short = 'n', long, value_name = "LINES", default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=100_000))]
    lines: u32,
    /// Exit after showing them
    #[arg(long)]
    no_follow: bool,
    /// Print the lines as written
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
    let (path, log) = audit_args.open(args.file.as_ref())?;
    let mut follow = Follow::new(&path);
    let filter = args.wanted.filter();
    let colour = io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let print_entry = |entry: &Entry, out: &mut dyn Write| match args.json {
        true => writeln!(out, "{}", entry.raw()),
        false => writeln!(out, "{}", format_brief(entry, colour)),
    };
    let limit = args.lines as usize;
    let mut last = VecDeque::new();
    while let Some(entry) = follow.poll() {
        match entry {
            Ok(entry) => push_entry(&mut last, entry, &filter, limit),
            Err(bad) => report_bad_line(&bad, err)?,
        }
    }
    for entry in &read_rotated(&log, &filter, limit.saturating_sub(last.len()))? {
        print_entry(entry, out)?;
    }
    for entry in last {
        print_entry(&entry, out)?;
    }
    out.flush()?;
    if args.no_follow {
        return Ok(0);
    }
    loop {
        std::thread::sleep(POLL_INTERVAL);
        while let Some(entry) = follow.poll() {
            match entry {
                Ok(entry) if filter.matches_filter(&entry) => print_entry(&entry, out)?,
                Ok(_) => {}
                Err(bad) => report_bad_line(&bad, err)?,
            }
        }
        out.flush()?;
    }
}

/// Returns the last `limit` lines of the rotated files.
fn read_rotated(log: &Log, filter: &Filter, limit: usize) -> io::Result<VecDeque<Entry>> {
    let mut lines: VecDeque<Entry> = VecDeque::new();
    let log = log.clone().since(filter.since);
    for file in log.rotated_files()?.into_iter().rev() {
        let missing = limit.saturating_sub(lines.len());
        if missing == 0 {
            break;
        }
        let mut last = VecDeque::new();
        // `audit verify` reports unreadable lines.
        Entries::read_file(&file)?
            .flatten()
            .for_each(|entry| push_entry(&mut last, entry, filter, missing));
        last.append(&mut lines);
        lines = last;
    }
    Ok(lines)
}

fn push_entry(last: &mut VecDeque<Entry>, entry: Entry, filter: &Filter, limit: usize) {
    if limit == 0 || !filter.matches_filter(&entry) {
        return;
    }
    if last.len() == limit {
        last.pop_front();
    }
    last.push_back(entry);
}

fn report_bad_line(bad: &crate::review::BadLine, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "{}:{}: {}", bad.file.display(), bad.line, bad.why)
}
