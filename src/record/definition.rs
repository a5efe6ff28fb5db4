//! Definitions that changed.

use crate::config::ChangeClass;
use crate::protocol::{Context, UpstreamName};

/// Something that became of a definition.
#[derive(Clone, Copy, Debug)]
pub struct DefinitionChange<'a> {
    /// Whose list showed it; `None` where a person decided.
    pub context: Option<&'a Context>,
    /// Whose definition it is.
    pub upstream: &'a UpstreamName,
    /// What it is of: `tool`, `prompt`, `resource` or `template`.
    pub kind: &'static str,
    pub name: &'a str,
    /// How it differs.
    pub classes: &'a [ChangeClass],
    /// What is done about it, a word of [`crate::config::ChangeAction`] or `observed`.
    pub action: &'static str,
    /// SHA-256 of the pinned definition.
    pub old: Option<&'a str>,
    /// SHA-256 of the one that the server lists.
    pub new: Option<&'a str>,
}

impl DefinitionChange<'_> {
    /// The gravest class.
    pub(super) fn class(&self) -> &'static str {
        self.classes
            .iter()
            .max()
            .map_or("other", |class| class.name())
    }
}

/// The labels of classes.
pub(super) fn classes() -> impl Iterator<Item = &'static str> {
    ChangeClass::WORDS.into_iter().map(|(word, _)| word)
}
