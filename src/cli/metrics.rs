//! `lychgate metrics`: prints the reference of metrics and alerts, the dashboard and the alert
//! rules of this version.

mod reference;

use std::io::{self, Write};

/// A Grafana dashboard. Edit it in Grafana and export it; tests verify its queries against the
/// table of metrics.
const DASHBOARD: &str = include_str!("../../deploy/grafana/lychgate.json");
/// Alert rules for Prometheus, also verified against the table of metrics.
const ALERTS: &str = include_str!("../../deploy/alerts.yml");

/// Arguments of `lychgate metrics`.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Copy, clap::Subcommand)]
enum Verb {
    /// Print the reference of all metrics and alerts, in Markdown
    Reference,
    /// Print a Grafana dashboard, in JSON, to import or provision
    Dashboard,
    /// Print Prometheus alert rules, in YAML, for `rule_files`
    Alerts,
}

/// Prints the selected output; the exit code is always 0.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> io::Result<u8> {
    match args.verb {
        Verb::Reference => out.write_all(
            reference::page(ALERTS)
                .map_err(io::Error::other)?
                .as_bytes(),
        )?,
        Verb::Dashboard => out.write_all(DASHBOARD.as_bytes())?,
        Verb::Alerts => out.write_all(ALERTS.as_bytes())?,
    }
    Ok(0)
}

#[cfg(test)]
mod tests;
