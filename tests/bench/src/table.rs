//! The figures, side by side.

use std::time::Duration;

use crate::CONCURRENCY;
use crate::agent::Calls;

/// One framing and size.
pub struct Measured {
    pub what: String,
    /// In the order of the ways; the gate is last.
    pub cells: Vec<Cell>,
}

/// One way, at each of `CONCURRENCY`.
#[derive(Default)]
pub struct Cell {
    pub levels: [Level; CONCURRENCY.len()],
}

/// One way and number of sessions, a figure for each round.
#[derive(Default)]
pub struct Level {
    pub calls: Vec<Calls>,
    /// CPU time per call of the process in between; none for the way without one.
    pub cpu: Vec<Duration>,
}

impl Level {
    /// Microseconds of a call, the median over all rounds.
    fn latency(&self) -> f64 {
        median(self.calls.iter().flat_map(|calls| &calls.latencies).map(micros).collect())
    }

    fn cpu(&self) -> f64 {
        median(self.cpu.iter().map(micros).collect())
    }

    fn per_second(&self) -> f64 {
        median(self.rates())
    }

    fn rates(&self) -> Vec<f64> {
        self.calls.iter().map(|calls| calls.latencies.len() as f64 / calls.took.as_secs_f64()).collect()
    }
}

fn micros(time: &Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median over the rounds of one figure to the other of the same round.
fn ratio(one: impl Iterator<Item = f64>, other: impl Iterator<Item = f64>) -> f64 {
    median(one.zip(other).map(|(one, other)| one / other).collect())
}

/// A table for each kind of figure, a line for each framing and size. Ratios are of the gate to nginx; without nginx those of
/// CPU time are missing, and the others are to the way straight to the server.
pub fn calls(names: &[&str], measured: &[Measured]) {
    let base = names.iter().position(|name| *name == "nginx").unwrap_or(0);
    let gate = names.len() - 1;
    let against = |cell: &Measured, level: usize, figure: fn(&Level) -> Vec<f64>| {
        let of = |way: usize| cell.cells.get(way).map(|cell| figure(&cell.levels[level])).unwrap_or_default();
        ratio(of(gate).into_iter(), of(base).into_iter())
    };
    let cpu = |level: &Level| level.cpu.iter().map(micros).collect();
    println!("CPU time per call of the process in between, µs, and the gate's divided by {}'s in the same round", names[base]);
    // There is no process in between on the way straight to the server, which is the first.
    header(&names[1..], names[base], &CONCURRENCY.map(|sessions| format!("sessions: {sessions}")));
    for line in measured {
        print!("{:14}", line.what);
        for level in 0..CONCURRENCY.len() {
            figures(line.cells.iter().skip(1).map(|cell| cell.levels[level].cpu()), against(line, level, cpu));
        }
        println!();
    }
    println!("\nmedian latency of one session, µs, and calls per second of {} sessions", CONCURRENCY[CONCURRENCY.len() - 1]);
    header(names, names[base], &["latency".to_owned(), "calls/s".to_owned()]);
    for line in measured {
        print!("{:14}", line.what);
        let (few, many) = (0, CONCURRENCY.len() - 1);
        figures(
            line.cells.iter().map(|cell| cell.levels[few].latency()),
            against(line, few, |level| {
                level.calls.iter().map(|calls| median(calls.latencies.iter().map(micros).collect())).collect()
            }),
        );
        figures(line.cells.iter().map(|cell| cell.levels[many].per_second()), against(line, many, Level::rates));
        println!();
    }
}

fn header(names: &[&str], base: &str, groups: &[String]) {
    print!("{:14}", "");
    for group in groups {
        print!("{group:>width$}", width = 10 * names.len() + 8);
    }
    print!("\n{:14}", "framing bytes");
    for _ in groups {
        for name in names {
            print!("{name:>10}");
        }
        print!("{:>8}", format!("/{base}"));
    }
    println!();
}

fn figures(all: impl Iterator<Item = f64>, ratio: f64) {
    for one in all {
        print!("{:>10}", if one.is_nan() { "–".to_owned() } else { format!("{one:.0}") });
    }
    print!("{:>8}", if ratio.is_nan() { "–".to_owned() } else { format!("{ratio:.2}") });
}
