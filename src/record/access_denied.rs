//! Requests for objects that the caller has no access to.

use crate::protocol::{AgentName, Caller, UpstreamName};

/// A request for an object that the caller has no access to.
#[derive(Clone, Copy, Debug)]
pub struct AccessDenied<'a> {
    /// The agent that called.
    pub agent: &'a AgentName,
    /// The user that the agent acts for and what it may use.
    pub caller: &'a Caller,
    /// The upstream that the object belongs to.
    pub upstream: &'a UpstreamName,
    /// The kind of object: `tool`, `prompt`, `resource`, or `upstream` for the upstream itself.
    pub kind: &'a str,
    /// The name or URI of the object.
    pub name: &'a str,
    /// The reason, as a sentence without a full stop.
    pub why: &'a str,
}
