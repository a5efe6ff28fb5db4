//! Judges the messages of a server, frame by frame.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::StatusCode;

use super::Gate;
use super::evidence;
use super::judge::{Delivery, Outcome, Subject, record_limits};
use super::list_changed::StreamPurpose;
use super::route::{OpenCall, Route};
use crate::inspect::{Mode, TextVerdict};
use crate::message::{Direction, Message};
use crate::protocol::{
    AuditId, Call, CallError, CallKind, Context, Frame, Frames, Framing, Payload, Reply,
};
use crate::record::Event;

impl Gate {
    /// Returns the reply with every frame judged.
    pub(super) async fn judge_reply(self: &Arc<Self>, reply: Reply, open: Arc<OpenCall>) -> Reply {
        let framing = reply.framing;
        let frames = match reply.frames {
            Frames::Body(None) => Frames::empty(),
            Frames::Body(Some(frame)) => {
                Frames::Body(self.judge_arrival(frame, framing, &open).await.transpose())
            }
            Frames::Stream(_) => self.judge_stream(reply.frames, framing, reply.status, open),
        };
        Reply { frames, ..reply }
    }

    fn judge_stream(
        self: &Arc<Self>,
        frames: Frames,
        framing: Framing,
        status: StatusCode,
        open: Arc<OpenCall>,
    ) -> Frames {
        let announces =
            framing == Framing::Events && status.is_success() && open.stream_purpose.is_some();
        let call = open.clone();
        let judged = stream::unfold(
            Some((frames, self.clone(), open)),
            move |state| async move {
                let (mut frames, gate, open) = state?;
                loop {
                    let frame = frames.next().await?;
                    // Boxed: a stream that waits for a frame reserves no space for judging it.
                    match Box::pin(gate.judge_arrival(frame, framing, &open)).await {
                        // No part of the frame is passed on.
                        Ok(None) => {}
                        Ok(Some(frame)) => return Some((Ok(frame), Some((frames, gate, open)))),
                        // Nothing follows a failure.
                        Err(error) => return Some((Err(error), None)),
                    }
                }
            },
        );
        let judged = Frames::stream(judged);
        if !announces {
            return judged;
        }
        let upstream = call.context().upstream.clone();
        self.list_changes
            .insert_notifications(judged, upstream, move |kind| match &call.stream_purpose {
                Some(StreamPurpose::Session) => {
                    call.route.upstream.declared_lists.notification(kind)
                }
                Some(StreamPurpose::Subscription(subscription)) => subscription.notification(kind),
                None => None,
            })
    }

    /// Judges the next frame of a reply, and records failures.
    async fn judge_arrival(
        self: &Arc<Self>,
        frame: Result<Frame, CallError>,
        framing: Framing,
        open: &OpenCall,
    ) -> Result<Option<Frame>, CallError> {
        let result = match frame {
            Ok(frame) => self.judge_frame(frame, framing, open).await,
            Err(error) => Err(self.inspect_output(error, open).await),
        };
        if let Err(error) = &result {
            self.record_failure(open.context(), error);
        }
        result
    }

    /// Judges one frame of a reply: `None` if no part of it is passed on.
    ///
    /// # Errors
    /// The reason why it is not passed on; not yet recorded.
    pub(super) async fn judge_frame(
        self: &Arc<Self>,
        frame: Frame,
        framing: Framing,
        open: &OpenCall,
    ) -> Result<Option<Frame>, CallError> {
        let outcome = match &frame.payload {
            Payload::Empty | Payload::Inspected(_) => Outcome::Verbatim,
            Payload::Text(text) if text.is_empty() => Outcome::Verbatim,
            Payload::Text(text) => self.judge_text(text, open).await?,
            Payload::Message(original) => {
                let context = &*with_answered_requests(original, open);
                if context.is_stray(original) {
                    return match framing {
                        Framing::Events => {
                            self.record_failure(context, &CallError::STRAY_ANSWER);
                            Ok(Some(Frame {
                                payload: Payload::Empty,
                                fields: frame.fields,
                            }))
                        }
                        _ => Err(CallError::STRAY_ANSWER),
                    };
                }
                let Route {
                    upstream, session, ..
                } = &open.route;
                let policy = open.policy()?;
                let mode = policy.mode;
                let mut served = self
                    .serve_list(&policy, original, context, upstream)
                    .await?;
                let message = served.message(original);
                upstream
                    .param_headers
                    .observe(served.pinned(original), context);
                let subject = Subject::inbound(policy, message, context, open);
                let judgement = self.judge(&subject, &open.route, Some(open)).await?;
                session.close_answered(context.era, message);
                if let Some(approval) = &open.approval {
                    self.approvals.allow_next_round(approval, message);
                }
                let Delivery { outcome, to_server } = judgement.carry_out(message, context)?;
                // The tools are learned from the server's list with pinned definitions: calls are
                // checked against those.
                if outcome != Outcome::Dropped
                    && upstream.tools.record_list(served.pinned(original), context)
                {
                    self.record(Event::Limit {
                        name: "tool_definitions",
                    });
                }
                if judgement.is_forwarded()
                    && let Some(comparison) = served.take_comparison()
                {
                    self.pin_definitions(comparison, mode, context).await?;
                }
                upstream.declared_lists.observe(original, context);
                if let Some(StreamPurpose::Subscription(subscription)) = &open.stream_purpose {
                    subscription.observe(original);
                }
                // A request that does not reach the agent is answered with an error.
                for error in to_server {
                    self.send_to_server(&open.call, &open.route, error);
                }
                match (outcome, served.into_message()) {
                    (Outcome::Verbatim, Some(replacement)) => {
                        Outcome::Replaced(replacement.bytes().clone())
                    }
                    (outcome, _) => outcome,
                }
            }
        };
        // An event keeps its id and its other fields, so that a client can still resume after it.
        let payload = match (outcome, frame.payload) {
            (Outcome::Verbatim, payload) => payload,
            (Outcome::Replaced(new), Payload::Text(_)) => Payload::Text(new),
            (Outcome::Replaced(new), _) => Payload::Inspected(new),
            (Outcome::Dropped, _) if framing == Framing::Events => Payload::Empty,
            (Outcome::Dropped, _) => return Ok(None),
        };
        Ok(Some(Frame {
            payload,
            fields: frame.fields,
        }))
    }

    /// Sends a server a message of the gateway's own: that a request did not reach the agent, or
    /// that an answer was withheld.
    pub(super) fn send_to_server(self: &Arc<Self>, call: &Call, route: &Route, message: String) {
        let Ok(message) = Message::parse(message.into(), &self.limits.read) else {
            return;
        };
        let call = Call {
            kind: CallKind::Send(message),
            headers: call.headers.clone(),
            context: call.context.clone(),
        };
        let gate = self.clone();
        let route = route.clone();
        tokio::spawn(async move {
            let Ok(_places) = route.session.acquire_slots(false, &route.upstream.slots) else {
                return;
            };
            match route.upstream.call(&call).await {
                Ok(mut reply) => while reply.frames.next().await.is_some() {},
                Err(error) => gate.record_failure(&call.context, &error),
            }
        });
    }

    /// Judges the output of a server's process that a fault contains. An agent reads it only if it
    /// passes unchanged.
    pub(super) async fn inspect_output(&self, error: CallError, open: &OpenCall) -> CallError {
        let CallError::Process(mut fault) = error else {
            return error;
        };
        if !fault.output.is_empty() {
            let text = Bytes::from(fault.output.to_string());
            fault.inspected = matches!(self.judge_text(&text, open).await, Ok(Outcome::Verbatim));
        }
        CallError::Process(fault)
    }

    /// Judges a body that is not JSON-RPC as one text: it passes whole, edited, or not at all.
    async fn judge_text(&self, bytes: &Bytes, open: &OpenCall) -> Result<Outcome, CallError> {
        let text =
            std::str::from_utf8(bytes).map_err(|_| CallError::BadReply("its text is not UTF-8"))?;
        let policy = open.policy()?;
        let context = open.context();
        let audit = AuditId::generate();
        let mode = policy.mode;
        let mut inspection = self.inspect_text(&policy, bytes, audit, open).await?;
        let rules = policy.rules_digest(Direction::Inbound);
        let verdict = match &inspection.verdict {
            TextVerdict::Pass => "pass",
            TextVerdict::Rewrite(_) => "rewrite",
            TextVerdict::Block(_) => "block",
        };
        let findings = &inspection.findings[..];
        let coverage = &inspection.coverage;
        let is_stored = self
            .store_text_in_quarantine(text, &policy, context, audit, &inspection.findings)
            .await;
        let event = Event::JudgedText {
            audit,
            context,
            bytes: text.len(),
            verdict,
            findings,
            coverage,
            mode,
            rules,
        };
        self.recorder.record(event).map_err(CallError::Audit)?;
        let update = std::mem::take(&mut inspection.session_update);
        record_limits(
            &self.recorder,
            &open.route.session.remember(Direction::Inbound, update),
        )?;
        Ok(match (mode, inspection.verdict) {
            (Mode::Observe, _) | (_, TextVerdict::Pass) => Outcome::Verbatim,
            (_, TextVerdict::Rewrite(new)) if is_stored => {
                Outcome::Replaced(evidence::with_stored_note(&new, audit).into())
            }
            (_, TextVerdict::Rewrite(new)) => Outcome::Replaced(new.into()),
            (_, TextVerdict::Block(_)) => Outcome::Dropped,
        })
    }
}

/// Returns the context of a call with the requests that a message answers. Clients match an answer
/// by its id alone, on whichever stream it arrives.
fn with_answered_requests<'c>(message: &Message, open: &'c OpenCall) -> Cow<'c, Context> {
    let context = open.context();
    if !context.is_stray(message) {
        return Cow::Borrowed(context);
    }
    let requests = open
        .route
        .session
        .open_requests(context.era)
        .iter()
        .chain(&*context.requests)
        .cloned()
        .collect();
    Cow::Owned(Context {
        requests,
        ..context.clone()
    })
}
