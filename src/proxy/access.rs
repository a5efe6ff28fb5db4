//! What a caller may not use is answered as what is not there, and told.

use http::StatusCode;

use super::Gate;
use super::upstreams::UpstreamState;
use crate::inspect::access::{self, Barred};
use crate::inspect::definitions::{Kind, Pins};
use crate::inspect::tools::Tools;
use crate::message::Message;
use crate::protocol::{AgentName, CallError, Caller, Context, Reply, Thing, UpstreamName, answer};
use crate::record::{self, Event, Recorder};

/// The answer to a message that asks for something its caller may not use; `None` if it does not. Nothing of it is sent.
///
/// # Errors
/// It cannot be told, and must be.
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
    for Barred {
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
    let unknown: Vec<(usize, Thing, &str)> = barred
        .iter()
        .map(|barred| (barred.item, barred.thing, &*barred.name))
        .collect();
    Ok(Some(AccessRefusal(answer::unknown(
        context, message, &unknown,
    ))))
}

/// What whoever asked is told, if anybody waits for it.
pub(super) struct AccessRefusal(pub(super) Option<String>);

impl AccessRefusal {
    /// As a reply.
    pub(super) fn reply(self) -> Reply {
        self.0.map_or_else(
            || answer::empty(StatusCode::ACCEPTED),
            |text| answer::body(StatusCode::OK, text),
        )
    }
}

impl Gate {
    /// What a call is answered with that its caller may not make.
    pub(super) fn barred(
        &self,
        message: &Message,
        context: &Context,
        upstream: &UpstreamState,
    ) -> Result<Option<AccessRefusal>, CallError> {
        if context.caller.access.is_none() {
            return Ok(None);
        }
        let pins = self.pins.of(&upstream.name.0);
        check_access(message, context, (&upstream.tools, &pins), &self.recorder)
    }

    /// Whether an upstream is there for a caller; that it is not is told.
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

    /// Tells agents that they may see other lists from now on.
    pub fn access_changed(&self) {
        for upstream in self.upstreams.names() {
            [Kind::Tool, Kind::Prompt, Kind::Resource]
                .into_iter()
                .for_each(|kind| self.changed.notify(&upstream, kind));
        }
    }
}
