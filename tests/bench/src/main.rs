//! What a call costs through lychgate, through nginx as a plain pass-through, and straight; in one run, by turns.
//!
//! `lychgate-bench GATE [--quick]`, or `lychgate-bench serve PORT` for the server alone.

mod agent;
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

/// How much is measured.
struct Plan {
    rounds: usize,
    sizes: &'static [usize],
    turn: Duration,
    held: usize,
    starts: usize,
}

const FULL: Plan = Plan { rounds: 5, sizes: &SIZES, turn: Duration::from_millis(500), held: 1000, starts: 5 };
const QUICK: Plan = Plan { rounds: 1, sizes: &[1_000, 10_000], turn: Duration::from_millis(150), held: 50, starts: 1 };
const SESSIONS: usize = 64;
const FEW: usize = 8;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.and_then(|runtime| match words.first().map(String::as_str) {
        Some("serve") => runtime.block_on(server::serve(words.get(1).and_then(|port| port.parse().ok()).unwrap_or(0))),
        Some(gate) => {
            let plan = if words.iter().any(|word| word == "--quick") { QUICK } else { FULL };
            runtime.block_on(bench(&PathBuf::from(gate), &plan))
        }
        None => Err(io::Error::other("usage: lychgate-bench GATE [--quick]")),
    });
    if let Err(error) = done {
        eprintln!("bench: {error}");
        std::process::exit(1);
    }
}

async fn bench(gate: &PathBuf, plan: &Plan) -> io::Result<()> {
    let stage = Stage::set(gate).await?;
    let names: Vec<&str> = stage.ways.iter().map(|way| way.name).collect();
    if !names.contains(&"nginx") {
        println!("nginx: skipped, it is not installed");
    }
    let idle = stage.gate().rss();
    let mut measured = Vec::new();
    for framing in ["json", "sse"] {
        for size in plan.sizes {
            measured.push(measure(&stage, plan, framing, *size).await?);
        }
    }
    table::calls(&names, &measured);
    println!("\nidle memory: {:.1} MB resident", idle as f64 / 1e6);
    held_sessions(&stage, plan).await?;
    let mut starts = Vec::new();
    for _ in 0..plan.starts {
        starts.push(stage.start_time(gate).await?);
    }
    starts.sort();
    println!("start to first answer: {:.0} ms (median of {})", starts[starts.len() / 2].as_secs_f64() * 1e3, starts.len());
    inspect::speed(gate, &stage.folder)?;
    std::fs::remove_dir_all(&stage.folder)
}

/// One framing and size, every way by turns, round after round.
async fn measure(stage: &Stage, plan: &Plan, framing: &str, size: usize) -> io::Result<Measured> {
    let mut measured = Measured { what: format!("{framing} {size}"), cells: Vec::new() };
    let mut agents = Vec::new();
    for way in &stage.ways {
        measured.cells.push(Cell::default());
        agents.push(connect(way, framing, size).await?);
    }
    for _ in 0..plan.rounds {
        for ((way, all), cell) in stage.ways.iter().zip(&mut agents).zip(&mut measured.cells) {
            let mut one = all.split_off(SESSIONS - 1);
            cell.single.push(call_for(plan.turn / 2, &mut one, size).await?);
            all.append(&mut one);
            let mut few = all.split_off(SESSIONS - FEW);
            let before = way.process.as_ref().map(process::Process::cpu);
            let calls = call_for(plan.turn, &mut few, size).await?;
            if let (Some(before), Some(process)) = (before, &way.process) {
                cell.cpu.push((process.cpu() - before) / u32::try_from(calls.latencies.len().max(1)).unwrap_or(1));
            }
            all.append(&mut few);
            cell.many.push(call_for(plan.turn, all, size).await?);
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

/// What an idle session with an open stream takes.
async fn held_sessions(stage: &Stage, plan: &Plan) -> io::Result<()> {
    for way in &stage.ways {
        let Some(process) = &way.process else { continue };
        let before = process.pss();
        let mut held = Vec::new();
        for _ in 0..plan.held {
            let agent = way.connect("json", SIZES[0]).await?;
            let stream = agent.listen().await?;
            held.push((agent, stream));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let each = process.pss().saturating_sub(before) / plan.held as u64;
        println!("{}: {each} bytes for each of {} idle sessions with an open stream", way.name, held.len());
    }
    Ok(())
}
