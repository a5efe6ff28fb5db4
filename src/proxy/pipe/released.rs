//! What the gate itself answers: what a person has released, and the next parts of long answers.

use super::{Passage, Pipe, lined};
use crate::message::Message;
use crate::protocol::{CallError, Context};
use crate::proxy::releases::Wanted;

impl Pipe {
    /// The answer to a request for a resource of the gate's own, if it is one.
    pub(super) fn served(&self, message: &Message, context: &Context) -> Result<Option<Passage>, CallError> {
        if let Some(released) = self.released(self.releases.of_resource(message, context), message, context)? {
            return Ok(Some(released));
        }
        let page = self.memories.pages.answer(message, context, &self.recorder)?;
        Ok(page.map(|page| Passage { back: vec![lined(page)], ..Passage::default() }))
    }

    /// The answer with what was released, if that is what is asked for.
    pub(super) fn released(
        &self,
        wanted: Option<Wanted>,
        message: &Message,
        context: &Context,
    ) -> Result<Option<Passage>, CallError> {
        let Some(wanted) = wanted else { return Ok(None) };
        let Some(mut bytes) = self.releases.give(&wanted, message, context, (&self.recorder, &self.policy, &self.memories))?
        else {
            return Ok(None);
        };
        // It may have come over HTTP, where JSON may stand on several lines. In its strings there are no bare ones.
        bytes.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        Ok(Some(Passage { back: vec![lined(bytes)], ..Passage::default() }))
    }
}
