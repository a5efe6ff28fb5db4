//! The listener for agents: `[listen]`.

use std::net::SocketAddr;
use std::path::PathBuf;

/// The listener for agents.
#[derive(Clone, Debug)]
pub struct Listen {
    pub address: SocketAddr,
    /// TLS settings; plain HTTP if not set.
    pub tls: Option<ListenTls>,
    /// Browser origins that are allowed, in addition to the listener's own.
    pub origins: Vec<String>,
    /// Host names by which agents may reach the listener, in addition to loopback names and its own
    /// address.
    pub hosts: Vec<String>,
    /// The URL by which agents reach the listener, without a path: `public_url`. If not set, it is
    /// taken from the request.
    pub public_url: Option<String>,
    /// Whether the gate may listen on addresses other than loopback without any agents, which it
    /// otherwise refuses (`allow_unauthenticated_agents_off_loopback`).
    pub allow_anyone: bool,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([127, 0, 0, 1], 8800)),
            tls: None,
            origins: vec![],
            hosts: vec![],
            public_url: None,
            allow_anyone: false,
        }
    }
}

/// Certificate and private key of the listener, PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// Certificate chain.
    pub cert: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// PEM file of CA certificates; if set, agents must present a certificate signed by one of
    /// them.
    pub client_ca: Option<PathBuf>,
}
