//! What can be told.

use std::time::Duration;

use super::{AccessDenied, Approval, DefinitionChange, Login, QuarantineEvent, ResultPage};
use crate::config::Keeps;
use crate::inspect::{Coverage, Finding, Inspection, Mode};
use crate::message::{Direction, Message};
use crate::protocol::{AuditId, CallError, Context, UpstreamName};

/// Something worth telling.
pub enum Event<'a> {
    /// A message was judged.
    Judged {
        /// Names this line.
        audit: AuditId,
        /// Which way it went.
        direction: Direction,
        /// Who sent it to whom.
        context: &'a Context,
        message: &'a Message,
        /// What judging gave.
        inspection: &'a Inspection,
        /// Whether the verdict is carried out.
        mode: Mode,
        /// What may stand of it in the log.
        evidence: Keeps,
        /// The rule set that judged it.
        rules: &'a str,
        /// How long judging took.
        took: Duration,
        /// For a reply: how long ago its call was sent upstream.
        waited: Option<Duration>,
    },
    /// A body that is not JSON-RPC (an HTTP error's, say) was judged as one text.
    JudgedText {
        /// Names this line.
        audit: AuditId,
        /// Whose answer it is, to whom.
        context: &'a Context,
        /// Its length in bytes.
        bytes: usize,
        /// What became of it, or would have: `pass`, `rewrite` or `block`.
        verdict: &'static str,
        /// What was found.
        findings: &'a [Finding],
        /// How much was looked at.
        coverage: &'a Coverage,
        /// Whether the verdict is carried out.
        mode: Mode,
        /// The rule set that judged it.
        rules: &'a str,
    },
    /// A call failed.
    Failed {
        /// Who called whom.
        context: &'a Context,
        /// Why it failed.
        error: &'a CallError,
    },
    /// A request was turned away before it was a call: unknown token, wrong `Host` and the like.
    Rejected {
        /// Why: a short name, a metric label.
        reason: &'static str,
    },
    /// Somebody asked for what is not theirs to use, and was told that it is not there.
    AccessDenied(AccessDenied<'a>),
    /// A limit of the config was hit.
    Limit {
        /// Its name in the config.
        name: &'static str,
    },
    /// An agent reads on in an answer that was too long.
    ResultPage(&'a ResultPage<'a>),
    /// Something happened to a login at a server.
    Login(&'a Login<'a>),
    /// Something happened to a question to a person.
    Approval(&'a Approval<'a>),
    /// A call was refused that was refused like this again and again.
    RefusedAgain {
        /// Who calls whom.
        context: &'a Context,
        tool: &'a str,
        rule: &'a str,
        /// How often within the time that counts.
        times: usize,
        /// Names this line where the call was not even judged any more.
        audit: Option<AuditId>,
    },
    /// Agents get a list of tools that is not as the server told it: the operator's words are in it, or tools are hidden.
    Overlaid {
        /// Whose list it is, and who asked for it.
        context: &'a Context,
        /// The policy that says so.
        policy: &'a str,
        /// Length of the list as it came, in bytes.
        told_bytes: usize,
        /// The same as agents see it.
        shown_bytes: usize,
    },
    /// Something became of a message in quarantine.
    Quarantine(&'a QuarantineEvent<'a>),
    /// A definition is not what it was when it was pinned.
    Definition(&'a DefinitionChange<'a>),
    /// Definitions of a server were pinned that was not known before.
    Pinned {
        /// Whose list it was, and who asked for it.
        context: &'a Context,
        count: usize,
    },
    /// How many definitions of an upstream wait for approval.
    Held {
        /// Whose.
        upstream: &'a UpstreamName,
        count: usize,
    },
    /// The lock file has changed, and its pins are in force.
    PinsReloaded {
        /// Upstreams whose lists agents see otherwise now.
        upstreams: &'a [&'a str],
    },
    /// The lock file cannot be read or written; the pins in memory stay in force.
    PinsRefused {
        faults: &'a [crate::document::Fault],
    },
    /// New rules are in force.
    Reloaded {
        rules: usize,
        /// What protects less than before; empty if nothing.
        weakened: &'a [String],
    },
    /// A reload was refused; the old rules stay in force.
    ReloadRefused {
        faults: &'a [crate::document::Fault],
    },
}
