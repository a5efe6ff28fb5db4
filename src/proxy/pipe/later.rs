//! Lines that wait for a person.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::{Passage, Pipe, lined};
use crate::inspect::Question;
use crate::message::Message;
use crate::protocol::{AuditId, CallError, Context, Era, answer};
use crate::proxy::approve::{self, Approvals, Asked, Begun, Restored, Route, STILL, Settled, still};
use crate::proxy::budgets::Held;

/// A call that waits for a person.
pub struct Later {
    asked: Box<Asked>,
    message: Message,
    line: Bytes,
    context: Context,
    /// Its places among the calls of its tool.
    held: Held,
    /// How often the client was told that it waits.
    told: u32,
}

/// A line of the agent's that a person is asked about.
pub(super) struct InspectedLine<'a> {
    pub(super) message: &'a Message,
    pub(super) line: Bytes,
    pub(super) context: &'a Context,
    /// Its places among the calls of its tool.
    pub(super) held: Held,
}

/// What comes of waiting.
pub enum Step {
    /// It goes on waiting; the agent is told this.
    Say(Option<Bytes>),
    /// It is over, and this is what becomes of the line.
    Done(Passage),
}

impl Pipe {
    pub(super) fn asks(
        &self,
        question: &Question,
        audit: AuditId,
        call: InspectedLine<'_>,
        restored: Option<&Restored>,
    ) -> Result<Passage, CallError> {
        let InspectedLine { message, line, context, held } = call;
        let route = match context.era {
            _ if !question.through_agent => Route::None,
            Era::Legacy if self.elicits.load(Ordering::Relaxed) => Route::Elicit,
            Era::Modern if Approvals::takes_input(message) && approve::asks(message, Era::Modern).form => Route::Input,
            _ => Route::None,
        };
        let refused = |reason| {
            let back = answer::refusals(context, message, &[Some(reason)]);
            Passage { back: back.into_iter().map(lined).collect(), ..Passage::default() }
        };
        Ok(match self.approvals.begin(question, audit, (context, message), route, restored)? {
            Begun::Go(matter) => self.goes(message, line, context, Some(matter), held),
            Begun::Refused(reason) => refused(reason),
            Begun::Input(body) => Passage { back: vec![lined(body)], ..Passage::default() },
            Begun::Wait(asked) => {
                let back = if route == Route::Elicit { vec![lined(asked.question())] } else { Vec::new() };
                let later = Box::new(Later { asked, message: message.clone(), line, context: context.clone(), held, told: 0 });
                Passage { on: None, back, later: Some(later) }
            }
        })
    }

    /// Waits for what a person says; to be called until it is [`Step::Done`].
    pub async fn wait(&self, later: &mut Later) -> Step {
        let Later { asked, message, line, context, held, told } = later;
        match asked.settled(&self.approvals, STILL).await {
            Settled::Open(_) => {
                *told += 1;
                Step::Say(still(message, *told).map(lined))
            }
            Settled::Go => {
                let (matter, held) = (Box::new(asked.matter.clone()), std::mem::take(held));
                Step::Done(self.goes(message, line.clone(), context, Some(matter), held))
            }
            Settled::Cancelled => Step::Done(Passage::default()),
            Settled::Refused(reason) => {
                let back = answer::refusals(context, message, &[Some(reason)]);
                Step::Done(Passage { back: back.into_iter().map(lined).collect(), ..Passage::default() })
            }
        }
    }
}
