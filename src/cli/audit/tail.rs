//! `lychgate audit tail`: prints the log as it grows, in readable form.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::filter_args::FilterArgs;
use super::summary::brief;
use crate::document::Fault;
use crate::review::{Entries, Entry, Filter, Follow, Log};

/// Interval at which the file is checked.
const LOOK: Duration = Duration::from_millis(200);

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
    all: &super::Args,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<io::Result<u8>, Vec<Fault>> {
    let (path, log) = all.open(args.file.as_ref())?;
    Ok(tail(args, &log, Follow::new(&path), out, err))
}

fn tail(
    args: &Args,
    log: &Log,
    mut follow: Follow,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<u8> {
    let filter = args.wanted.filter();
    let colour = io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let show = |entry: &Entry, out: &mut dyn Write| match args.json {
        true => writeln!(out, "{}", entry.raw()),
        false => writeln!(out, "{}", brief(entry, colour)),
    };
    let most = args.lines as usize;
    let mut last = VecDeque::new();
    while let Some(entry) = follow.poll() {
        match entry {
            Ok(entry) => keep(&mut last, entry, &filter, most),
            Err(bad) => report_bad_line(&bad, err)?,
        }
    }
    for entry in &earlier(log, &filter, most.saturating_sub(last.len()))? {
        show(entry, out)?;
    }
    for entry in last {
        show(&entry, out)?;
    }
    out.flush()?;
    if args.no_follow {
        return Ok(0);
    }
    loop {
        std::thread::sleep(LOOK);
        while let Some(entry) = follow.poll() {
            match entry {
                Ok(entry) if filter.matches_filter(&entry) => show(&entry, out)?,
                Ok(_) => {}
                Err(bad) => report_bad_line(&bad, err)?,
            }
        }
        out.flush()?;
    }
}

/// Returns the last `most` lines of the rotated files.
fn earlier(log: &Log, filter: &Filter, most: usize) -> io::Result<VecDeque<Entry>> {
    let mut found: VecDeque<Entry> = VecDeque::new();
    let log = filter
        .since
        .map_or_else(|| log.clone(), |since| log.clone().since(since));
    for file in log.rotated_files()?.into_iter().rev() {
        let missing = most.saturating_sub(found.len());
        if missing == 0 {
            break;
        }
        let mut last = VecDeque::new();
        // `audit verify` reports unreadable lines.
        Entries::read_file(&file)?
            .flatten()
            .for_each(|entry| keep(&mut last, entry, filter, missing));
        last.append(&mut found);
        found = last;
    }
    Ok(found)
}

fn keep(last: &mut VecDeque<Entry>, entry: Entry, filter: &Filter, most: usize) {
    if most == 0 || !filter.matches_filter(&entry) {
        return;
    }
    if last.len() == most {
        last.pop_front();
    }
    last.push_back(entry);
}

fn report_bad_line(bad: &crate::review::BadLine, err: &mut dyn Write) -> io::Result<()> {
    writeln!(err, "{}:{}: {}", bad.file.display(), bad.line, bad.why)
}
