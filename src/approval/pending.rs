//! An approval request that a call waits for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::{Answer, Approvals, State};

/// How the wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
    Answered(Answer),
    /// The agent cancelled its call.
    Cancelled,
    /// The deadline has passed, which counts as a denial.
    Expired,
    /// The request is still open.
    Open,
}

/// An approval request that a call waits for. If it is dropped before there is an answer, the
/// request stays open until its deadline, and a repeated call resumes it.
pub(crate) struct PendingQuestion {
    pub(super) approvals: Arc<Approvals>,
    pub(super) id: String,
    pub(super) elicitation_id: String,
    pub(super) deadline: Instant,
    pub(super) state: watch::Receiver<State>,
}

impl PendingQuestion {
    /// Returns the name of the request, for people and programs.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the id with which the agent is asked.
    pub(crate) fn elicitation_id(&self) -> &str {
        &self.elicitation_id
    }

    /// Waits for an answer, until `max_wait` has elapsed or the deadline has passed. Returning an
    /// answer consumes it.
    pub(crate) async fn wait(&mut self, max_wait: Duration) -> Settlement {
        let deadline = self.deadline.min(Instant::now() + max_wait);
        let answer = self.state.wait_for(|state| *state != State::Open);
        let state = match tokio::time::timeout_at(deadline.into(), answer).await {
            Ok(Ok(state)) => state.clone(),
            // The request has been removed: it can no longer be answered.
            Ok(Err(_)) => State::Cancelled,
            Err(_) => State::Open,
        };
        self.conclude(state)
    }

    /// Returns the current state without waiting. Returning an answer consumes it.
    pub(crate) fn current(&mut self) -> Settlement {
        let state = self.state.borrow().clone();
        self.conclude(state)
    }

    fn conclude(&self, state: State) -> Settlement {
        let settlement = match state {
            State::Answered(answer) => Settlement::Answered(answer),
            State::Cancelled => Settlement::Cancelled,
            State::Open if Instant::now() >= self.deadline => Settlement::Expired,
            State::Open => return Settlement::Open,
        };
        let entry = self.approvals.pending.lock().remove(&self.id);
        if let (Settlement::Expired, Some(entry)) = (&settlement, entry) {
            self.approvals
                .record_expiry(&self.id, &entry, Instant::now());
        }
        settlement
    }
}

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        let mut pending = self.approvals.pending.lock();
        if let Some(entry) = pending.get_mut(&self.id) {
            entry.is_awaited = false;
        }
    }
}
