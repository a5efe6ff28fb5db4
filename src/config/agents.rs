//! Who may call: `[[agent]]`, `[agents]`, `[[issuer]]`.

use std::path::PathBuf;
use std::time::Duration;

use super::Config;

/// An agent that may call.
#[derive(Clone, Default)]
pub struct Agent {
    /// Its name in the audit log.
    pub name: String,
    /// SHA-256 of its bearer tokens: the tokens themselves are never kept.
    pub tokens: Vec<[u8; 32]>,
    /// The name in its certificate, with its kind: `dns:`, `uri:` or `cn:`.
    pub certificate: Option<String>,
    /// Its groups, in addition to those of a token.
    pub groups: Vec<String>,
    /// Upstreams it may reach; `None` for all.
    pub upstreams: Option<Vec<String>>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Agent({})", self.name)
    }
}

/// Who else vouches for agents: `[[issuer]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerConfig {
    /// Its identifier, as its tokens spell it (RFC 8414, section 2): `issuer`.
    pub issuer: String,
    /// URL of its keys; discovered from its metadata if not set: `jwks_uri`.
    pub jwks_uri: Option<String>,
    /// PEM file of authorities to trust for it beside the system's: `ca`.
    pub ca: Option<PathBuf>,
    /// Whom its tokens are for; the URL by which agents reach an upstream here, where nothing is said: `audience`.
    pub audience: Vec<String>,
    /// How far its clock may be off: `leeway_seconds`.
    pub leeway: Duration,
    /// How long its keys count while it cannot be reached: `keys_keep_seconds`.
    pub keys_keep: Duration,
    /// The agent of its tokens: `agent`.
    pub agent: String,
    /// The claim that names the agent, where there is an `[[agent]]` of that name: `agent_claim`.
    pub agent_claim: Option<String>,
    /// The claim that names the user: `user_claim`.
    pub user_claim: String,
    /// The claim that names its groups: `groups_claim`.
    pub groups_claim: String,
    /// Scopes that every token must have: `scopes`.
    pub scopes: Vec<String>,
}

/// The file of agents that `lychgate agent` writes: `[agents]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentsFile {
    /// Where it is; there is none where nothing is said.
    pub file: Option<PathBuf>,
}

impl Config {
    /// Whether callers need no authentication.
    pub fn is_open(&self) -> bool {
        self.agents.is_empty() && self.agents_file.file.is_none() && self.issuers.is_empty()
    }
}
