//! The side that faces agents, and who may call.

use std::net::SocketAddr;
use std::path::PathBuf;

/// The side that faces agents.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Where to listen.
    pub address: SocketAddr,
    /// TLS, if wanted.
    pub tls: Option<ListenTls>,
    /// Browser origins allowed, besides the listener's own.
    pub origins: Vec<String>,
    /// Host names by which agents may reach the listener, besides loopback names and its own address.
    pub hosts: Vec<String>,
    /// Off loopback the gate refuses to start without agents; this says to start all the same
    /// (`allow_unauthenticated_agents_off_loopback`).
    pub allow_anyone: bool,
}

impl Default for Listen {
    fn default() -> Self {
        Self { address: SocketAddr::from(([127, 0, 0, 1], 8800)), tls: None, origins: vec![], hosts: vec![], allow_anyone: false }
    }
}

/// Certificate and key of the listener, PEM files.
#[derive(Clone, Debug)]
pub struct ListenTls {
    /// Certificate chain.
    pub cert: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// If set, agents must show a certificate signed by one of these.
    pub client_ca: Option<PathBuf>,
}

/// An agent that may call.
#[derive(Clone)]
pub struct Agent {
    /// Its name in audit and metrics.
    pub name: String,
    /// SHA-256 of its bearer token: the token itself is never kept.
    pub token_sha256: [u8; 32],
    /// Upstreams it may reach; `None` for all.
    pub upstreams: Option<Vec<String>>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Agent({})", self.name)
    }
}
