//! Derives the access scope of calls from the config.

use std::path::Path;

use crate::config::{PolicyConfig, Transport, UpstreamConfig};
use crate::detect::AccessScope;
use crate::detect::path::{GateFiles, Links, Roots};
use crate::detect::url::Hosts;

use super::Policy;

/// Returns the access scope of a policy alone: its paths may be on any machine.
pub(super) fn policy_scope(config: &PolicyConfig) -> AccessScope {
    let tools = config
        .tools
        .iter()
        .map(|(tool, of_tool)| (tool.clone(), of_tool.urls.clone()))
        .collect();
    let hosts = Hosts::new(tools, config.places.urls.clone());
    let roots = Roots::new(config.places.roots.iter().cloned(), Links::Unknown);
    AccessScope {
        roots,
        hosts,
        guarded_values: config.guarded_secrets.guarded.clone(),
        ..AccessScope::default()
    }
}

impl Policy {
    /// Returns the same policy for one upstream: with the roots and the data flow labels of the
    /// upstream and, for a child process, with the links, home and working folder of this machine.
    pub fn for_upstream(
        &self,
        name: &str,
        policy: &PolicyConfig,
        upstream: &UpstreamConfig,
    ) -> Self {
        let same = self
            .at(name)
            .with_flow(upstream.flow.clone().unwrap_or_else(|| policy.flow.clone()));
        same.with_upstream_roots(policy, upstream)
    }

    /// Returns the same policy for a gate with these files of its own.
    pub fn with_gate_files(&self, gate: GateFiles) -> Self {
        self.with_ground(AccessScope {
            gate_files: gate,
            ..self.ground().clone()
        })
    }

    fn with_upstream_roots(&self, policy: &PolicyConfig, upstream: &UpstreamConfig) -> Self {
        let folders = upstream.roots.as_ref().unwrap_or(&policy.places.roots);
        match &upstream.transport {
            Transport::Stdio(stdio) => self.for_child(folders, stdio.directory.as_deref()),
            Transport::Http(_) | Transport::Sse(_) => {
                let roots = Roots::new(folders.iter().cloned(), Links::Unknown);
                self.with_ground(AccessScope {
                    roots,
                    ..self.ground().clone()
                })
            }
        }
    }

    /// Returns the same policy for a child process that must stay in `folders`; `directory` is its
    /// working directory, if configured.
    pub fn for_child(&self, folders: &[String], directory: Option<&Path>) -> Self {
        let roots = Roots::new(folders.iter().cloned(), Links::Machine)
            .with_home(
                std::env::var("HOME")
                    .ok()
                    .filter(|home| home.starts_with('/')),
            )
            .with_base(directory.map(|folder| folder.display().to_string()));
        self.with_ground(AccessScope {
            roots,
            ..self.ground().clone()
        })
    }
}
