//! Displays and approves pins in the console.

use std::sync::Arc;

use super::{Lock, PinStore, VisibleChanges, visible_changes};
use crate::document::Fault;
use crate::inspect::definitions::{Key, Pin, Pins};

impl PinStore {
    /// Returns the pins of every upstream.
    pub(crate) fn all_pins(&self) -> Arc<Lock> {
        self.current.load_full()
    }

    /// Replaces a pinned definition with the held one, if that has this digest: only the definition
    /// that the person has read is approved.
    ///
    /// # Errors
    /// The lock file cannot be read or written; nothing was approved.
    pub(crate) fn approve(
        &self,
        upstream: &str,
        key: &Key,
        sha256: &str,
    ) -> Result<(bool, VisibleChanges), Vec<Fault>> {
        if let Some(file) = &self.file {
            // The lists for agents change when the file is read again.
            let approved = file.edit(|lock| approve(lock.upstream_mut(upstream), key, sha256))?;
            return Ok((approved, VisibleChanges::new()));
        }
        let _file_state = self.file_state.lock();
        let before = self.current.load_full();
        let mut after = Lock::clone(&before);
        let approved = approve(after.upstream_mut(upstream), key, sha256);
        let changes = visible_changes(&before, &after);
        self.store(&before, after);
        Ok((approved, changes))
    }
}

fn approve(pins: &mut Pins, key: &Key, sha256: &str) -> bool {
    let held = pins
        .get(key)
        .and_then(|pin| pin.pending.clone())
        .filter(|held| held.content.digest() == sha256);
    let approved = held.is_some();
    if let Some(held) = held {
        pins.insert(
            key.clone(),
            Pin {
                content: Some(held.content),
                pending: None,
            },
        );
    }
    approved
}
