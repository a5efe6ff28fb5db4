//! What a server says of itself, its tools, prompts and resources, against what it said when that was pinned.

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

pub use compare::compared;
pub use content::Content;
pub use held::CHANGED;
pub use listed::{Listed, Seen};

pub(super) use held::Held as HeldCalls;
pub(super) use listed::Reader;

/// What a definition is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A template of resources.
    Template,
    /// The server itself: its instructions, and what it says it is. Named by the method that asks for it.
    Server,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Tool,
        Self::Prompt,
        Self::Resource,
        Self::Template,
        Self::Server,
    ];

    /// The word in the lock file, the audit log and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Server => "server",
        }
    }

    /// The kind of this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == word)
    }

    /// The method that lists it, the member of the result that holds the list, and the member that names each
    /// (2025-11-25, `schema.ts`).
    fn listed(self) -> Option<(&'static str, &'static str, &'static str)> {
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

    /// The member by which lists of it are named in capabilities, subscriptions and notifications: templates go with
    /// resources. What a server says of itself is no list, and nobody is told when it changes.
    pub fn list(self) -> Option<&'static str> {
        match self {
            Self::Tool => Some("tools"),
            Self::Prompt => Some("prompts"),
            Self::Resource | Self::Template => Some("resources"),
            Self::Server => None,
        }
    }
}

/// What names a definition within its upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// What it is of.
    pub kind: Kind,
    /// Its name, or its address.
    pub name: Box<str>,
}

/// A pinned definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// As it was approved, or first seen; `None` where it was held when first seen.
    pub content: Option<Content>,
    /// What waits for approval.
    pub held: Option<Held>,
}

/// A definition that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// As the server says it now.
    pub content: Content,
    /// How it differs from the pinned one.
    pub classes: Vec<ChangeClass>,
}

/// The pinned definitions of one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    pins: BTreeMap<Key, Pin>,
    /// The kinds whose list was seen to its end: what comes later is new.
    complete: Vec<Kind>,
    /// Bytes of the definitions of each kind.
    bytes: [usize; 5],
    /// How many wait for approval.
    waiting: usize,
}

impl Pins {
    /// One of them.
    pub fn get(&self, key: &Key) -> Option<&Pin> {
        self.pins.get(key)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Pin)> {
        self.pins.iter()
    }

    /// How many there are of a kind, and their bytes.
    pub fn size(&self, kind: Kind) -> (usize, usize) {
        let count = self.pins.keys().filter(|key| key.kind == kind).count();
        (count, self.bytes.get(kind as usize).copied().unwrap_or(0))
    }

    /// Puts one in its place.
    pub fn insert(&mut self, key: Key, pin: Pin) {
        let kind = key.kind;
        let added = pin.bytes();
        self.waiting += usize::from(pin.held.is_some());
        let removed = self
            .pins
            .insert(key, pin)
            .map_or(0, |old| self.uncount(&old));
        self.count(kind, added, removed);
    }

    /// Forgets one.
    pub fn remove(&mut self, key: &Key) -> Option<Pin> {
        let gone = self.pins.remove(key)?;
        let removed = self.uncount(&gone);
        self.count(key.kind, 0, removed);
        Some(gone)
    }

    /// Takes a pin out of those that wait, and gives its bytes.
    fn uncount(&mut self, gone: &Pin) -> usize {
        self.waiting -= usize::from(gone.held.is_some());
        gone.bytes()
    }

    fn count(&mut self, kind: Kind, added: usize, removed: usize) {
        if let Some(bytes) = self.bytes.get_mut(kind as usize) {
            *bytes = (*bytes + added).saturating_sub(removed);
        }
    }

    /// Whether the list of a kind is known.
    pub fn is_complete(&self, kind: Kind) -> bool {
        self.complete.contains(&kind)
    }

    /// Notes that the list of a kind was seen to its end.
    pub fn complete(&mut self, kind: Kind) {
        if !self.is_complete(kind) {
            self.complete.push(kind);
            self.complete.sort();
        }
    }

    /// Notes that the lists of all kinds were seen of which there are pins: a file of them says so.
    pub fn complete_all(&mut self) {
        let kinds: Vec<Kind> = Kind::ALL
            .into_iter()
            .filter(|kind| self.pins.keys().any(|key| key.kind == *kind))
            .collect();
        kinds.into_iter().for_each(|kind| self.complete(kind));
    }

    /// The kinds of which some wait for approval.
    pub fn held_kinds(&self) -> Vec<Kind> {
        let waits = |kind: &Kind| {
            self.pins
                .iter()
                .any(|(key, pin)| key.kind == *kind && pin.held.is_some())
        };
        Kind::ALL.into_iter().filter(waits).collect()
    }

    /// How many wait for approval.
    pub fn held(&self) -> usize {
        self.waiting
    }
}

impl Pin {
    /// Bytes of what it holds.
    pub fn bytes(&self) -> usize {
        let held = self.held.as_ref().map(|held| &held.content);
        self.content
            .iter()
            .chain(held)
            .map(|content| content.as_str().len())
            .sum()
    }
}

#[cfg(test)]
mod tests;
