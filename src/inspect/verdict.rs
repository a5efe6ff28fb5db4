//! What becomes of a message.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::Scope;
use crate::detect::url::Wanted;
use crate::message::Edit;
use crate::rules::{RuleId, Severity};

use super::Finding;
use super::classify::{Classified, Unclassified};
use super::delivery::Delivery;
use super::joined::Heard;
use super::memory::Learnt;
use super::unread::Unread;

/// Whether verdicts are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// They are only recorded; every message that can be read passes.
    Observe,
    /// They are carried out.
    #[default]
    Enforce,
}

impl Mode {
    /// Words of the config file.
    pub const WORDS: [(&'static str, Self); 2] =
        [("observe", Self::Observe), ("enforce", Self::Enforce)];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Enforce => "enforce",
        }
    }
}

/// What is to be done with a message, by the rules alone. [`Mode`] decides whether it is done.
#[derive(Clone, Debug, Default)]
pub enum Verdict {
    /// The bytes that came in go out.
    #[default]
    Pass,
    /// The same bytes with these strings replaced. Inbound only.
    Rewrite(Vec<Edit>),
    /// It goes on once a person has said yes. Outbound only, and never where a message of the same batch is refused.
    Ask(Vec<Question>),
    /// It does not go on; whoever waits for it gets an answer that says why. One refusal per refused message of a batch.
    Block(Vec<Refusal>),
}

impl Verdict {
    /// The name in the audit log and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Rewrite(_) => "rewrite",
            Self::Ask(_) => "ask",
            Self::Block(_) => "block",
        }
    }
}

/// Why a message is not passed on, in words for whoever reads the answer. Never the payload.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Which message of a batch, from 0.
    pub item: usize,
    /// The rule that refused it.
    pub rule: RuleId,
    /// The rule's title.
    pub title: String,
    /// The rule's reason, and what would be acceptable.
    pub why: String,
}

/// Why a person is asked about a message: one question for each message of a batch that needs one.
#[derive(Clone, Debug)]
pub struct Question {
    /// Which message of a batch, from 0.
    pub item: usize,
    /// The rules that have a person asked, the gravest first; or what the policy has asked about, by a name of its own.
    pub rules: Vec<RuleId>,
    /// The rule's title.
    pub title: String,
    /// The rule's reason.
    pub why: String,
    /// How grave it is.
    pub severity: Severity,
    /// What a yes may be for, the narrowest first.
    pub scopes: Vec<Scope>,
    /// Whether the agent may put it to its own user.
    pub through_agent: bool,
    /// Where secrets were found in the message, as JSON pointers: they are masked outside the gate.
    pub private: Vec<String>,
}

/// How much of a message was looked at. "Clean" may be said only where nothing is uninspected.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Strings judged.
    pub strings: usize,
    /// Bytes of them.
    pub bytes: usize,
    /// What was read of them besides how they came: names of readings.
    pub readings: BTreeSet<&'static str>,
    /// What was not, and why.
    pub uninspected: Vec<Uninspected>,
}

impl Coverage {
    /// `full`, or `partial` where something was not looked at.
    pub fn name(&self) -> &'static str {
        if self.uninspected.is_empty() {
            "full"
        } else {
            "partial"
        }
    }
}

/// A part of a message that no rule looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uninspected {
    /// The place, as a JSON pointer.
    pub at: String,
    /// Why.
    pub reason: Unread,
    /// How many bytes.
    pub bytes: usize,
}

/// Everything that judging a message gives.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// What the rules want done. In [`Mode::Observe`] it is recorded and not done.
    pub verdict: Verdict,
    /// What was found, strongest first.
    pub findings: Vec<Finding>,
    /// How much was looked at.
    pub coverage: Coverage,
    /// Names of readings, while it is judged: at the end they are a part of the coverage.
    pub readings: BTreeSet<&'static str>,
    /// What becomes of an answer besides.
    pub delivery: Delivery,
    /// What is worth remembering of it, if it goes on.
    pub learnt: Learnt,
    /// Names of hosts that should be looked up, and the message judged again with the answers: see
    /// [`Policy::to_resolve`](super::Policy::to_resolve).
    pub wanted: Wanted,
    /// Texts that an external classifier should be asked about, and the message judged again with its scores: see
    /// [`Policy::to_classify`](super::Policy::to_classify).
    pub unclassified: Unclassified,
    /// What it said, once it was asked.
    pub classified: Option<Arc<Classified>>,
    /// Limits of the message's work budget that were exceeded, by their names in the config.
    pub limits_hit: Vec<&'static str>,
    /// The last texts of the stream that it came on, when it has gone on.
    pub heard: Heard,
}

impl Question {
    /// The gravest of the rules that ask.
    pub fn rule(&self) -> &RuleId {
        // A question is made with one rule at the least.
        static NONE: std::sync::LazyLock<RuleId> =
            std::sync::LazyLock::new(|| RuleId::new("unknown"));
        self.rules.first().unwrap_or(&NONE)
    }
}
