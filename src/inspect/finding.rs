//! What was found, told so that a reader can act and the match cannot leak.

use std::fmt;
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::detect::flow::Source;
use crate::detect::secret::fingerprint;
use crate::detect::{ReadAs, Surface};
use crate::rules::{Action, RuleId, Severity};

use super::{Refusal, Suppressed};

/// A rule that matched a string of a message.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The rule.
    pub rule: RuleId,
    /// Its title.
    pub title: String,
    /// How bad.
    pub severity: Severity,
    /// What is done about it, after overrides, and raised to `block` where the string cannot be edited.
    pub action: Action,
    /// The part of the message.
    pub surface: Surface,
    /// The place, as a JSON pointer (RFC 6901) from the message's root.
    pub at: String,
    /// Which message of a batch, from 0.
    pub item: usize,
    /// By which reading the match was reached.
    pub reading: &'static str,
    /// Enough of the match to recognise it.
    pub evidence: Evidence,
    /// What else is to be said of it.
    pub detail: Option<Detail>,
    /// The argument of the call that it stands in: names joined by dots, indices left out.
    pub argument: Option<Box<str>>,
    /// What matched is a secret, data of a person or what was quarantined: nothing of it may be shown.
    pub private: bool,
    /// It has no consequence, and why.
    pub suppressed: Option<Suppressed>,
    /// The text in which it was found, where [`InspectContext::trace`](super::InspectContext::trace) asks for it.
    pub trace: Option<Box<Trace>>,
}

/// Where exactly a rule matched. Holds a text in clear.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    /// The text that the rule was asked about.
    pub text: String,
    /// What matched of it; `None` for all.
    pub span: Option<Range<usize>>,
    /// Who would read it.
    pub read_as: ReadAs,
    /// Whether markup hides it.
    pub hidden: bool,
}

/// Never the text.
impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("span", &self.span)
            .finish_non_exhaustive()
    }
}

/// What is to be said of some findings besides.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// An external classifier scored the text.
    Score {
        /// From 0 to 1.
        score: f64,
        /// The classifier's name and version, as it says.
        by: String,
    },
    /// Where what goes out came from.
    Source(Source),
}

/// Enough of a match to recognise it again, never enough to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// First half of the SHA-256 of the matched text, in hex. Of a secret, with a key of this process hashed before it: alike
    /// for the same secret as long as the gate runs.
    pub sha256: String,
    /// Length of the matched text in bytes.
    pub length: usize,
}

/// What a message is refused for that no rule says: the gate's own word, told like a rule's.
pub(super) struct Own {
    /// Stands in the place of a rule.
    pub(super) rule: &'static str,
    pub(super) title: &'static str,
    pub(super) severity: Severity,
    pub(super) surface: Surface,
    pub(super) at: String,
    pub(super) item: usize,
    pub(super) reading: &'static str,
}

impl Own {
    /// The finding, with what is done about what was `found`.
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
            evidence: Evidence::of(found),
            detail: None,
            argument: None,
            private: false,
            suppressed: None,
            trace: None,
        }
    }

    /// The refusal that goes with it.
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
    /// In words, for whoever reads a refusal.
    pub(super) fn words(&self) -> String {
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
    /// Of the text that matched.
    pub(super) fn of(matched: &str) -> Self {
        let digest = Sha256::digest(matched.as_bytes());
        Self {
            sha256: digest.iter().take(16).map(|b| format!("{b:02x}")).collect(),
            length: matched.len(),
        }
    }

    /// Of a secret: a short one could be guessed from its digest, so a key that only this process has goes into it.
    pub(super) fn of_secret(matched: &str) -> Self {
        let digest = fingerprint(matched.as_bytes());
        Self {
            sha256: digest.iter().map(|b| format!("{b:02x}")).collect(),
            length: matched.len(),
        }
    }
}
