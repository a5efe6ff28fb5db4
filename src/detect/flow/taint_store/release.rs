//! Withheld content that is released no longer counts as quarantined.

use super::{SERVERS, Servers, TaintStore};
use crate::detect::flow::FlowUpdate;
use crate::detect::flow::hash::Hashes;

impl TaintStore {
    /// Removes the quarantine mark of this server from the pieces of `learnt`: its withheld content
    /// is now delivered to the agent.
    pub fn release(&self, learnt: &FlowUpdate, server: usize) {
        let mut kept = self.kept.write();
        let kept = &mut *kept;
        let mut over = Hashes::default();
        for value in &learnt.quarantined {
            if let Some(mark) = kept.marks.get_mut(&value.hash) {
                mark.quarantined.remove(server);
                if mark.quarantined.is_empty() {
                    over.insert(value.hash);
                }
            }
        }
        // The oldest entries are removed first, so the released ones are moved to the front.
        let (gone, stay): (Vec<_>, Vec<_>) = kept
            .quarantined
            .drain(..)
            .partition(|(_, hash, _)| over.contains(hash));
        let count = gone.len();
        kept.quarantined = gone.into_iter().chain(stay).collect();
        kept.forget_quarantined(count);
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
