//! What people have approved and released while the pipe is open.

use bytes::Bytes;

use super::{Pipe, lined};
use crate::record::Event;

impl Pipe {
    /// Looks at what people have done with pins and in quarantine, and forgets what is too old there: gives what the agent is
    /// to be told then. To be called now and then; may wait for the disk.
    pub fn look(&self) -> Vec<Bytes> {
        self.releases.look(&self.recorder);
        self.recorder.forget_old();
        self.look_at_pins()
    }

    /// Reads the lock file again if it has changed.
    fn look_at_pins(&self) -> Vec<Bytes> {
        let visible = match self.pins.look() {
            Ok(visible) => visible.unwrap_or_default(),
            Err(faults) => {
                self.tell(Event::PinsRefused { faults: &faults });
                return Vec::new();
            }
        };
        let mine = visible.iter().filter(|(name, _)| *name == self.pinned_as);
        let lines = mine.flat_map(|(_, kind)| self.declared.told(*kind).into_iter().chain(self.subscriptions.told(*kind)));
        let lines: Vec<Bytes> = lines.map(lined).collect();
        if !visible.is_empty() {
            self.tell(Event::PinsReloaded { upstreams: &[&self.pinned_as] });
        }
        lines
    }
}
