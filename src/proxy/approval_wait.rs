//! Calls that wait for approval, and the reply on which they wait.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use http::header::{ACCEPT, CACHE_CONTROL, HeaderValue};
use http::{HeaderMap, StatusCode};

use super::Gate;
use super::route::Route;
use super::session::{Permit, Session};
use crate::approval::{
    ApprovalRequest, Approvals, AskMethod, AskOutcome, OpenQuestion, PROGRESS_INTERVAL,
    RestoredRequest, WaitOutcome, declared_modes, progress_notification,
};
use crate::inspect::Question;
use crate::message::Message;
use crate::protocol::sse::Fields;
use crate::protocol::{
    AuditId, Call, CallError, CallKind, Era, Frame, Frames, Framing, Payload, Reply, answer,
};

const NOT_RPC: CallError = CallError::BadReply("it is not JSON-RPC");

/// The result of an approval request for a call.
pub(super) enum AskResult {
    /// The call proceeds, with the approval request if there was one.
    Send(Option<Box<ApprovalRequest>>),
    /// The call ends with this reply.
    Answer(Box<Reply>),
    /// The reply begins with a question.
    Stream(Box<OpenQuestion>),
}

/// The stage of a reply that began with a question.
enum Stage {
    Asking(Box<PendingCall>),
    Sending(Frames),
}

struct PendingCall {
    gate: Arc<Gate>,
    call: Box<Call>,
    route: Route,
    message: Message,
    question: Box<OpenQuestion>,
    permit: Permit,
    /// Whether the question has been sent.
    question_sent: bool,
    /// Number of progress messages sent to the client while its call waits.
    progress_count: u32,
}

impl Gate {
    /// Requests approval for a call.
    ///
    /// # Errors
    /// Fails if there are too many approval requests, or if they cannot be recorded.
    pub(super) async fn request_approval(
        &self,
        question: &Question,
        audit: AuditId,
        call: &Call,
        message: &Message,
        route: &Route,
        restored: Option<&RestoredRequest>,
    ) -> Result<AskResult, CallError> {
        let context = &call.context;
        let method = if question.through_agent {
            ask_method(&route.session, call, message)
        } else {
            AskMethod::None
        };
        let outcome = self
            .approvals
            .ask(question, audit, context, message, method, restored)?;
        let refuse = |reason| answer::refuse(context, message, &[Some(reason)]);
        Ok(match outcome {
            AskOutcome::Go(matter) => AskResult::Send(Some(matter)),
            AskOutcome::Refused(reason) => AskResult::Answer(Box::new(refuse(reason))),
            AskOutcome::Input(body) => {
                AskResult::Answer(Box::new(answer::body_reply(StatusCode::OK, body)))
            }
            // A pipe has one reader: a call that waits must not block the others.
            AskOutcome::Wait(open_question)
                if method == AskMethod::Elicit || context.wire.is_pipe() =>
            {
                AskResult::Stream(open_question)
            }
            AskOutcome::Wait(mut open_question) => {
                match open_question
                    .settle(&self.approvals, self.approvals.wait())
                    .await
                {
                    WaitOutcome::Go => AskResult::Send(Some(Box::new(open_question.request))),
                    WaitOutcome::Refused(reason) | WaitOutcome::Open(reason) => {
                        AskResult::Answer(Box::new(refuse(reason)))
                    }
                    WaitOutcome::Cancelled => AskResult::Answer(Box::new(answer::failure_reply(
                        &CallError::Withdrawn,
                        Some(context),
                        Some(message),
                    ))),
                }
            }
        })
    }

    /// Returns a reply that begins with the question, and continues with the server's reply once
    /// the call is approved.
    pub(super) fn ask_on_stream(
        self: &Arc<Self>,
        call: Box<Call>,
        route: Route,
        question: Box<OpenQuestion>,
        permit: Permit,
    ) -> Reply {
        let CallKind::Send(message) = call.kind.clone() else {
            return answer::empty_reply(StatusCode::ACCEPTED);
        };
        // Only clients up to 2025-11-25 accept requests from a server.
        let question_sent = call.context.era == Era::Modern;
        let pending_call = PendingCall {
            gate: self.clone(),
            call,
            route,
            message,
            question,
            permit,
            question_sent,
            progress_count: 0,
        };
        let frames = stream::unfold(
            Some(Stage::Asking(Box::new(pending_call))),
            |stage| async move {
                match stage? {
                    Stage::Asking(pending_call) => pending_call.next().await,
                    Stage::Sending(mut frames) => {
                        let frame = frames.next().await?;
                        Some((frame, Some(Stage::Sending(frames))))
                    }
                }
            },
        );
        let mut headers = HeaderMap::new();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        Reply {
            status: StatusCode::OK,
            headers,
            framing: Framing::Events,
            frames: Frames::stream(frames),
        }
    }
}

/// Returns the method by which the agent of a call can ask its user.
fn ask_method(session: &Session, call: &Call, message: &Message) -> AskMethod {
    let accepts_events = || {
        let accepts = call
            .headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok());
        accepts
            .flat_map(|value| value.split(','))
            .any(|kind| kind.trim_start().starts_with("text/event-stream"))
    };
    match call.context.era {
        Era::Legacy if session.state().elicitation.form && accepts_events() => AskMethod::Elicit,
        Era::Modern
            if Approvals::accepts_input(message) && declared_modes(message, Era::Modern).form =>
        {
            AskMethod::Input
        }
        _ => AskMethod::None,
    }
}

impl PendingCall {
    async fn next(mut self: Box<Self>) -> Option<(Result<Frame, CallError>, Option<Stage>)> {
        if !self.question_sent {
            self.question_sent = true;
            let question = self.question.question();
            return Some((Ok(Frame::inspected(question)), Some(Stage::Asking(self))));
        }
        match self
            .question
            .settle(&self.gate.approvals, PROGRESS_INTERVAL)
            .await
        {
            WaitOutcome::Open(_) => {
                self.progress_count += 1;
                let comment = || Frame {
                    payload: Payload::Empty,
                    fields: Fields::default(),
                };
                let progress = progress_notification(&self.message, self.progress_count)
                    .map_or_else(comment, Frame::inspected);
                Some((Ok(progress), Some(Stage::Asking(self))))
            }
            WaitOutcome::Refused(reason) => {
                let refusals =
                    answer::refusals(&self.call.context, &self.message, &[Some(reason)])?;
                Some((Ok(Frame::inspected(refusals)), None))
            }
            WaitOutcome::Cancelled => None,
            WaitOutcome::Go => {
                let mut frames = self.send().await;
                let frame = frames.next().await?;
                Some((frame, Some(Stage::Sending(frames))))
            }
        }
    }

    /// Sends the call, and returns the server's reply as events.
    async fn send(self: Box<Self>) -> Frames {
        let Self {
            gate,
            call,
            route,
            message,
            permit,
            ..
        } = *self;
        let context = call.context.clone();
        let result = gate.send(call, route, permit, None).await;
        let failure_frames =
            |error: &CallError| answer::failure_reply(error, Some(&context), Some(&message)).frames;
        let reply = match result {
            Ok(reply) => reply,
            Err(error) => {
                gate.record_failure(&context, &error);
                return failure_frames(&error);
            }
        };
        match reply.framing {
            Framing::Events => reply.frames,
            // The message was sent, and its answer arrives on the stream of all answers.
            Framing::Empty if context.wire.is_pipe() => reply.frames,
            Framing::Body => Frames::stream(reply.frames.map(move |frame| match frame {
                Ok(Frame {
                    payload: Payload::Text(_),
                    ..
                }) => {
                    gate.record_failure(&context, &NOT_RPC);
                    Err(NOT_RPC)
                }
                frame => frame.map(|frame| Frame {
                    fields: Fields::message(),
                    ..frame
                }),
            })),
            Framing::Empty => {
                gate.record_failure(&context, &NOT_RPC);
                failure_frames(&NOT_RPC)
            }
        }
    }
}
