//! The route of a call, determined once: its upstream, its policy, and its session.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use super::list_changed::StreamPurpose;
use super::session::{Permit, Session};
use super::upstreams::UpstreamState;
use crate::approval::{ApprovalRequest, CallDigest};
use crate::inspect::{Policy, StreamTail};
use crate::message::Message;
use crate::protocol::{Call, CallError, Context};

/// The upstream, policy and session of a call. All of it is from one moment: a reload does not
/// affect a call in flight.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) upstream: Arc<UpstreamState>,
    pub(super) policy: Arc<Policy>,
    pub(super) session: Arc<Session>,
}

/// A call that was sent, until its reply has ended.
pub(super) struct OpenCall {
    pub(super) call: Box<Call>,
    pub(super) route: Route,
    pub(super) started: Instant,
    /// The approval request for the call, if there was one.
    pub(super) approval: Option<Box<ApprovalRequest>>,
    /// The stream that the call opens, if it opens one on which changes are announced.
    pub(super) stream_purpose: Option<StreamPurpose>,
    /// The last texts of the reply so far.
    tail: Mutex<StreamTail>,
    /// The concurrency slots of the call, held until the reply has ended or is no longer needed.
    permit: Mutex<Permit>,
}

impl OpenCall {
    pub(super) fn new(
        call: Box<Call>,
        route: Route,
        permit: Permit,
        approval: Option<Box<ApprovalRequest>>,
    ) -> Self {
        let stream_purpose = StreamPurpose::for_call(&call);
        let tail = Mutex::default();
        let permit = Mutex::new(permit);
        Self {
            call,
            route,
            started: Instant::now(),
            approval,
            stream_purpose,
            tail,
            permit,
        }
    }

    pub(super) fn context(&self) -> &Context {
        &self.call.context
    }

    /// Returns the message that was sent, if there was one.
    pub(super) fn sent_message(&self) -> Option<&Message> {
        self.call.kind.message()
    }

    /// Returns the policy for a message of the reply: that of the call, or for a stream without a
    /// call of its own the active one.
    ///
    /// # Errors
    /// Fails if the upstream no longer has a policy.
    pub(super) fn policy(&self) -> Result<Arc<Policy>, CallError> {
        if self.call.listens() {
            self.route.upstream.policy()
        } else {
            Ok(self.route.policy.clone())
        }
    }

    /// Returns the digest of the call, if it is a single request.
    pub(super) fn digest(&self) -> Option<CallDigest> {
        let message = self.sent_message()?;
        let envelope = message.single().filter(|envelope| envelope.is_request())?;
        Some(CallDigest::new(self.context(), message, envelope))
    }

    /// Returns the last texts that the agent received on the stream of the reply.
    pub(super) fn tail(&self) -> MutexGuard<'_, StreamTail> {
        let tail = self
            .route
            .upstream
            .open_calls
            .as_ref()
            .map_or(&self.tail, |open| &open.tail);
        tail.lock()
    }

    /// Releases the slots of the call: its answer is no longer needed.
    pub(super) fn release(&self) {
        drop(std::mem::take(&mut *self.permit.lock()));
    }
}
