//! What was withheld and is released counts no longer as quarantined.

use super::{SERVERS, Servers, Traces};
use crate::detect::flow::Learnt;
use crate::detect::flow::hash::Hashes;

impl Traces {
    /// What was withheld of this server's is given to the agent after all: those pieces of `learnt` are quarantined
    /// no longer.
    pub fn release(&self, learnt: &Learnt, server: usize) {
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
        // The oldest go first: those that are over are put before the others.
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
    /// Those that are not told apart stay.
    fn remove(&mut self, server: usize) {
        if server < SERVERS {
            self.0 &= !(1 << server);
        }
    }
}
