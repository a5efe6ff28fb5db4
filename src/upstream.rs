//! Transports to upstream servers. A transport carries messages and never judges them.

mod body;
pub mod canary;
mod channel;
mod child;
mod client;
mod end;
mod health;
mod http;
mod ids;
mod in_flight_call;
mod lines;
mod output;
mod page;
mod pool;
mod probe;
mod service;
mod sessions;
mod sse;
mod stdio;
#[cfg(test)]
mod testing;
mod tls;
mod wrapped;

use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use self::health::Health;
pub use self::service::{Service, ServiceError};
pub use self::wrapped::ServerInput;

use self::http::Http;
use self::sse::Sse;
use self::stdio::Stdio;
use crate::config::{HttpTransport, Limits, Transport, UpstreamConfig};
use crate::document::Fault;
use crate::message::ReadLimits;
use crate::oauth::{Authorizer, Shared};
use crate::protocol::{Call, CallError, InFlight, ProcessOutput, Reply, UpstreamName};

/// How long `/readyz` waits for a fresh answer when an earlier one is known: orchestrators
/// allow one second.
const PROMPT_TIMEOUT: Duration = Duration::from_millis(500);

/// A server behind the gateway.
pub struct Upstream {
    transport: UpstreamTransport,
    /// The authorizer that logs the gate in at this server, if it logs in there.
    login: Option<Arc<Authorizer>>,
}

/// The transport to a server.
enum UpstreamTransport {
    /// Streamable HTTP.
    Http(Box<Http>),
    /// HTTP+SSE.
    Sse(Sse),
    /// A child process.
    Stdio(Stdio),
    /// The input of a process that somebody else started and whose output they read.
    Wrapped(Arc<ServerInput>),
    /// No transport: the built-in server of canaries.
    BuiltIn(ReadLimits),
    /// No transport: the upstream's config cannot be used, for this reason.
    Faulty(String),
}

impl Upstream {
    /// Builds the transport that the config names. Nothing is connected or started before the first
    /// call. Without `logins`, the gate does not log in anywhere.
    ///
    /// # Errors
    /// Fails if a URL, header or TLS file cannot be used.
    pub fn new(
        name: UpstreamName,
        config: &UpstreamConfig,
        limits: &Limits,
        logins: Option<&Arc<Shared>>,
    ) -> Result<Self, Fault> {
        let login = |transport: &HttpTransport| {
            let (Some(login), None, Some(shared)) = (&transport.login, &transport.bearer, logins)
            else {
                return Ok(None);
            };
            Authorizer::new(&name.0, transport, login, shared.clone())
                .map(|login| Some(Arc::new(login)))
        };
        let outcome = match &config.transport {
            Transport::Http(transport) => login(transport).and_then(|login| {
                let http = Http::new(transport, login.clone(), config, limits)?;
                Ok((UpstreamTransport::Http(Box::new(http)), login))
            }),
            Transport::Stdio(transport) => Stdio::new(name.clone(), transport, config, limits)
                .map(|stdio| (UpstreamTransport::Stdio(stdio), None)),
            Transport::Sse(transport) => login(transport).and_then(|login| {
                let sse = Sse::new(name.clone(), transport, login.clone(), config, limits)?;
                Ok((UpstreamTransport::Sse(sse), login))
            }),
        };
        let (transport, login) = outcome
            .map_err(|message| Fault::of_file(format!("upstream `{name}`"), message, None))?;
        Ok(Self { transport, login })
    }

    /// Creates the built-in server of canaries, which replaces an upstream when a gate is tested.
    pub fn built_in(limits: &Limits) -> Self {
        Self {
            transport: UpstreamTransport::BuiltIn(limits.read.clone()),
            login: None,
        }
    }

    /// Creates the server that `lychgate wrap` stands in for: answers arrive on its output, not as
    /// replies.
    pub fn wrapped(input: Arc<ServerInput>) -> Self {
        Self {
            transport: UpstreamTransport::Wrapped(input),
            login: None,
        }
    }

    /// Creates an upstream that is down until its config changes; `reason` is shown to the
    /// operator.
    pub fn faulty(reason: String) -> Self {
        Self {
            transport: UpstreamTransport::Faulty(reason),
            login: None,
        }
    }

    /// Reserves the bytes of the server's answers in `in_flight` before they are read.
    #[must_use]
    pub fn reserving_in(mut self, in_flight: Arc<InFlight>) -> Self {
        match &mut self.transport {
            UpstreamTransport::Http(http) => http.reserve_in(in_flight),
            UpstreamTransport::Sse(sse) => sse.reserve_in(in_flight),
            UpstreamTransport::Stdio(_)
            | UpstreamTransport::Wrapped(_)
            | UpstreamTransport::BuiltIn(_)
            | UpstreamTransport::Faulty(_) => {}
        }
        self
    }

    /// Sends one call to the server. Dropping the future, or the frames of the reply, ends the call
    /// as its transport and era define.
    ///
    /// # Errors
    /// Fails if the server's answer cannot be read.
    pub async fn call(&self, call: &Call) -> Result<Reply, CallError> {
        match &self.transport {
            UpstreamTransport::Http(http) => http.call(call).await,
            // Boxed, as the transports differ in size.
            UpstreamTransport::Sse(sse) => Box::pin(sse.call(call)).await,
            UpstreamTransport::Stdio(stdio) => Box::pin(stdio.call(call)).await,
            UpstreamTransport::Wrapped(input) => input.call(call).await,
            UpstreamTransport::BuiltIn(limits) => canary::call(call, limits),
            UpstreamTransport::Faulty(reason) => {
                Err(CallError::Connect(io::Error::other(reason.clone())))
            }
        }
    }

    /// Returns the authorizer that logs the gate in at this server; `None` if the gate does not log
    /// in there.
    pub fn authorizer(&self) -> Option<&Arc<Authorizer>> {
        self.login.as_ref()
    }

    /// Returns the state of the server: as recent calls found it, otherwise as it answers now.
    /// Waits for a few seconds at most.
    pub async fn health(&self) -> Health {
        match &self.transport {
            UpstreamTransport::Http(http) => http.health().await,
            UpstreamTransport::Sse(sse) => sse.health().await,
            UpstreamTransport::Stdio(stdio) => stdio.health(),
            UpstreamTransport::Wrapped(_) | UpstreamTransport::BuiltIn(_) => Health::Up,
            UpstreamTransport::Faulty(reason) => Health::Down(reason.clone()),
        }
    }

    /// Like [`Self::health`], for callers that cannot wait: after a short time, returns the last
    /// known state.
    pub async fn prompt_health(&self) -> Health {
        match (
            tokio::time::timeout(PROMPT_TIMEOUT, self.health()).await,
            self.last_health(),
        ) {
            (Ok(health), _) | (Err(_), Some(health)) => health,
            // No state is known yet.
            (Err(_), None) => self.health().await,
        }
    }

    /// Returns the last known state of the server, without sending it a request.
    pub fn last_health(&self) -> Option<Health> {
        match &self.transport {
            UpstreamTransport::Http(http) => http.last_health(),
            UpstreamTransport::Sse(sse) => sse.last_health(),
            UpstreamTransport::Stdio(stdio) => Some(stdio.health()),
            UpstreamTransport::Wrapped(_) | UpstreamTransport::BuiltIn(_) => Some(Health::Up),
            UpstreamTransport::Faulty(reason) => Some(Health::Down(reason.clone())),
        }
    }

    /// Reports whether its replies have a status and headers of the server's own.
    pub fn speaks_http(&self) -> bool {
        matches!(self.transport, UpstreamTransport::Http(_))
    }

    /// Reports whether its answers arrive on one stream with everything else that it sends, instead
    /// of as replies to calls.
    pub fn has_one_stream(&self) -> bool {
        matches!(self.transport, UpstreamTransport::Wrapped(_))
    }

    /// Returns the last lines that its processes printed outside the protocol; `None` if it is not
    /// a process.
    pub fn output(&self) -> Option<ProcessOutput> {
        if let UpstreamTransport::Stdio(stdio) = &self.transport {
            Some(stdio.output())
        } else {
            None
        }
    }

    /// Stops everything that runs for this upstream, including child processes. Open calls are
    /// aborted.
    pub async fn shutdown(&self) {
        match &self.transport {
            UpstreamTransport::Http(_)
            | UpstreamTransport::Wrapped(_)
            | UpstreamTransport::BuiltIn(_)
            | UpstreamTransport::Faulty(_) => {}
            UpstreamTransport::Sse(sse) => sse.shutdown(),
            UpstreamTransport::Stdio(stdio) => stdio.shutdown().await,
        }
    }
}
