//! Changed definitions.

use crate::config::ChangeClass;
use crate::protocol::{Context, UpstreamName};

/// A change of a definition and the action taken.
#[derive(Clone, Copy, Debug)]
pub struct DefinitionChange<'a> {
    /// The call whose list contained the change; `None` if a person decided on it.
    pub context: Option<&'a Context>,
    /// The upstream that the definition belongs to.
    pub upstream: &'a UpstreamName,
    /// What it defines: `tool`, `prompt`, `resource` or `template`.
    pub kind: &'static str,
    pub name: &'a str,
    /// The ways in which it differs.
    pub classes: &'a [ChangeClass],
    /// The action taken: a word of [`crate::config::ChangeAction`] or `observed`.
    pub action: &'static str,
    /// SHA-256 of the pinned definition.
    pub old: Option<&'a str>,
    /// SHA-256 of the definition that the upstream lists.
    pub new: Option<&'a str>,
}

impl DefinitionChange<'_> {
    /// Returns the name of the most severe class.
    pub(super) fn class(&self) -> &'static str {
        self.classes
            .iter()
            .max()
            .map_or("other", |class| class.name())
    }
}

/// Returns the names of all classes, which are label values.
pub(super) fn classes() -> impl Iterator<Item = &'static str> {
    ChangeClass::NAMES.into_iter()
}
