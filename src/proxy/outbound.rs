//! Judging what an agent sends.

use std::sync::Arc;

use super::Gate;
use super::approve::Restored;
use super::asking::Next;
use super::judge::{Onward, Refused};
use crate::inspect::Mode;
use crate::message::{Direction, Message};
use crate::protocol::{Call, CallError, answer};

impl Gate {
    /// Judges what an agent sends, and has a person asked where a rule wants that.
    pub(super) async fn judge_outbound(
        self: &Arc<Self>,
        message: &Message,
        call: &Call,
        restored: Option<&Restored>,
    ) -> Result<Next, CallError> {
        let context = &call.context;
        let policy = self.policy_of(context)?;
        let rules = policy.rules_digest(Direction::Outbound);
        if policy.mode == Mode::Enforce
            && let Some(reason) =
                self.approvals.repeats.known(context, message, rules, &self.recorder).map_err(CallError::Audit)?
        {
            return Ok(Next::Answer(Box::new(answer::refuse(context, message, &[Some(reason)]))));
        }
        let judged = self.judge(Direction::Outbound, message, &call.context, None).await?;
        match judged.outbound(message)? {
            Onward::Pass => Ok(Next::Send(None)),
            Onward::Ask(question) => Box::pin(self.ask(question, judged.audit, call, message, restored)).await,
            Onward::Refused(Refused { mut reasons, to_server }) => {
                if let [Some(reason)] = reasons.as_mut_slice() {
                    self.approvals.repeats.judged(context, message, rules, reason, &self.recorder);
                }
                // The server waits for an answer that is withheld: it is told.
                for error in to_server {
                    self.tell_server(&call.context, &call.headers, error);
                }
                Ok(Next::Answer(Box::new(answer::refuse(&call.context, message, &reasons))))
            }
        }
    }
}
