//! `lychgate run`: serves until stopped.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::admin_client::reachable_address;
use super::config_file::ConfigArg;
use super::print_faults;
use crate::app::{self, Running};
use crate::config::{self, Config};
use crate::document::Fault;
use crate::record;
use crate::seal::state_folder;

/// Arguments of `lychgate run`.
#[derive(clap::Args)]
#[command(after_help = "\
SIGHUP reloads the config; SIGTERM and SIGINT drain and stop. Logs go to standard
error.

LYCHGATE_LOG sets the log filter, such as `debug` or `warn,lychgate=debug`
[default: warn,lychgate=info].")]
pub(super) struct Args {
    #[command(flatten)]
    config: ConfigArg,
}

/// Serves until SIGTERM or SIGINT, then drains. SIGHUP reloads.
pub(super) fn run(args: &Args) -> ExitCode {
    record::start_log();
    let loaded = args
        .config
        .find()
        .and_then(|file| Ok((load(&file, state_folder())?, file)));
    let (config, file) = match loaded {
        Ok(loaded) => loaded,
        Err(faults) => {
            print_faults(&faults);
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let result =
        runtime.map(|runtime| runtime.block_on(serve(config, file, args.config.on_command_line())));
    match result {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(faults)) => {
            print_faults(&faults);
            ExitCode::from(2)
        }
        Err(error) => {
            tracing::error!(%error, "the gate cannot run");
            ExitCode::from(2)
        }
    }
}

/// Reads the config of a gate that stores its files in the folder `state`, unless the config sets a
/// place for them.
fn load(file: &Path, state: Option<PathBuf>) -> Result<Config, Vec<Fault>> {
    let mut config = config::load_to_run(file)?;
    config.pins = config.pins.with_default_file(state.clone(), file);
    Ok(config.with_default_folders(state))
}

async fn serve(
    config: Config,
    source: PathBuf,
    config_arg: Option<&Path>,
) -> Result<(), Vec<Fault>> {
    let signal_fault =
        |error: std::io::Error| vec![Fault::of_file("signals", error.to_string(), None)];
    let mut terminate = signal(SignalKind::terminate()).map_err(signal_fault)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(signal_fault)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(signal_fault)?;
    let mut stderr = std::io::stderr();
    let running = start(
        config,
        source,
        config_arg,
        stderr
            .is_terminal()
            .then_some(&mut stderr as &mut dyn Write),
    )
    .await?;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => running.reload(),
        }
    }
    tracing::info!("draining");
    running.drain().await;
    Ok(())
}

/// Starts the gate, logs that it is serving, and prints how to use it if `terminal` is set.
async fn start(
    config: Config,
    source: PathBuf,
    config_arg: Option<&Path>,
    terminal: Option<&mut dyn Write>,
) -> Result<Running, Vec<Fault>> {
    let scheme = if config.listen.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let upstreams = config.upstreams.len();
    let file = source.display().to_string();
    let summary = Summary::new(&config, config_arg);
    let running = app::start(config, Some(source)).await?;
    let admin = running
        .admin
        .map(|admin| format!("http://{admin}/metrics"))
        .unwrap_or_default();
    tracing::info!(address = %format!("{scheme}://{}/mcp/<upstream>", running.address), admin, upstreams, config = file, "serving");
    if let Some(terminal) = terminal {
        let base = format!("{scheme}://{}", reachable_address(running.address));
        if let Err(error) = writeln!(terminal, "{}", summary.text(&base, running.admin)) {
            tracing::debug!(%error, "the summary cannot be printed");
        }
    }
    Ok(running)
}

/// Returns the command that adds an upstream to Claude Code. A token is given as a variable, never
/// by its value.
pub(super) fn claude_command(name: &str, base: &str, needs_token: bool) -> String {
    let header = if needs_token {
        " --header \"Authorization: Bearer $LYCHGATE_TOKEN\""
    } else {
        ""
    };
    format!("claude mcp add --transport http {name} {base}/mcp/{name}{header}")
}

/// The addresses of a gate for agents and people, to be shown on the terminal.
struct Summary {
    public_url: Option<String>,
    upstreams: Vec<String>,
    needs_token: bool,
    /// The command that opens the console, if it is enabled. A link with a login code is a
    /// credential and is not printed.
    console: Option<String>,
    /// The URL of the console behind a proxy.
    console_url: Option<String>,
}

impl Summary {
    /// `config_arg` is the config file given on the command line.
    fn new(config: &Config, config_arg: Option<&Path>) -> Self {
        let option = config_arg
            .map(|file| format!(" --config {}", file.display()))
            .unwrap_or_default();
        Self {
            public_url: config.listen.public_url.clone(),
            upstreams: config.upstreams.keys().cloned().collect(),
            // If an issuer is configured, clients log in by themselves.
            needs_token: config.agents_file.file.is_some()
                || config.agents.iter().any(|agent| !agent.tokens.is_empty()),
            console: config
                .admin
                .has_console()
                .then(|| format!("lychgate console{option}")),
            console_url: config.admin.console_url.clone(),
        }
    }

    /// `base` is the URL at which the gate listens, without a path.
    fn text(&self, base: &str, admin: Option<SocketAddr>) -> String {
        let base = self.public_url.as_deref().unwrap_or(base);
        let width = self
            .upstreams
            .iter()
            .map(String::len)
            .max()
            .unwrap_or_default();
        let mut text = "\nUpstreams:\n".to_owned();
        for name in &self.upstreams {
            text.push_str(&format!("  {name:<width$}  {base}/mcp/{name}\n"));
        }
        text.push_str("Claude Code:\n");
        for name in &self.upstreams {
            text.push_str(&format!(
                "  {}\n",
                claude_command(name, base, self.needs_token)
            ));
        }
        if let (Some(command), Some(admin)) = (&self.console, admin) {
            let site = self
                .console_url
                .clone()
                .unwrap_or_else(|| format!("http://{}", reachable_address(admin)));
            text.push_str(&format!(
                "Console:\n  {site}/console\n  {command}  (opens it, logged in)\n"
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(text: &str, config_arg: Option<&str>) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lychgate.toml");
        std::fs::write(&file, text).unwrap();
        let config = config::load(&file).unwrap();
        Summary::new(&config, config_arg.map(Path::new))
            .text("http://127.0.0.1:8800", config.admin.address)
    }

    #[tokio::test]
    async fn a_gate_on_a_terminal_prints_how_to_use_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lychgate.toml");
        let text = "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[policy.default]\nrules = []\n\
                    mode = \"observe\"\n[upstream.a]\nstdio = { command = [\"server\"] }\n";
        std::fs::write(&file, text).unwrap();
        let config = || load(&file, Some(folder.path().to_owned())).unwrap();
        let mut terminal = Vec::new();
        let running = start(config(), file.clone(), None, Some(&mut terminal))
            .await
            .unwrap();
        let printed = String::from_utf8(terminal).unwrap();
        assert_contains!(printed, &format!("http://{}/mcp/a\n", running.address));
        let console = format!(
            "\n  http://{}/console\n  lychgate console ",
            running.admin.unwrap()
        );
        assert_contains!(printed, &console);
        assert_lacks!(printed, "code=");
        running.drain().await;
    }

    #[test]
    fn pins_are_kept_in_the_state_folder_unless_the_config_names_another_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lychgate.toml");
        let upstream = "[upstream.a]\nstdio = { command = [\"server\"] }\n";
        let state = folder.path().join("state");
        let pins = |text: &str| {
            std::fs::write(&file, format!("{text}{upstream}")).unwrap();
            load(&file, Some(state.clone())).unwrap().pins.file
        };
        let default = pins("").unwrap();
        assert_eq!(default.parent(), Some(&*state));
        assert_eq!(default.extension().unwrap(), "lock");
        assert_eq!(
            pins("[pins]\nfile = \"own.lock\"\n"),
            Some(folder.path().join("own.lock"))
        );
        assert_eq!(pins("[pins]\npersistent = false\n"), None);
    }

    #[test]
    fn a_summary_has_the_url_of_each_upstream_and_how_to_use_it() {
        let config = "[admin]\naddress = \"127.0.0.1:8801\"\n[upstream.docs]\nhttp = { url = \"https://example.org/mcp\" }\n\
                      [upstream.a]\nstdio = { command = [\"server\"] }\n";
        assert_eq!(
            summary(config, None),
            "\nUpstreams:\n  a     http://127.0.0.1:8800/mcp/a\n  docs  http://127.0.0.1:8800/mcp/docs\n\
             Claude Code:\n  claude mcp add --transport http a http://127.0.0.1:8800/mcp/a\n  \
             claude mcp add --transport http docs http://127.0.0.1:8800/mcp/docs\n\
             Console:\n  http://127.0.0.1:8801/console\n  lychgate console  (opens it, logged in)\n"
        );
    }

    #[test]
    fn a_summary_names_no_token_and_no_console_that_is_not_there() {
        let token = "a-token-of-at-least-16-characters";
        let hash = "3f5f7d6c9d2b6b1c0ed4d3e0a9bb86a0b5bb0c2b54ef3ed5f2f1c2a9d7b8e6f1";
        let config = format!(
            "[[agent]]\nname = \"ann\"\ntoken_sha256 = \"{hash}\"\n[upstream.a.http]\nurl = \"https://example.org/mcp\"\n\
             headers = {{ X-Team = \"{token}\" }}\n"
        );
        let text = summary(&config, None);
        assert_contains!(
            text,
            "/mcp/a --header \"Authorization: Bearer $LYCHGATE_TOKEN\"\n"
        );
        assert_lacks!(text, "Console", hash, token);
        let config = format!("{config}[admin]\naddress = \"127.0.0.1:8801\"\n");
        assert!(
            summary(&config, Some("own.toml"))
                .ends_with("\n  lychgate console --config own.toml  (opens it, logged in)\n")
        );
    }
}
