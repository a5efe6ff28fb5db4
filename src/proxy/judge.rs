//! Judges one message, and carries out the verdict.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Gate;
use super::evidence;
use super::route::{OpenCall, Route};
use crate::detect::work;
use crate::inspect::{InspectContext, Inspection, Mode, Policy, Question, Refusal, Verdict};
use crate::message::{Direction, Envelope, Message, splice};
use crate::protocol::{AuditId, CallError, Context, answer, headers};
use crate::record::{Event, PendingWrite, Recorder};
use crate::rules::Action;

/// A message that is judged.
pub(super) struct Subject<'a> {
    pub(super) policy: Arc<Policy>,
    pub(super) direction: Direction,
    pub(super) message: &'a Message,
    pub(super) context: &'a Context,
    pub(super) audit: AuditId,
    /// For a reply: the time since its call was sent upstream.
    pub(super) waited: Option<Duration>,
}

/// The inspection of a message, and its audit id.
pub(super) struct Judgement {
    inspection: Inspection,
    mode: Mode,
    pub(super) audit: AuditId,
    /// Whether withheld content was stored in quarantine.
    is_stored: bool,
}

/// The outcome for a message from a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is passed on unchanged.
    Verbatim,
    /// These bytes are passed on in its place.
    Replaced(Bytes),
    /// No part of it is passed on.
    Dropped,
}

/// A judged message from a server, ready to be delivered.
pub(super) struct Delivery {
    pub(super) outcome: Outcome,
    /// Error answers to the server's requests that do not reach the agent.
    pub(super) to_server: Vec<String>,
}

/// The outcome for a message from an agent.
pub(super) enum OutboundOutcome<'j> {
    /// It is forwarded.
    Pass,
    /// It is refused.
    Refused(RefusedMessage),
    /// It is a single request that requires approval.
    Ask(&'j Question),
}

/// A message from an agent that is refused.
pub(super) struct RefusedMessage {
    /// One for each message of the body; a message without a reason was refused along with the
    /// others.
    pub(super) reasons: Vec<Option<answer::RefusalReason>>,
    /// Errors in place of the agent's answers that are withheld.
    pub(super) to_server: Vec<String>,
}

impl<'a> Subject<'a> {
    /// Creates the subject for a message from an agent.
    pub(super) fn outbound(route: &Route, message: &'a Message, context: &'a Context) -> Self {
        let policy = route.policy.clone();
        let audit = AuditId::generate();
        Self {
            policy,
            direction: Direction::Outbound,
            message,
            context,
            audit,
            waited: None,
        }
    }

    /// Creates the subject for a message of a reply. `context` is that of the call, with the
    /// requests that the message answers.
    pub(super) fn inbound(
        policy: Arc<Policy>,
        message: &'a Message,
        context: &'a Context,
        open: &OpenCall,
    ) -> Self {
        let waited = open.sent_message().map(|_| open.started.elapsed());
        Self {
            policy,
            direction: Direction::Inbound,
            message,
            context,
            audit: AuditId::generate(),
            waited,
        }
    }
}

impl Gate {
    /// Judges a message and records the verdict. A message that must be recorded and cannot be is
    /// not passed on. For a reply, `open` is the call that it belongs to.
    pub(super) async fn judge(
        &self,
        subject: &Subject<'_>,
        route: &Route,
        open: Option<&OpenCall>,
    ) -> Result<Judgement, CallError> {
        let mut inspect_context = self.inspect_context(subject, route, open);
        let (mut inspection, mut duration) = self.inspect(subject, &inspect_context, route).await?;
        let resolved = self
            .resolver
            .resolve_names(&subject.policy, &mut inspection)
            .await;
        let classified = self
            .classifiers
            .classify(&subject.policy, &mut inspection)
            .await;
        if resolved.is_some() || classified.is_some() {
            if let Some(resolved) = resolved {
                record_limits(&self.recorder, &resolved.exceeded_limits)?;
                inspect_context.answers = Some(Arc::new(resolved.answers));
            }
            inspect_context.classified = classified.map(Arc::new);
            let (with_results, again) = self.inspect(subject, &inspect_context, route).await?;
            (inspection, duration) = (with_results, duration + again);
        }
        let is_stored = self
            .store_in_quarantine(subject.quarantined_message(&inspection, open))
            .await;
        let (mut judgement, pending_write) =
            self.conclude(subject, inspection, duration, is_stored, route)?;
        pending_write.wait_async().await.map_err(CallError::Audit)?;
        if let Some(open) = open.filter(|_| judgement.is_forwarded()) {
            *open.tail() = std::mem::take(&mut judgement.inspection.stream_tail);
        }
        Ok(judgement)
    }

    fn inspect_context(
        &self,
        subject: &Subject<'_>,
        route: &Route,
        open: Option<&OpenCall>,
    ) -> InspectContext {
        let Route {
            upstream, session, ..
        } = route;
        let links =
            |open: &OpenCall| headers::supports_links(&open.call.headers, subject.context.era);
        InspectContext {
            tools: Some(upstream.tools.clone()),
            memory: subject.policy.has_rules().then(|| session.memory()),
            paging: open.and_then(|open| self.stored_results.paging(links(open))),
            pins: Some(self.pins.for_upstream(&upstream.name.0)),
            names: Some((self.pins.names(), upstream.pinned_as.clone())),
            stream_tail: open.map(|open| open.tail().clone()).unwrap_or_default(),
            clean_texts: Some(self.clean_texts.clone()),
            work: self.limits.work,
            ..InspectContext::default()
        }
    }

    /// Records an inspection and stores its results. The verdict may be carried out only once the
    /// record is written.
    ///
    /// # Errors
    /// Fails if an event cannot be recorded and must be; the message is then not passed on.
    pub(super) fn conclude(
        &self,
        subject: &Subject<'_>,
        mut inspection: Inspection,
        took: Duration,
        is_stored: bool,
        route: &Route,
    ) -> Result<(Judgement, PendingWrite), CallError> {
        let Subject {
            ref policy,
            direction,
            message,
            context,
            audit,
            waited,
        } = *subject;
        let (mode, evidence, rules) =
            (policy.mode, policy.evidence, policy.rules_digest(direction));
        let event = Event::Judged {
            audit,
            direction,
            context,
            message,
            inspection: &inspection,
            mode,
            evidence,
            rules,
            inspection_time: took,
            response_time: waited,
        };
        let pending_write = self.recorder.start(event);
        subject.offer(&self.recorder, &inspection);
        if !inspection.findings.is_empty() {
            let is_exceeded = |limit: &&str| {
                inspection
                    .findings
                    .iter()
                    .any(|finding| finding.reading == *limit)
            };
            record_limits(
                &self.recorder,
                &work::ALL
                    .into_iter()
                    .filter(is_exceeded)
                    .collect::<Vec<_>>(),
            )?;
        }
        record_limits(&self.recorder, &inspection.exceeded_limits)?;
        if mode == Mode::Enforce && matches!(inspection.verdict, Verdict::Rewrite(_)) {
            record_limits(&self.recorder, &inspection.result_size.exceeded_limits)?;
            record_limits(
                &self.recorder,
                &self.stored_results.store(
                    context,
                    std::mem::take(&mut inspection.result_size.remainders),
                ),
            )?;
        }
        // An agent's message updates the session memory only if it is forwarded.
        let is_forwarded =
            mode == Mode::Observe || !matches!(inspection.verdict, Verdict::Block(_));
        if direction == Direction::Inbound || is_forwarded {
            if matches!(inspection.verdict, Verdict::Ask(_)) {
                inspection.session_update.flow.clear_agent_pieces();
            }
            record_limits(
                &self.recorder,
                &route
                    .session
                    .remember(direction, std::mem::take(&mut inspection.session_update)),
            )?;
        }
        Ok((
            Judgement {
                inspection,
                mode,
                audit,
                is_stored,
            },
            pending_write,
        ))
    }
}

impl Judgement {
    /// Reports whether no part of it is refused.
    pub(super) fn is_forwarded(&self) -> bool {
        self.mode == Mode::Observe || !matches!(self.inspection.verdict, Verdict::Block(_))
    }

    /// Returns the outcome for a message from an agent.
    ///
    /// # Errors
    /// Fails if the verdict is to rewrite the message, which is never done: a changed argument
    /// would be a call that the agent did not make.
    pub(super) fn outbound(&self, message: &Message) -> Result<OutboundOutcome<'_>, CallError> {
        let refusals = match (&self.inspection.verdict, self.mode) {
            (_, Mode::Observe) | (Verdict::Pass, _) => return Ok(OutboundOutcome::Pass),
            (Verdict::Block(refusals), _) => refusals,
            (Verdict::Ask(questions), _) => match questions.as_slice() {
                [question] if message.single().is_some_and(Envelope::is_request) => {
                    return Ok(OutboundOutcome::Ask(question));
                }
                questions => &questions
                    .iter()
                    .map(|question| approval_refusal(question, message))
                    .collect::<Vec<_>>(),
            },
            (Verdict::Rewrite(_), _) => {
                return Err(CallError::BadReply(
                    "rewriting an outbound message is not supported",
                ));
            }
        };
        let reason_of = |item| {
            refusals
                .iter()
                .find(|refusal| refusal.item == item)
                .map(|refusal| self.reason(refusal))
        };
        let reasons: Vec<Option<answer::RefusalReason>> =
            (0..message.envelopes().len()).map(reason_of).collect();
        let mut to_server = Vec::new();
        for (envelope, reason) in message.envelopes().iter().zip(&reasons) {
            if let (true, Some(id), Some(reason)) =
                (envelope.is_answer(), message.id(envelope), reason)
            {
                let text = format!("The agent's answer was withheld (rule `{}`).", reason.rule);
                to_server.push(answer::error(Some(id), answer::REFUSED, &text, None));
            }
        }
        Ok(OutboundOutcome::Refused(RefusedMessage {
            reasons,
            to_server,
        }))
    }

    /// Returns the outcome for a message from a server.
    ///
    /// # Errors
    /// Fails if the edits cannot be applied.
    pub(super) fn carry_out(
        &self,
        message: &Message,
        context: &Context,
    ) -> Result<Delivery, CallError> {
        let deliver = |outcome| {
            Ok(Delivery {
                outcome,
                to_server: Vec::new(),
            })
        };
        let refusals = match (&self.inspection.verdict, self.mode) {
            (_, Mode::Observe) | (Verdict::Pass, _) => return deliver(Outcome::Verbatim),
            (Verdict::Rewrite(edits), _) => {
                let mut edits = edits.clone();
                if self.is_stored {
                    evidence::add_stored_note(&mut edits, message, self.audit);
                }
                let new = splice(message.bytes(), edits)
                    .ok_or(CallError::BadReply("its edits overlap"))?;
                return deliver(Outcome::Replaced(new));
            }
            (Verdict::Ask(_), _) => {
                return Err(CallError::BadReply(
                    "asking about an inbound message is not supported",
                ));
            }
            (Verdict::Block(refusals), _) => refusals,
        };
        let mut messages = Vec::new();
        let mut to_server = Vec::new();
        for (item, envelope) in message.envelopes().iter().enumerate() {
            let Some(refusal) = refusals
                .iter()
                .find(|refusal| refusal.item == item)
                .or_else(|| self.batch_refusal(item, refusals))
            else {
                messages.push(message.value(envelope).raw().to_owned());
                continue;
            };
            let reason = self.reason(refusal);
            messages.extend(answer::withheld_answer(context, message, envelope, &reason));
            if let (true, Some(id)) = (envelope.is_request(), message.id(envelope)) {
                let text = format!(
                    "The question was withheld from the agent (rule `{}`).",
                    reason.rule
                );
                to_server.push(answer::error(Some(id), answer::REFUSED, &text, None));
            }
        }
        let outcome = match (messages.pop(), message.is_batch()) {
            (None, _) => Outcome::Dropped,
            (Some(one), false) => Outcome::Replaced(one.into()),
            (Some(last), true) => {
                messages.push(last);
                Outcome::Replaced(format!("[{}]", messages.join(",")).into())
            }
        };
        Ok(Delivery { outcome, to_server })
    }

    /// Returns the refusal for a message of a batch that would have been edited: it is refused
    /// together with the refused one, since a verdict that blocks has no edits.
    fn batch_refusal<'r>(&self, item: usize, refusals: &'r [Refusal]) -> Option<&'r Refusal> {
        let is_edited = |finding: &crate::inspect::Finding| {
            finding.item == item && finding.action > Action::Log
        };
        refusals
            .first()
            .filter(|_| self.inspection.findings.iter().any(is_edited))
    }

    /// Returns the text of a refusal, as the agent reads it.
    fn reason(&self, refusal: &Refusal) -> answer::RefusalReason {
        let (
            Refusal {
                rule, title, why, ..
            },
            audit,
        ) = (refusal, self.audit);
        let note = if self.is_stored {
            format!("; {}", evidence::STORED_NOTE)
        } else {
            String::new()
        };
        let text =
            format!("Blocked by lychgate: {title}. {why} (rule `{rule}`, audit {audit}{note})");
        answer::RefusalReason {
            text,
            rule: rule.to_string(),
            audit,
        }
    }
}

/// Records limits that were reached while a message was judged.
///
/// # Errors
/// Fails if an event cannot be recorded and must be.
pub(super) fn record_limits(recorder: &Recorder, names: &[&'static str]) -> Result<(), CallError> {
    names.iter().try_for_each(|name| {
        recorder
            .record(Event::Limit { name })
            .map_err(CallError::Audit)
    })
}

/// Returns the refusal for a call that cannot be put up for approval: approval is requested for one
/// call at a time.
fn approval_refusal(question: &Question, message: &Message) -> Refusal {
    let Question {
        item, title, why, ..
    } = question.clone();
    let advice = if message.is_batch() {
        "It requires approval: send it on its own, not in a batch."
    } else {
        "It requires approval, which is available only for requests."
    };
    Refusal {
        item,
        rule: question.rule().clone(),
        title,
        why: format!("{why} {advice}"),
    }
}

#[cfg(test)]
mod tests;
