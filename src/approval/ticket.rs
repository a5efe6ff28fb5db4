//! A question that a call waits for.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::{Answer, Approvals, State};

/// How waiting ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// It was answered.
    Answered(Answer),
    /// The agent took its call back.
    Cancelled,
    /// The deadline has passed: no.
    Expired,
    /// It is still open.
    Open,
}

/// A question that a call waits for. Dropped before there is an answer, the question stays until its deadline, and the
/// same call finds it again.
pub(crate) struct Ticket {
    pub(super) approvals: Arc<Approvals>,
    pub(super) id: String,
    pub(super) wire: String,
    pub(super) until: Instant,
    pub(super) state: watch::Receiver<State>,
}

impl Ticket {
    /// The name of the question, for people and programs.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The id under which the agent is asked.
    pub(crate) fn wire(&self) -> &str {
        &self.wire
    }

    /// Waits for an answer, for no longer than `most` and the deadline. An answer is used up by being taken here.
    pub(crate) async fn wait(&mut self, most: Duration) -> Waited {
        let until = self.until.min(Instant::now() + most);
        let answered = self.state.wait_for(|state| *state != State::Open);
        let state = match tokio::time::timeout_at(until.into(), answered).await {
            Ok(Ok(state)) => state.clone(),
            // The question is gone: nobody can answer any more.
            Ok(Err(_)) => State::Cancelled,
            Err(_) => State::Open,
        };
        self.ended(state)
    }

    /// What has come of it so far. An answer is used up.
    pub(crate) fn now(&mut self) -> Waited {
        let state = self.state.borrow().clone();
        self.ended(state)
    }

    fn ended(&self, state: State) -> Waited {
        let waited = match state {
            State::Answered(answer) => Waited::Answered(answer),
            State::Cancelled => Waited::Cancelled,
            State::Open if Instant::now() >= self.until => Waited::Expired,
            State::Open => return Waited::Open,
        };
        let entry = self.approvals.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        if let (Waited::Expired, Some(entry)) = (&waited, entry) {
            self.approvals.told_over(&self.id, &entry, Instant::now());
        }
        waited
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut open = self.approvals.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = open.get_mut(&self.id) {
            entry.attended = false;
        }
    }
}
