//! Measures the cost of judging a call, in microseconds or, under valgrind, in instructions.
//!
//! `calls` prints a table of times, and the longest of all. It fails if one is longer than 25 ms.
//! `calls NAME TIMES` judges the call with this name that many times, for a tool that counts
//! instructions.

mod calls;
mod judge;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use judge::Judge;

/// Maximum time for any call.
const MOST: Duration = Duration::from_millis(25);
const TIMES: usize = 31;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let judge = Judge::new();
    match words.as_slice() {
        [name, times] => {
            let all = calls::ordinary().into_iter().chain(calls::hostile());
            let Some((_, command)) = all.into_iter().find(|(known, _)| known == name) else {
                return ExitCode::FAILURE;
            };
            let call = Judge::call(&command);
            let refused = (0..times.parse().unwrap_or(1))
                .filter(|_| judge.refuses(&call))
                .count();
            println!("{name}: refused {refused} times");
            ExitCode::SUCCESS
        }
        _ => table(&judge),
    }
}

fn table(judge: &Judge) -> ExitCode {
    let mut worst = Duration::ZERO;
    for (kind, all) in [
        ("ordinary", calls::ordinary()),
        ("hostile", calls::hostile()),
    ] {
        println!(
            "{kind:24}{:>10}{:>12}{:>12}  verdict",
            "bytes", "median µs", "least µs"
        );
        for (name, command) in all {
            let call = Judge::call(&command);
            let times = if kind == "hostile" { 5 } else { TIMES };
            let mut took: Vec<Duration> = Vec::new();
            let mut refused = false;
            for _ in 0..times {
                let start = Instant::now();
                refused = judge.refuses(&call);
                took.push(start.elapsed());
            }
            took.sort();
            // The shortest time is that without other load on the machine.
            let median = took[took.len() / 2];
            let least = took[0];
            worst = worst.max(least);
            let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
            println!(
                "{name:24}{:>10}{:>12.1}{:>12.1}  {}",
                command.len(),
                micros(median),
                micros(least),
                if refused { "refused" } else { "passed" }
            );
        }
    }
    println!("worst: {:.1} ms", worst.as_secs_f64() * 1e3);
    if worst > MOST {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
