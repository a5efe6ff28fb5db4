//! Lists as agents see them: pending definitions are replaced by the pinned ones, and the
//! operator's overrides are applied on top.

use std::sync::Arc;

use super::offload::INLINE_WORK;
use super::upstreams::UpstreamState;
use super::{Gate, Policies};
use crate::config::{ChangeAction, Limits};
use crate::document::Fault;
use crate::inspect::access::narrow_lists;
use crate::inspect::definitions::{Key, Kind, ListComparison, Pins};
use crate::inspect::{Mode, Policy};
use crate::message::Message;
use crate::pins::{DefinitionEvent, Lock, PinOutcome, PinStore, VisibleChanges};
use crate::protocol::{CallError, Context, UpstreamName};
use crate::record::{DefinitionChange, Event, Recorder};

/// A list from a server as agents see it.
pub(super) struct ServedList {
    comparison: ListComparison,
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
        original: &Message,
        context: &Context,
        pins: &Pins,
        limits: &Limits,
        recorder: &Recorder,
    ) -> Result<Self, CallError> {
        let mut comparison = policy.compare_lists(original, context, pins, limits);
        let parse = |bytes| Message::parse(bytes, &limits.read).map_err(CallError::NotMcp);
        let pinned = comparison.replacement.take().map(parse).transpose()?;
        let base = pinned.as_ref().unwrap_or(original);
        let overlaid = match policy.visible_list(base, context) {
            Some(bytes) => {
                let told_bytes = base.bytes().len();
                let shown_bytes = bytes.len();
                let parsed = parse(bytes)?;
                let event = Event::Overlaid {
                    context,
                    policy: &policy.name,
                    received_bytes: told_bytes,
                    shown_bytes,
                };
                recorder.record(event).map_err(CallError::Audit)?;
                Some(parsed)
            }
            None => None,
        };
        let narrowed = narrow_lists(overlaid.as_ref().unwrap_or(base), context)
            .map(parse)
            .transpose()?;
        Ok(Self {
            comparison,
            pinned,
            overlaid,
            narrowed,
        })
    }

    /// Returns the list that the server is held to: the pinned definitions, otherwise those that it
    /// sent.
    pub(super) fn pinned<'m>(&'m self, original: &'m Message) -> &'m Message {
        self.pinned.as_ref().unwrap_or(original)
    }

    /// Returns the list that agents see, if there are no findings in it.
    pub(super) fn message<'m>(&'m self, original: &'m Message) -> &'m Message {
        self.narrowed
            .as_ref()
            .or(self.overlaid.as_ref())
            .unwrap_or(self.pinned(original))
    }

    /// Returns the list that agents see, if it differs from the one that the server sent.
    pub(super) fn into_message(self) -> Option<Message> {
        self.narrowed.or(self.overlaid).or(self.pinned)
    }

    /// Returns the definitions to be stored, if there are any.
    pub(super) fn take_comparison(&mut self) -> Option<ListComparison> {
        let ListComparison {
            new_definitions: seen,
            ended_kinds: ended,
            removed: gone,
            full,
            ..
        } = &self.comparison;
        let has_changes = !seen.is_empty() || !ended.is_empty() || !gone.is_empty() || *full;
        has_changes.then(|| std::mem::take(&mut self.comparison))
    }
}

/// Pins the definitions of a list that has passed, and records the changes. May block on disk I/O.
///
/// # Errors
/// Fails if an event cannot be recorded and must be; the list is then not passed on.
pub(super) fn pin(
    store: &PinStore,
    name: &str,
    comparison: &ListComparison,
    mode: Mode,
    context: &Context,
    recorder: &Recorder,
) -> Result<(), CallError> {
    let PinOutcome {
        events: became,
        first_seen: first,
        faults,
    } = store.update(name, comparison);
    let record = |event: Event<'_>| recorder.record(event).map_err(CallError::Audit);
    if comparison.full {
        record(Event::Limit {
            name: "pinned_definitions",
        })?;
    }
    if !faults.is_empty() {
        record(Event::PinsRefused { faults: &faults })?;
    }
    if first > 0 {
        record(Event::Pinned {
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
        record(Event::Definition(&DefinitionChange {
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
        record_pending_count(store, name, &context.upstream, recorder)?;
    }
    Ok(())
}

fn record_pending_count(
    store: &PinStore,
    name: &str,
    upstream: &UpstreamName,
    recorder: &Recorder,
) -> Result<(), CallError> {
    recorder
        .record(Event::Held {
            upstream,
            count: store.for_upstream(name).pending_count(),
        })
        .map_err(CallError::Audit)
}

impl Gate {
    /// Processes a list that a server sent. A long list is compared on a blocking thread, so that
    /// it does not delay other traffic.
    pub(super) async fn serve_list(
        &self,
        policy: &Arc<Policy>,
        original: &Message,
        context: &Context,
        upstream: &UpstreamState,
    ) -> Result<ServedList, CallError> {
        let pins = self.pins.for_upstream(&upstream.name.0);
        if original.bytes().len() <= INLINE_WORK {
            return ServedList::new(
                policy,
                original,
                context,
                &pins,
                &self.limits,
                &self.recorder,
            );
        }
        let policy = policy.clone();
        let original = original.clone();
        let context = context.clone();
        let limits = self.limits.clone();
        let recorder = self.recorder.clone();
        let _permits = self.judging_permits(upstream).await?;
        let served = tokio::task::spawn_blocking(move || {
            ServedList::new(&policy, &original, &context, &pins, &limits, &recorder)
        });
        served
            .await
            .map_err(|_| CallError::BadReply("comparing definitions failed"))?
    }

    /// Pins the definitions of a list; disk I/O runs on a blocking thread.
    pub(super) async fn pin_definitions(
        &self,
        comparison: ListComparison,
        mode: Mode,
        context: &Context,
    ) -> Result<(), CallError> {
        let (store, recorder, context) =
            (self.pins.clone(), self.recorder.clone(), context.clone());
        let store_pins = move || {
            pin(
                &store,
                &context.upstream.0,
                &comparison,
                mode,
                &context,
                &recorder,
            )
        };
        if !self.pins.is_on_disk() {
            return store_pins();
        }
        tokio::task::spawn_blocking(store_pins)
            .await
            .map_err(|_| CallError::BadReply("pinning definitions failed"))?
    }

    /// Applies the changes that operators made to pins and in quarantine, and enforces retention
    /// there. Call it periodically; may block on disk I/O.
    pub fn reload_pins(&self) {
        self.reload_lock_file();
        self.pending_releases.refresh(&self.recorder);
        self.recorder.apply_retention();
    }

    /// Reads the lock file again if it has changed. Call it periodically; may block on disk I/O.
    pub fn reload_lock_file(&self) {
        match self.pins.reload() {
            Ok(None) => {}
            Ok(Some(visible)) => self.announce_pin_changes(&visible),
            Err(faults) => self.record(Event::PinsRefused { faults: &faults }),
        }
    }

    /// Notifies agents, and records, that pins have changed.
    pub(super) fn announce_pin_changes(&self, visible: &VisibleChanges) {
        let upstream_name = |name: &str| self.find_upstream(self.pins.upstream_of(name));
        visible
            .iter()
            .filter_map(|(name, kind)| Some((upstream_name(name)?, kind)))
            .for_each(|(upstream, kind)| {
                self.list_changes.notify(&upstream, *kind);
            });
        let mut upstreams: Vec<&str> = visible.iter().map(|(name, _)| &**name).collect();
        upstreams.dedup();
        self.record(Event::PinsReloaded {
            upstreams: &upstreams,
        });
        self.record_pending_definitions();
    }

    /// Records the number of pending definitions.
    pub fn record_pending_definitions(&self) {
        for upstream in self.upstreams.names() {
            self.record(Event::Held {
                upstream: &upstream,
                count: self.pins.for_upstream(&upstream.0).pending_count(),
            });
        }
    }

    /// Notifies agents of lists that the new policies present differently.
    pub(super) fn notify_changed_lists(&self, old: &Policies, new: &Policies) {
        for (upstream, policy) in new.iter() {
            let old_policy = old.get(upstream);
            if old_policy.is_some_and(|before| !before.shows_tools_like(policy)) {
                self.list_changes.notify(upstream, Kind::Tool);
            } else if old_policy.is_some_and(|before| !before.holds_like(policy)) {
                self.pins
                    .for_upstream(&upstream.0)
                    .pending_kinds()
                    .into_iter()
                    .for_each(|kind| self.list_changes.notify(upstream, kind));
            }
        }
    }

    /// Returns the pinned definitions of all upstreams.
    pub fn pinned_definitions(&self) -> Arc<Lock> {
        self.pins.all_pins()
    }

    /// Reports whether pins survive a restart of the gate.
    pub fn has_persistent_pins(&self) -> bool {
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
            self.reload_lock_file();
        } else {
            self.announce_pin_changes(&visible);
        }
        Ok(approved)
    }
}
