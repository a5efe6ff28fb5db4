//! Content that an approver has released from quarantine and that reaches the agent after all.

use crate::detect::flow::DataLabels;
use crate::message::Message;
use crate::text::Text;

use super::Policy;
use super::memory::{Memory, SessionUpdate};

impl Policy {
    /// Returns the state that a response of this tool adds if it was withheld before and is now
    /// released to its agent: everything that could have been withheld of it, as pieces of
    /// quarantined text, to be [forgotten](crate::detect::flow::TaintStore::release), and otherwise
    /// what any response adds.
    pub fn released_update(
        &self,
        message: &Message,
        tool: Option<&str>,
        memory: &Memory,
    ) -> SessionUpdate {
        if !self.has_flow_rules {
            return SessionUpdate::default();
        }
        let session = memory.session();
        let flow = self.flow.context(&session, tool, DataLabels::default());
        for envelope in message.envelopes() {
            message.value(envelope).strings(|_, string| {
                let text = Text::new(string.value);
                session.record_withheld(text.raw());
                if let Some(page) = text.page() {
                    session.record_withheld(&page.hidden);
                }
                flow.record_received(&text);
            });
        }
        SessionUpdate {
            flow: session.into_update(),
            ..SessionUpdate::default()
        }
    }
}
