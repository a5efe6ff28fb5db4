//! Lists and answers approval requests for the console.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use crate::config::Scope;
use crate::message::quote;

use super::{AnsweredBy, ApprovalRequest, Approvals, Entry, State, render};

/// Maximum length of the approver's name that is kept for the audit log, in bytes.
const NAME_BYTES: usize = 64;

/// The approval requests as the console lists and answers them.
#[derive(Clone)]
pub struct ApprovalApi(Arc<Approvals>);

/// The reason why an answer is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionError {
    /// There is no such request, or it has expired.
    Unknown,
    /// It has already been answered.
    AlreadyAnswered,
    /// The audit log is required and cannot be written.
    NotRecorded,
    /// The policy allows only these scopes.
    Scope(Vec<Scope>),
}

impl ApprovalApi {
    /// Creates the API of a gate; from now on, the gate assumes that an approver can answer here.
    pub(crate) fn open(approvals: Arc<Approvals>) -> Self {
        approvals.console.store(true, Ordering::Relaxed);
        Self(approvals)
    }

    /// Returns the open requests as a JSON list, oldest first.
    pub fn list(&self) -> String {
        let now = Instant::now();
        let pending = self.0.entries(now);
        let mut entries: Vec<(&String, &Entry)> = pending
            .iter()
            .filter(|(_, entry)| *entry.state.borrow() == State::Open && entry.deadline > now)
            .collect();
        entries.sort_by_key(|(_, entry)| entry.since);
        let entries: Vec<String> = entries
            .into_iter()
            .map(|(id, entry)| entry_json(id, entry, now))
            .collect();
        format!("[{}]", entries.join(","))
    }

    /// Answers a request: `Some` approves it for that scope. `approver` is the name that the
    /// approver gives.
    ///
    /// # Errors
    /// The answer is rejected.
    pub fn decide(
        &self,
        id: &str,
        decision: Option<Scope>,
        approver: Option<&str>,
    ) -> Result<(), DecisionError> {
        let approver = approver
            .filter(|by| !by.is_empty())
            .map(|by| render::line(by, NAME_BYTES));
        self.0.answer(id, decision, AnsweredBy::Console, approver)
    }
}

fn entry_json(id: &str, entry: &Entry, now: Instant) -> String {
    let request = &entry.request;
    format!(
        r#"{{{},"waiting":{},"session":{},"shown":{}}}"#,
        members(
            id,
            request,
            entry.opened_at,
            entry.deadline.saturating_duration_since(now)
        ),
        entry.is_awaited,
        request
            .context
            .session
            .as_ref()
            .map_or("null".to_owned(), |session| quote(session.digest())),
        quote(&request.rendered),
    )
}

/// Returns the fields that the console and notifications have in common, as members of an object.
pub(super) fn members(
    id: &str,
    request: &ApprovalRequest,
    opened_at: SystemTime,
    remaining: Duration,
) -> String {
    let list = |words: Vec<String>| words.join(",");
    format!(
        r#""id":{},"asked_at":"{}","seconds_left":{},"agent":{},"user":{},"upstream":{},"tool":{},"severity":"{}","rules":[{}],"title":{},"why":{},"scopes":[{}],"call_sha256":"{}","bytes":{}"#,
        quote(id),
        humantime::format_rfc3339_seconds(opened_at),
        remaining.as_secs(),
        quote(&request.context.agent.0),
        request
            .context
            .caller
            .user
            .as_ref()
            .map_or("null".to_owned(), |user| quote(user)),
        quote(&request.context.upstream.0),
        quote(&request.tool),
        request.severity.name(),
        list(
            request
                .rules
                .iter()
                .map(|rule| quote(rule.as_str()))
                .collect()
        ),
        quote(&request.title),
        quote(&request.why),
        list(
            request
                .scopes
                .iter()
                .map(|scope| quote(scope.name()))
                .collect()
        ),
        request.digest.hex(),
        request.bytes,
    )
}
