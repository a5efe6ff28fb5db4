//! The figures, side by side.

use std::time::Duration;

use crate::agent::Calls;

/// One framing and size.
pub struct Measured {
    pub what: String,
    /// In the order of the ways; the gate is last.
    pub cells: Vec<Cell>,
}

/// One way, a figure for each round.
#[derive(Default)]
pub struct Cell {
    /// One session, call after call.
    pub single: Vec<Calls>,
    /// CPU of the process in between, for each call.
    pub cpu: Vec<Duration>,
    /// Many sessions at once.
    pub many: Vec<Calls>,
}

impl Cell {
    fn micros(&self) -> f64 {
        let mut all: Vec<Duration> = self.single.iter().flat_map(|calls| calls.latencies.iter().copied()).collect();
        all.sort();
        all.get(all.len() / 2).map_or(f64::NAN, |median| median.as_secs_f64() * 1e6)
    }

    fn cpu_micros(&self) -> f64 {
        median(self.cpu.iter().map(|cpu| cpu.as_secs_f64() * 1e6).collect())
    }

    fn per_second(&self) -> f64 {
        median(self.many.iter().map(|calls| calls.latencies.len() as f64 / calls.took.as_secs_f64()).collect())
    }
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A line for each framing and size; ratios are of the gate to nginx, or to straight where nginx is not there.
pub fn calls(names: &[&str], measured: &[Measured]) {
    let base = names.iter().position(|name| *name == "nginx").unwrap_or(0);
    let other = names[base];
    println!("median latency of one session, CPU of the process in between for each call, calls per second of 64 sessions");
    print!("{:14}", "");
    for what in ["latency µs", "CPU µs", "calls/s"] {
        for name in names {
            print!("{:>12}", if *name == names[0] { what } else { "" });
        }
        print!("{:>10}", "gate/");
    }
    println!();
    print!("{:14}", "framing bytes");
    for _ in 0..3 {
        for name in names {
            print!("{name:>12}");
        }
        print!("{other:>10}");
    }
    println!();
    for line in measured {
        print!("{:14}", line.what);
        for figure in [Cell::micros, Cell::cpu_micros, Cell::per_second] {
            let all: Vec<f64> = line.cells.iter().map(figure).collect();
            for one in &all {
                print!("{:>12}", if one.is_nan() { "–".to_owned() } else { format!("{one:.0}") });
            }
            let ratio = all[all.len() - 1] / all[base];
            print!("{:>10}", if ratio.is_nan() { "–".to_owned() } else { format!("{ratio:.2}") });
        }
        println!();
    }
}
