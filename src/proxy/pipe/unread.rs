//! Lines that are not messages: withheld, and answered where somebody waits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Passage, Pipe, lined};
use crate::message::ParseError;
use crate::protocol::{CallError, Context, Era, answer};
use crate::record::printable;

/// Bytes of a line that are shown.
const BEGINNING_BYTES: usize = 160;

impl Pipe {
    /// A line of the agent's that was longer than [`Self::longest`].
    pub fn too_long_from_agent(&self) -> Passage {
        self.unread_of_agent(&CallError::BadMessage(ParseError::TooLarge { limit: self.longest() }))
    }

    pub(super) fn unread_of_agent(&self, error: &CallError) -> Passage {
        let context = self.context(Era::Legacy, Arc::from([]));
        self.tell_failed(&context, error);
        Passage { later: None, on: None, back: vec![lined(answer::broken(None, error, &context))] }
    }

    /// A line of the server's that is not a message.
    pub(super) fn unread_line_of_server(&self, line: &[u8], error: ParseError) -> Passage {
        // A server that logs to its standard output says no message: nobody waits for that.
        let meant = line.trim_ascii_start().starts_with(b"{") || line.trim_ascii_start().starts_with(b"[");
        if !meant && !self.prints.swap(true, Ordering::Relaxed) {
            let begins = printable(line, &[], BEGINNING_BYTES);
            tracing::warn!(
                upstream = %self.upstream, %begins,
                "the server printed a line that is not an MCP message to its standard output. Each line there must be one \
                 message: have the server log to standard error"
            );
        }
        self.unread_of_server(&CallError::NotMcp(error), meant)
    }

    /// A line of the server's that was longer than [`Self::longest`].
    pub fn too_long_from_server(&self) -> Passage {
        self.unread_of_server(&CallError::NotMcp(ParseError::TooLarge { limit: self.longest() }), true)
    }

    /// What cannot be read is withheld. If it was `meant` as a message and one request is open, it was that one's
    /// answer: whoever waits is told rather than left waiting.
    fn unread_of_server(&self, error: &CallError, meant: bool) -> Passage {
        let only = {
            let mut open = self.open();
            if meant && open.len() == 1 { open.pop_front() } else { None }
        };
        let (era, trace) = only.as_ref().map_or((Era::Legacy, None), |open| (open.era, open.trace.clone()));
        let context = Context { trace, ..self.context(era, only.into_iter().map(|open| open.asked).collect()) };
        self.tell_failed(&context, error);
        let on = context.asked.first().map(|asked| lined(answer::broken(Some(&asked.id), error, &context)));
        Passage { on, ..Passage::default() }
    }
}
