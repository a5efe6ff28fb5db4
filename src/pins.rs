//! The pinned definitions of each upstream, in memory and in the lock file.

mod console;
mod file;
mod lock;

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::config::{ChangeAction, ChangeClass};
use crate::detect::shadow::Names;
use crate::document::Fault;
use crate::inspect::definitions::{
    Content, Key, Kind, ListComparison, ListedDefinition, PendingDefinition, Pin, Pins,
};

pub use file::LockFile;
pub use lock::Lock;

/// The pins in force. Readers never wait.
pub(crate) struct PinStore {
    current: ArcSwap<Lock>,
    /// The names of all pinned tools.
    names: ArcSwap<Names>,
    file: Option<LockFile>,
    /// An upstream that is pinned under another name than its own, and that name.
    alias: Option<(Box<str>, Box<str>)>,
    /// Locked while pins change. Contains the state of the file when it was last read or written,
    /// and the missing definitions that were reported.
    file_state: Mutex<FileState>,
}

#[derive(Default)]
struct FileState {
    stamp: file::Stamp,
    reported_missing: std::collections::HashSet<(Box<str>, Key)>,
}

/// A change of a definition, to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DefinitionEvent {
    pub(crate) key: Key,
    pub(crate) classes: Vec<ChangeClass>,
    pub(crate) action: ChangeAction,
    pub(crate) old: Option<Content>,
    pub(crate) new: Option<Content>,
}

/// The result of updating the pins from a list.
#[derive(Debug, Default)]
pub(crate) struct PinOutcome {
    pub(crate) events: Vec<DefinitionEvent>,
    /// Number of definitions pinned for a server that is seen for the first time.
    pub(crate) first_seen: usize,
    /// Why the lock file could not be written; the pins in memory are up to date.
    pub(crate) faults: Vec<Fault>,
}

/// Kinds of definitions, by upstream, whose lists change for agents.
pub(crate) type VisibleChanges = Vec<(Box<str>, Kind)>;

impl PinStore {
    /// Opens the pins in the file, if there is one.
    ///
    /// # Errors
    /// The faults of the file. Definitions must not be pinned anew over an invalid file.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Vec<Fault>> {
        let file = path.map(LockFile::new);
        let stamp = file.as_ref().and_then(LockFile::stamp);
        let mut lock = file
            .as_ref()
            .map(LockFile::read)
            .transpose()?
            .unwrap_or_default();
        mark_complete(&mut lock);
        let file_state = Mutex::new(FileState {
            stamp,
            ..FileState::default()
        });
        Ok(Self {
            names: ArcSwap::from_pointee(names(&lock)),
            current: ArcSwap::from_pointee(lock),
            file,
            alias: None,
            file_state,
        })
    }

    /// Returns the store with `upstream` pinned under the name `pinned_as`.
    #[must_use]
    pub(crate) fn with_alias(self, upstream: &str, pinned_as: Box<str>) -> Self {
        Self {
            alias: Some((upstream.into(), pinned_as)),
            ..self
        }
    }

    /// Returns the name under which an upstream is pinned.
    pub(crate) fn pinned_as<'n>(&'n self, upstream: &'n str) -> &'n str {
        self.alias
            .as_ref()
            .filter(|(name, _)| **name == *upstream)
            .map_or(upstream, |(_, pinned_as)| pinned_as)
    }

    /// Returns the upstream that is pinned under a name.
    pub(crate) fn upstream_of<'n>(&'n self, pinned_as: &'n str) -> &'n str {
        self.alias
            .as_ref()
            .filter(|(_, alias)| **alias == *pinned_as)
            .map_or(pinned_as, |(name, _)| name)
    }

    /// Returns the pins of one upstream.
    pub(crate) fn for_upstream(&self, upstream: &str) -> Arc<Pins> {
        self.current.load().for_upstream(self.pinned_as(upstream))
    }

    /// Returns the names of the tools of all upstreams.
    pub(crate) fn names(&self) -> Arc<Names> {
        self.names.load_full()
    }

    fn store(&self, before: &Lock, after: Lock) {
        if after != *before {
            self.names.store(Arc::new(names(&after)));
            self.current.store(Arc::new(after));
        }
    }

    /// Reports whether updating pins may wait for the disk.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.file.is_some()
    }

    /// Updates the pins from a list that has passed.
    pub(crate) fn update(&self, upstream: &str, listed: &ListComparison) -> PinOutcome {
        let upstream = self.pinned_as(upstream);
        let mut file_state = self.file_state.lock();
        let (mut outcome, before) = (PinOutcome::default(), self.current.load_full());
        let has_new = listed.new_definitions.iter().any(|seen| !seen.is_pending);
        let mut after = Lock::clone(&before);
        match &self.file {
            Some(file) if has_new => {
                match file.change(|lock| {
                    apply(
                        lock.upstream_mut(upstream),
                        &listed.new_definitions,
                        &mut outcome,
                    )
                }) {
                    Ok((lock, stamp)) => {
                        file_state.stamp = stamp;
                        after = carry_over(&before, lock, upstream);
                    }
                    Err(faults) => {
                        outcome = PinOutcome {
                            faults,
                            ..PinOutcome::default()
                        };
                        apply(
                            after.upstream_mut(upstream),
                            &listed.new_definitions,
                            &mut outcome,
                        );
                    }
                }
            }
            _ => apply(
                after.upstream_mut(upstream),
                &listed.new_definitions,
                &mut outcome,
            ),
        }
        listed
            .ended_kinds
            .iter()
            .for_each(|kind| after.upstream_mut(upstream).mark_complete(*kind));
        for key in &listed.removed {
            if file_state
                .reported_missing
                .insert((upstream.into(), key.clone()))
            {
                let old = before
                    .for_upstream(upstream)
                    .get(key)
                    .and_then(|pin| pin.content.clone());
                let classes = vec![ChangeClass::Gone];
                outcome.events.push(DefinitionEvent {
                    key: key.clone(),
                    classes,
                    action: ChangeAction::Pass,
                    old,
                    new: None,
                });
            }
        }
        if !file_state.reported_missing.is_empty() {
            let is_gone = |key: &Key| listed.removed.contains(key);
            file_state.reported_missing.retain(|(name, key)| {
                **name != *upstream || !listed.ended_kinds.contains(&key.kind) || is_gone(key)
            });
        }
        self.store(&before, after);
        outcome
    }

    /// Reads the file again if it has changed. Returns the lists that change for agents; `None` if
    /// the file has not changed.
    ///
    /// # Errors
    /// The faults of the file; the pins in force remain.
    pub(crate) fn reload(&self) -> Result<Option<VisibleChanges>, Vec<Fault>> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let mut file_state = self.file_state.lock();
        let stamp = file.stamp();
        // A deleted file removes no pins: those in force are written with the next change.
        if stamp == file_state.stamp || stamp.is_none() {
            return Ok(None);
        }
        // Valid or not, the same state is not read again.
        file_state.stamp = stamp;
        let before = self.current.load_full();
        let after = carry_over(&before, file.read()?, "");
        let visible = visible_changes(&before, &after);
        self.store(&before, after);
        Ok(Some(visible))
    }
}

/// Returns the names of all pinned tools.
fn names(lock: &Lock) -> Names {
    let mut names = Names::default();
    for (upstream, pins) in lock.iter() {
        pins.iter()
            .filter(|(key, _)| key.kind == Kind::Tool)
            .for_each(|(key, _)| names.add(upstream, &key.name));
    }
    names
}

/// Applies the policy's action to each definition that was seen, unless its pin has changed since.
fn apply(pins: &mut Pins, definitions: &[ListedDefinition], outcome: &mut PinOutcome) {
    for ListedDefinition {
        key,
        content,
        pinned,
        classes,
        action,
        is_pending: waits,
    } in definitions
    {
        let current_pin = pins.get(key);
        if *waits || current_pin.and_then(|pin| pin.content.as_ref()) != pinned.as_ref() {
            continue;
        }
        let pin = if *action == ChangeAction::Pass {
            Pin {
                content: Some(content.clone()),
                pending: None,
            }
        } else {
            Pin {
                content: pinned.clone(),
                pending: Some(PendingDefinition {
                    content: content.clone(),
                    classes: classes.clone(),
                }),
            }
        };
        pins.insert(key.clone(), pin);
        if classes.is_empty() {
            outcome.first_seen += 1;
            continue;
        }
        let (key, classes, old) = (key.clone(), classes.clone(), pinned.clone());
        outcome.events.push(DefinitionEvent {
            key,
            classes,
            action: *action,
            old,
            new: Some(content.clone()),
        });
    }
}

/// Marks the lists that a file contains pins of as seen.
fn mark_complete(lock: &mut Lock) {
    let upstreams: Vec<String> = lock.iter().map(|(name, _)| name.to_owned()).collect();
    upstreams
        .iter()
        .for_each(|name| lock.upstream_mut(name).mark_all_complete());
}

/// Returns the pins of a file, together with the knowledge of which lists were seen to their end.
/// If all pins of a kind are gone, its list counts as seen for the first time again. The lists of
/// `updated_upstream` are being seen right now.
fn carry_over(before: &Lock, mut after: Lock, updated_upstream: &str) -> Lock {
    let is_known =
        |name: &str| name == updated_upstream || before.iter().any(|(known, _)| known == name);
    let new_upstreams: Vec<String> = after
        .iter()
        .map(|(name, _)| name.to_owned())
        .filter(|name| !is_known(name))
        .collect();
    let known_pins: Vec<(String, Arc<Pins>)> = before
        .iter()
        .map(|(name, pins)| (name.to_owned(), pins.clone()))
        .collect();
    for (name, old) in known_pins {
        let new = after.upstream_mut(&name);
        for kind in Kind::ALL {
            let reset = old.size(kind).0 > 0 && new.size(kind).0 == 0;
            if old.is_complete(kind) && !reset {
                new.mark_complete(kind);
            }
        }
    }
    // Pins of an upstream that this process has not seen yet were made by another process.
    new_upstreams
        .iter()
        .for_each(|name| after.upstream_mut(name).mark_all_complete());
    after
}

/// Returns the lists that change: another definition is in force, or a held one is no longer held.
fn visible_changes(before: &Lock, after: &Lock) -> VisibleChanges {
    let mut out = VisibleChanges::new();
    for (upstream, old) in before.iter() {
        let new = after.for_upstream(upstream);
        for (key, pin) in old.iter() {
            let new_pin = new.get(key);
            let is_same = new_pin.is_some_and(|now| {
                now.content == pin.content && now.pending.is_some() == pin.pending.is_some()
            });
            // A removed pin changes the list only if a definition was held.
            let is_visible = !is_same && (new_pin.is_some() || pin.pending.is_some());
            if is_visible
                && !out
                    .iter()
                    .any(|(name, kind)| **name == *upstream && *kind == key.kind)
            {
                out.push((upstream.into(), key.kind));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
