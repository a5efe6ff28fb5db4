//! What a server declares about itself, its tools, prompts and resources, compared with what it
//! declared when that was pinned.

mod change;
mod compare;
mod content;
mod held;
mod listed;
mod prose;
mod schema;
mod server;

use std::collections::BTreeMap;

use crate::config::ChangeClass;

pub use compare::diff_lines;
pub use content::Content;
pub use held::CHANGED;
pub use listed::{ListComparison, ListedDefinition};

pub(super) use held::HeldCallCheck as HeldCalls;
pub(super) use listed::Reader;

enum_with_names! {
    /// The kind of a definition. Named as in the lock file, in the audit log and on the command
    /// line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Kind {
        Tool = "tool",
        Prompt = "prompt",
        Resource = "resource",
        /// A resource template.
        Template = "template",
        /// The server itself: its instructions and its own description. Named by the method that
        /// requests it.
        Server = "server",
    }
}

impl Kind {
    /// Returns the method that lists the kind, the member of the result that contains the list, and
    /// the member that names each entry (2025-11-25, `schema.ts`).
    fn list_location(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            Self::Tool => Some(("tools/list", "tools", "name")),
            Self::Prompt => Some(("prompts/list", "prompts", "name")),
            Self::Resource => Some(("resources/list", "resources", "uri")),
            Self::Template => Some((
                "resources/templates/list",
                "resourceTemplates",
                "uriTemplate",
            )),
            Self::Server => None,
        }
    }

    /// Returns the member that represents lists of the kind in capabilities, subscriptions and
    /// notifications: templates belong to resources. A server's description of itself is not a
    /// list, and there is no notification when it changes.
    pub fn list(self) -> Option<&'static str> {
        match self {
            Self::Tool => Some("tools"),
            Self::Prompt => Some("prompts"),
            Self::Resource | Self::Template => Some("resources"),
            Self::Server => None,
        }
    }
}

/// Identifies a definition within its upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub kind: Kind,
    /// The name or the URI.
    pub name: Box<str>,
}

/// A pinned definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// As approved, or as first seen; `None` if it was held when first seen.
    pub content: Option<Content>,
    /// The definition that is waiting for approval, if any.
    pub pending: Option<PendingDefinition>,
}

/// A definition that is waiting for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingDefinition {
    /// As the server currently declares it.
    pub content: Content,
    /// The ways in which it differs from the pinned definition.
    pub classes: Vec<ChangeClass>,
}

/// The pinned definitions of one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    pins: BTreeMap<Key, Pin>,
    /// The kinds whose list was seen to its end: later definitions are new.
    complete_kinds: Vec<Kind>,
    /// Number of bytes of the definitions of each kind.
    bytes: [usize; 5],
    /// Number of definitions that are waiting for approval.
    pending: usize,
}

impl Pins {
    /// Returns the pin of a definition.
    pub fn get(&self, key: &Key) -> Option<&Pin> {
        self.pins.get(key)
    }

    /// Returns all pins, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Pin)> {
        self.pins.iter()
    }

    /// Returns the number of pins of a kind, and their bytes.
    pub fn size(&self, kind: Kind) -> (usize, usize) {
        let count = self.pins.keys().filter(|key| key.kind == kind).count();
        (count, self.bytes.get(kind as usize).copied().unwrap_or(0))
    }

    /// Inserts or replaces a pin.
    pub fn insert(&mut self, key: Key, pin: Pin) {
        let kind = key.kind;
        let added = pin.bytes();
        self.pending += usize::from(pin.pending.is_some());
        let removed = self
            .pins
            .insert(key, pin)
            .map_or(0, |old| self.uncount(&old));
        self.count(kind, added, removed);
    }

    /// Removes a pin.
    pub fn remove(&mut self, key: &Key) -> Option<Pin> {
        let pin = self.pins.remove(key)?;
        let removed = self.uncount(&pin);
        self.count(key.kind, 0, removed);
        Some(pin)
    }

    /// Removes a pin from the count of waiting ones, and returns its bytes.
    fn uncount(&mut self, pin: &Pin) -> usize {
        self.pending -= usize::from(pin.pending.is_some());
        pin.bytes()
    }

    fn count(&mut self, kind: Kind, added: usize, removed: usize) {
        if let Some(bytes) = self.bytes.get_mut(kind as usize) {
            *bytes = (*bytes + added).saturating_sub(removed);
        }
    }

    /// Returns whether the list of a kind is known completely.
    pub fn is_complete(&self, kind: Kind) -> bool {
        self.complete_kinds.contains(&kind)
    }

    /// Records that the list of a kind was seen to its end.
    pub fn mark_complete(&mut self, kind: Kind) {
        if !self.is_complete(kind) {
            self.complete_kinds.push(kind);
            self.complete_kinds.sort();
        }
    }

    /// Records that the lists of all kinds with pins were seen to their end, as is the case for
    /// pins from a file.
    pub fn mark_all_complete(&mut self) {
        let kinds: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| self.pins.keys().any(|key| key.kind == *kind))
            .collect();
        kinds.into_iter().for_each(|kind| self.mark_complete(kind));
    }

    /// Returns the kinds with definitions that are waiting for approval.
    pub fn pending_kinds(&self) -> Vec<Kind> {
        let waits = |kind: &Kind| {
            self.pins
                .iter()
                .any(|(key, pin)| key.kind == *kind && pin.pending.is_some())
        };
        Kind::ALL.into_iter().filter(waits).collect()
    }

    /// Returns the number of definitions that are waiting for approval.
    pub fn pending_count(&self) -> usize {
        self.pending
    }
}

impl Pin {
    /// Returns the number of bytes of the contents.
    pub fn bytes(&self) -> usize {
        let pending = self.pending.as_ref().map(|held| &held.content);
        self.content
            .iter()
            .chain(pending)
            .map(|content| content.as_str().len())
            .sum()
    }
}

#[cfg(test)]
mod tests;
