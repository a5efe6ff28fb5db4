//! The side that faces agents.

use std::net::SocketAddr;
use std::path::PathBuf;

/// The side that faces agents.
#[derive(Clone, Debug)]
pub struct Listen {
    pub address: SocketAddr,
    /// TLS, if wanted.
    pub tls: Option<ListenTls>,
    /// Browser origins allowed, besides the listener's own.
    pub origins: Vec<String>,
    /// Host names by which agents may reach the listener, besides loopback names and its own address.
    pub hosts: Vec<String>,
    /// The URL by which agents reach the listener, without a path: `public_url`. If not set, as in the request.
    pub public_url: Option<String>,
    /// Off loopback the gate refuses to start without agents; this permits it
    /// (`allow_unauthenticated_agents_off_loopback`).
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

/// Certificate and key of the listener, PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenTls {
    /// Certificate chain.
    pub cert: PathBuf,
    /// Private key.
    pub key: PathBuf,
    /// If set, agents must show a certificate signed by one of these.
    pub client_ca: Option<PathBuf>,
}
