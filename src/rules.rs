//! Rule files: read, compiled, tried against their own cases.

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
pub use set::{RuleSet, weakened};
pub use trial::{FailedCase, Trial, try_cases};

/// One rule, as its file and the policy make it.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its name.
    pub id: RuleId,
    /// What it catches, in a few words.
    pub title: String,
    /// Why that is dangerous and what would be acceptable. Goes into refusals.
    pub why: String,
    /// How bad a finding is.
    pub severity: Severity,
    /// What is done about a finding.
    pub action: Action,
    /// What it looks for.
    pub find: Arc<Find>,
    /// Where it looks.
    pub only: Only,
    /// A match is spared if one of these matches around it.
    pub unless: Vec<Regex>,
    /// What a text about attacks quotes is left alone.
    pub spares_quotes: bool,
    /// SHA-256 over what it looks for, in hex.
    digest: ByteString,
    /// Its cases; those of a built-in rule are read when something asks for them.
    cases: Option<Cases>,
    /// Where to read on.
    pub references: Vec<String>,
    /// Names it had before; overrides by them still work.
    pub was: Vec<RuleId>,
    /// Which way the messages go that it judges.
    pub direction: Direction,
    /// The packs it belongs to, the widest first: rules that are switched on and off together.
    pub packs: Vec<String>,
    /// Whether it is on if the policy says nothing.
    pub enabled: bool,
    /// The file it stands in.
    pub file: Arc<str>,
    /// The line it starts on, from 1.
    pub line: usize,
    /// Whether it is part of the binary.
    pub builtin: bool,
}

impl Rule {
    /// Its cases.
    pub fn cases(&self) -> &Cases {
        self.cases.as_ref().unwrap_or_else(|| builtin::cases(self))
    }

    /// Compiles its regexes, which otherwise waits for the first text that calls for them.
    ///
    /// # Errors
    /// Which bound they break.
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

/// The texts that a rule is tried on.
#[derive(Clone, Debug, Default)]
pub struct Cases {
    /// Texts that it must catch.
    pub catches: Vec<Case>,
    /// Texts that it must spare.
    pub spares: Vec<Case>,
}

/// A text that a rule must catch or spare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub text: String,
    /// The line it stands on in the rule's file, from 1.
    pub line: usize,
}

/// A rule's name: lower-case words joined by hyphens, stable, a metric label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(std::sync::Arc<str>);

impl RuleId {
    /// Wraps a name that has been checked.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Small.
    Low,
    /// Middling.
    Medium,
    /// Bad.
    High,
    /// As bad as it gets.
    Critical,
}

/// What is done about a finding, in the order of how little of it reaches the receiver; the strongest wins. The edits of
/// inbound rules are carried out together: a page is stripped, then a passage taken out, then what is left wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// It is recorded.
    Log,
    /// The string is replaced by its plain reading.
    Strip,
    /// The text stays, between markers that it cannot forge, under a warning.
    Wrap,
    /// The matched span is replaced by a mark.
    Redact,
    /// The matched span is taken out and a warning says so.
    Quarantine,
    /// The whole block is taken out and a notice says so.
    Withhold,
    /// The call waits for a person, who says yes or no. Outbound only.
    Ask,
    /// The message is not passed on.
    Block,
}

impl Severity {
    /// Words of rule files.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("info", Self::Info),
        ("low", Self::Low),
        ("medium", Self::Medium),
        ("high", Self::High),
        ("critical", Self::Critical),
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }
}

impl Action {
    /// Words of rule files.
    pub const WORDS: [(&'static str, Self); 8] = [
        ("log", Self::Log),
        ("strip", Self::Strip),
        ("wrap", Self::Wrap),
        ("redact", Self::Redact),
        ("quarantine", Self::Quarantine),
        ("withhold", Self::Withhold),
        ("ask", Self::Ask),
        ("block", Self::Block),
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, value)| *value == self)
            .map_or("", |(word, _)| word)
    }
}

#[cfg(test)]
mod tests;
