//! Telling what happened: said once, heard by the audit log, the counters and the log.

mod interim;
pub use interim::*;

use std::io;
use std::time::Duration;

use crate::inspect::{Coverage, Finding, Inspection, Mode};
use crate::message::{Direction, Message};
use crate::protocol::{AuditId, CallError, Context};

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
        /// The message.
        message: &'a Message,
        /// What judging gave.
        inspection: &'a Inspection,
        /// Whether the verdict is carried out.
        mode: Mode,
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
    TurnedAway {
        /// Why: a short name, a metric label.
        reason: &'static str,
    },
    /// A limit of the config was hit.
    Limit {
        /// Its name in the config.
        name: &'static str,
    },
    /// New rules are in force.
    Reloaded {
        /// How many.
        rules: usize,
        /// What protects less than before; empty if nothing.
        weakened: &'a [String],
    },
    /// A reload was refused; the old rules stay in force.
    ReloadRefused {
        /// All faults.
        faults: &'a [crate::document::Fault],
    },
}

/// Hears events and tells them on. Shared by the whole process.
pub struct Recorder {}

impl Recorder {
    /// Tells of an event.
    ///
    /// # Errors
    /// Only where the audit log is required and cannot be written: then the call must not go on.
    pub fn tell(&self, _event: Event<'_>) -> io::Result<()> {
        Ok(())
    }
}
