//! What a person has released from quarantine comes in after all.

use crate::detect::flow::Sides;
use crate::message::Message;
use crate::text::Text;

use super::Policy;
use super::memory::{Learnt, Memory};

impl Policy {
    /// What an answer of this tool leaves behind that was withheld once and is given to its agent now: as pieces of quarantined
    /// text all that could have been withheld of it, to be [forgotten](crate::detect::flow::Traces::release), and else what any
    /// answer leaves behind.
    pub fn released(&self, message: &Message, tool: Option<&str>, memory: &Memory) -> Learnt {
        if !self.follows {
            return Learnt::default();
        }
        let session = memory.session();
        let here = self.flow.here(&session, tool, Sides::default());
        for envelope in message.envelopes() {
            message.value(envelope).strings(|_, found| {
                let text = Text::new(found.value);
                session.withheld(text.raw());
                if let Some(page) = text.page() {
                    session.withheld(&page.hidden);
                }
                here.came_in(&text);
            });
        }
        Learnt {
            flow: session.learnt(),
            ..Learnt::default()
        }
    }
}
