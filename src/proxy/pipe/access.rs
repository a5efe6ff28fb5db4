//! What whoever runs the gate on a pipe may use: the agent `local` of the config's `[access]` tables.

use std::sync::Arc;

use super::{Passage, Pipe, lined};
use crate::config::AccessConfig;
use crate::message::Message;
use crate::protocol::{AgentName, Asked, CallError, Caller, Carrier, Context, Era, UpstreamName, Wire};
use crate::proxy::access::refused;

fn local() -> AgentName {
    AgentName("local".into())
}

/// Who calls. That it may use nothing is more likely a mistake than meant, so it is said.
pub(super) fn caller(tables: &[Arc<AccessConfig>], upstream: &UpstreamName) -> Caller {
    let caller = Caller::new(&local(), None, Vec::new(), tables);
    if let Some(Err(why)) = caller.access.as_ref().map(|access| access.upstream(upstream)) {
        tracing::warn!(%upstream, %why, "nothing of this server may be used");
    }
    caller
}

impl Pipe {
    /// Who sent a message, to whom.
    pub(super) fn context(&self, era: Era, asked: Arc<[Asked]>) -> Context {
        let (upstream, caller) = (self.upstream.clone(), self.caller.clone());
        Context {
            agent: local(),
            upstream,
            era,
            session: None,
            asked,
            caller,
            trace: None,
            wire: Wire::new(Carrier::Pipe, self.agreed_on().as_deref()),
        }
    }

    /// What becomes of a message that asks for something which may not be used.
    pub(super) fn barred(&self, message: &Message, context: &Context) -> Result<Option<Passage>, CallError> {
        if context.caller.access.is_none() {
            return Ok(None);
        }
        let refused = refused(message, context, (&self.tools, &self.pins.of(&self.pinned_as)), &self.recorder)?;
        Ok(refused.map(|refused| Passage { back: refused.0.into_iter().map(lined).collect(), ..Passage::default() }))
    }
}
