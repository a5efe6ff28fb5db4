//! `lychgate prove`: sends canaries through a gate, and tells which it caught, which not, and why.

#![allow(clippy::disallowed_types, reason = "what the gate tells of itself is read as JSON")]

mod door;
mod place;
mod show;
mod trial;
mod why;
mod wire;

use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::config_file::ConfigArg;
use crate::app::{self, Running};
use crate::config::{self, ApprovalConfig, AuditConfig, Config, EvidenceConfig, PinsConfig, QuarantineConfig};
use crate::document::Fault;
use crate::upstream::canary::{CANARIES, Canary};

use trial::Proof;
use wire::Wire;

/// Arguments of `lychgate prove`.
#[derive(clap::Args)]
#[command(after_help = "\
Against a gate that runs, canaries go over its real listener to a server that is built in and takes the place of each
upstream, with the policies in force: no upstream is reached. That way is open only to the holder of the token which the gate
writes at start for `lychgate approve`, so the gate needs an admin port (`[admin]`). With `--offline`, the same gate is started
from the config in this process for as long as it takes, on a port of its own: for CI.

Nothing that is sent is run by anybody. The audit log has it under the agent `lychgate-prove`, with the
member `prove`; counters, the log, `audit tail` and `audit stats` leave it out (`--prove` includes it).

Exit codes: 0 all as expected, 1 an attack passed or something harmless did not, 2 the gate could not be tried.
For Kubernetes: `exec: { command: [\"lychgate\", \"prove\", \"--quick\", \"--config\", \"/etc/lychgate/lychgate.toml\"] }`.")]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArg,
    /// Start the gate in this process instead of trying the one that runs
    #[arg(long, conflicts_with_all = ["url", "token_file"])]
    offline: bool,
    /// Where the gate that runs is reached, if not as in the config: `https://gate.example.org`
    #[arg(long, value_name = "URL", requires = "token_file")]
    url: Option<String>,
    /// File with the gate's token, if not as in the config
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file of authorities to trust for `--url`, instead of the system's
    #[arg(long, value_name = "FILE", requires = "url")]
    ca: Option<PathBuf>,
    /// Certificate to show, where the listener wants one: a PEM file, with its key in `--client-key`
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// The key of that certificate: a PEM file
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
    /// Only this upstream; may be given several times
    #[arg(long, value_name = "NAME")]
    upstream: Vec<String>,
    /// A canary, or a check of the listener, that need not be caught; may be given several times
    #[arg(long, value_name = "CANARY")]
    except: Vec<String>,
    /// Count what a policy in `mode = "observe"` would have caught as caught
    #[arg(long)]
    allow_observe: bool,
    /// A few canaries for each upstream, for probes: takes a fraction of a second
    #[arg(long)]
    quick: bool,
    /// One JSON document
    #[arg(long)]
    json: bool,
}

/// Why the gate could not be tried, for its operator.
struct Untried(String);

impl From<Vec<Fault>> for Untried {
    fn from(faults: Vec<Fault>) -> Self {
        Self(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }
}

impl From<io::Error> for Untried {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Tries; 0 if all went as expected, 1 if not, 2 if it could not be tried.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let of_listener = |id: &str| door::CHECKS.iter().any(|(check, ..)| *check == id);
    let unknown = args.except.iter().find(|id| Canary::named(id).is_none() && !of_listener(id));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let proof = match unknown {
        Some(id) => {
            let checks = door::CHECKS.iter().map(|(check, ..)| *check);
            let known: Vec<&str> = CANARIES.iter().map(|canary| canary.id).chain(checks).collect();
            Err(Untried(format!("there is no canary `{id}`\n  hint: there are {}", known.join(", "))))
        }
        None => runtime.block_on(args.prove(err)),
    };
    match proof {
        Ok(proof) => {
            let text = if args.json { show::json(&proof) } else { show::text(&proof) };
            out.write_all(text.as_bytes())?;
            out.flush()?;
            Ok(proof.code())
        }
        Err(Untried(why)) => {
            if args.json {
                writeln!(out, "{}", serde_json::json!({ "ok": false, "error": why }))?;
            }
            writeln!(err, "the gate could not be tried: {why}")?;
            Ok(2)
        }
    }
}

impl Args {
    async fn prove(&self, err: &mut dyn Write) -> Result<Proof, Untried> {
        if !self.offline {
            let (wire, config) = place::running(self)?;
            return trial::prove(self, &wire, config.as_ref(), false).await;
        }
        let file = self.config.find()?;
        if io::stderr().is_terminal() {
            writeln!(err, "starting the gate of {} …", file.display())?;
        }
        let config = config::load(&file)?;
        let (running, wire) = start(config.clone()).await?;
        let proof = trial::prove(self, &wire, Some(&config), true).await;
        running.drain().await;
        proof
    }
}

/// The gate of a config in this process: its listener, agents, limits and policies, on a port of its own, with nothing on
/// disk. Certificates of agents are not asked for: those who have them are not here.
async fn start(config: Config) -> Result<(Running, Wire), Untried> {
    let mut config = Config {
        audit: AuditConfig::default(),
        admin: config::Admin::default(),
        approval: ApprovalConfig::default(),
        pins: PinsConfig { persistent: false, ..PinsConfig::default() },
        quarantine: QuarantineConfig::default(),
        evidence: EvidenceConfig::default(),
        otlp: None,
        ..config
    };
    config.listen.address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    if let Some(tls) = &mut config.listen.tls {
        tls.client_ca = None;
    }
    let token = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
    let tls = config.listen.tls.clone();
    let running = app::start(config, None).await?;
    running.prove_by(&token)?;
    let wire = Wire::to_own(running.address, tls.as_ref(), None, token)?;
    Ok((running, wire))
}
