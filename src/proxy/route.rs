//! What is resolved for a call once: where it goes, what it is judged by, whose session it belongs to.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use super::list_changed::Listening;
use super::session::{Permit, Session};
use super::upstreams::UpstreamState;
use crate::approval::{ApprovalRequest, CallDigest};
use crate::inspect::{Heard, Policy};
use crate::message::Message;
use crate::protocol::{Call, CallError, CallKind, Context};

/// Where a call goes, and what it is judged by. All of it is from one moment: a reload changes nothing for a call that is on its
/// way.
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
    /// What a person was asked about the call, if one was.
    pub(super) approved: Option<Box<ApprovalRequest>>,
    /// The stream that the call opens, if it opens one on which changes are announced.
    pub(super) listens: Option<Listening>,
    /// The last texts of the reply so far.
    tail: Mutex<Heard>,
    /// The places of the call, held until the reply has ended or is not wanted any more.
    permit: Mutex<Permit>,
}

impl OpenCall {
    pub(super) fn new(
        call: Box<Call>,
        route: Route,
        permit: Permit,
        approved: Option<Box<ApprovalRequest>>,
    ) -> Self {
        let listens = Listening::of(&call);
        let tail = Mutex::default();
        let permit = Mutex::new(permit);
        Self {
            call,
            route,
            started: Instant::now(),
            approved,
            listens,
            tail,
            permit,
        }
    }

    pub(super) fn context(&self) -> &Context {
        &self.call.context
    }

    /// What was sent, if it was a message.
    pub(super) fn sent(&self) -> Option<&Message> {
        if let CallKind::Send(message) = &self.call.ask {
            Some(message)
        } else {
            None
        }
    }

    /// The policy for a message of the reply: that of the call, or for a stream without a call of its own the one in force.
    ///
    /// # Errors
    /// The upstream has none any more.
    pub(super) fn policy(&self) -> Result<Arc<Policy>, CallError> {
        if self.call.listens() {
            self.route.upstream.policy()
        } else {
            Ok(self.route.policy.clone())
        }
    }

    /// The digest of the call, if it is one request.
    pub(super) fn digest(&self) -> Option<CallDigest> {
        let message = self.sent()?;
        let envelope = message.single().filter(|envelope| envelope.is_request())?;
        Some(CallDigest::of(self.context(), message, envelope))
    }

    /// The last texts that the agent received on the stream of the reply.
    pub(super) fn tail(&self) -> MutexGuard<'_, Heard> {
        let tail = self
            .route
            .upstream
            .open
            .as_ref()
            .map_or(&self.tail, |open| &open.tail);
        tail.lock()
    }

    /// Gives the places of the call back: its answer is not wanted any more.
    pub(super) fn release(&self) {
        drop(std::mem::take(&mut *self.permit.lock()));
    }
}
