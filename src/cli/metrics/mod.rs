//! `lychgate metrics`: what is made from the table of metrics, in the words of the version that runs.

mod alert;
mod alerts;
mod panel;
mod panels;
mod query;
mod reference;

use std::io::{self, Write};

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

impl Verb {
    /// Where it stands in this version's repository.
    #[cfg(test)]
    fn file(self) -> &'static str {
        match self {
            Self::Reference => "deploy/metrics.md",
            Self::Dashboard => "deploy/grafana/lychgate.json",
            Self::Alerts => "deploy/alerts.yml",
        }
    }

    fn text(self) -> Result<String, std::fmt::Error> {
        match self {
            Self::Reference => reference::page(&alerts::alerts()),
            Self::Dashboard => {
                let made = panel::dashboard(&panels::rows(), &panels::variables(), &panels::marks());
                Ok(format!("{made:#}\n"))
            }
            Self::Alerts => alert::yaml(&alerts::records(), &alerts::alerts()),
        }
    }
}

/// Prints it; always 0.
pub(super) fn run(args: &Args, out: &mut dyn Write) -> io::Result<u8> {
    out.write_all(args.verb.text().map_err(io::Error::other)?.as_bytes())?;
    Ok(0)
}

#[cfg(test)]
mod tests;
