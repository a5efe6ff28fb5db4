//! Judging what an agent sends.

use std::sync::Arc;

use super::Gate;
use super::judge::Refused;
use crate::message::{Direction, Message};
use crate::protocol::{Call, CallError, Reply, answer};

impl Gate {
    /// Judges what an agent sends; gives the answer where it does not go on.
    pub(super) async fn judge_outbound(self: &Arc<Self>, message: &Message, call: &Call) -> Result<Option<Reply>, CallError> {
        let judged = self.judge(Direction::Outbound, message, &call.context, None).await?;
        let Some(Refused { reasons, to_server }) = judged.refused(message)? else { return Ok(None) };
        // The server waits for an answer that is withheld: it is told.
        for error in to_server {
            self.tell_server(&call.context, &call.headers, error);
        }
        Ok(Some(answer::refuse(&call.context, message, &reasons)))
    }
}
