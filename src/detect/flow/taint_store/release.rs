//! Withheld content that is released no longer counts as quarantined.

use super::{SERVERS, Servers, TaintStore};
use crate::detect::flow::FlowUpdate;
use crate::detect::flow::hash::Hashes;

impl TaintStore {
    /// Removes the quarantine mark of this server from the pieces of `update`: its withheld content
    /// is now delivered to the agent.
    pub fn release(&self, update: &FlowUpdate, server: usize) {
        let mut state = self.state.write();
        let state = &mut *state;
        let mut released_hashes = Hashes::default();
        for piece in &update.quarantined {
            if let Some(label) = state.labels.get_mut(&piece.hash) {
                label.quarantined.remove(server);
                if label.quarantined.is_empty() {
                    released_hashes.insert(piece.hash);
                }
            }
        }
        // The oldest entries are removed first, so the released ones are moved to the front.
        let (released, remaining): (Vec<_>, Vec<_>) = state
            .quarantined
            .drain(..)
            .partition(|(_, hash, _)| released_hashes.contains(hash));
        let count = released.len();
        state.quarantined = released.into_iter().chain(remaining).collect();
        state.forget_quarantined(count);
    }
}

impl Servers {
    /// Removes a server. Servers that are not distinguished stay.
    fn remove(&mut self, server: usize) {
        if server < SERVERS {
            self.0 &= !(1 << server);
        }
    }
}
