//! Lists as agents see them: pending definitions are replaced by the pinned ones, and the
//! operator's overrides are applied on top.

use std::sync::Arc;

use super::offload::INLINE_WORK;
use super::upstreams::UpstreamState;
use super::{Gate, Policies};
use crate::config::{ChangeAction, Limits};
use crate::document::Fault;
use crate::inspect::access::narrowed;
use crate::inspect::definitions::{Key, Kind, Listed, Pins};
use crate::inspect::{Mode, Policy};
use crate::message::Message;
use crate::pins::{DefinitionEvent, Lock, PinOutcome, PinStore, VisibleChanges};
use crate::protocol::{CallError, Context, UpstreamName};
use crate::record::{DefinitionChange, Event, Recorder};

/// A list from a server as agents see it.
pub(super) struct ServedList {
    listed: Listed,
    /// The list with pinned definitions in their places, if that differs from the original.
    pinned: Option<Message>,
    /// That list with the operator's overrides, if there are any.
    overlaid: Option<Message>,
    /// That list without the items that its reader may not use.
    narrowed: Option<Message>,
}

impl ServedList {
    /// Processes a list that a server sent. Records the override if there is one.
    ///
    /// # Errors
    /// Fails if the result would be longer than a message may be, or if it cannot be recorded.
    pub(super) fn new(
        policy: &Policy,
        told: &Message,
        context: &Context,
        pins: &Pins,
        limits: &Limits,
        recorder: &Recorder,
    ) -> Result<Self, CallError> {
        let mut listed = policy.listed(told, context, pins, limits);
        let read = |bytes| Message::parse(bytes, &limits.read).map_err(CallError::NotMcp);
        let pinned = listed.shown.take().map(read).transpose()?;
        let said = pinned.as_ref().unwrap_or(told);
        let overlaid = match policy.visible_list(said, context) {
            Some(bytes) => {
                let told_bytes = said.bytes().len();
                let shown_bytes = bytes.len();
                let shown = read(bytes)?;
                let event = Event::Overlaid {
                    context,
                    policy: &policy.name,
                    told_bytes,
                    shown_bytes,
                };
                recorder.record(event).map_err(CallError::Audit)?;
                Some(shown)
            }
            None => None,
        };
        let narrowed = narrowed(overlaid.as_ref().unwrap_or(said), context)
            .map(read)
            .transpose()?;
        Ok(Self {
            listed,
            pinned,
            overlaid,
            narrowed,
        })
    }

    /// Returns the list that the server is held to: the pinned definitions, otherwise those that it
    /// sent.
    pub(super) fn pinned<'m>(&'m self, told: &'m Message) -> &'m Message {
        self.pinned.as_ref().unwrap_or(told)
    }

    /// Returns the list that agents see, if there are no findings in it.
    pub(super) fn message<'m>(&'m self, told: &'m Message) -> &'m Message {
        self.narrowed
            .as_ref()
            .or(self.overlaid.as_ref())
            .unwrap_or(self.pinned(told))
    }

    /// Returns the list that agents see, if it differs from the one that the server sent.
    pub(super) fn into_message(self) -> Option<Message> {
        self.narrowed.or(self.overlaid).or(self.pinned)
    }

    /// Returns the definitions to be stored, if there are any.
    pub(super) fn take_listed(&mut self) -> Option<Listed> {
        let Listed {
            seen,
            ended,
            gone,
            full,
            ..
        } = &self.listed;
        let any = !seen.is_empty() || !ended.is_empty() || !gone.is_empty() || *full;
        any.then(|| std::mem::take(&mut self.listed))
    }
}

/// Pins the definitions of a list that has passed, and records the changes. May block on disk I/O.
///
/// # Errors
/// Fails if an event cannot be recorded and must be; the list is then not passed on.
pub(super) fn pin(
    store: &PinStore,
    name: &str,
    listed: &Listed,
    mode: Mode,
    context: &Context,
    recorder: &Recorder,
) -> Result<(), CallError> {
    let PinOutcome {
        became,
        first,
        faults,
    } = store.keep(name, listed);
    let tell = |event: Event<'_>| recorder.record(event).map_err(CallError::Audit);
    if listed.full {
        tell(Event::Limit {
            name: "pinned_definitions",
        })?;
    }
    if !faults.is_empty() {
        tell(Event::PinsRefused { faults: &faults })?;
    }
    if first > 0 {
        tell(Event::Pinned {
            context,
            count: first,
        })?;
    }
    for DefinitionEvent {
        key,
        classes,
        action,
        old,
        new,
    } in &became
    {
        let observed = mode == Mode::Observe && *action != ChangeAction::Pass;
        let digest = |content: &Option<crate::inspect::definitions::Content>| {
            content.as_ref().map(|content| content.digest())
        };
        let old = digest(old);
        let new = digest(new);
        tell(Event::Definition(&DefinitionChange {
            context: Some(context),
            upstream: &context.upstream,
            kind: key.kind.name(),
            name: &key.name,
            classes,
            action: if observed { "observed" } else { action.name() },
            old: old.as_deref(),
            new: new.as_deref(),
        }))?;
    }
    if !became.is_empty() || first > 0 {
        record_held(store, name, &context.upstream, recorder)?;
    }
    Ok(())
}

fn record_held(
    store: &PinStore,
    name: &str,
    upstream: &UpstreamName,
    recorder: &Recorder,
) -> Result<(), CallError> {
    recorder
        .record(Event::Held {
            upstream,
            count: store.for_upstream(name).held(),
        })
        .map_err(CallError::Audit)
}

impl Gate {
    /// Processes a list that a server sent. A long list is compared on a blocking thread, so that
    /// it does not delay other traffic.
    pub(super) async fn served_list(
        &self,
        policy: &Arc<Policy>,
        told: &Message,
        context: &Context,
        upstream: &UpstreamState,
    ) -> Result<ServedList, CallError> {
        let pins = self.pins.for_upstream(&upstream.name.0);
        if told.bytes().len() <= INLINE_WORK {
            return ServedList::new(policy, told, context, &pins, &self.limits, &self.recorder);
        }
        let policy = policy.clone();
        let told = told.clone();
        let context = context.clone();
        let limits = self.limits.clone();
        let recorder = self.recorder.clone();
        let _permits = self.judging_permits(upstream).await?;
        let shown = tokio::task::spawn_blocking(move || {
            ServedList::new(&policy, &told, &context, &pins, &limits, &recorder)
        });
        shown
            .await
            .map_err(|_| CallError::BadReply("comparing definitions failed"))?
    }

    /// Pins the definitions of a list; disk I/O runs on a blocking thread.
    pub(super) async fn keep(
        &self,
        listed: Listed,
        mode: Mode,
        context: &Context,
    ) -> Result<(), CallError> {
        let (store, recorder, context) =
            (self.pins.clone(), self.recorder.clone(), context.clone());
        let kept = move || {
            pin(
                &store,
                &context.upstream.0,
                &listed,
                mode,
                &context,
                &recorder,
            )
        };
        if !self.pins.is_on_disk() {
            return kept();
        }
        tokio::task::spawn_blocking(kept)
            .await
            .map_err(|_| CallError::BadReply("pinning definitions failed"))?
    }

    /// Applies the changes that operators made to pins and in quarantine, and enforces retention
    /// there. Call it periodically; may block on disk I/O.
    pub fn reload_pins(&self) {
        self.look_at_pins();
        self.releases.refresh(&self.recorder);
        self.recorder.apply_retention();
    }

    /// Reads the lock file again if it has changed. Call it periodically; may block on disk I/O.
    pub fn look_at_pins(&self) {
        match self.pins.reload() {
            Ok(None) => {}
            Ok(Some(visible)) => self.show_pins(&visible),
            Err(faults) => self.record(Event::PinsRefused { faults: &faults }),
        }
    }

    /// Notifies agents, and records, that pins have changed.
    pub(super) fn show_pins(&self, visible: &VisibleChanges) {
        let known = |name: &str| self.upstream_named(self.pins.upstream_of(name));
        visible
            .iter()
            .filter_map(|(name, kind)| Some((known(name)?, kind)))
            .for_each(|(upstream, kind)| {
                self.changed.notify(&upstream, *kind);
            });
        let mut upstreams: Vec<&str> = visible.iter().map(|(name, _)| &**name).collect();
        upstreams.dedup();
        self.record(Event::PinsReloaded {
            upstreams: &upstreams,
        });
        self.tell_held();
    }

    /// Records the number of pending definitions.
    pub fn tell_held(&self) {
        for upstream in self.upstreams.names() {
            self.record(Event::Held {
                upstream: &upstream,
                count: self.pins.for_upstream(&upstream.0).held(),
            });
        }
    }

    /// Notifies agents of lists that the new policies present differently.
    pub(super) fn tell_shown_otherwise(&self, old: &Policies, new: &Policies) {
        for (upstream, policy) in new.iter() {
            let before = old.get(upstream);
            if before.is_some_and(|before| !before.shows_tools_like(policy)) {
                self.changed.notify(upstream, Kind::Tool);
            } else if before.is_some_and(|before| !before.holds_like(policy)) {
                self.pins
                    .for_upstream(&upstream.0)
                    .held_kinds()
                    .into_iter()
                    .for_each(|kind| self.changed.notify(upstream, kind));
            }
        }
    }

    /// Returns the pinned definitions of all upstreams.
    pub fn pinned(&self) -> Arc<Lock> {
        self.pins.all()
    }

    /// Reports whether pins survive a restart of the gate.
    pub fn keeps_pins(&self) -> bool {
        self.pins.is_on_disk()
    }

    /// Approves the pending definition, if it is the one with this digest; returns false if it is
    /// not. Agents see it at once. May block on disk I/O.
    ///
    /// # Errors
    /// Fails if the lock file cannot be read or written; nothing was approved.
    pub fn approve_definition(
        &self,
        upstream: &str,
        key: &Key,
        sha256: &str,
    ) -> Result<bool, Vec<Fault>> {
        let (approved, visible) = self.pins.approve(upstream, key, sha256)?;
        if approved {
            tracing::info!(
                upstream,
                kind = key.kind.name(),
                sha256,
                "definition approved at the console"
            );
        }
        if visible.is_empty() {
            self.look_at_pins();
        } else {
            self.show_pins(&visible);
        }
        Ok(approved)
    }
}
