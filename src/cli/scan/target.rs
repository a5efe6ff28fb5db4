//! Determines which servers are scanned, how they are reached, and which policy judges them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Args;
use super::ask::RequestError;
use crate::app;
use crate::cli::exit::fault_text;
use crate::cli::wrap::{pin_name, program_name};
use crate::config::{
    self, AuditConfig, Config, HttpTransport, Limits, OAuthConfig, PinsConfig, PolicyConfig,
    StdioTransport, Transport, UpstreamConfig,
};
use crate::document::{Fault, suggest};
use crate::inspect::Policy;
use crate::oauth::Shared;
use crate::pins::{Lock, LockFile};
use crate::protocol::{CallError, ProcessFaultKind, UpstreamName};
use crate::record::Recorder;
use crate::rules::Library;
use crate::seal::state_folder;
use crate::upstream::Upstream;

/// A server to scan.
pub(super) struct Target {
    pub(super) name: String,
    /// The name under which it is pinned.
    pub(super) pinned_as: String,
    pub(super) policy: Arc<Policy>,
    pub(super) source: Option<(PathBuf, usize)>,
    config: UpstreamConfig,
    /// The transports to try, one after another.
    upstreams: Vec<Upstream>,
    /// Whether the server is in the config, so that the gate's logins apply to it.
    has_login: bool,
}

type Targets = (Vec<Target>, Limits, Lock);

/// Returns the servers that the arguments select, with the limits and pins that apply to them.
pub(super) fn targets(args: &Args) -> Result<Targets, String> {
    let is_url = args
        .target
        .as_ref()
        .is_some_and(|target| target.contains("://"));
    if is_url || !args.command.is_empty() {
        return single_target(args).map_err(fault_text);
    }
    config_targets(args).map_err(fault_text)
}

/// Returns the upstreams of a config.
fn config_targets(args: &Args) -> Result<Targets, Vec<Fault>> {
    let path = args.config.find()?;
    let mut config = config::load(&path)?;
    if let Some(name) = &args.target {
        let names: Vec<&str> = config.upstreams.keys().map(String::as_str).collect();
        if !names.contains(&name.as_str()) {
            let hint = format!("{}; a URL has `://` in it", suggest(name, &names));
            return Err(vec![Fault::of_file(
                path.display().to_string(),
                format!("there is no upstream `{name}`"),
                Some(&hint),
            )]);
        }
        config.upstreams.retain(|known, _| known == name);
    }
    let policies = app::policies(&config)?;
    let logins = login_free(&config)?;
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut targets = Vec::new();
    for (name, upstream) in &config.upstreams {
        let upstream_name = UpstreamName(name.as_str().into());
        let Some(policy) = policies.get(&upstream_name).cloned() else {
            continue;
        };
        let upstreams = vec![
            Upstream::new(upstream_name, upstream, &config.limits, Some(&logins))
                .map_err(|fault| vec![fault])?,
        ];
        let source = Some((path.clone(), line_of(&text, name)));
        let (name, pinned_as) = (name.clone(), name.clone());
        targets.push(Target {
            name,
            pinned_as,
            policy,
            source,
            config: upstream.clone(),
            upstreams,
            has_login: true,
        });
    }
    let lock = lock(
        config
            .pins
            .clone()
            .with_default_file(state_folder(), &path)
            .file
            .as_deref()
            .filter(|file| file.exists()),
    )?;
    Ok((targets, config.limits, lock))
}

/// Returns a server that is not in a config.
fn single_target(args: &Args) -> Result<Targets, Vec<Fault>> {
    let fault = |what: &str, why: String, hint: Option<&str>| vec![Fault::of_file(what, why, hint)];
    let config = args
        .config
        .named_file()
        .as_deref()
        .map(config::load_policies)
        .transpose()?
        .unwrap_or_default();
    let default = PolicyConfig::default();
    let known: Vec<&str> = config.policies.keys().map(String::as_str).collect();
    let policy = match config.policies.get(&args.policy) {
        Some(policy) => policy,
        None if args.policy == "default" => &default,
        None => {
            return Err(fault(
                "--policy",
                format!("there is no policy `{}`", args.policy),
                Some(&suggest(&args.policy, &known)),
            ));
        }
    };
    let library = Library::load(policy.builtin, &policy.rules)?;
    let policy = Arc::new(Policy::new(&args.policy, policy, &library)?);
    let (name, pinned_as, transports) = match &args.target {
        Some(url) => {
            let token = args
                .token_file
                .as_ref()
                .map(std::fs::read_to_string)
                .transpose();
            let token = token.map_err(|error| fault("--token-file", error.to_string(), None))?;
            let http = HttpTransport {
                login: None,
                bearer: token.map(|token| token.trim().to_owned()),
                ..HttpTransport::new(url.clone())
            };
            let host = url
                .parse::<http::Uri>()
                .ok()
                .and_then(|uri| uri.host().map(str::to_owned));
            let host = host.ok_or_else(|| {
                fault(
                    "URL",
                    "it names no host".to_owned(),
                    Some("such as `https://mcp.example.org/mcp`"),
                )
            })?;
            let candidates = if args.sse {
                vec![Transport::Sse(http)]
            } else {
                vec![Transport::Http(http.clone()), Transport::Sse(http)]
            };
            (host.clone(), host, candidates)
        }
        None => {
            let env: Vec<String> = std::env::vars_os()
                .filter_map(|(name, _)| name.into_string().ok())
                .collect();
            let stdio = StdioTransport {
                command: args.command.clone(),
                env,
                set_env: Vec::new(),
                directory: None,
            };
            (
                program_name(&args.command),
                pin_name(&args.command),
                vec![Transport::Stdio(stdio)],
            )
        }
    };
    let mut upstreams = Vec::new();
    for transport in &transports {
        let config = UpstreamConfig::new(transport.clone());
        let result = Upstream::new(
            UpstreamName(name.as_str().into()),
            &config,
            &Limits::default(),
            None,
        );
        upstreams.push(result.map_err(|fault| vec![fault])?);
    }
    let file = config.pins.file.clone().or_else(PinsConfig::user_lock_file);
    let lock = lock(file.as_deref().filter(|file| file.exists()))?;
    let first = transports.into_iter().next().map(UpstreamConfig::new);
    let upstream_config =
        first.ok_or_else(|| fault("COMMAND", "there is none".to_owned(), None))?;
    let target = Target {
        name,
        pinned_as,
        policy,
        source: None,
        config: upstream_config,
        upstreams,
        has_login: false,
    };
    Ok((vec![target], config.limits, lock))
}

/// Returns the gate's logins, read-only: no login is started, and nothing is recorded.
pub(in crate::cli) fn login_free(config: &Config) -> Result<Arc<Shared>, Vec<Fault>> {
    let oauth = OAuthConfig {
        open_browser: false,
        login_wait: std::time::Duration::ZERO,
        ..config.oauth.clone()
    };
    let fault = |error: std::io::Error| vec![Fault::of_file("oauth", error.to_string(), None)];
    let recorder = Arc::new(Recorder::new(&AuditConfig::default()).map_err(fault)?);
    Shared::new(&oauth, recorder)
        .map(Arc::new)
        .map_err(|error| vec![Fault::of_file("oauth", error.to_string(), None)])
}

fn lock(file: Option<&Path>) -> Result<Lock, Vec<Fault>> {
    let mut lock = file
        .map(|file| LockFile::new(file).read())
        .transpose()?
        .unwrap_or_default();
    // Pinned lists were read to their end.
    let names: Vec<String> = lock.iter().map(|(name, _)| name.to_owned()).collect();
    names
        .iter()
        .for_each(|name| lock.upstream_mut(name).mark_all_complete());
    Ok(lock)
}

/// Returns the line of an upstream in the config, from 1.
fn line_of(text: &str, name: &str) -> usize {
    let tables = [
        format!("[upstream.{name}]"),
        format!("[upstream.{name}."),
        format!("[upstream.\"{name}\""),
    ];
    let found = text.lines().position(|line| {
        tables
            .iter()
            .any(|table| line.trim_start().starts_with(table.as_str()))
    });
    found.map_or(1, |index| index + 1)
}

impl Target {
    pub(super) fn transports(&self) -> &[Upstream] {
        &self.upstreams
    }

    pub(super) fn is_child(&self) -> bool {
        matches!(self.config.transport, Transport::Stdio(_))
    }

    /// Describes how the server is reached, without the query and arguments, which may contain
    /// secrets.
    pub(super) fn location(&self) -> String {
        match &self.config.transport {
            Transport::Http(http) | Transport::Sse(http) => http
                .url
                .split(['?', '#'])
                .next()
                .unwrap_or_default()
                .to_owned(),
            Transport::Stdio(stdio) => {
                format!("`{}`", stdio.command.first().cloned().unwrap_or_default())
            }
        }
    }

    /// Explains why the server could not be scanned, and what to do.
    pub(super) fn explain(&self, failure: &RequestError) -> String {
        let hint = match failure {
            RequestError::Call(CallError::LoginRequired { .. } | CallError::AuthRequired | CallError::NoToken(_))
                if self.has_login =>
            {
                format!("log in with `lychgate login {}`", self.name)
            }
            RequestError::Call(CallError::LoginRequired { .. } | CallError::AuthRequired) => {
                "pass a token with `--token-file FILE`, or add it to a config as an upstream and log in there".to_owned()
            }
            RequestError::Call(CallError::Process(fault)) => {
                let lines = fault.output.stderr.iter().map(|line| format!("\n  stderr: {line}"));
                let stdout = fault.output.stdout.iter().map(|line| format!("\n  stdout: {line}"));
                let hint = match fault.kind {
                    ProcessFaultKind::NoAnswer => {
                        "standard output must contain MCP messages only, one per line: log to standard error"
                    }
                    _ => "see its output; variables that it needs go into `env` or `set_env` of the upstream",
                };
                return format!("{fault}{}\n  hint: {hint}", lines.chain(stdout).collect::<String>());
            }
            RequestError::Call(CallError::Connect(_)) if self.is_child() => {
                "start the program manually and check its output".to_owned()
            }
            RequestError::Call(CallError::NotStarted(_)) => "check `command`, and that the program is installed".to_owned(),
            RequestError::Call(CallError::Connect(_)) => "check the address, and that the server is up".to_owned(),
            _ => return failure.to_string(),
        };
        format!("{failure}\n  hint: {hint}")
    }
}
