//! The decision about a message.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::Scope;
use crate::detect::url::UnresolvedNames;
use crate::message::Edit;
use crate::rules::{RuleId, Severity};

use super::Finding;
use super::classify::{Classified, Unclassified};
use super::cross_block::StreamTail;
use super::memory::SessionUpdate;
use super::result_size::ResultSize;
use super::skip_reason::SkipReason;

enum_with_names! {
    /// Whether verdicts are enforced. Named as in the config file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum Mode {
        /// Verdicts are only recorded; every message that can be parsed passes.
        Observe = "observe",
        /// Verdicts are enforced.
        #[default]
        Enforce = "enforce",
    }
}

/// What should happen to a message, according to the rules alone. [`Mode`] decides whether it is
/// enforced.
#[derive(Clone, Debug, Default)]
pub enum Verdict {
    /// The bytes are forwarded as received.
    #[default]
    Pass,
    /// The bytes are forwarded with these strings replaced. Inbound only.
    Rewrite(Vec<Edit>),
    /// The message is forwarded once a person has approved it. Outbound only, and never if a
    /// message of the same batch is refused.
    Ask(Vec<Question>),
    /// The message is not forwarded; a sender that waits for a response receives one with the
    /// reason. One refusal per refused message of a batch.
    Block(Vec<Refusal>),
}

impl Verdict {
    /// Returns the name in the audit log and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Rewrite(_) => "rewrite",
            Self::Ask(_) => "ask",
            Self::Block(_) => "block",
        }
    }
}

/// Why a message is not forwarded, in words for the reader of the response. Never the payload.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The index of the message in a batch, from 0.
    pub item: usize,
    /// The rule that refused it.
    pub rule: RuleId,
    /// The rule's title.
    pub title: String,
    /// The rule's reason, and what would be acceptable.
    pub why: String,
}

/// Why a message requires approval: one question for each message of a batch that requires it.
#[derive(Clone, Debug)]
pub struct Question {
    /// The index of the message in a batch, from 0.
    pub item: usize,
    /// The rules that require approval, most severe first; or the policy's own requirement, by a
    /// name of its own.
    pub rules: Vec<RuleId>,
    /// The rule's title.
    pub title: String,
    /// The rule's reason.
    pub why: String,
    /// The rule's severity.
    pub severity: Severity,
    /// The scopes that an approval may have, narrowest first.
    pub scopes: Vec<Scope>,
    /// Whether the agent may ask its own user.
    pub through_agent: bool,
    /// The places of secrets in the message, as JSON pointers: they are masked outside the gate.
    pub private: Vec<String>,
}

/// How much of a message was inspected. A message is clean only if nothing is uninspected.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Number of strings judged.
    pub strings: usize,
    /// Number of bytes of these strings.
    pub bytes: usize,
    /// Number of these that were recognized as texts in which nothing was found before.
    pub recognized_strings: usize,
    /// The names of the readings that were judged in addition to the strings as received.
    pub readings: BTreeSet<&'static str>,
    /// The parts that were not inspected, and why.
    pub uninspected: Vec<Uninspected>,
}

impl Coverage {
    /// Returns `full`, or `partial` if something was not inspected.
    pub fn name(&self) -> &'static str {
        if self.uninspected.is_empty() {
            "full"
        } else {
            "partial"
        }
    }
}

/// A part of a message that no rule was applied to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uninspected {
    /// The place, as a JSON pointer.
    pub at: String,
    pub reason: SkipReason,
    /// Number of bytes.
    pub bytes: usize,
}

/// The complete result of judging a message.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// The decision of the rules. In [`Mode::Observe`] it is recorded but not enforced.
    pub verdict: Verdict,
    /// The findings, strongest first.
    pub findings: Vec<Finding>,
    /// How much was inspected.
    pub coverage: Coverage,
    /// The names of readings while the message is being judged; at the end they become a part of
    /// the coverage.
    pub readings: BTreeSet<&'static str>,
    /// What happens to a response in addition to its findings.
    pub result_size: ResultSize,
    /// The state that the message adds, if it is forwarded.
    pub session_update: SessionUpdate,
    /// Names of hosts that should be resolved, after which the message is judged again with the
    /// addresses: see [`Policy::resolve_timeout`](super::Policy::resolve_timeout).
    pub unresolved_names: UnresolvedNames,
    /// Texts that an external classifier should score, after which the message is judged again with
    /// the scores: see [`Policy::take_unclassified`](super::Policy::take_unclassified).
    pub unclassified: Unclassified,
    /// The classifier's result, once it has been called.
    pub classified: Option<Arc<Classified>>,
    /// Limits of the message's work budget that were exceeded, by their names in the config.
    pub exceeded_limits: Vec<&'static str>,
    /// The last texts of the message's stream, once it has been forwarded.
    pub stream_tail: StreamTail,
}

impl Question {
    /// Returns the most severe of the rules that require approval.
    pub fn rule(&self) -> &RuleId {
        // A question is created with at least one rule.
        static NONE: std::sync::LazyLock<RuleId> =
            std::sync::LazyLock::new(|| RuleId::new("unknown"));
        self.rules.first().unwrap_or(&NONE)
    }
}
