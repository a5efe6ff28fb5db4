//! The path of a call, in the order of its checks.

use std::sync::Arc;

use http::StatusCode;

use super::Gate;
use super::approval_wait::AskResult;
use super::route::{OpenCall, Route};
use super::session::Permit;
use super::upstreams::UpstreamState;
use crate::approval::ApprovalRequest;
use crate::message::Message;
use crate::protocol::{Call, CallError, CallKind, Context, Reply, answer, header, headers};

impl Gate {
    /// Carries one call: checks, admits, judges and sends it, and judges the reply.
    ///
    /// # Errors
    /// The error that prevented a reply, which is already recorded; `answer::failed` turns it into
    /// one.
    pub async fn carry(self: &Arc<Self>, mut call: Box<Call>) -> Result<Reply, CallError> {
        call.context.trace = self.recorder.trace_call(&call);
        let context = call.context.clone();
        let result = match &call.kind {
            CallKind::Send(message) => {
                let message = message.clone();
                self.carry_message(call, message).await
            }
            CallKind::Listen | CallKind::Close => self.carry_stream(call).await,
        };
        result.inspect_err(|error| self.record_failure(&context, error))
    }

    /// Carries a POST: a message from the agent.
    async fn carry_message(
        self: &Arc<Self>,
        mut call: Box<Call>,
        message: Message,
    ) -> Result<Reply, CallError> {
        let upstream = self
            .upstreams
            .get(&call.context.upstream)
            .ok_or(CallError::NotOffered)?;
        let refusal = self.access_refusal(&message, &call.context, &upstream)?;
        check_headers(&call, &message, &upstream, refusal.is_none())?;
        let route = self.route(upstream, &mut call.context)?;
        let slots = route
            .session
            .acquire_slots(call.listens(), &route.upstream.slots)?;
        let in_flight = route.session.track_call(&call);
        let tool_permits =
            self.budgets
                .spend(&message, &call.context, &route.session, &route.policy)?;
        let permit = slots.with_guards(tool_permits, in_flight);
        if let Some(refusal) = refusal {
            return Ok(refusal.reply());
        }
        if let Some(reply) = self
            .answer_own_resource(&message, &call.context, &route)
            .await?
        {
            return Ok(reply);
        }
        if self.approvals.take(&message, &call.context)? {
            return Ok(answer::empty_reply(StatusCode::ACCEPTED));
        }
        let restored = self.approvals.restore(&call.context, &message)?;
        let message = restored
            .as_ref()
            .map_or(message, |restored| restored.message.clone());
        let ask_result = self
            .judge_outbound(&message, &call, &route, restored.as_ref())
            .await?;
        call.kind = CallKind::Send(message);
        match ask_result {
            AskResult::Answer(reply) => Ok(*reply),
            AskResult::Stream(question) => Ok(self.ask_on_stream(call, route, question, permit)),
            AskResult::Send(approved) => match self.released_answer(&call, &route).await? {
                Some(reply) => Ok(reply),
                None => self.send(call, route, permit, approved).await,
            },
        }
    }

    /// Carries a GET, which opens the session's stream, or a DELETE, which ends the session.
    async fn carry_stream(self: &Arc<Self>, mut call: Box<Call>) -> Result<Reply, CallError> {
        let upstream = self
            .upstreams
            .get(&call.context.upstream)
            .ok_or(CallError::NotOffered)?;
        let route = self.route(upstream, &mut call.context)?;
        let slots = route
            .session
            .acquire_slots(call.listens(), &route.upstream.slots)?;
        let permit = slots.with_guards(Vec::new(), route.session.track_call(&call));
        self.send(call, route, permit, None).await
    }

    /// Looks up the policy and the session of a call.
    pub(super) fn route(
        &self,
        upstream: Arc<UpstreamState>,
        context: &mut Context,
    ) -> Result<Route, CallError> {
        let policy = upstream.policy()?;
        Ok(Route {
            session: self.sessions.admit(context)?,
            policy,
            upstream,
        })
    }

    /// Sends an admitted call, and judges the reply. `approved` is the approval request that was
    /// granted for it.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut call: Box<Call>,
        route: Route,
        permit: Permit,
        approved: Option<Box<ApprovalRequest>>,
    ) -> Result<Reply, CallError> {
        let era = call.context.era;
        call.context.requests = match &call.kind {
            CallKind::Send(message) => route.session.record_requests(era, message),
            CallKind::Listen | CallKind::Close => route.session.open_requests(era),
        };
        let open_call = Arc::new(OpenCall::new(call, route, permit, approved));
        let upstream = &open_call.route.upstream;
        let context = open_call.context();
        upstream
            .open_calls
            .iter()
            .for_each(|calls| calls.add(&open_call));
        let session = &open_call.route.session;
        let opening = match open_call.call.kind {
            CallKind::Listen => Some(session.start_stream()),
            CallKind::Send(_) => {
                session.wait_for_streams().await;
                None
            }
            CallKind::Close => None,
        };
        let reply = upstream.call(&open_call.call).await;
        drop(opening);
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                upstream
                    .open_calls
                    .iter()
                    .for_each(|calls| calls.remove(&open_call));
                return match self.login_request(&error, &open_call) {
                    Some(reply) => Ok(reply),
                    None => Err(self.inspect_output(error, &open_call).await),
                };
            }
        };
        if matches!(open_call.call.kind, CallKind::Close) && reply.status.is_success() {
            self.sessions.forget(context);
        } else {
            self.sessions.observe(
                &open_call.route.session,
                context,
                open_call.sent_message(),
                &reply,
            );
        }
        Ok(self.judge_reply(reply, open_call).await)
    }
}

/// Checks that headers and body agree. The mapping of a tool's arguments to headers is applied only
/// if the tool `is_there` for the caller, since it reveals the tool's definition.
fn check_headers(
    call: &Call,
    message: &Message,
    upstream: &UpstreamState,
    is_there: bool,
) -> Result<(), CallError> {
    if call.context.wire.is_pipe() {
        // Lines have no headers, and their revision is negotiated between agent and server.
        return Ok(());
    }
    // Only 2025-03-26 has batches; its clients send no version header, or that one.
    if message.is_batch()
        && call
            .headers
            .get(header::VERSION)
            .is_some_and(|version| version != "2025-03-26")
    {
        return Err(CallError::NoBatches);
    }
    let tool = message
        .single()
        .filter(|_| is_there)
        .and_then(|envelope| headers::target_name(message, envelope));
    let mirrors = tool.and_then(|tool| upstream.param_headers.get(&tool));
    headers::check_agreement(&call.headers, message, call.context.era, mirrors.as_deref())
}
