//! `lychgate prove`: sends canaries through a gate and reports which ones it caught, and why it
//! missed others.

mod client;
mod diagnosis;
mod listener_checks;
mod show;
mod target;
mod trial;

use std::io::{self, IsTerminal, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::config_file::ConfigArg;
use super::exit::fault_text;
use crate::app::{self, Running};
use crate::config::{
    self, ApprovalConfig, AuditConfig, Config, EvidenceConfig, PinsConfig, QuarantineConfig,
};
use crate::document::Fault;
use crate::protocol::secret;
use crate::upstream::canary::{CANARIES, Canary};

use client::GateClient;
use trial::Proof;

/// Arguments of `lychgate prove`.
#[derive(clap::Args)]
#[command(after_help = "\
Sends canaries through the gateway's own listener to a built-in server that takes
the place of each upstream, under the policies in force; no upstream is reached.
This requires the admin port (`[admin]`) and the token that the gateway writes at
start. With `--offline`, the gateway is started from the config in this process,
on a separate port, for use in CI.

Nothing that is sent is executed. The audit log records it under the agent
`lychgate-prove` with the member `prove`; counters, logs, `audit tail` and
`audit stats` omit it (`--prove` includes it).

Exit codes: 0 as expected; 1 an attack passed or a harmless call was blocked;
2 the gateway could not be tested.
Kubernetes probe:
  exec: { command: [lychgate, prove, --quick, --config, /etc/lychgate/lychgate.toml] }")]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArg,
    /// Start a gateway in this process instead of testing the running one
    #[arg(long, conflicts_with_all = ["url", "token_file"])]
    offline: bool,
    /// URL of the running gateway, such as `https://gate.example.org`; defaults to that of the
    /// config
    #[arg(long, value_name = "URL", requires = "token_file")]
    url: Option<String>,
    /// File with the gateway's admin token; defaults to that of the config
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file of CA certificates to trust for `--url` instead of the system's
    #[arg(long, value_name = "FILE", requires = "url")]
    ca: Option<PathBuf>,
    /// Client certificate, if the listener requires one: a PEM file; its key is given by
    /// `--client-key`
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// Private key of the client certificate: a PEM file
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
    /// Only this upstream; may be repeated
    #[arg(long, value_name = "NAME")]
    upstream: Vec<String>,
    /// Canary or listener check that may fail; may be repeated
    #[arg(long, value_name = "CANARY")]
    except: Vec<String>,
    /// Count matches of policies in `mode = "observe"` as caught
    #[arg(long)]
    allow_observe: bool,
    /// Send a few canaries per upstream, for probes: takes a fraction of a second
    #[arg(long)]
    quick: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The reason why the gate could not be tested, for its operator.
struct ProveError(String);

impl From<Vec<Fault>> for ProveError {
    fn from(faults: Vec<Fault>) -> Self {
        Self(fault_text(faults))
    }
}

impl From<io::Error> for ProveError {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Tests the gate; exit code 0 if all results are as expected, 1 if not, 2 if it could not be
/// tested.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let is_listener_check = |id: &str| {
        listener_checks::CHECKS
            .iter()
            .any(|(check, ..)| *check == id)
    };
    let unknown = args
        .except
        .iter()
        .find(|id| Canary::find(id).is_none() && !is_listener_check(id));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let proof = match unknown {
        Some(id) => {
            let checks = listener_checks::CHECKS.iter().map(|(check, ..)| *check);
            let names: Vec<&str> = CANARIES
                .iter()
                .map(|canary| canary.id)
                .chain(checks)
                .collect();
            Err(ProveError(format!(
                "no canary `{id}`\n  hint: known canaries: {}",
                names.join(", ")
            )))
        }
        None => runtime.block_on(args.prove(err)),
    };
    match proof {
        Ok(proof) => {
            let text = if args.json {
                show::format_json(&proof)
            } else {
                show::format_text(&proof)
            };
            out.write_all(text.as_bytes())?;
            out.flush()?;
            Ok(proof.code())
        }
        Err(ProveError(why)) => {
            if args.json {
                writeln!(out, "{}", serde_json::json!({ "ok": false, "error": why }))?;
            }
            writeln!(err, "the gateway could not be tested: {why}")?;
            Ok(2)
        }
    }
}

impl Args {
    async fn prove(&self, err: &mut dyn Write) -> Result<Proof, ProveError> {
        if !self.offline {
            let (wire, config) = target::select_gate(self)?;
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

/// Starts the gate of a config in this process: its listener, agents, limits and policies, on its
/// own port, with nothing on disk. Client certificates are not required, since the agents that have
/// them are not here.
async fn start(config: Config) -> Result<(Running, GateClient), ProveError> {
    let mut config = Config {
        audit: AuditConfig::default(),
        admin: config::Admin::default(),
        approval: ApprovalConfig::default(),
        pins: PinsConfig {
            persistent: false,
            ..PinsConfig::default()
        },
        quarantine: QuarantineConfig::default(),
        evidence: EvidenceConfig::default(),
        otlp: None,
        ..config
    };
    config.listen.address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    if let Some(tls) = &mut config.listen.tls {
        tls.client_ca = None;
    }
    let token = secret();
    let tls = config.listen.tls.clone();
    let running = app::start(config, None).await?;
    running.prove_by(&token)?;
    let wire = GateClient::for_address(running.address, tls.as_ref(), None, token)?;
    Ok((running, wire))
}
