//! The state of a server: as recent calls found it, or, without recent calls, as it answers an MCP
//! request now.
//!
//! An open port proves nothing: a server counts as up once it answers in MCP. A call that fails to
//! connect shows at once that the server is down. An unreadable answer does not decide by itself,
//! since a server may fail at one call and serve all others: the next health check sends the server
//! a request, and its answer to that counts.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::probe::ProbeResult;
use crate::protocol::{CallError, ProcessFaultKind, Reply};

/// How long an answer counts before the server is asked again.
const ANSWER_COUNTS: Duration = Duration::from_secs(10);
/// How long a failure counts before the server is asked again; short, so that a server that is back
/// is noticed.
const FAILURE_COUNTS: Duration = Duration::from_secs(1);

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answers in MCP.
    Up,
    /// It answers that authentication is required.
    AuthRequired,
    /// It cannot be reached or does not answer in MCP; the reason, for an operator.
    Down(String),
}

impl Health {
    /// Returns the name in `/readyz` and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::AuthRequired => "auth_required",
            Self::Down(_) => "down",
        }
    }

    /// Returns why the server is down.
    pub fn reason(&self) -> Option<&str> {
        if let Self::Down(reason) = self {
            Some(reason)
        } else {
            None
        }
    }
}

/// What calls and probes have found out about a server.
#[derive(Default)]
pub(super) struct HealthTracker {
    state: Mutex<State>,
    /// Held by the task that sends the probe; the others wait for its answer.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    found: Option<(Instant, Health)>,
    /// Whether the last call left a question that only a probe can decide.
    doubtful: bool,
    /// Whether the last call that gave any evidence was answered in MCP.
    served: bool,
}

impl HealthTracker {
    /// Records what an outcome shows about the server, and returns the outcome. Faults of the agent
    /// and of the gateway show nothing.
    pub(super) fn felt(&self, outcome: Result<Reply, CallError>) -> Result<Reply, CallError> {
        match &outcome {
            Ok(reply) if reply.status.is_success() => self.served(),
            Ok(_) => self.doubt(),
            Err(CallError::AuthRequired | CallError::LoginOwed { .. } | CallError::NoToken(_)) => {
                let mut state = self.state.lock();
                (state.served, state.doubtful) = (false, false);
                state.found = Some((Instant::now(), Health::AuthRequired));
            }
            Err(CallError::Connect(error)) => self.down(error.to_string()),
            Err(error @ CallError::NotStarted(_)) => self.down(error.to_string()),
            Err(CallError::Process(fault)) if fault.kind != ProcessFaultKind::SessionEnded => {
                self.down(fault.described())
            }
            Err(CallError::Silent(_) | CallError::NotMcp(_) | CallError::BadReply(_)) => {
                self.doubt()
            }
            Err(_) => {}
        }
        outcome
    }

    /// Records an answer in MCP.
    fn served(&self) {
        let mut state = self.state.lock();
        (state.served, state.doubtful) = (true, false);
        state.found = Some((Instant::now(), Health::Up));
    }

    /// Records a failure that leaves no doubt.
    pub(super) fn down(&self, reason: String) {
        let mut state = self.state.lock();
        state.doubtful = false;
        state.found = Some((Instant::now(), Health::Down(reason)));
    }

    fn doubt(&self) {
        self.state.lock().doubtful = true;
    }

    /// Returns the last known state, however old.
    pub(super) fn last(&self) -> Option<Health> {
        self.state
            .lock()
            .found
            .as_ref()
            .map(|(_, health)| health.clone())
    }

    /// Returns the recent state if there is one, otherwise the result of `ask`.
    pub(super) async fn health(&self, ask: impl Future<Output = ProbeResult>) -> Health {
        if let Some(health) = self.recent() {
            return health;
        }
        let _alone = self.asking.lock().await;
        if let Some(health) = self.recent() {
            return health;
        }
        let asked = Instant::now();
        let finding = ask.await;
        let mut state = self.state.lock();
        if let Some((at, health)) = &state.found
            && *at > asked
            && !state.doubtful
        {
            // A call has reported a newer state in the meantime.
            return health.clone();
        }
        let health = match finding {
            ProbeResult::Answers => Health::Up,
            // The probe sends no credentials: a server that accepts the agents' credentials is up.
            ProbeResult::AuthRequired if state.served => Health::Up,
            ProbeResult::AuthRequired => Health::AuthRequired,
            ProbeResult::Unclear(_) if state.served => Health::Up,
            ProbeResult::Unclear(reason) | ProbeResult::Down(reason) => Health::Down(reason),
        };
        state.doubtful = false;
        state.found = Some((Instant::now(), health.clone()));
        health
    }

    fn recent(&self) -> Option<Health> {
        let state = self.state.lock();
        let (at, health) = state.found.as_ref().filter(|_| !state.doubtful)?;
        let counts = if health.reason().is_some() {
            FAILURE_COUNTS
        } else {
            ANSWER_COUNTS
        };
        (at.elapsed() < counts).then(|| health.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io;

    use http::{HeaderMap, StatusCode};

    use super::*;
    use crate::protocol::{Frames, Framing};

    fn answered(status: u16) -> Result<Reply, CallError> {
        let status = StatusCode::from_u16(status).unwrap();
        let frames = Frames::empty();
        Ok(Reply {
            status,
            headers: HeaderMap::new(),
            framing: Framing::Empty,
            frames,
        })
    }

    async fn asked(pulse: &HealthTracker, finding: ProbeResult) -> Health {
        pulse.health(ready(finding)).await
    }

    #[tokio::test]
    async fn one_bad_answer_makes_the_server_be_asked_and_does_not_decide() {
        let pulse = HealthTracker::default();
        assert_eq!(
            asked(&pulse, ProbeResult::Down("a page".into())).await,
            Health::Down("a page".into())
        );
        drop(pulse.felt(answered(200)));
        assert_eq!(
            asked(&pulse, ProbeResult::Down("not asked".into())).await,
            Health::Up
        );
        drop(pulse.felt(Err(CallError::BadReply("a page"))));
        assert_eq!(asked(&pulse, ProbeResult::Answers).await, Health::Up);
        drop(pulse.felt(Err(CallError::BadReply("a page"))));
        assert_eq!(
            asked(&pulse, ProbeResult::Down("a page".into())).await,
            Health::Down("a page".into())
        );
        drop(pulse.felt(Err(CallError::Connect(io::Error::other("refused")))));
        assert_eq!(
            asked(&pulse, ProbeResult::Answers).await,
            Health::Down("refused".into()),
            "it was found just now"
        );
        drop(pulse.felt(answered(502)));
        assert_eq!(asked(&pulse, ProbeResult::Answers).await, Health::Up);
    }

    #[tokio::test]
    async fn a_probe_without_a_login_does_not_undo_what_calls_have_shown() {
        let pulse = HealthTracker::default();
        assert_eq!(
            asked(&pulse, ProbeResult::AuthRequired).await,
            Health::AuthRequired
        );
        drop(pulse.felt(answered(200)));
        drop(pulse.felt(answered(404)));
        assert_eq!(asked(&pulse, ProbeResult::AuthRequired).await, Health::Up);
        drop(pulse.felt(answered(404)));
        assert_eq!(
            asked(&pulse, ProbeResult::Unclear("404".into())).await,
            Health::Up
        );
        drop(pulse.felt(Err(CallError::AuthRequired)));
        assert_eq!(
            asked(&pulse, ProbeResult::Answers).await,
            Health::AuthRequired
        );
        assert_eq!(pulse.last(), Some(Health::AuthRequired));
    }
}
