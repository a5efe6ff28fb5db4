//! Questions to people, and their answers.

use std::time::Duration;

use crate::protocol::{AuditId, Context};
use crate::rules::RuleId;

/// Something that happened to a question to a person.
#[derive(Clone, Copy, Debug)]
pub struct Approval<'a> {
    /// Whose call it is, to whom.
    pub context: &'a Context,
    /// The line of the judgement that led to it, where it is at hand.
    pub audit: Option<AuditId>,
    /// Its name; empty where no question was needed.
    pub id: &'a str,
    /// The tool, or the method of what calls none.
    pub tool: &'a str,
    /// The rules that ask.
    pub rules: &'a [RuleId],
    /// One of `OUTCOMES`.
    pub outcome: &'static str,
    /// By which way it was answered, one of `WAYS`.
    pub way: &'static str,
    /// What a yes is for.
    pub scope: Option<&'static str>,
    /// Who says to have answered.
    pub by: Option<&'a str>,
    /// How long it was open.
    pub took: Option<Duration>,
}

/// What can happen to a question: it is put; answered with yes or no; not answered in time; taken back with its call;
/// answered, but the call never came back; or there is nobody to put it to.
pub(super) const OUTCOMES: [&str; 7] = [
    "asked",
    "approved",
    "denied",
    "expired",
    "cancelled",
    "unused",
    "nobody",
];
/// The ways to an answer: the agent's own user, the admin port, an earlier yes; none.
pub(super) const WAYS: [&str; 4] = ["elicitation", "console", "earlier", "none"];
