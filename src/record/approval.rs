//! Approval requests and their outcomes.

use std::time::Duration;

use crate::protocol::{AuditId, Context};
use crate::rules::RuleId;

/// A change of the state of an approval request.
#[derive(Clone, Copy, Debug)]
pub struct Approval<'a> {
    /// The agent that calls and the upstream that is called.
    pub context: &'a Context,
    /// The audit line of the verdict that led to the request, if known.
    pub audit: Option<AuditId>,
    /// The id of the request; empty if none was needed.
    pub id: &'a str,
    /// The tool, or the method if the call is not a tool call.
    pub tool: &'a str,
    /// The rules that require approval.
    pub rules: &'a [RuleId],
    /// One of `OUTCOMES`.
    pub outcome: &'static str,
    /// How it was answered, one of `WAYS`.
    pub way: &'static str,
    /// What an approval applies to.
    pub scope: Option<&'static str>,
    /// The name that the approver gave.
    pub approver: Option<&'a str>,
    /// How long the request was open.
    pub duration: Option<Duration>,
}

/// Outcomes of an approval request: it was sent; it was approved or denied; it was not answered in
/// time; it was cancelled with its call; it was answered, but the call was not sent again; or there
/// was nobody to send it to.
pub(super) const OUTCOMES: [&str; 7] = [
    "asked",
    "approved",
    "denied",
    "expired",
    "cancelled",
    "unused",
    "nobody",
];
/// How an approval request is answered: by the agent's own user, on the admin port, by an earlier
/// approval, or not at all.
pub(super) const WAYS: [&str; 4] = ["elicitation", "console", "earlier", "none"];
