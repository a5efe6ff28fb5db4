//! Judging what an agent sends.

use std::sync::Arc;

use super::{Gate, reason};
use crate::inspect::{Mode, Verdict};
use crate::message::{Direction, Message};
use crate::protocol::{Call, CallError, Reply, answer};

impl Gate {
    /// Judges what an agent sends; gives the answer where it does not go on.
    pub(super) async fn judge_outbound(self: &Arc<Self>, message: &Message, call: &Call) -> Result<Option<Reply>, CallError> {
        let judged = self.judge(Direction::Outbound, message, &call.context, None).await?;
        if judged.mode == Mode::Observe {
            return Ok(None);
        }
        let refusals = match &judged.inspection.verdict {
            Verdict::Pass => return Ok(None),
            Verdict::Block(refusals) => refusals,
            // A changed argument is a call that the agent did not make: the loader admits no such rule.
            Verdict::Rewrite(_) => return Err(CallError::BadReply("a rule would rewrite what an agent sends")),
        };
        let of_item = |item| refusals.iter().find(|refusal| refusal.item == item).map(|refusal| reason(refusal, judged.audit));
        let reasons: Vec<Option<answer::Reason>> = (0..message.envelopes().len()).map(of_item).collect();
        for (envelope, reason) in message.envelopes().iter().zip(&reasons) {
            // The server waits for the answer that is withheld: it is told.
            if let (true, Some(id), Some(reason)) = (envelope.is_answer(), message.id(envelope), reason) {
                let text = format!("The agent's answer was withheld (rule `{}`).", reason.rule);
                self.tell_server(&call.context, &call.headers, answer::error(Some(id), answer::REFUSED, &text, None));
            }
        }
        Ok(Some(answer::refuse(&call.context, message, &reasons)))
    }
}
