//! `lychgate demo`: shows the gate at work between a sample agent and a sample server.

mod client;
mod hints;
mod oauth;
pub mod sample;
mod show;
mod tour;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::print_faults;
use crate::app::{self, Running};
use crate::config::{AuditConfig, AuditTo, Config, HttpTransport, Transport, UpstreamConfig};
use crate::document::Fault;
use client::Agent;
use sample::Sample;
use show::Screen;

/// The ports of the gate and of its admin listener, if they are free.
const PORTS: [u16; 2] = [8800, 8801];
/// The counters that the tour increments.
const COUNTERS: [&str; 3] = [
    "lychgate_messages_total",
    "lychgate_commands_blocked_total",
    "lychgate_injection_detected_total",
];

/// Arguments of `lychgate demo`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Exit after the tour; the exit code reports whether all calls went as expected
    #[arg(long)]
    once: bool,
    /// Use a sample server that requires a browser login
    #[arg(long)]
    oauth: bool,
}

/// Shows the gate in action, then keeps it running for an agent until interrupted. Exit codes: 0 if
/// all calls went as expected, 1 if not, 2 if the demo could not run.
#[allow(clippy::print_stderr)]
pub(super) fn run(args: &Args) -> ExitCode {
    let result = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map(|runtime| runtime.block_on(demo(args)));
    match result {
        Ok(Ok(true)) => ExitCode::SUCCESS,
        Ok(Ok(false)) => ExitCode::from(1),
        Ok(Err(DemoError::Faults(faults))) => {
            print_faults(&faults);
            ExitCode::from(2)
        }
        // A closed pipe (`| head`) is not an error.
        Ok(Err(DemoError::Io(error))) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Ok(Err(DemoError::Io(error))) | Err(error) => {
            eprintln!("the demo failed: {error}");
            ExitCode::from(2)
        }
    }
}

enum DemoError {
    Faults(Vec<Fault>),
    Io(io::Error),
}

impl From<io::Error> for DemoError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

async fn demo(&Args { once, oauth }: &Args) -> Result<bool, DemoError> {
    let mut screen = Screen::new();
    let sample = sample::start(oauth.then_some(oauth::ACCESS_TTL)).await?;
    let folder = folder()?;
    let audit = folder.join("audit.jsonl");
    let mut config = config(&sample, &audit, once);
    if oauth {
        oauth::configure(&mut config, &folder);
    }
    let running = app::start(config, None).await.map_err(DemoError::Faults)?;
    let gate = format!("http://{}/mcp/sample", running.address);
    let metrics = running
        .admin
        .map(|admin| format!("http://{admin}/metrics"))
        .unwrap_or_default();

    screen.heading(
        "lychgate demo",
        "agent ─▶ lychgate ─▶ sample server with the tools echo, fetch_page, run_command",
    )?;
    let all_expected = match oauth {
        true => oauth::show(&mut screen, &gate, &sample).await?,
        false => tour(&mut screen, &gate, &sample).await?,
    };
    evidence(&mut screen, &running, &audit, &metrics).await?;
    if once {
        screen.line("")?;
        screen.verdict(
            all_expected,
            if all_expected {
                "all as expected"
            } else {
                "not all as expected"
            },
        )?;
    } else {
        // The handlers are installed before the instructions for stopping the demo are printed.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        invite(&mut screen, &gate, &metrics, &audit)?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
    running.drain().await;
    Ok(all_expected)
}

fn config(sample: &Sample, audit: &Path, once: bool) -> Config {
    let transport = HttpTransport {
        login: None,
        ..HttpTransport::new(sample.url.clone())
    };
    let mut config = Config::default();
    let [port, admin] = PORTS.map(|port| address(if once { 0 } else { port }));
    config.listen.address = port;
    config.admin.address = Some(admin);
    config.policies.entry("default".to_owned()).or_default();
    config.upstreams.insert(
        "sample".to_owned(),
        UpstreamConfig::new(Transport::Http(transport)),
    );
    config.audit = AuditConfig {
        to: Some(AuditTo::File(audit.to_owned())),
        required: true,
        ..AuditConfig::default()
    };
    config.pins.persistent = false;
    config.limits.drain = Duration::from_secs(1);
    config
}

/// Returns the loopback address with this port, or with any free port if it is in use.
fn address(port: u16) -> SocketAddr {
    let preferred = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    if TcpListener::bind(preferred).is_ok() {
        preferred
    } else {
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
    }
}

/// Creates a private folder.
fn folder() -> io::Result<PathBuf> {
    let folder =
        std::env::temp_dir().join(format!("lychgate-demo-{}", uuid::Uuid::new_v4().simple()));
    std::fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

async fn tour(screen: &mut Screen, gate: &str, sample: &Sample) -> io::Result<bool> {
    let mut agent = Agent::new();
    let response = agent.open(gate).await?;
    if !response.status.is_success() {
        return Err(io::Error::other(format!(
            "the session was answered with {}",
            response.status
        )));
    }
    let mut all_expected = true;
    for stop in tour::calls() {
        let tour_result = stop.run(&mut agent, gate, sample).await?;
        screen.outcome(&tour_result)?;
        all_expected &= tour_result.is_expected;
    }
    Ok(all_expected)
}

/// Shows the audit lines of the tour and the counters that it incremented.
async fn evidence(
    screen: &mut Screen,
    running: &Running,
    audit: &Path,
    metrics: &str,
) -> io::Result<()> {
    running.gate().recorder().flush();
    let text = std::fs::read_to_string(audit)?;
    let lines: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    screen.heading("audit log", &audit.display().to_string())?;
    for line in lines
        .iter()
        .filter(|line| line.get(crate::record::entry::member::tool::NAME).is_some())
    {
        screen.audit_line(line)?;
    }
    screen.heading("counters", metrics)?;
    let metrics_text = Agent::new().get(metrics).await?;
    for line in metrics_text.lines().filter(|line| {
        COUNTERS.iter().any(|counter| line.starts_with(counter)) && !line.ends_with(" 0")
    }) {
        screen.line(&format!("  {line}"))?;
    }
    Ok(())
}

fn invite(screen: &mut Screen, gate: &str, metrics: &str, audit: &Path) -> io::Result<()> {
    screen.heading(
        "now your agent",
        "the gateway keeps running; ask the agent to fetch a page or run a command",
    )?;
    screen.pair("url", gate)?;
    screen.pair("metrics", metrics)?;
    screen.pair("audit", &audit.display().to_string())?;
    screen.line("")?;
    for hint in hints::hints(gate) {
        screen.pair(hint.client, hint.place)?;
        screen.quotation(&hint.text)?;
    }
    screen.heading("ctrl-c", "ends the demo")
}
