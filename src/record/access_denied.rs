//! What somebody asked for and may not use.

use crate::protocol::{AgentName, Caller, UpstreamName};

/// What somebody asked for and may not use.
#[derive(Clone, Copy, Debug)]
pub struct AccessDenied<'a> {
    /// Whose call it was.
    pub agent: &'a AgentName,
    /// Who stands behind it.
    pub caller: &'a Caller,
    /// Of which server.
    pub upstream: &'a UpstreamName,
    /// What kind of thing: `tool`, `prompt`, `resource`, or `upstream` for the server itself.
    pub thing: &'a str,
    /// Its name, or its address.
    pub name: &'a str,
    /// Why, in a sentence without a full stop.
    pub why: &'a str,
}
