//! Judges the messages of an agent.

use std::sync::Arc;

use super::Gate;
use super::approval_wait::AskResult;
use super::judge::{OutboundOutcome, RefusedMessage, Subject};
use super::route::Route;
use crate::approval::RestoredRequest;
use crate::inspect::Mode;
use crate::message::{Direction, Message};
use crate::protocol::{Call, CallError, answer};

impl Gate {
    /// Judges an agent's message, and requests approval if a rule requires it.
    pub(super) async fn judge_outbound(
        self: &Arc<Self>,
        message: &Message,
        call: &Call,
        route: &Route,
        restored: Option<&RestoredRequest>,
    ) -> Result<AskResult, CallError> {
        let context = &call.context;
        let policy = &route.policy;
        let rules = policy.rules_digest(Direction::Outbound);
        if policy.mode == Mode::Enforce
            && let Some(reason) = self
                .approvals
                .refusal_loop
                .short_answer(context, message, rules, &self.recorder)
                .map_err(CallError::Audit)?
        {
            return Ok(AskResult::Answer(Box::new(answer::refuse(
                context,
                message,
                &[Some(reason)],
            ))));
        }
        let judgement = self
            .judge(&Subject::outbound(route, message, context), route, None)
            .await?;
        match judgement.outbound(message)? {
            OutboundOutcome::Pass => Ok(AskResult::Send(None)),
            OutboundOutcome::Ask(question) => {
                Box::pin(self.request_approval(
                    question,
                    judgement.audit,
                    call,
                    message,
                    route,
                    restored,
                ))
                .await
            }
            OutboundOutcome::Refused(RefusedMessage {
                mut reasons,
                to_server,
            }) => {
                if let [Some(reason)] = reasons.as_mut_slice() {
                    self.approvals.refusal_loop.note_verdict(
                        context,
                        message,
                        rules,
                        reason,
                        &self.recorder,
                    );
                }
                // The server waits for an answer that is withheld: it gets an error instead.
                for error in to_server {
                    self.send_to_server(call, route, error);
                }
                Ok(AskResult::Answer(Box::new(answer::refuse(
                    context, message, &reasons,
                ))))
            }
        }
    }
}
