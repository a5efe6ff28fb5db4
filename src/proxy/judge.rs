//! Judging one message, and what follows from the verdict.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::keep;
use super::memories::Memories;
use super::resolve::Resolved;
use crate::detect::url::Answers;
use crate::detect::work;
use crate::inspect::{Classified, Heard, Inspection, Known, Mode, Policy, Question, Refusal, Verdict};
use crate::message::{Direction, Envelope, Message, splice};
use crate::protocol::{AuditId, CallError, Context, answer};
use crate::record::{Event, Recorder, Written};
use crate::rules::Action;

/// A message, and what it is judged by.
pub(super) struct Case<'a> {
    pub(super) policy: &'a Policy,
    pub(super) direction: Direction,
    pub(super) message: &'a Message,
    pub(super) context: &'a Context,
    /// For a reply: how long ago its call was sent upstream.
    pub(super) waited: Option<Duration>,
    pub(super) known: Known<'a>,
    /// Where what it leaves behind is remembered.
    pub(super) memories: &'a Memories,
}

/// What was asked elsewhere once a message had been judged, for judging it again.
#[derive(Default)]
pub(super) struct More {
    answers: Option<Answers>,
    classified: Option<Arc<Classified>>,
}

impl More {
    /// What came of asking, if anything was asked.
    ///
    /// # Errors
    /// As [`limits_hit`].
    pub(super) fn of(
        looked_up: Option<Resolved>,
        classified: Option<Classified>,
        recorder: &Recorder,
    ) -> Result<Option<Self>, CallError> {
        if let Some(looked_up) = &looked_up {
            limits_hit(recorder, &looked_up.hit)?;
        }
        let asked = looked_up.is_some() || classified.is_some();
        Ok(asked.then(|| Self { answers: looked_up.map(|looked_up| looked_up.answers), classified: classified.map(Arc::new) }))
    }

    /// All that is known, with this.
    pub(super) fn with<'k>(&'k self, known: Known<'k>) -> Known<'k> {
        Known { answers: self.answers.as_ref(), classified: self.classified.as_ref(), ..known }
    }
}

/// What judging gave, and how it is named in the audit log.
pub(super) struct Judged {
    inspection: Inspection,
    mode: Mode,
    pub(super) audit: AuditId,
    /// Whether what is taken out is kept in quarantine.
    kept: bool,
}

/// What goes out in a message's place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The message as it came.
    Same,
    /// Other bytes.
    Other(Bytes),
    /// Nothing.
    Nothing,
}

/// A judged message from a server, on its way on.
pub(super) struct Carried {
    pub(super) outcome: Outcome,
    /// Errors that answer the server's questions which are not put.
    pub(super) to_server: Vec<String>,
}

/// What becomes of a message from an agent.
pub(super) enum Onward<'j> {
    /// It goes on.
    Pass,
    /// It does not.
    Refused(Refused),
    /// A person is asked about it: it is one request.
    Ask(&'j Question),
}

/// A message from an agent that does not go on.
pub(super) struct Refused {
    /// For each message of the body; one without a reason fell with the others.
    pub(super) reasons: Vec<Option<answer::Reason>>,
    /// Errors in the place of the agent's answers that are withheld.
    pub(super) to_server: Vec<String>,
}

impl Case<'_> {
    /// Judges, with what was asked for that. Says how long it took.
    pub(super) fn inspect(&self, audit: AuditId, more: &More) -> (Inspection, Duration) {
        let (started, known) = (Instant::now(), more.with(self.known));
        let inspection = self.policy.inspect(self.direction, self.message, self.context, audit, &known);
        (inspection, started.elapsed())
    }

    /// Tells of what judging gave. It may only be carried out when that is written.
    ///
    /// # Errors
    /// What must be told and cannot be is not passed on.
    pub(super) fn tell(
        &self,
        recorder: &Recorder,
        audit: AuditId,
        mut inspection: Inspection,
        took: Duration,
        kept: bool,
    ) -> Result<(Judged, Written), CallError> {
        let Case { policy, direction, message, context, waited, known: _, memories } = *self;
        let (mode, evidence, rules) = (policy.mode, policy.evidence, policy.rules_digest(direction));
        let event =
            Event::Judged { audit, direction, context, message, inspection: &inspection, mode, evidence, rules, took, waited };
        let written = recorder.begin(event);
        self.offer(recorder, &inspection, audit);
        let hit = |limit: &&str| inspection.findings.iter().any(|finding| finding.reading == *limit);
        limits_hit(recorder, &work::ALL.into_iter().filter(hit).collect::<Vec<_>>())?;
        limits_hit(recorder, &inspection.limits_hit)?;
        if mode == Mode::Enforce && matches!(inspection.verdict, Verdict::Rewrite(_)) {
            limits_hit(recorder, &inspection.delivery.hit)?;
            limits_hit(recorder, &memories.pages.keep(context, std::mem::take(&mut inspection.delivery.rests)))?;
        }
        // What an agent sends is no piece of anything unless it goes on.
        let goes_on = mode == Mode::Observe || !matches!(inspection.verdict, Verdict::Block(_));
        if direction == Direction::Inbound || goes_on {
            if matches!(inspection.verdict, Verdict::Ask(_)) {
                inspection.learnt.flow.unsaid();
            }
            limits_hit(recorder, &memories.learn(context, direction, std::mem::take(&mut inspection.learnt)))?;
        }
        Ok((Judged { inspection, mode, audit, kept }, written))
    }
}

impl Judged {
    /// Whether nothing of it is refused.
    pub(super) fn goes_on(&self) -> bool {
        self.mode == Mode::Observe || !matches!(self.inspection.verdict, Verdict::Block(_))
    }

    /// The last texts of the stream, now that it goes on.
    pub(super) fn heard(&mut self) -> Heard {
        std::mem::take(&mut self.inspection.heard)
    }

    /// What becomes of a message from an agent.
    ///
    /// # Errors
    /// A rule asks for what is never done: a changed argument is a call that the agent did not make.
    pub(super) fn outbound(&self, message: &Message) -> Result<Onward<'_>, CallError> {
        let refusals = match (&self.inspection.verdict, self.mode) {
            (_, Mode::Observe) | (Verdict::Pass, _) => return Ok(Onward::Pass),
            (Verdict::Block(refusals), _) => refusals,
            (Verdict::Ask(questions), _) => match questions.as_slice() {
                [question] if message.single().is_some_and(Envelope::is_request) => return Ok(Onward::Ask(question)),
                questions => &questions.iter().map(|question| unasked(question, message)).collect::<Vec<_>>(),
            },
            (Verdict::Rewrite(_), _) => return Err(CallError::BadReply("a rule would rewrite what an agent sends")),
        };
        let of_item = |item| refusals.iter().find(|refusal| refusal.item == item).map(|refusal| self.reason(refusal));
        let reasons: Vec<Option<answer::Reason>> = (0..message.envelopes().len()).map(of_item).collect();
        let mut to_server = Vec::new();
        for (envelope, reason) in message.envelopes().iter().zip(&reasons) {
            if let (true, Some(id), Some(reason)) = (envelope.is_answer(), message.id(envelope), reason) {
                let text = format!("The agent's answer was withheld (rule `{}`).", reason.rule);
                to_server.push(answer::error(Some(id), answer::REFUSED, &text, None));
            }
        }
        Ok(Onward::Refused(Refused { reasons, to_server }))
    }

    /// What becomes of a message from a server.
    ///
    /// # Errors
    /// Edits that cannot be carried out.
    pub(super) fn carry_out(&self, message: &Message, context: &Context) -> Result<Carried, CallError> {
        let done = |outcome| Ok(Carried { outcome, to_server: Vec::new() });
        let refusals = match (&self.inspection.verdict, self.mode) {
            (_, Mode::Observe) | (Verdict::Pass, _) => return done(Outcome::Same),
            (Verdict::Rewrite(edits), _) => {
                let mut edits = edits.clone();
                if self.kept {
                    keep::say_so(&mut edits, message, self.audit);
                }
                let new = splice(message.bytes(), edits).ok_or(CallError::BadReply("its edits overlap"))?;
                return done(Outcome::Other(new));
            }
            (Verdict::Ask(_), _) => return Err(CallError::BadReply("a rule would ask about what a server says")),
            (Verdict::Block(refusals), _) => refusals,
        };
        let (mut left, mut to_server) = (Vec::new(), Vec::new());
        for (item, envelope) in message.envelopes().iter().enumerate() {
            let Some(refusal) = refusals.iter().find(|refusal| refusal.item == item).or_else(|| self.falls(item, refusals))
            else {
                left.push(message.value(envelope).raw().to_owned());
                continue;
            };
            let reason = self.reason(refusal);
            left.extend(answer::withheld(context, message, envelope, &reason));
            if let (true, Some(id)) = (envelope.is_request(), message.id(envelope)) {
                let text = format!("The question was withheld from the agent (rule `{}`).", reason.rule);
                to_server.push(answer::error(Some(id), answer::REFUSED, &text, None));
            }
        }
        let outcome = match (left.pop(), message.is_batch()) {
            (None, _) => Outcome::Nothing,
            (Some(one), false) => Outcome::Other(one.into()),
            (Some(last), true) => {
                left.push(last);
                Outcome::Other(format!("[{}]", left.join(",")).into())
            }
        };
        Ok(Carried { outcome, to_server })
    }

    /// A message of a batch that would be edited falls with the one that is refused: a verdict that blocks has no edits.
    fn falls<'r>(&self, item: usize, refusals: &'r [Refusal]) -> Option<&'r Refusal> {
        let edited = |finding: &crate::inspect::Finding| finding.item == item && finding.action > Action::Log;
        if self.inspection.findings.iter().any(edited) { refusals.first() } else { None }
    }

    /// The words of a refusal, as the agent reads them.
    fn reason(&self, refusal: &Refusal) -> answer::Reason {
        let (Refusal { rule, title, why, .. }, audit) = (refusal, self.audit);
        let look = if self.kept { format!("; {}", keep::KEPT) } else { String::new() };
        let text = format!("Blocked by lychgate: {title}. {why} (rule `{rule}`, audit {audit}{look})");
        answer::Reason { text, rule: rule.to_string(), audit }
    }
}

/// Tells of limits that were hit while a message was judged.
///
/// # Errors
/// What must be told and cannot be is not passed on.
pub(super) fn limits_hit(recorder: &Recorder, names: &[&'static str]) -> Result<(), CallError> {
    names.iter().try_for_each(|name| recorder.tell(Event::Limit { name }).map_err(CallError::Audit))
}

/// A person is asked about one call at a time: whatever else would need a yes does not go on.
fn unasked(question: &Question, message: &Message) -> Refusal {
    let Question { item, title, why, .. } = question.clone();
    let next = if message.is_batch() {
        "It needs a person's yes: send it on its own, not in a batch."
    } else {
        "It needs a person's yes, which only requests can wait for."
    };
    Refusal { item, rule: question.rule().clone(), title, why: format!("{why} {next}") }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
