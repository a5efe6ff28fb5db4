//! `lychgate scan`: inspects the definitions of servers with the rules of the gate.

mod ask;
mod judge;
mod sarif;
mod show;
mod target;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};

use super::config_file::ConfigArg;
use super::exit::{Exit, usage_error};
use crate::config::Limits;
use crate::detect::shadow::Names;
use crate::inspect::definitions::Kind;
use crate::pins::Lock;

use ask::ServerLists;
use judge::Item;
use target::Target;

pub(super) use ask::{Client, RequestError};
pub(super) use show::escape_text;
pub(super) use target::login_free;

/// Maximum number of servers that are scanned concurrently.
const MAX_CONCURRENT: usize = 4;

/// A scan that takes longer than this reports its progress, at this interval.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// Arguments of `lychgate scan`.
#[derive(clap::Args)]
#[command(after_help = "\
Inspects tools, prompts, resources, templates, instructions and names with the
rules of the gateway, and compares them with the pinned definitions. Servers of
one config are also checked against each other's tools (shadowing). No tool is
called, no prompt is fetched and no resource is read. Uses the gateway's logins;
`lychgate login UPSTREAM` creates one.

Examples:
  lychgate scan                                   every upstream of the config
  lychgate scan github                            one upstream
  lychgate scan https://mcp.example.org/mcp       a server that is not in the config
  lychgate scan -- npx -y @scope/server --flag    a stdio server, started for the scan

Exit codes: 0 nothing found; 1 findings that the gateway would act on; 2 a server
was not scanned, or not completely.")]
pub(super) struct Args {
    /// Upstream of the config, or a URL; defaults to all upstreams of the config
    #[arg(conflicts_with = "command")]
    target: Option<String>,
    /// Command line of a stdio server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    config: ConfigArg,
    /// Policy of the config to apply to a URL or a command
    #[arg(long, value_name = "NAME", default_value = "default")]
    policy: String,
    /// Use HTTP+SSE for the URL; by default it is tried after streamable HTTP
    #[arg(long)]
    sse: bool,
    /// File with a bearer token for the URL
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Use this agent's login, if each agent has its own (`token_of = "agent"`)
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Time limit per server
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
    timeout_seconds: u64,
    /// Also list items without findings, and findings that would only be logged
    #[arg(long)]
    all: bool,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
    /// Also write a SARIF 2.1.0 file, for code scanning
    #[arg(long, value_name = "FILE")]
    sarif: Option<PathBuf>,
}

/// The result of a scan.
struct Report {
    servers: Vec<Server>,
}

struct Server {
    name: String,
    /// A description of how the server is reached, without secrets.
    location: String,
    policy: String,
    observed: bool,
    /// The file and the line, from 1, in which it is configured.
    source: Option<(PathBuf, usize)>,
    report: Result<ServerReport, String>,
}

impl Server {
    /// Reports whether everything that the server offers was scanned.
    fn is_complete(&self) -> bool {
        self.report
            .as_ref()
            .is_ok_and(|looked| looked.notes.is_empty())
    }
}

/// What the scan read from a server.
struct ServerReport {
    version: String,
    capabilities: Vec<String>,
    items: Vec<Item>,
    notes: Vec<String>,
}

impl ServerReport {
    fn count(&self, kind: Kind) -> usize {
        self.items.iter().filter(|item| item.kind == kind).count()
    }
}

impl Report {
    fn code(&self) -> u8 {
        let reports = || {
            self.servers
                .iter()
                .filter_map(|server| server.report.as_ref().ok())
        };
        let has_findings = reports()
            .flat_map(|looked| &looked.items)
            .flat_map(|item| &item.findings)
            .any(|found| found.acts);
        let missing = self.servers.iter().any(|server| !server.is_complete());
        match (has_findings, missing) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 0,
        }
    }
}

/// Scans the servers; exit code 0 if there are no findings, 1 if there are, 2 if a server could not
/// be scanned completely.
pub(super) fn run(args: &Args, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, Exit> {
    let runtime = super::login::runtime(2)?;
    let report = runtime.block_on(async { args.scan(err).await });
    // A child process that does not exit is not awaited.
    runtime.shutdown_timeout(Duration::from_millis(200));
    let report = report.map_err(|why| usage_error(format!("nothing could be scanned: {why}")))?;
    let text = if args.json {
        show::format_json(&report)
    } else {
        show::format_text(&report, args.all)
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    if let Some(file) = &args.sarif {
        std::fs::write(file, sarif::document(&report)).map_err(|error| {
            usage_error(format!("`{}` cannot be written: {error}", file.display()))
        })?;
    }
    Ok(report.code())
}

impl Args {
    async fn scan(&self, err: &mut dyn Write) -> Result<Report, String> {
        let (targets, limits, lock) = target::targets(self)?;
        let progress = io::stderr().is_terminal();
        let time = Duration::from_secs(self.timeout_seconds);
        let start = Instant::now();
        let shared_limits = &limits;
        let scans = stream::iter(&targets).map(|target| async move {
            (target, self.query_server(target, shared_limits, time).await)
        });
        let mut results = scans.buffered(MAX_CONCURRENT);
        let mut all: Vec<(&Target, Result<ServerLists, String>)> = Vec::new();
        loop {
            match tokio::time::timeout(PROGRESS_INTERVAL, results.next()).await {
                Ok(Some(result)) => all.push(result),
                Ok(None) => break,
                Err(_) => {}
            }
            if progress && start.elapsed() >= PROGRESS_INTERVAL {
                // Failure to write progress to the terminal is ignored.
                let done = all.len();
                let total = targets.len();
                let _shown = write!(err, "\r\x1b[Kscanning: {done} of {total} done …")
                    .and_then(|()| err.flush());
            }
        }
        drop(results);
        if progress && start.elapsed() >= PROGRESS_INTERVAL {
            let _shown = write!(err, "\r\x1b[K").and_then(|()| err.flush());
        }
        let names = Arc::new(collect_names(&all, &lock));
        let servers = all.into_iter().map(|(target, lists)| {
            let report = lists.map(|said| {
                let pins = lock.for_upstream(&target.pinned_as);
                let items = judge::judge(
                    &target.policy,
                    &said.pages,
                    &pins,
                    (names.clone(), target.name.as_str().into()),
                    &limits,
                );
                ServerReport {
                    version: said.version,
                    capabilities: said.capabilities,
                    items,
                    notes: said.notes,
                }
            });
            Server {
                name: target.name.clone(),
                location: target.location(),
                policy: target.policy.name.to_string(),
                observed: target.policy.mode == crate::inspect::Mode::Observe,
                source: target.source.clone(),
                report,
            }
        });
        Ok(Report {
            servers: servers.collect(),
        })
    }

    /// Queries one server, with a time limit.
    async fn query_server(
        &self,
        target: &Target,
        limits: &Limits,
        time: Duration,
    ) -> Result<ServerLists, String> {
        let mut why = String::new();
        for upstream in target.transports() {
            let mut client =
                Client::new(upstream, &target.name, self.agent.as_deref(), &limits.read);
            let result = tokio::time::timeout(time, client.read_lists(target.is_child())).await;
            // A server that does not end its session in time is abandoned.
            let _left = tokio::time::timeout(Duration::from_secs(2), client.close()).await;
            let ended = tokio::time::timeout(Duration::from_secs(4), upstream.shutdown()).await;
            if ended.is_err() {
                tracing::debug!("a child did not end in time");
            }
            match result {
                Ok(Ok(lists)) => return Ok(lists),
                Ok(Err(error)) if why.is_empty() => why = target.explain(&error),
                Ok(Err(_)) => {}
                Err(_) => {
                    return Err(format!(
                        "it did not respond within {} s\n  hint: `--timeout-seconds` raises the limit",
                        time.as_secs()
                    ));
                }
            }
        }
        Err(why)
    }
}

/// Collects the names of the tools of all scanned servers, and of all pinned tools.
fn collect_names(all: &[(&Target, Result<ServerLists, String>)], lock: &Lock) -> Names {
    let mut names = Names::default();
    for (target, lists) in all {
        let tools = lists
            .as_ref()
            .map(|said| judge::tools(&said.pages))
            .unwrap_or_default();
        tools.iter().for_each(|tool| names.add(&target.name, tool));
    }
    for (server, pins) in lock
        .iter()
        .filter(|(server, _)| !all.iter().any(|(target, _)| target.pinned_as == *server))
    {
        pins.iter()
            .filter(|(key, _)| key.kind == Kind::Tool)
            .for_each(|(key, _)| names.add(server, &key.name));
    }
    names
}
