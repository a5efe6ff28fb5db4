//! Reports what is running after an install and what is not.

use std::io;
use std::path::Path;

use super::gate::GateConfig;
use super::move_record::MovedServer;
use super::move_servers::FileChange;
use super::plan::Wrap;
use super::{InstallArgs, InstallContext};
use crate::cli::liveness;

impl InstallContext<'_> {
    /// Prints where each server now runs, whether the gate responds, and what to start.
    pub(super) fn show_state(
        &mut self,
        args: &InstallArgs,
        steps: &[FileChange],
        gate: &GateConfig,
        wrap: &Wrap,
    ) -> io::Result<()> {
        let servers: Vec<&MovedServer> = steps.iter().flat_map(|step| &step.plan.moved).collect();
        let base = gate.base_url();
        for server in &servers {
            let name = server.name().escape_debug().to_string();
            match (&server.upstream, &server.wrap_name) {
                (Some(upstream), _) => writeln!(self.err, "  {name:<20} http   {base}{upstream}")?,
                (None, Some(wrap_name)) => writeln!(
                    self.err,
                    "  {name:<20} stdio  starts with the client; `{wrap_name}` in the audit log"
                )?,
                (None, None) => {}
            }
        }
        writeln!(self.err, "Audit log: {}", wrap.audit.display())?;
        let has_http = servers.iter().any(|server| server.upstream.is_some());
        let has_stdio = servers.iter().any(|server| server.wrap_name.is_some());
        if has_stdio && !has_http {
            writeln!(self.err, "Nothing else needs to run.")?;
        }
        if has_http {
            self.show_gate(args, &gate.path)?;
        }
        if !gate.variables.is_empty() {
            let names = gate
                .variables
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            writeln!(
                self.err,
                "Variables that must be set in its environment: {names}"
            )?;
        }
        Ok(())
    }

    fn show_gate(&mut self, args: &InstallArgs, config: &Path) -> io::Result<()> {
        let path = config.display();
        match liveness::gate_status(config) {
            Some((address, true)) => {
                writeln!(
                    self.err,
                    "The gate is running at {address}. Restart it if an added server is unavailable."
                )?;
            }
            Some((address, false)) => {
                writeln!(
                    self.err,
                    "The gate is not running: no answer from {address}."
                )?;
                writeln!(
                    self.err,
                    "Servers over HTTP need the gate: lychgate run --config {path}"
                )?;
                writeln!(
                    self.err,
                    "To keep it running: lychgate service install --config {path}"
                )?;
                self.unserved = Some(config.to_owned());
            }
            None => {
                writeln!(
                    self.err,
                    "The gate's config is not valid: lychgate check --config {path}"
                )?;
            }
        }
        if args.service {
            self.unserved = Some(config.to_owned());
        }
        Ok(())
    }
}
