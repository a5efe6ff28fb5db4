//! Prints the figures side by side.

use std::time::Duration;

use crate::CONCURRENCY;
use crate::agent::Calls;

/// The figures for one framing and size.
pub struct Measured {
    pub what: String,
    /// In the order of the ways.
    pub cells: Vec<Cell>,
}

/// The figures for one way, at each of `CONCURRENCY`.
#[derive(Default)]
pub struct Cell {
    pub levels: [Level; CONCURRENCY.len()],
}

/// The figures for one way and number of sessions, one for each round.
#[derive(Default)]
pub struct Level {
    pub calls: Vec<Calls>,
    /// CPU time per call of the process in between; empty for the way without one.
    pub cpu: Vec<Duration>,
}

impl Level {
    fn rates(&self) -> Vec<f64> {
        self.calls
            .iter()
            .map(|calls| calls.latencies.len() as f64 / calls.took.as_secs_f64())
            .collect()
    }
}

fn micros(time: &Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the median of the ratios of two figures in the same round.
fn ratio(one: Vec<f64>, other: Vec<f64>) -> f64 {
    median(
        one.into_iter()
            .zip(other)
            .map(|(one, other)| one / other)
            .collect(),
    )
}

/// Returns a figure of one way and number of sessions for each round.
type Figure = fn(&Level) -> Vec<f64>;

/// Prints for each kind of figure a table of the medians, and one of the ratios to nginx in the
/// same round. Without nginx, the table of ratios of CPU time is missing, and the other ratios are
/// to the way straight to the server. Each line is a framing and size.
pub fn calls(names: &[&str], measured: &[Measured]) {
    let base = names.iter().position(|name| *name == "nginx").unwrap_or(0);
    let sessions = CONCURRENCY.map(|sessions| format!("sessions: {sessions}"));
    let all: Vec<(String, usize, Figure)> = sessions
        .into_iter()
        .enumerate()
        .map(|(level, title)| (title, level, cpu as Figure))
        .collect();
    // The first way is straight to the server, without a process in between.
    let title = "CPU time per call of the process in between, µs";
    table(title, names, 1, measured, &all, |figures, _| {
        median(figures)
    });
    if base > 0 {
        let title = format!("the same, divided by {}'s", names[base]);
        table(&title, names, base + 1, measured, &all, |figures, line| {
            ratio(figures, line(base))
        });
    }
    let last = CONCURRENCY.len() - 1;
    let rates = format!("calls/s of {} sessions", CONCURRENCY[last]);
    let all = [
        (
            "median latency of one session, µs".to_owned(),
            0,
            latencies as Figure,
        ),
        (rates, last, Level::rates as Figure),
    ];
    table(
        "time and throughput",
        names,
        0,
        measured,
        &all,
        |figures, _| median(figures),
    );
    let title = format!("the same, divided by {}'s", names[base]);
    table(&title, names, base + 1, measured, &all, |figures, line| {
        ratio(figures, line(base))
    });
}

fn cpu(level: &Level) -> Vec<f64> {
    level.cpu.iter().map(micros).collect()
}

/// Returns the median latency of each round.
fn latencies(level: &Level) -> Vec<f64> {
    level
        .calls
        .iter()
        .map(|calls| median(calls.latencies.iter().map(micros).collect()))
        .collect()
}

/// Prints a table of the ways from the one at `from` on. For each of `groups`, a cell is the result
/// of `cell` for the figures of a way at the group's level; its second argument returns the figures
/// of the other ways in the same line.
fn table(
    title: &str,
    names: &[&str],
    from: usize,
    measured: &[Measured],
    groups: &[(String, usize, Figure)],
    cell: impl Fn(Vec<f64>, &dyn Fn(usize) -> Vec<f64>) -> f64,
) {
    let names = names.get(from..).unwrap_or_default();
    print!("\n{title}\n{:14}", "");
    for (group, ..) in groups {
        print!("{group:>width$}", width = 10 * names.len());
    }
    print!("\n{:14}", "framing bytes");
    for _ in groups {
        names.iter().for_each(|name| print!("{name:>10}"));
    }
    println!();
    for line in measured {
        print!("{:14}", line.what);
        for (_, level, figure) in groups {
            let of = |way: usize| {
                line.cells
                    .get(way)
                    .map(|cell| figure(&cell.levels[*level]))
                    .unwrap_or_default()
            };
            for way in from..from + names.len() {
                let value = cell(of(way), &of);
                let digits = if value < 100.0 { 1 } else { 0 };
                print!(
                    "{:>10}",
                    if value.is_nan() {
                        "–".to_owned()
                    } else {
                        format!("{value:.digits$}")
                    }
                );
            }
        }
        println!();
    }
}
