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
const ANSWER_LIFETIME: Duration = Duration::from_secs(10);
/// How long a failure counts before the server is asked again; short, so that a server that is back
/// is noticed.
const FAILURE_LIFETIME: Duration = Duration::from_secs(1);

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
    probe_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    latest: Option<(Instant, Health)>,
    /// Whether the last call left a question that only a probe can decide.
    is_doubtful: bool,
    /// Whether the last call that gave any evidence was answered in MCP.
    was_served: bool,
}

impl HealthTracker {
    /// Records what an outcome shows about the server, and returns the outcome. Faults of the agent
    /// and of the gateway show nothing.
    pub(super) fn record_outcome(
        &self,
        outcome: Result<Reply, CallError>,
    ) -> Result<Reply, CallError> {
        match &outcome {
            Ok(reply) if reply.status.is_success() => self.record_served(),
            Ok(_) => self.record_doubt(),
            Err(
                CallError::AuthRequired | CallError::LoginRequired { .. } | CallError::NoToken(_),
            ) => {
                let mut state = self.state.lock();
                (state.was_served, state.is_doubtful) = (false, false);
                state.latest = Some((Instant::now(), Health::AuthRequired));
            }
            Err(CallError::Connect(error)) => self.record_down(error.to_string()),
            Err(error @ CallError::NotStarted(_)) => self.record_down(error.to_string()),
            Err(CallError::Process(fault)) if fault.kind != ProcessFaultKind::SessionEnded => {
                self.record_down(fault.describe())
            }
            Err(CallError::Silent(_) | CallError::NotMcp(_) | CallError::BadReply(_)) => {
                self.record_doubt()
            }
            Err(_) => {}
        }
        outcome
    }

    /// Records an answer in MCP.
    fn record_served(&self) {
        let mut state = self.state.lock();
        (state.was_served, state.is_doubtful) = (true, false);
        state.latest = Some((Instant::now(), Health::Up));
    }

    /// Records a failure that leaves no doubt.
    pub(super) fn record_down(&self, reason: String) {
        let mut state = self.state.lock();
        state.is_doubtful = false;
        state.latest = Some((Instant::now(), Health::Down(reason)));
    }

    fn record_doubt(&self) {
        self.state.lock().is_doubtful = true;
    }

    /// Returns the last known state, however old.
    pub(super) fn last_known(&self) -> Option<Health> {
        self.state
            .lock()
            .latest
            .as_ref()
            .map(|(_, health)| health.clone())
    }

    /// Returns the recent state if there is one, otherwise the result of `probe`.
    pub(super) async fn health(&self, probe: impl Future<Output = ProbeResult>) -> Health {
        if let Some(health) = self.recent() {
            return health;
        }
        let _probe_guard = self.probe_lock.lock().await;
        if let Some(health) = self.recent() {
            return health;
        }
        let asked_at = Instant::now();
        let result = probe.await;
        let mut state = self.state.lock();
        if let Some((at, health)) = &state.latest
            && *at > asked_at
            && !state.is_doubtful
        {
            // A call has reported a newer state in the meantime.
            return health.clone();
        }
        let health = match result {
            ProbeResult::Answers => Health::Up,
            // The probe sends no credentials: a server that accepts the agents' credentials is up.
            ProbeResult::AuthRequired if state.was_served => Health::Up,
            ProbeResult::AuthRequired => Health::AuthRequired,
            ProbeResult::Unclear(_) if state.was_served => Health::Up,
            ProbeResult::Unclear(reason) | ProbeResult::Down(reason) => Health::Down(reason),
        };
        state.is_doubtful = false;
        state.latest = Some((Instant::now(), health.clone()));
        health
    }

    fn recent(&self) -> Option<Health> {
        let state = self.state.lock();
        let (at, health) = state.latest.as_ref().filter(|_| !state.is_doubtful)?;
        let lifetime = if health.reason().is_some() {
            FAILURE_LIFETIME
        } else {
            ANSWER_LIFETIME
        };
        (at.elapsed() < lifetime).then(|| health.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::io;

    use http::{HeaderMap, StatusCode};

    use super::*;
    use crate::protocol::{Frames, Framing};

    fn reply(status: u16) -> Result<Reply, CallError> {
        let status = StatusCode::from_u16(status).unwrap();
        let frames = Frames::empty();
        Ok(Reply {
            status,
            headers: HeaderMap::new(),
            framing: Framing::Empty,
            frames,
        })
    }

    async fn health_after(tracker: &HealthTracker, finding: ProbeResult) -> Health {
        tracker.health(ready(finding)).await
    }

    #[tokio::test]
    async fn one_bad_answer_makes_the_server_be_asked_and_does_not_decide() {
        let tracker = HealthTracker::default();
        assert_eq!(
            health_after(&tracker, ProbeResult::Down("a page".into())).await,
            Health::Down("a page".into())
        );
        drop(tracker.record_outcome(reply(200)));
        assert_eq!(
            health_after(&tracker, ProbeResult::Down("not asked".into())).await,
            Health::Up
        );
        drop(tracker.record_outcome(Err(CallError::BadReply("a page"))));
        assert_eq!(
            health_after(&tracker, ProbeResult::Answers).await,
            Health::Up
        );
        drop(tracker.record_outcome(Err(CallError::BadReply("a page"))));
        assert_eq!(
            health_after(&tracker, ProbeResult::Down("a page".into())).await,
            Health::Down("a page".into())
        );
        drop(tracker.record_outcome(Err(CallError::Connect(io::Error::other("refused")))));
        assert_eq!(
            health_after(&tracker, ProbeResult::Answers).await,
            Health::Down("refused".into()),
            "it was found just now"
        );
        drop(tracker.record_outcome(reply(502)));
        assert_eq!(
            health_after(&tracker, ProbeResult::Answers).await,
            Health::Up
        );
    }

    #[tokio::test]
    async fn a_probe_without_a_login_does_not_undo_what_calls_have_shown() {
        let tracker = HealthTracker::default();
        assert_eq!(
            health_after(&tracker, ProbeResult::AuthRequired).await,
            Health::AuthRequired
        );
        drop(tracker.record_outcome(reply(200)));
        drop(tracker.record_outcome(reply(404)));
        assert_eq!(
            health_after(&tracker, ProbeResult::AuthRequired).await,
            Health::Up
        );
        drop(tracker.record_outcome(reply(404)));
        assert_eq!(
            health_after(&tracker, ProbeResult::Unclear("404".into())).await,
            Health::Up
        );
        drop(tracker.record_outcome(Err(CallError::AuthRequired)));
        assert_eq!(
            health_after(&tracker, ProbeResult::Answers).await,
            Health::AuthRequired
        );
        assert_eq!(tracker.last_known(), Some(Health::AuthRequired));
    }
}
