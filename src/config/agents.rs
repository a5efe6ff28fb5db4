//! The agents that may call: `[[agent]]`, `[agents]`, `[[issuer]]`.

use std::path::PathBuf;
use std::time::Duration;

use super::Config;

/// An agent that may call.
#[derive(Clone, Default)]
pub struct Agent {
    /// The agent's name in the audit log.
    pub name: String,
    /// SHA-256 of its bearer tokens; the tokens themselves are never stored.
    pub tokens: Vec<[u8; 32]>,
    /// The name in its client certificate, prefixed with its kind: `dns:`, `uri:` or `cn:`.
    pub certificate: Option<String>,
    /// Its groups, in addition to those in a token.
    pub groups: Vec<String>,
    /// Upstreams it may reach; `None` for all.
    pub upstreams: Option<Vec<String>>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Agent({})", self.name)
    }
}

/// An authorization server whose tokens are accepted from agents: `[[issuer]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerConfig {
    /// Its issuer identifier, exactly as in its tokens (RFC 8414, section 2): `issuer`.
    pub issuer: String,
    /// URL of its key set; discovered from its metadata if not set: `jwks_uri`.
    pub jwks_uri: Option<String>,
    /// PEM file of CA certificates to trust for it in addition to the system's: `ca`.
    pub ca: Option<PathBuf>,
    /// Audiences that are accepted in its tokens: `audience`. If not set, the URL by which agents
    /// reach an upstream here.
    pub audience: Vec<String>,
    /// Maximum clock skew: `leeway_seconds`.
    pub leeway: Duration,
    /// How long its cached keys are used while it cannot be reached: `keys_keep_seconds`.
    pub keys_keep: Duration,
    /// The name of the agent that its tokens are for: `agent`.
    pub agent: String,
    /// The claim that names the agent, if there is an `[[agent]]` of that name: `agent_claim`.
    pub agent_claim: Option<String>,
    /// The claim that names the user: `user_claim`.
    pub user_claim: String,
    /// The claim that lists the caller's groups: `groups_claim`.
    pub groups_claim: String,
    /// Scopes that every token must have: `scopes`.
    pub scopes: Vec<String>,
}

/// The file of agents that `lychgate agent` maintains: `[agents]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentsFile {
    /// The path of the file; `None` if none is configured.
    pub file: Option<PathBuf>,
}

impl Config {
    /// Reports whether callers need no authentication.
    pub fn is_open(&self) -> bool {
        self.agents.is_empty() && self.agents_file.file.is_none() && self.issuers.is_empty()
    }
}
