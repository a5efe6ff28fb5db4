//! Rule files: parsing, compilation, and testing against their own cases.

mod builtin;
mod content;
mod file;
mod fragments;
mod kinds;
mod library;
mod only;
mod programs;
mod set;
mod trial;

use std::fmt;
use std::sync::Arc;

use bytestring::ByteString;

use crate::detect::pattern::Regex;
use crate::message::Direction;

pub use builtin::{FILES as BUILTIN_FILES, README as BUILTIN_README};
pub use kinds::Find;
pub use library::Library;
pub use only::Only;
pub use programs::ProgramEntry;
pub use set::{RuleSet, describe_weakening};
pub use trial::{FailedCase, Trial, try_cases};

/// A rule, as defined by its file and the policy.
#[derive(Clone, Debug)]
pub struct Rule {
    pub id: RuleId,
    /// A short description of what the rule catches.
    pub title: String,
    /// Why that is dangerous, and what would be acceptable. Included in refusals.
    pub why: String,
    /// The severity of a finding.
    pub severity: Severity,
    /// The action taken on a finding.
    pub action: Action,
    /// What the rule searches for.
    pub find: Arc<Find>,
    /// Where the rule applies.
    pub only: Only,
    /// A match is excluded if one of these matches the text around it.
    pub unless: Vec<Regex>,
    /// Whether quotations in texts about attacks are excluded.
    pub spares_quotes: bool,
    /// Whether a rule about commands also judges scripts and code that a call writes to a file.
    pub written: bool,
    /// For a rule on commands: whether documents order such commands for good reasons, as installers
    /// do.
    pub usual_in_documents: bool,
    /// SHA-256 of what the rule searches for, in hex.
    digest: ByteString,
    /// The cases; those of a built-in rule are read on demand.
    cases: Option<Cases>,
    /// References for further reading.
    pub references: Vec<String>,
    /// Former ids; overrides that use them still work.
    pub former_ids: Vec<RuleId>,
    /// The direction of the messages that the rule applies to.
    pub direction: Direction,
    /// The packs of the rule, widest first. A pack is a group of rules that are enabled and
    /// disabled together.
    pub packs: Vec<String>,
    /// Whether the rule is enabled unless the policy sets it.
    pub enabled: bool,
    /// The file that contains the rule.
    pub file: Arc<str>,
    /// The line on which the rule starts, counted from 1.
    pub line: usize,
    /// Whether the rule is part of the binary.
    pub builtin: bool,
}

impl Rule {
    /// Returns the cases of the rule.
    pub fn cases(&self) -> &Cases {
        self.cases.as_ref().unwrap_or_else(|| builtin::cases(self))
    }

    /// Compiles the regexes of the rule, which otherwise happens when the first text requires them.
    ///
    /// # Errors
    /// The limit that a regex exceeds.
    pub fn compile(&self) -> Result<(), String> {
        match self.find.as_ref() {
            Find::Pattern(pattern) => pattern.compile()?,
            Find::Command(command) => command.compile()?,
            Find::Secret(secret) => secret.compile()?,
            Find::Signal(signal) => signal.compile()?,
            Find::Flow(_)
            | Find::Personal(_)
            | Find::Hidden(_)
            | Find::Markup(_)
            | Find::Path(_)
            | Find::Shadow(_)
            | Find::Url(_) => {}
            Find::Sql(sql) => sql.compile()?,
        }
        self.unless.iter().try_for_each(Regex::compile)
    }
}

/// The texts that a rule is tested against.
#[derive(Clone, Debug, Default)]
pub struct Cases {
    /// Texts that the rule must catch.
    pub catches: Vec<Case>,
    /// Texts that the rule must not catch.
    pub spares: Vec<Case>,
}

/// A text that a rule must catch or must not catch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub text: String,
    /// The line of the text in the rule's file, counted from 1.
    pub line: usize,
}

/// The id of a rule: lower-case words joined by hyphens; stable, and used as a metric label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(std::sync::Arc<str>);

impl RuleId {
    /// Wraps an id that has been validated.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

enum_with_names! {
    /// The severity of a finding. Named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Severity {
        /// Informational.
        Info = "info",
        Low = "low",
        Medium = "medium",
        High = "high",
        Critical = "critical",
    }
}

enum_with_names! {
    /// The action taken on a finding, ordered by how much is withheld from the receiver; the
    /// strongest action wins. The edits of inbound rules are combined: a page is stripped, then a
    /// passage is removed, then the rest is wrapped. Named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Action {
        /// The finding is recorded.
        Log = "log",
        /// The string is replaced by its plain reading.
        Strip = "strip",
        /// The text is kept, below a warning and between markers that it cannot forge.
        Wrap = "wrap",
        /// The matched span is replaced by a placeholder.
        Redact = "redact",
        /// The matched span is removed and replaced by a warning.
        Quarantine = "quarantine",
        /// The whole block is removed and replaced by a notice.
        Withhold = "withhold",
        /// The call waits until a person approves or denies it. Outbound only.
        Ask = "ask",
        /// The message is not forwarded.
        Block = "block",
    }
}

#[cfg(test)]
mod tests;
