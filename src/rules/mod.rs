//! Rule files: read, compiled, tried against their own cases.

use std::fmt;

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

/// What is done about a finding; the strongest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// It is recorded.
    Log,
    /// The string is replaced by its plain reading.
    Strip,
    /// The matched span is replaced by a mark.
    Redact,
    /// The matched span is taken out and a warning says so.
    Quarantine,
    /// The message is not passed on.
    Block,
}

impl Severity {
    /// Words of rule files.
    pub const WORDS: [(&'static str, Self); 5] =
        [("info", Self::Info), ("low", Self::Low), ("medium", Self::Medium), ("high", Self::High), ("critical", Self::Critical)];

    /// The word for it.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

impl Action {
    /// Words of rule files.
    pub const WORDS: [(&'static str, Self); 5] = [
        ("log", Self::Log),
        ("strip", Self::Strip),
        ("redact", Self::Redact),
        ("quarantine", Self::Quarantine),
        ("block", Self::Block),
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}
