//! Findings, reported so that a reader can act on them and the match cannot leak.

use std::fmt;
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::detect::flow::Source;
use crate::detect::secret::fingerprint;
use crate::detect::{ReadAs, Surface};
use crate::rules::{Action, RuleId, Severity};

use super::{Refusal, SuppressedAction};

/// A rule that matched a string of a message.
#[derive(Clone, Debug)]
pub struct Finding {
    pub rule: RuleId,
    pub title: String,
    pub severity: Severity,
    /// The action taken, after overrides, and raised to `block` if the string cannot be edited.
    pub action: Action,
    /// The part of the message that contains the match.
    pub surface: Surface,
    /// The place, as a JSON pointer (RFC 6901) from the message's root.
    pub at: String,
    /// The index of the message in a batch, from 0.
    pub item: usize,
    /// The reading in which the match was found.
    pub reading: &'static str,
    /// Enough of the match to recognize it.
    pub evidence: Evidence,
    /// Additional information.
    pub detail: Option<Detail>,
    /// The argument of the call that contains the match: names joined by dots, without indices.
    pub argument: Option<Box<str>>,
    /// Whether the match is a secret, personal data or quarantined content: nothing of it may be
    /// shown.
    pub private: bool,
    /// Why the finding has no consequence, if it is suppressed.
    pub suppressed: Option<SuppressedAction>,
    /// The text in which the match was found, if
    /// [`InspectContext::trace`](super::InspectContext::trace) requests it.
    pub trace: Option<Box<Trace>>,
}

/// The exact location of a match. Contains text in the clear.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    /// The text that the rule was applied to.
    pub text: String,
    /// The span that matched; `None` for the whole text.
    pub span: Option<Range<usize>>,
    /// How the receiver would read the text.
    pub read_as: ReadAs,
    /// Whether markup hides it.
    pub hidden: bool,
}

/// Omits the text.
impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("span", &self.span)
            .finish_non_exhaustive()
    }
}

/// Additional information about some findings.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// An external classifier scored the text.
    Score {
        /// From 0 to 1.
        score: f64,
        /// The classifier's name and version, as it reports them.
        classifier: String,
    },
    /// The origin of outbound data.
    Source(Source),
}

/// Enough of a match to recognize it again, never enough to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The first half of the SHA-256 of the matched text, in hex. For a secret, a key of this
    /// process is hashed first: the value is the same for the same secret as long as the gate runs.
    pub sha256: String,
    /// Length of the matched text in bytes.
    pub length: usize,
}

/// The gate's own reason for refusing a message, which is not from a rule but is reported like one.
pub(super) struct GateFinding {
    /// Used instead of a rule id.
    pub(super) rule: &'static str,
    pub(super) title: &'static str,
    pub(super) severity: Severity,
    pub(super) surface: Surface,
    pub(super) at: String,
    pub(super) item: usize,
    pub(super) reading: &'static str,
}

impl GateFinding {
    /// Returns the finding, with the action that is taken on what was `found`.
    pub(super) fn finding(&self, action: Action, found: &str) -> Finding {
        Finding {
            rule: RuleId::new(self.rule),
            title: self.title.to_owned(),
            severity: self.severity,
            action,
            surface: self.surface,
            at: self.at.clone(),
            item: self.item,
            reading: self.reading,
            evidence: Evidence::new(found),
            detail: None,
            argument: None,
            private: false,
            suppressed: None,
            trace: None,
        }
    }

    /// Returns the refusal that belongs to the finding.
    pub(super) fn refusal(&self, why: String) -> Refusal {
        Refusal {
            item: self.item,
            rule: RuleId::new(self.rule),
            title: self.title.to_owned(),
            why,
        }
    }
}

impl Detail {
    /// Returns the detail in words, for the reader of a refusal.
    pub(super) fn describe(&self) -> String {
        let Self::Source(Source { servers, age }) = self else {
            return String::new();
        };
        if servers.is_empty() {
            return String::new();
        }
        let servers: Vec<String> = servers.iter().map(|server| format!("`{server}`")).collect();
        let ago = age
            .map(|age| format!(", {} s ago", age.as_secs()))
            .unwrap_or_default();
        format!(" It came from {}{ago}.", servers.join(" and "))
    }
}

impl Evidence {
    /// Returns the evidence for a text that matched.
    pub(super) fn new(matched: &str) -> Self {
        let digest = Sha256::digest(matched.as_bytes());
        Self {
            sha256: digest.iter().take(16).map(|b| format!("{b:02x}")).collect(),
            length: matched.len(),
        }
    }

    /// Returns the evidence for a secret: a short one could be guessed from its digest, so the
    /// digest includes a key that only this process has.
    pub(super) fn of_secret(matched: &str) -> Self {
        let digest = fingerprint(matched.as_bytes());
        Self {
            sha256: digest.iter().map(|b| format!("{b:02x}")).collect(),
            length: matched.len(),
        }
    }
}
