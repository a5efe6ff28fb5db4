//! A question that a call waits for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::{Answer, Approvals, State};

/// How waiting ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Settlement {
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
pub(crate) struct PendingQuestion {
    pub(super) approvals: Arc<Approvals>,
    pub(super) id: String,
    pub(super) wire: String,
    pub(super) until: Instant,
    pub(super) state: watch::Receiver<State>,
}

impl PendingQuestion {
    /// The name of the question, for people and programs.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The id under which the agent is asked.
    pub(crate) fn wire(&self) -> &str {
        &self.wire
    }

    /// Waits for an answer, for no longer than `most` and the deadline. An answer is used up by being taken here.
    pub(crate) async fn wait(&mut self, most: Duration) -> Settlement {
        let until = self.until.min(Instant::now() + most);
        let answered = self.state.wait_for(|state| *state != State::Open);
        let state = match tokio::time::timeout_at(until.into(), answered).await {
            Ok(Ok(state)) => state.clone(),
            // The question is gone: nobody can answer any more.
            Ok(Err(_)) => State::Cancelled,
            Err(_) => State::Open,
        };
        self.conclude(state)
    }

    /// What has come of it so far. An answer is used up.
    pub(crate) fn now(&mut self) -> Settlement {
        let state = self.state.borrow().clone();
        self.conclude(state)
    }

    fn conclude(&self, state: State) -> Settlement {
        let waited = match state {
            State::Answered(answer) => Settlement::Answered(answer),
            State::Cancelled => Settlement::Cancelled,
            State::Open if Instant::now() >= self.until => Settlement::Expired,
            State::Open => return Settlement::Open,
        };
        let entry = self.approvals.open.lock().remove(&self.id);
        if let (Settlement::Expired, Some(entry)) = (&waited, entry) {
            self.approvals.told_over(&self.id, &entry, Instant::now());
        }
        waited
    }
}

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        let mut open = self.approvals.open.lock();
        if let Some(entry) = open.get_mut(&self.id) {
            entry.attended = false;
        }
    }
}
