//! Transports to servers. A transport carries and never judges.

mod body;
mod channel;
mod child;
mod client;
mod http;
mod lines;
mod sessions;
mod sse;
mod stdio;
#[cfg(test)]
mod testing;
mod ticket;
mod tls;

use std::sync::{Mutex, PoisonError};

pub use self::http::Http;
pub use self::sse::Sse;
pub use self::stdio::Stdio;
use crate::config::{Limits, Transport, UpstreamConfig};
use crate::document::Fault;
use crate::protocol::{Call, CallError, Reply, UpstreamName};

/// A server behind the gateway.
pub enum Upstream {
    /// Streamable HTTP.
    Http(Http),
    /// HTTP+SSE.
    Sse(Sse),
    /// A child process.
    Stdio(Stdio),
}

impl Upstream {
    /// Builds the transport that the config names. Nothing is connected or started before the first call.
    ///
    /// # Errors
    /// A URL, header or TLS file that cannot be used.
    pub fn new(name: UpstreamName, config: &UpstreamConfig, limits: &Limits) -> Result<Self, Fault> {
        let built = match &config.transport {
            Transport::Http(transport) => Http::new(transport, config, limits).map(Self::Http),
            Transport::Stdio(transport) => Stdio::new(name.clone(), transport, config, limits).map(Self::Stdio),
            Transport::Sse(transport) => Sse::new(name.clone(), transport, config, limits).map(Self::Sse),
        };
        built.map_err(|message| Fault::of_file(format!("upstream `{name}`"), message, None))
    }

    /// Carries one call to the server. Dropping the future, or the frames of the reply, ends the call there as its
    /// transport and era lay down.
    ///
    /// # Errors
    /// Whatever keeps the server's answer from being read.
    pub async fn call(&self, call: Call) -> Result<Reply, CallError> {
        match self {
            Self::Http(http) => http.call(call).await,
            Self::Sse(sse) => sse.call(call).await,
            Self::Stdio(stdio) => stdio.call(call).await,
        }
    }

    /// How the server was when last asked.
    pub fn health(&self) -> Health {
        match self {
            Self::Http(http) => http.health(),
            Self::Sse(sse) => sse.health(),
            Self::Stdio(stdio) => stdio.health(),
        }
    }

    /// Ends everything that runs for this upstream, child processes and all. Calls still open break off.
    pub async fn shutdown(&self) {
        match self {
            Self::Http(_) => {}
            Self::Sse(sse) => sse.shutdown(),
            Self::Stdio(stdio) => stdio.shutdown().await,
        }
    }
}

/// How a server was when last asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answered.
    Up,
    /// It wants a login.
    AuthRequired,
    /// It could not be reached or did not answer; why, in words for an operator.
    Down(String),
    /// It was not asked yet.
    Unknown,
}

impl Health {
    /// The name in `/readyz` and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::AuthRequired => "auth_required",
            Self::Down(_) => "down",
            Self::Unknown => "unknown",
        }
    }
}

/// Remembers how the last call went.
struct Pulse(Mutex<Health>);

impl Default for Pulse {
    fn default() -> Self {
        Self(Mutex::new(Health::Unknown))
    }
}

impl Pulse {
    /// Notes what an outcome says about the server, and hands it on. Faults of the agent and of the gateway say nothing.
    fn felt(&self, outcome: Result<Reply, CallError>) -> Result<Reply, CallError> {
        let health = match &outcome {
            Ok(reply) if matches!(reply.status.as_u16(), 502..=504) => Health::Down(format!("it answers {}", reply.status)),
            Ok(_) => Health::Up,
            Err(CallError::AuthRequired) => Health::AuthRequired,
            Err(CallError::Connect(error)) => Health::Down(error.to_string()),
            Err(error @ CallError::Silent(_)) => Health::Down(error.to_string()),
            // It answered, if badly: it is there.
            Err(CallError::NotMcp(_) | CallError::BadReply(_)) => Health::Up,
            Err(_) => return outcome,
        };
        self.note(health);
        outcome
    }

    fn down(&self, why: String) {
        self.note(Health::Down(why));
    }

    fn note(&self, health: Health) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = health;
    }

    fn health(&self) -> Health {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
