//! Lists the clients on this machine and which of their servers are behind the gate.

use std::io;

use serde_json::json;

use super::client::Client;
use super::server::GateEntry;
use super::{InstallContext, plan, read};

impl InstallContext<'_> {
    /// Prints the list, for people or as JSON.
    pub(super) fn list(&mut self, gate_entry: &GateEntry, as_json: bool) -> io::Result<u8> {
        let mut listing = vec![];
        for client in <Client as clap::ValueEnum>::value_variants() {
            for file in client.files(&self.places) {
                if let Some(text) = read(&file)? {
                    let servers = plan::servers(&file, &text, gate_entry);
                    listing.push((file, servers));
                }
            }
        }
        if as_json {
            let all: Vec<_> = listing
                .iter()
                .map(|(file, servers)| {
                    let state = servers.as_ref().map_or_else(
                        |why| json!({ "fault": why }),
                        |servers| {
                            servers
                                .iter()
                                .map(|server| json!({ "name": server.name, "reached": server.connection.word() }))
                                .collect()
                        },
                    );
                    json!({ "client": file.client.name(), "file": file.path, "servers": state })
                })
                .collect();
            writeln!(self.out, "{}", json!(all))?;
            return Ok(0);
        }
        for (file, servers) in &listing {
            writeln!(
                self.out,
                "{:<15} {}",
                file.client.name(),
                file.path.display()
            )?;
            match servers {
                Ok(servers) if servers.is_empty() => {
                    writeln!(self.out, "                no servers")?
                }
                Ok(servers) => {
                    for server in servers {
                        writeln!(
                            self.out,
                            "                {:<24} {}",
                            server.name.escape_debug().to_string(),
                            server.connection.word()
                        )?;
                    }
                }
                Err(why) => writeln!(self.out, "                cannot be read: {why}")?,
            }
        }
        if listing.is_empty() {
            writeln!(self.err, "no config of a supported client found")?;
        }
        Ok(0)
    }
}
