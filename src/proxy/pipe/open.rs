//! The requests that are open on a pipe.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;

use super::{OPEN, Pipe, era};
use crate::message::{Message, same_id};
use crate::protocol::{Asked, Carrier, Context, Era, Trace, Wire, headers};
use crate::proxy::approve::{CallDigest, Matter};
use crate::proxy::budgets::Held;

/// A request that waits for its answer.
pub(super) struct Open {
    pub(super) asked: Asked,
    pub(super) era: Era,
    since: Instant,
    /// What a person was asked about it, if it was.
    approved: Option<Box<Matter>>,
    /// The trace that it is a part of: its span ends with the answer.
    pub(super) trace: Option<Arc<Trace>>,
    /// How it came.
    wire: Wire,
    /// What it asks for, where that is needed later.
    call: Option<CallDigest>,
    /// Its places among the calls of its tool.
    _held: Held,
}

/// How a request waited for its answer.
pub(super) struct Waited {
    /// For how long.
    pub(super) time: Duration,
    /// What it asked for, where that is needed.
    pub(super) call: Option<CallDigest>,
}

impl Pipe {
    /// Notes the requests of a message as open.
    pub(super) fn ask(&self, message: &Message, context: &Context, mut approved: Option<Box<Matter>>, mut held: Held) {
        let only = message.single().filter(|envelope| envelope.is_request() && self.recorder.quarantine().is_some());
        let call = only.map(|envelope| CallDigest::of(context, message, envelope));
        let mut open = self.open();
        // A person is asked about one request at a time: the first is the only one.
        let made = |asked| Open {
            asked,
            era: context.era,
            since: Instant::now(),
            approved: approved.take(),
            call,
            trace: context.trace.clone(),
            wire: context.wire.clone(),
            _held: std::mem::take(&mut held),
        };
        open.extend(headers::asked(message).into_iter().map(made));
        let extra = open.len().saturating_sub(OPEN);
        open.drain(..extra);
    }

    /// Forgets the requests that are open, since nobody will answer them any more.
    pub fn close(&self) {
        self.open().clear();
    }

    /// The requests that a message from the server answers, which are open no more, and how it was with the first one.
    pub(super) fn answers(&self, message: &Message) -> (Context, Option<Waited>) {
        let mut open = self.open();
        let ids = message.envelopes().iter().filter(|envelope| envelope.is_answer()).filter_map(|envelope| message.id(envelope));
        let mut closed = ids.filter_map(|id| {
            let exact = open.iter().position(|open| *open.asked.id == *id);
            let at = exact.or_else(|| open.iter().position(|open| same_id(&open.asked.id, id)))?;
            open.remove(at)
        });
        let Some(first) = closed.next() else { return (self.context(era(message), Arc::from([])), None) };
        if let Some(approved) = &first.approved {
            self.approvals.goes_on(approved, message);
        }
        let (era, trace, wire) = (first.era, first.trace.clone(), first.wire.clone());
        let waited = Waited { time: first.since.elapsed(), call: first.call };
        let asked: Vec<Asked> = std::iter::once(first).chain(closed).map(|open| open.asked).collect();
        (Context { trace, wire, ..self.context(era, asked.into()) }, Some(waited))
    }

    /// The revision that both sides have agreed on, once they have.
    pub(super) fn agreed_on(&self) -> Option<Arc<str>> {
        self.revision.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How a message comes: of the revision that it names, or that was agreed on.
    pub(super) fn wire(&self, message: &Message) -> Wire {
        let agreed = self.agreed_on();
        Wire::new(Carrier::Pipe, headers::version(&HeaderMap::new(), Some(message)).as_deref().or(agreed.as_deref()))
    }

    /// Notes what the two sides have agreed on, if a message says so.
    pub(super) fn agreed(&self, message: &Message, context: &Context) {
        if context.asked.iter().any(|asked| &*asked.method == "initialize")
            && let Some(version) = message.single().and_then(|envelope| message.body(envelope)?.get("protocolVersion")?.str())
        {
            *self.revision.lock().unwrap_or_else(PoisonError::into_inner) = Some(version.as_ref().into());
        }
    }
}
