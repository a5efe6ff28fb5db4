//! Refuses calls that the caller has no access to: answers as if the target did not exist, and
//! records the refusal.

use http::StatusCode;

use super::Gate;
use super::upstreams::UpstreamState;
use crate::inspect::access::{self, DeniedItem};
use crate::inspect::definitions::{Kind, Pins};
use crate::inspect::tools::Tools;
use crate::message::Message;
use crate::protocol::{
    AgentName, CallError, Caller, Context, ItemKind, Reply, UpstreamName, answer,
};
use crate::record::{self, Event, Recorder};

/// Returns the answer to a message that requests something its caller may not use; `None` if it
/// does not. No part of the message is sent.
///
/// # Errors
/// Fails if the refusal cannot be recorded, and recording is required.
pub(super) fn check_access(
    message: &Message,
    context: &Context,
    tools: &Tools,
    pins: &Pins,
    recorder: &Recorder,
) -> Result<Option<AccessRefusal>, CallError> {
    let denied = access::denied_items(message, context, tools, pins);
    if denied.is_empty() {
        return Ok(None);
    }
    for DeniedItem {
        kind: thing,
        name,
        reason: why,
        ..
    } in &denied
    {
        let Context {
            agent,
            caller,
            upstream,
            ..
        } = context;
        let thing = thing.name();
        let reason = why.to_string();
        let event = record::AccessDenied {
            agent,
            caller,
            upstream,
            kind: thing,
            name,
            why: &reason,
        };
        recorder
            .record(Event::AccessDenied(event))
            .map_err(CallError::Audit)?;
    }
    let unknown: Vec<(usize, ItemKind, &str)> = denied
        .iter()
        .map(|item| (item.item, item.kind, &*item.name))
        .collect();
    Ok(Some(AccessRefusal(answer::answer_unknown(
        context, message, &unknown,
    ))))
}

/// The answer to the caller, if one is expected.
pub(super) struct AccessRefusal(pub(super) Option<String>);

impl AccessRefusal {
    /// Converts the answer into a reply.
    pub(super) fn reply(self) -> Reply {
        self.0.map_or_else(
            || answer::empty_reply(StatusCode::ACCEPTED),
            |text| answer::body_reply(StatusCode::OK, text),
        )
    }
}

impl Gate {
    /// Returns the answer to a call that its caller may not make.
    pub(super) fn access_refusal(
        &self,
        message: &Message,
        context: &Context,
        upstream: &UpstreamState,
    ) -> Result<Option<AccessRefusal>, CallError> {
        if context.caller.access.is_none() {
            return Ok(None);
        }
        let pins = self.pins.for_upstream(&upstream.name.0);
        check_access(message, context, &upstream.tools, &pins, &self.recorder)
    }

    /// Reports whether a caller may use an upstream; a denial is recorded.
    pub fn may_use_upstream(
        &self,
        agent: &AgentName,
        caller: &Caller,
        upstream: &UpstreamName,
    ) -> bool {
        let Some(reason) = caller
            .access
            .as_ref()
            .and_then(|access| access.check_upstream(upstream).err())
        else {
            return true;
        };
        let reason = reason.to_string();
        let event = record::AccessDenied {
            agent,
            caller,
            upstream,
            kind: "upstream",
            name: &upstream.0,
            why: &reason,
        };
        self.record(Event::AccessDenied(event));
        false
    }

    /// Notifies agents that the lists they see may have changed.
    pub fn notify_lists_changed(&self) {
        for upstream in self.upstreams.names() {
            [Kind::Tool, Kind::Prompt, Kind::Resource]
                .into_iter()
                .for_each(|kind| self.list_changes.notify(&upstream, kind));
        }
    }
}
