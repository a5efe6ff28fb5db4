//! `lychgate run`: serves until told to stop.

use std::path::PathBuf;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::tell_faults;
use crate::seal::state_folder;
use crate::{app, config, record};

/// Arguments of `lychgate run`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The config file
    #[arg(long, value_name = "FILE", default_value = "lychgate.toml")]
    config: PathBuf,
}

/// Serves until SIGTERM or SIGINT, then drains. SIGHUP reloads.
pub(super) fn run(args: &Args) -> ExitCode {
    record::start_log();
    let config = match config::load(&args.config) {
        Ok(config) => config.keeping_at_home(state_folder()),
        Err(faults) => {
            tell_faults(&faults);
            return ExitCode::from(2);
        }
    };
    let served = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map(|runtime| runtime.block_on(serve(config, args.config.clone())));
    match served {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(faults)) => {
            tell_faults(&faults);
            ExitCode::from(2)
        }
        Err(error) => {
            tracing::error!(%error, "the gate cannot run");
            ExitCode::from(2)
        }
    }
}

async fn serve(config: config::Config, source: PathBuf) -> Result<(), Vec<crate::document::Fault>> {
    let listens = |error: std::io::Error| vec![crate::document::Fault::of_file("signals", error.to_string(), None)];
    let mut terminate = signal(SignalKind::terminate()).map_err(listens)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(listens)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(listens)?;
    let (tls, upstreams) = (config.listen.tls.is_some(), config.upstreams.len());
    let running = app::start(config, Some(source)).await?;
    let scheme = if tls { "https" } else { "http" };
    let admin = running.admin.map(|admin| format!("http://{admin}/metrics")).unwrap_or_default();
    tracing::info!(address = %format!("{scheme}://{}/mcp/<upstream>", running.address), admin, upstreams, "serving");
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
