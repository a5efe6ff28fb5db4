//! Judging what a server says, frame by frame.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use futures_util::{StreamExt, future};
use http::{HeaderMap, StatusCode};

use super::Gate;
use super::approve::{CallDigest, Matter};
use super::changed::Listens;
use super::judge::{Carried, Outcome, limits_hit};
use super::keep;
use super::slots::Permit;
use super::upstreams::UpstreamState;
use crate::inspect::{Heard, Mode, TextVerdict};
use crate::message::{Direction, Message};
use crate::protocol::{Ask, AuditId, Call, CallError, Context, Frame, Frames, Framing, Payload, Reply};
use crate::record::Event;

/// A call whose reply is on its way.
pub(super) struct Waiting {
    pub(super) context: Context,
    /// The headers that went with it, for whatever else the same peer is told.
    pub(super) headers: HeaderMap,
    /// What was sent, if it was a message.
    pub(super) sent: Option<Message>,
    pub(super) started: Instant,
    /// What a person was asked about the call, if it was.
    pub(super) approved: Option<Box<Matter>>,
    /// What it opens a stream for, if it does.
    pub(super) listens: Option<Listens>,
    /// The last texts of the reply so far.
    pub(super) heard: Arc<Mutex<Heard>>,
    /// Where it was sent, which a reload may have replaced since.
    pub(super) upstream: Arc<UpstreamState>,
    /// Its place among the calls in flight, held until the reply has ended or is not wanted any more.
    pub(super) permit: Mutex<Permit>,
}

impl Waiting {
    /// What it asks for, if it is one request.
    pub(super) fn call(&self) -> Option<CallDigest> {
        let message = self.sent.as_ref()?;
        let envelope = message.single().filter(|envelope| envelope.is_request())?;
        Some(CallDigest::of(&self.context, message, envelope))
    }

    /// What the agent got last of the reply.
    pub(super) fn heard(&self) -> Heard {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives its place back: its answer is not wanted any more.
    pub(super) fn release(&self) {
        drop(std::mem::take(&mut *self.permit.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    /// Notes what it gets now.
    pub(super) fn hears(&self, heard: Heard) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = heard;
    }
}

impl Gate {
    /// The reply with every frame judged.
    pub(super) async fn judge_reply(self: &Arc<Self>, reply: Reply, waiting: Arc<Waiting>) -> Reply {
        let framing = reply.framing;
        let frames = match reply.frames {
            Frames::Body(None) => Frames::empty(),
            Frames::Body(Some(frame)) => Frames::Body(self.judge_arrival(frame, framing, &waiting).await.transpose()),
            Frames::Stream(_) => self.judge_stream(reply.frames, framing, reply.status, waiting),
        };
        Reply { frames, ..reply }
    }

    fn judge_stream(self: &Arc<Self>, frames: Frames, framing: Framing, status: StatusCode, waiting: Arc<Waiting>) -> Frames {
        let (gate, told_by) = (self.clone(), waiting.clone());
        let judged = frames.then(move |frame| {
            let (gate, waiting) = (gate.clone(), waiting.clone());
            async move { gate.judge_arrival(frame, framing, &waiting).await }
        });
        // A frame that is withheld altogether vanishes; after a failure nothing follows.
        let frames = judged.filter_map(|judged| future::ready(judged.transpose())).scan(false, |ended, frame| {
            let before = std::mem::replace(ended, frame.is_err());
            future::ready((!before).then_some(frame))
        });
        let frames = Frames::stream(frames);
        let streams = framing == Framing::Events && status.is_success();
        match streams && told_by.listens.is_some() {
            true => {
                let (declared, upstream) = (told_by.upstream.declared.clone(), told_by.context.upstream.clone());
                self.changed.told_on(frames, upstream, move |kind| match &told_by.listens {
                    Some(Listens::Session) => declared.told(kind),
                    Some(Listens::To(subscription)) => subscription.told(kind),
                    None => None,
                })
            }
            false => frames,
        }
    }

    /// Judges what comes next of a reply, and tells of what fails.
    async fn judge_arrival(
        self: &Arc<Self>,
        frame: Result<Frame, CallError>,
        framing: Framing,
        waiting: &Waiting,
    ) -> Result<Option<Frame>, CallError> {
        let judged = match frame {
            Ok(frame) => self.judge_frame(frame, framing, waiting).await,
            Err(error) => Err(self.inspect_output(error, &waiting.context).await),
        };
        if let Err(error) = &judged {
            self.tell_failed(&waiting.context, error);
        }
        judged
    }

    /// Judges one frame of a reply: `None` if nothing of it goes on.
    ///
    /// # Errors
    /// What keeps it from being passed on; the recorder has not been told.
    pub(super) async fn judge_frame(
        self: &Arc<Self>,
        frame: Frame,
        framing: Framing,
        waiting: &Waiting,
    ) -> Result<Option<Frame>, CallError> {
        let outcome = match &frame.payload {
            Payload::Empty | Payload::Inspected(_) => Outcome::Same,
            Payload::Text(text) if text.is_empty() => Outcome::Same,
            Payload::Text(text) => self.judge_text(text, &waiting.context).await?,
            Payload::Message(told) => {
                let context = &*self.with_answered(told, &waiting.context);
                if context.is_stray(told) {
                    return match framing {
                        Framing::Events => {
                            self.tell_failed(context, &CallError::STRAY_ANSWER);
                            Ok(Some(Frame { payload: Payload::Empty, fields: frame.fields }))
                        }
                        _ => Err(CallError::STRAY_ANSWER),
                    };
                }
                let behind = &waiting.upstream;
                let policy = self.policy_of(&waiting.context)?;
                let pins = self.pins.of(&waiting.context.upstream.0);
                let mut shown = self.shown(&policy, told, context, pins).await?;
                let message = shown.message(told);
                behind.mirrors.learn(shown.said(told), context);
                let judged = self.judge(Direction::Inbound, message, context, Some(waiting)).await?;
                self.sessions.answered(context, message);
                if let Some(approved) = &waiting.approved {
                    self.approvals.goes_on(approved, message);
                }
                let Carried { outcome, to_server } = judged.carry_out(message, context)?;
                // What is learnt is what the server said and what is pinned: it is what its calls are held to.
                if outcome != Outcome::Nothing && behind.tools.learn(shown.said(told), context) {
                    self.tell(Event::Limit { name: "tool_definitions" });
                }
                if judged.goes_on()
                    && let Some(listed) = shown.listed()
                {
                    self.keep(listed, policy.mode, context).await?;
                }
                behind.declared.learn(told, context);
                if let Some(Listens::To(subscription)) = &waiting.listens {
                    subscription.learn(told);
                }
                // A question that is not put is answered to whoever asked it.
                for error in to_server {
                    self.tell_server(context, &waiting.headers, error);
                }
                match (outcome, shown.other()) {
                    (Outcome::Same, Some(shown)) => Outcome::Other(shown.bytes().clone()),
                    (outcome, _) => outcome,
                }
            }
        };
        // An event keeps its id and its other fields, so that a client can still resume after it.
        let payload = match (outcome, frame.payload) {
            (Outcome::Same, payload) => payload,
            (Outcome::Other(new), Payload::Text(_)) => Payload::Text(new),
            (Outcome::Other(new), _) => Payload::Inspected(new),
            (Outcome::Nothing, _) if framing == Framing::Events => Payload::Empty,
            (Outcome::Nothing, _) => return Ok(None),
        };
        Ok(Some(Frame { payload, fields: frame.fields }))
    }

    /// The context with the requests that a message answers. Clients match an answer by its id alone, on whichever stream
    /// it comes.
    fn with_answered<'c>(&self, message: &Message, context: &'c Context) -> Cow<'c, Context> {
        if !context.is_stray(message) {
            return Cow::Borrowed(context);
        }
        let asked = self.sessions.asked(context).iter().chain(&*context.asked).cloned().collect();
        Cow::Owned(Context { asked, ..context.clone() })
    }

    /// Tells a server something of the gateway's own: that a question was not put, or an answer not given.
    pub(super) fn tell_server(self: &Arc<Self>, context: &Context, headers: &HeaderMap, message: String) {
        let Ok(message) = Message::parse(message.into(), &self.limits.read) else { return };
        let call = Call { ask: Ask::Send(message), headers: headers.clone(), context: context.clone() };
        let gate = self.clone();
        tokio::spawn(async move {
            let Some(upstream) = gate.upstreams.get(&call.context.upstream) else { return };
            let Ok(_permit) = gate.slots.take(&call, &upstream.places) else { return };
            let context = call.context.clone();
            match upstream.call(call).await {
                Ok(mut reply) => while reply.frames.next().await.is_some() {},
                Err(error) => gate.tell_failed(&context, &error),
            }
        });
    }

    /// Judges what a server's process printed, which its fault names. An agent reads it only where it passes unchanged.
    pub(super) async fn inspect_output(&self, error: CallError, context: &Context) -> CallError {
        let CallError::Process(mut fault) = error else { return error };
        if !fault.output.is_empty() {
            let text = Bytes::from(fault.output.to_string());
            fault.inspected = matches!(self.judge_text(&text, context).await, Ok(Outcome::Same));
        }
        CallError::Process(fault)
    }

    /// A body that is not JSON-RPC is judged as one text: it passes whole, edited, or not at all.
    async fn judge_text(&self, bytes: &Bytes, context: &Context) -> Result<Outcome, CallError> {
        let text = std::str::from_utf8(bytes).map_err(|_| CallError::BadReply("its text is not UTF-8"))?;
        let policy = self.policy_of(context)?;
        let (audit, mode) = (AuditId::make(), policy.mode);
        let mut judged = self.inspect_text(&policy, bytes, audit, context).await?;
        let rules = policy.rules_digest(Direction::Inbound);
        let verdict = match &judged.verdict {
            TextVerdict::Pass => "pass",
            TextVerdict::Rewrite(_) => "rewrite",
            TextVerdict::Block(_) => "block",
        };
        let (findings, coverage) = (&judged.findings[..], &judged.coverage);
        let kept = self.quarantines_text(text, &policy, context, audit, &judged.findings).await;
        let event = Event::JudgedText { audit, context, bytes: text.len(), verdict, findings, coverage, mode, rules };
        self.recorder.tell(event).map_err(CallError::Audit)?;
        let learnt = std::mem::take(&mut judged.learnt);
        limits_hit(&self.recorder, &self.memories.learn(context, Direction::Inbound, learnt))?;
        Ok(match (mode, judged.verdict) {
            (Mode::Observe, _) | (_, TextVerdict::Pass) => Outcome::Same,
            (_, TextVerdict::Rewrite(new)) if kept => Outcome::Other(keep::with_kept(&new, audit).into()),
            (_, TextVerdict::Rewrite(new)) => Outcome::Other(new.into()),
            (_, TextVerdict::Block(_)) => Outcome::Nothing,
        })
    }
}
