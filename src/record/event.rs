//! The events that can be recorded.

use std::time::Duration;

use super::{AccessDenied, Approval, DefinitionChange, Login, QuarantineEvent, ResultPage};
use crate::config::EvidenceLevel;
use crate::inspect::{Coverage, Finding, Inspection, Mode};
use crate::message::{Direction, Message};
use crate::protocol::{AuditId, CallError, Context, UpstreamName};

/// An event to be recorded.
pub enum Event<'a> {
    /// A message was inspected.
    Judged {
        /// The id of the audit line.
        audit: AuditId,
        /// The direction of the message.
        direction: Direction,
        /// The agent, the upstream and the session of the message.
        context: &'a Context,
        message: &'a Message,
        /// The result of the inspection.
        inspection: &'a Inspection,
        /// Whether the verdict is enforced or only observed.
        mode: Mode,
        /// How much of the message the log may contain.
        evidence: EvidenceLevel,
        /// The rule set that was used.
        rules: &'a str,
        /// Duration of the inspection.
        inspection_time: Duration,
        /// For a reply: the time since its call was sent upstream.
        response_time: Option<Duration>,
    },
    /// A body that is not JSON-RPC (such as that of an HTTP error) was inspected as one text.
    JudgedText {
        /// The id of the audit line.
        audit: AuditId,
        /// The upstream that sent the body and the agent that receives it.
        context: &'a Context,
        /// Length of the body in bytes.
        bytes: usize,
        /// The verdict, whether or not it is enforced: `pass`, `rewrite` or `block`.
        verdict: &'static str,
        findings: &'a [Finding],
        /// How much of the body was inspected.
        coverage: &'a Coverage,
        /// Whether the verdict is enforced or only observed.
        mode: Mode,
        /// The rule set that was used.
        rules: &'a str,
    },
    /// A call failed.
    Failed {
        /// The agent that called and the upstream that was called.
        context: &'a Context,
        error: &'a CallError,
    },
    /// A request was rejected before it became a call: unknown token, wrong `Host` and the like.
    Rejected {
        /// A short name of the reason, used as a metric label.
        reason: &'static str,
    },
    /// A caller asked for something that it has no access to; the response was that it does not
    /// exist.
    AccessDenied(AccessDenied<'a>),
    /// A limit of the config was hit.
    Limit {
        /// Name of the limit in the config.
        name: &'static str,
    },
    /// An agent requested the next part of a result that was too long.
    ResultPage(&'a ResultPage<'a>),
    /// The state of a login at an upstream changed.
    Login(&'a Login<'a>),
    /// The state of an approval request changed.
    Approval(&'a Approval<'a>),
    /// A call was refused that had already been refused repeatedly for the same reason.
    RefusedAgain {
        /// The agent that calls and the upstream that is called.
        context: &'a Context,
        tool: &'a str,
        rule: &'a str,
        /// Number of refusals within the time that counts.
        times: usize,
        /// The id of this line, if the call was refused without inspection.
        audit: Option<AuditId>,
    },
    /// The list of tools that agents receive differs from the upstream's: it contains text of the
    /// operator, or tools are hidden.
    Overlaid {
        /// The upstream of the list and the agent that requested it.
        context: &'a Context,
        /// The policy that configures the changes.
        policy: &'a str,
        /// Length of the list as received, in bytes.
        received_bytes: usize,
        /// Length of the list that agents receive, in bytes.
        shown_bytes: usize,
    },
    /// The state of a message in quarantine changed.
    Quarantine(&'a QuarantineEvent<'a>),
    /// A definition differs from the pinned one.
    Definition(&'a DefinitionChange<'a>),
    /// The definitions of a new server were pinned.
    Pinned {
        /// The upstream of the list and the agent that requested it.
        context: &'a Context,
        count: usize,
    },
    /// The number of definitions of an upstream that wait for approval.
    Held {
        upstream: &'a UpstreamName,
        count: usize,
    },
    /// The lock file has changed, and its pins are now in force.
    PinsReloaded {
        /// Upstreams whose lists have changed for agents.
        upstreams: &'a [&'a str],
    },
    /// The lock file cannot be read or written; the pins in memory remain in force.
    PinsRefused {
        faults: &'a [crate::document::Fault],
    },
    /// New rules are in force.
    Reloaded {
        rules: usize,
        /// What is less protected than before; empty if nothing is.
        weakened: &'a [String],
    },
    /// A reload was rejected; the old rules remain in force.
    ReloadRefused {
        faults: &'a [crate::document::Fault],
    },
}
