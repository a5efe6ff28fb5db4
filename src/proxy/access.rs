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
    (tools, pins): (&Tools, &Pins),
    recorder: &Recorder,
) -> Result<Option<AccessRefusal>, CallError> {
    let barred = access::barred(message, context, tools, pins);
    if barred.is_empty() {
        return Ok(None);
    }
    for DeniedItem {
        thing, name, why, ..
    } in &barred
    {
        let Context {
            agent,
            caller,
            upstream,
            ..
        } = context;
        let thing = thing.name();
        let why = why.to_string();
        let event = record::AccessDenied {
            agent,
            caller,
            upstream,
            thing,
            name,
            why: &why,
        };
        recorder
            .record(Event::AccessDenied(event))
            .map_err(CallError::Audit)?;
    }
    let unknown: Vec<(usize, ItemKind, &str)> = barred
        .iter()
        .map(|barred| (barred.item, barred.thing, &*barred.name))
        .collect();
    Ok(Some(AccessRefusal(answer::unknown(
        context, message, &unknown,
    ))))
}

/// The answer to the caller, if one is expected.
pub(super) struct AccessRefusal(pub(super) Option<String>);

impl AccessRefusal {
    /// Converts the answer into a reply.
    pub(super) fn reply(self) -> Reply {
        self.0.map_or_else(
            || answer::empty(StatusCode::ACCEPTED),
            |text| answer::body(StatusCode::OK, text),
        )
    }
}

impl Gate {
    /// Returns the answer to a call that its caller may not make.
    pub(super) fn barred(
        &self,
        message: &Message,
        context: &Context,
        upstream: &UpstreamState,
    ) -> Result<Option<AccessRefusal>, CallError> {
        if context.caller.access.is_none() {
            return Ok(None);
        }
        let pins = self.pins.for_upstream(&upstream.name.0);
        check_access(message, context, (&upstream.tools, &pins), &self.recorder)
    }

    /// Reports whether a caller may use an upstream; a denial is recorded.
    pub fn is_there_for(
        &self,
        agent: &AgentName,
        caller: &Caller,
        upstream: &UpstreamName,
    ) -> bool {
        let Some(why) = caller
            .access
            .as_ref()
            .and_then(|access| access.upstream(upstream).err())
        else {
            return true;
        };
        let why = why.to_string();
        let barred = record::AccessDenied {
            agent,
            caller,
            upstream,
            thing: "upstream",
            name: &upstream.0,
            why: &why,
        };
        self.record(Event::AccessDenied(barred));
        false
    }

    /// Notifies agents that the lists they see may have changed.
    pub fn access_changed(&self) {
        for upstream in self.upstreams.names() {
            [Kind::Tool, Kind::Prompt, Kind::Resource]
                .into_iter()
                .for_each(|kind| self.changed.notify(&upstream, kind));
        }
    }
}
