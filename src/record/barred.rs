//! What somebody asked for and may not use.

use super::{audit, names};
use crate::protocol::{AgentName, Caller, UpstreamName};
use crate::rules::Severity;
use crate::text::cut;

/// Longest name that stands in the audit log, in bytes.
const NAME_BYTES: usize = 256;

/// What somebody asked for and may not use.
#[derive(Clone, Copy, Debug)]
pub struct Barred<'a> {
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

impl Barred<'_> {
    /// The line of the audit log; the log of the process hears it too.
    pub(super) fn told(&self) -> String {
        let (agent, upstream, thing) = (self.agent, self.upstream, self.thing);
        tracing::info!(%upstream, %agent, thing, why = self.why, "asked for what it may not use");
        let mut line = audit::start("denied", Severity::Medium);
        line.text(names::AGENT, &agent.0);
        line.maybe(names::USER, self.caller.user.as_deref());
        line.text(names::UPSTREAM, &upstream.0);
        line.text(names::THING, thing);
        line.text(names::NAME, cut(self.name, NAME_BYTES));
        line.text(names::DISPOSITION, "Blocked");
        line.text(names::WHY, self.why);
        audit::finish(line)
    }
}
