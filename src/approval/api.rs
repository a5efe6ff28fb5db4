//! The questions as the console sees and answers them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use crate::config::Scope;
use crate::message::quote;

use super::{AnsweredBy, ApprovalRequest, Approvals, Entry, State, render};

/// Longest name that somebody who answers gives for the audit log, in bytes.
const NAME_BYTES: usize = 64;

/// The questions as the console sees and answers them.
#[derive(Clone)]
pub struct ApprovalApi(Arc<Approvals>);

/// Why an answer does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionError {
    /// There is no such question, or its time is over.
    Unknown,
    /// It was answered before.
    Already,
    /// The audit log is required and cannot be written.
    Untold,
    /// The policy allows only these.
    Scope(Vec<Scope>),
}

impl ApprovalApi {
    /// Over the questions of a gate, which from now on count on somebody to answer here.
    pub(crate) fn open(approvals: Arc<Approvals>) -> Self {
        approvals.console.store(true, Ordering::Relaxed);
        Self(approvals)
    }

    /// The open questions as a JSON list, the oldest first.
    pub fn list(&self) -> String {
        let now = Instant::now();
        let open = self.0.entries(now);
        let mut entries: Vec<(&String, &Entry)> = open
            .iter()
            .filter(|(_, entry)| *entry.state.borrow() == State::Open && entry.until > now)
            .collect();
        entries.sort_by_key(|(_, entry)| entry.since);
        let entries: Vec<String> = entries
            .into_iter()
            .map(|(id, entry)| entry_json(id, entry, now))
            .collect();
        format!("[{}]", entries.join(","))
    }

    /// Answers a question: `Some` is yes, for so much. `by` is who says to answer.
    ///
    /// # Errors
    /// The answer does not count.
    pub fn decide(
        &self,
        id: &str,
        yes: Option<Scope>,
        by: Option<&str>,
    ) -> Result<(), DecisionError> {
        let by = by
            .filter(|by| !by.is_empty())
            .map(|by| render::line(by, NAME_BYTES));
        self.0.answer(id, yes, AnsweredBy::Console, by)
    }
}

fn entry_json(id: &str, entry: &Entry, now: Instant) -> String {
    let matter = &entry.matter;
    format!(
        r#"{{{},"waiting":{},"session":{},"shown":{}}}"#,
        members(
            id,
            matter,
            entry.asked_at,
            entry.until.saturating_duration_since(now)
        ),
        entry.attended,
        matter
            .context
            .session
            .as_ref()
            .map_or("null".to_owned(), |session| quote(session.digest())),
        quote(&matter.shown),
    )
}

/// What the desk and notifications have in common, as members of an object.
pub(super) fn members(
    id: &str,
    matter: &ApprovalRequest,
    asked_at: SystemTime,
    left: Duration,
) -> String {
    let list = |words: Vec<String>| words.join(",");
    format!(
        r#""id":{},"asked_at":"{}","seconds_left":{},"agent":{},"user":{},"upstream":{},"tool":{},"severity":"{}","rules":[{}],"title":{},"why":{},"scopes":[{}],"call_sha256":"{}","bytes":{}"#,
        quote(id),
        humantime::format_rfc3339_seconds(asked_at),
        left.as_secs(),
        quote(&matter.context.agent.0),
        matter
            .context
            .caller
            .user
            .as_ref()
            .map_or("null".to_owned(), |user| quote(user)),
        quote(&matter.context.upstream.0),
        quote(&matter.tool),
        matter.severity.name(),
        list(
            matter
                .rules
                .iter()
                .map(|rule| quote(rule.as_str()))
                .collect()
        ),
        quote(&matter.title),
        quote(&matter.why),
        list(
            matter
                .scopes
                .iter()
                .map(|scope| quote(scope.name()))
                .collect()
        ),
        matter.digest.hex(),
        matter.bytes,
    )
}
