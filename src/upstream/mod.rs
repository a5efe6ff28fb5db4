//! Transports to servers. A transport carries and never judges.

mod body;
pub mod canary;
mod channel;
mod child;
mod client;
mod http;
mod ids;
mod lines;
mod probe;
mod service;
mod sessions;
mod sse;
mod stdio;
#[cfg(test)]
mod testing;
mod ticket;
mod tls;

use std::sync::{Arc, Mutex, PoisonError};

pub use self::service::{NoAnswer, Service};

use self::http::Http;
use self::probe::Probe;
use self::sse::Sse;
use self::stdio::Stdio;
use crate::config::{HttpTransport, Limits, Transport, UpstreamConfig};
use crate::document::Fault;
use crate::message::ReadLimits;
use crate::oauth::{Authorizer, Shared};
use crate::protocol::{Call, CallError, Reply, UpstreamName};

/// A server behind the gateway.
pub struct Upstream {
    transport: Carrier,
    /// The gate's logins there, if it makes any.
    login: Option<Arc<Authorizer>>,
    probe: Probe,
}

/// The transport to a server.
enum Carrier {
    /// Streamable HTTP.
    Http(Box<Http>),
    /// HTTP+SSE.
    Sse(Sse),
    /// A child process.
    Stdio(Stdio),
    /// None: the built-in server of canaries.
    BuiltIn(ReadLimits),
}

impl Upstream {
    /// Builds the transport that the config names. Nothing is connected or started before the first call. Without `logins`
    /// the gate logs in nowhere.
    ///
    /// # Errors
    /// A URL, header or TLS file that cannot be used.
    pub fn new(
        name: UpstreamName,
        config: &UpstreamConfig,
        limits: &Limits,
        logins: Option<&Arc<Shared>>,
    ) -> Result<Self, Fault> {
        let login = |transport: &HttpTransport| {
            let (Some(login), None, Some(shared)) = (&transport.login, &transport.bearer, logins) else { return Ok(None) };
            Authorizer::new(&name.0, transport, login, shared.clone()).map(|login| Some(Arc::new(login)))
        };
        let built = match &config.transport {
            Transport::Http(transport) => login(transport).and_then(|login| {
                let http = Http::new(transport, login.clone(), config, limits)?;
                Ok((Carrier::Http(Box::new(http)), login))
            }),
            Transport::Stdio(transport) => {
                Stdio::new(name.clone(), transport, config, limits).map(|stdio| (Carrier::Stdio(stdio), None))
            }
            Transport::Sse(transport) => login(transport).and_then(|login| {
                let sse = Sse::new(name.clone(), transport, login.clone(), config, limits)?;
                Ok((Carrier::Sse(sse), login))
            }),
        };
        let (transport, login) = built.map_err(|message| Fault::of_file(format!("upstream `{name}`"), message, None))?;
        Ok(Self { transport, login, probe: Probe::of(&config.transport) })
    }

    /// The built-in server of canaries, which takes an upstream's place where a gate is tried.
    pub fn built_in(limits: &Limits) -> Self {
        Self { transport: Carrier::BuiltIn(limits.read.clone()), login: None, probe: Probe::BuiltIn }
    }

    /// Carries one call to the server. Dropping the future, or the frames of the reply, ends the call there as its
    /// transport and era lay down.
    ///
    /// # Errors
    /// Whatever keeps the server's answer from being read.
    pub async fn call(&self, call: Call) -> Result<Reply, CallError> {
        match &self.transport {
            Carrier::Http(http) => http.call(call).await,
            Carrier::Sse(sse) => sse.call(call).await,
            Carrier::Stdio(stdio) => stdio.call(call).await,
            Carrier::BuiltIn(limits) => canary::call(&call, limits),
        }
    }

    /// What makes the gate's logins there; `None` where it makes none.
    pub fn authorizer(&self) -> Option<&Arc<Authorizer>> {
        self.login.as_ref()
    }

    /// How the server is: as its last call went, and where none went well yet, whether it could be reached now.
    pub async fn health(&self) -> Health {
        let last = match &self.transport {
            Carrier::Http(http) => http.health(),
            Carrier::Sse(sse) => sse.health(),
            Carrier::Stdio(stdio) => stdio.health(),
            Carrier::BuiltIn(_) => None,
        };
        match last {
            Some(Felt::As(health)) => health,
            Some(Felt::Unreached(why)) => self.probe.again(why).await,
            None => self.probe.first().await,
        }
    }

    /// Ends everything that runs for this upstream, child processes and all. Calls still open break off.
    pub async fn shutdown(&self) {
        match &self.transport {
            Carrier::Http(_) | Carrier::BuiltIn(_) => {}
            Carrier::Sse(sse) => sse.shutdown(),
            Carrier::Stdio(stdio) => stdio.shutdown().await,
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
}

impl Health {
    /// The name in `/readyz` and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::AuthRequired => "auth_required",
            Self::Down(_) => "down",
        }
    }
}

/// Remembers how the last call went.
#[derive(Default)]
struct Pulse(Mutex<Option<Felt>>);

/// What the last call said of the server.
#[derive(Clone)]
enum Felt {
    /// This.
    As(Health),
    /// It could not be reached, or broke off; why.
    Unreached(String),
}

impl Pulse {
    /// Notes what an outcome says about the server, and hands it on. Faults of the agent and of the gateway say nothing.
    fn felt(&self, outcome: Result<Reply, CallError>) -> Result<Reply, CallError> {
        let health = match &outcome {
            Ok(reply) if matches!(reply.status.as_u16(), 502..=504) => Health::Down(format!("it answers {}", reply.status)),
            Ok(_) => Health::Up,
            Err(CallError::AuthRequired | CallError::LoginOwed { .. } | CallError::NoToken(_)) => Health::AuthRequired,
            Err(CallError::Connect(error)) => {
                self.note(Felt::Unreached(error.to_string()));
                return outcome;
            }
            Err(error @ CallError::Silent(_)) => Health::Down(error.to_string()),
            // It answered, if badly: it is there.
            Err(CallError::NotMcp(_) | CallError::BadReply(_)) => Health::Up,
            Err(_) => return outcome,
        };
        self.note(Felt::As(health));
        outcome
    }

    fn down(&self, why: String) {
        self.note(Felt::As(Health::Down(why)));
    }

    fn note(&self, health: Felt) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(health);
    }

    fn health(&self) -> Option<Felt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
