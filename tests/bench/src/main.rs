//! Measures the cost of a call through lychgate, with all built-in rules, with and without its
//! memory of clean texts, and with no rules, through nginx and a hyper proxy as plain pass-throughs,
//! and straight to the server; in one run, in turns.
//!
//! `lychgate-bench GATE [--quick]`, or `lychgate-bench serve PORT` for the server alone, or
//! `lychgate-bench forward PORT UPSTREAM` for the hyper proxy, or
//! `lychgate-bench call PORT PATH BYTES` for one agent alone: for each number on a line of standard
//! input it makes that many calls and then prints a line.

mod agent;
mod forward;
mod inspect;
mod process;
mod server;
mod stage;
mod table;
mod text;
mod wire;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use agent::{Agent, call_for};
use server::SIZES;
use stage::{Stage, Way};
use table::{Cell, Measured};

/// The extent of a run.
struct Plan {
    rounds: usize,
    sizes: &'static [usize],
    turn: Duration,
    held: usize,
    /// Time without a request before the memory of held sessions is measured: jemalloc returns
    /// freed memory after 10 s.
    idle: Duration,
    starts: usize,
}

const FULL: Plan = Plan {
    rounds: 5,
    sizes: &SIZES,
    turn: Duration::from_millis(500),
    held: 1000,
    idle: Duration::from_secs(20),
    starts: 5,
};
const QUICK: Plan = Plan {
    rounds: 1,
    sizes: &[1_000, 10_000, 100_000],
    turn: Duration::from_millis(150),
    held: 50,
    idle: Duration::ZERO,
    starts: 1,
};
/// Numbers of sessions that call at the same time.
pub const CONCURRENCY: [usize; 3] = [1, 8, 64];
const SESSIONS: usize = CONCURRENCY[CONCURRENCY.len() - 1];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = runtime.and_then(|runtime| match words.first().map(String::as_str) {
        Some("serve") => runtime.block_on(server::serve(port(&words, 1))),
        // With as many threads as the gate has.
        Some("forward") => tokio::runtime::Runtime::new()?
            .block_on(forward::serve(port(&words, 1), port(&words, 2))),
        Some("call") => runtime.block_on(call_on_demand(&words)),
        Some(gate) => {
            let plan = if words.iter().any(|word| word == "--quick") {
                QUICK
            } else {
                FULL
            };
            runtime.block_on(bench(&PathBuf::from(gate), &plan))
        }
        None => Err(io::Error::other("usage: lychgate-bench GATE [--quick]")),
    });
    if let Err(error) = done {
        eprintln!("bench: {error}");
        std::process::exit(1);
    }
}

fn port(words: &[String], at: usize) -> u16 {
    words
        .get(at)
        .and_then(|port| port.parse().ok())
        .unwrap_or(0)
}

async fn call_on_demand(words: &[String]) -> io::Result<()> {
    let usage = || io::Error::other("usage: lychgate-bench call PORT PATH BYTES");
    let [_, port, path, bytes] = words else {
        return Err(usage());
    };
    let bytes: usize = bytes.parse().map_err(io::Error::other)?;
    let mut agent = Agent::connect(port.parse().map_err(io::Error::other)?, path).await?;
    for line in io::stdin().lines() {
        for _ in 0..line?.parse::<usize>().map_err(io::Error::other)? {
            let length = agent.call().await?;
            if length < bytes {
                return Err(io::Error::other(format!(
                    "a response of {length} bytes instead of {bytes}"
                )));
            }
        }
        println!("done");
    }
    Ok(())
}

async fn bench(gate: &PathBuf, plan: &Plan) -> io::Result<()> {
    let stage = Stage::set(gate).await?;
    let names: Vec<&str> = stage.ways.iter().map(|way| way.name).collect();
    if !names.contains(&"nginx") {
        println!("nginx: skipped, it is not installed");
    }
    let mut measured = Vec::new();
    for framing in ["json", "sse"] {
        for size in plan.sizes {
            measured.push(measure(&stage, plan, framing, *size).await?);
        }
    }
    table::calls(&names, &measured);
    println!();
    for ((name, idle), (_, used)) in stage.idle.iter().zip(stage.memory()) {
        println!(
            "{name}: {:.1} MB resident before the first call, {:.1} MB after these",
            *idle as f64 / 1e6,
            used as f64 / 1e6
        );
    }
    // New processes: those used so far have freed memory, in which the sessions would be held.
    drop(stage);
    let stage = Stage::set(gate).await?;
    held_sessions(&stage, plan).await?;
    let mut starts = Vec::new();
    for _ in 0..plan.starts {
        starts.push(stage.start_time(gate).await?);
    }
    starts.sort();
    println!(
        "gate: {:.0} ms from start to first answer (median of {})",
        starts[starts.len() / 2].as_secs_f64() * 1e3,
        starts.len()
    );
    inspect::speed(gate, &stage.folder)?;
    std::fs::remove_dir_all(&stage.folder)
}

/// Measures one framing and size in all ways, in turns, for several rounds.
async fn measure(stage: &Stage, plan: &Plan, framing: &str, size: usize) -> io::Result<Measured> {
    let mut measured = Measured {
        what: format!("{framing} {size}"),
        cells: Vec::new(),
    };
    let mut agents = Vec::new();
    for way in &stage.ways {
        measured.cells.push(Cell::default());
        agents.push(connect(way, framing, size).await?);
    }
    for _ in 0..plan.rounds {
        for ((way, all), cell) in stage.ways.iter().zip(&mut agents).zip(&mut measured.cells) {
            for (level, sessions) in cell.levels.iter_mut().zip(CONCURRENCY) {
                let mut chosen = all.split_off(SESSIONS - sessions);
                let before = way.process.as_ref().map(process::Process::cpu);
                let calls = call_for(plan.turn, &mut chosen, size).await?;
                if let (Some(before), Some(process)) = (before, &way.process) {
                    let count =
                        u32::try_from(calls.latencies.len().max(1)).map_err(io::Error::other)?;
                    level.cpu.push((process.cpu() - before) / count);
                }
                all.append(&mut chosen);
                level.calls.push(calls);
            }
        }
    }
    Ok(measured)
}

async fn connect(way: &Way, framing: &str, size: usize) -> io::Result<Vec<Agent>> {
    let mut agents = Vec::new();
    for _ in 0..SESSIONS {
        agents.push(way.connect(framing, size).await?);
    }
    Ok(agents)
}

/// Prints the memory for an idle session with an open stream.
async fn held_sessions(stage: &Stage, plan: &Plan) -> io::Result<()> {
    for way in &stage.ways {
        let Some(process) = &way.process else {
            continue;
        };
        let before = settled(process).await;
        let mut held = Vec::new();
        for _ in 0..plan.held {
            let agent = way.connect("json", SIZES[0]).await?;
            let stream = agent.listen().await?;
            held.push((agent, stream));
        }
        tokio::time::sleep(plan.idle).await;
        let each = settled(process).await.saturating_sub(before) / plan.held as u64;
        println!(
            "{}: {each} bytes for each of {} idle sessions with an open stream",
            way.name,
            held.len()
        );
    }
    Ok(())
}

/// Returns the memory of a process once it no longer grows: a new gate compiles rules while it
/// answers its first calls.
async fn settled(process: &process::Process) -> u64 {
    let mut before = process.pss();
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = process.pss();
        if now.abs_diff(before) < 50_000 {
            return now;
        }
        before = now;
    }
    before
}
