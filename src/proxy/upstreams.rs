//! The upstreams of a gate. A reload adds, replaces and removes them while calls are open: those
//! calls finish on the upstream on which they began, which is shut down after the last one or at
//! the drain deadline.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};
use std::task::Poll;

use arc_swap::{ArcSwap, ArcSwapOption};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use super::list_changed::DeclaredLists;
use super::open_calls::OpenCalls;
use super::param_headers::ParamHeaders;
use super::{Gate, Policies, offload};
use crate::config::Limits;
use crate::inspect::Policy;
use crate::inspect::tools::Tools;
use crate::pins::PinStore;
use crate::protocol::{Call, CallError, Frames, Framing, InFlight, Reply, UpstreamName};
use crate::upstream::Upstream;

/// An upstream, and what the gate has learned about it.
pub(super) struct UpstreamState {
    pub(super) name: UpstreamName,
    /// The name under which it is pinned.
    pub(super) pinned_as: Arc<str>,
    /// The active policy. A removed upstream keeps its policy for its open calls.
    policy: ArcSwapOption<Policy>,
    pub(super) upstream: Arc<Upstream>,
    pub(super) param_headers: Arc<ParamHeaders>,
    pub(super) tools: Arc<Tools>,
    pub(super) declared_lists: Arc<DeclaredLists>,
    /// Its open calls, if their answers arrive on one stream.
    pub(super) open_calls: Option<OpenCalls>,
    /// Slots for calls in flight.
    pub(super) slots: Arc<Semaphore>,
    /// Permits for judging on blocking threads.
    pub(super) judging_permits: Arc<Semaphore>,
    /// Turns true when its streams must end.
    end_signal: watch::Sender<bool>,
}

impl UpstreamState {
    fn new(name: UpstreamName, upstream: Upstream, inputs: &UpstreamInputs<'_>) -> Self {
        let limits = inputs.limits;
        Self {
            pinned_as: inputs.pins.pinned_as(&name.0).into(),
            policy: ArcSwapOption::new(inputs.policies.get(&name).cloned()),
            name,
            open_calls: upstream.has_one_stream().then(OpenCalls::default),
            upstream: Arc::new(upstream.reserving_in(inputs.in_flight.clone())),
            param_headers: Arc::default(),
            tools: Arc::default(),
            declared_lists: Arc::default(),
            slots: Arc::new(Semaphore::new(limits.calls_per_upstream)),
            judging_permits: Arc::new(Semaphore::new(offload::workers())),
            end_signal: watch::Sender::new(false),
        }
    }

    /// Takes over the learned state of `before`, the same server reached in a different way: it is
    /// valid until the server sends its lists again.
    fn with_state_of(self, before: &Self) -> Self {
        let param_headers = before.param_headers.clone();
        let tools = before.tools.clone();
        let declared_lists = before.declared_lists.clone();
        Self {
            param_headers,
            tools,
            declared_lists,
            ..self
        }
    }

    /// Returns the active policy.
    ///
    /// # Errors
    /// Fails if it has none.
    pub(super) fn policy(&self) -> Result<Arc<Policy>, CallError> {
        self.policy.load_full().ok_or(CallError::NotOffered)
    }

    /// Sends a call to the server. A stream ends with the upstream.
    pub(super) async fn call(&self, call: &Call) -> Result<Reply, CallError> {
        let reply = self.upstream.call(call).await?;
        if reply.framing != Framing::Events {
            return Ok(reply);
        }
        let mut end_signal = self.end_signal.subscribe();
        let end = async move {
            // The sender lives as long as the upstream.
            drop(end_signal.wait_for(|ended| *ended).await);
        };
        let mut last = (!call.listens()).then(|| {
            let reason = "the upstream was changed or removed by a reload, and the call did not finish within `drain_seconds`";
            Err(CallError::Connect(io::Error::other(reason)))
        });
        let mut end = Box::pin(end);
        let mut frames = reply.frames;
        let mut open = true;
        let frames = stream::poll_fn(move |cx| {
            if !open {
                return Poll::Ready(None);
            }
            if end.as_mut().poll(cx).is_ready() {
                open = false;
                return Poll::Ready(last.take());
            }
            frames.poll_next_unpin(cx)
        });
        Ok(Reply {
            frames: Frames::stream(frames),
            ..reply
        })
    }

    /// Waits for its open calls up to the drain deadline, then ends its streams, sessions and
    /// processes.
    async fn retire(&self, limits: &Limits) {
        let all = u32::try_from(limits.calls_per_upstream).unwrap_or(u32::MAX);
        if tokio::time::timeout(limits.drain, self.slots.acquire_many(all))
            .await
            .is_err()
        {
            tracing::warn!(
                limit = "drain_seconds",
                "closed calls to a changed or removed upstream"
            );
        }
        self.shutdown().await;
    }

    async fn shutdown(&self) {
        self.end_signal.send_replace(true);
        self.upstream.shutdown().await;
    }
}

/// Shared inputs for building the states of upstreams.
pub(super) struct UpstreamInputs<'p> {
    pub(super) policies: &'p Policies,
    pub(super) pins: &'p PinStore,
    pub(super) limits: &'p Limits,
    pub(super) in_flight: &'p Arc<InFlight>,
}

type Table = HashMap<UpstreamName, Arc<UpstreamState>>;

/// The current upstreams, and those that are still draining.
pub(super) struct Upstreams {
    table: ArcSwap<Table>,
    retiring: Mutex<Vec<Weak<UpstreamState>>>,
    /// Signals that the set of upstreams has changed.
    changed: watch::Sender<()>,
}

/// The changes of a reload.
#[derive(Default)]
pub struct UpstreamChanges {
    /// Upstreams that are new, or reached in a different way than before; the flag is whether it is
    /// still the same server.
    pub set: Vec<(UpstreamName, Upstream, bool)>,
    /// Upstreams that were removed.
    pub removed: Vec<UpstreamName>,
}

impl Upstreams {
    pub(super) fn new(
        upstreams: Vec<(UpstreamName, Upstream)>,
        inputs: &UpstreamInputs<'_>,
    ) -> Self {
        let state = |(name, upstream): (UpstreamName, _)| {
            (
                name.clone(),
                Arc::new(UpstreamState::new(name, upstream, inputs)),
            )
        };
        Self {
            table: ArcSwap::from_pointee(upstreams.into_iter().map(state).collect()),
            retiring: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }

    pub(super) fn get(&self, name: &UpstreamName) -> Option<Arc<UpstreamState>> {
        self.table.load().get(name).cloned()
    }

    /// Returns the names of the current upstreams.
    pub(super) fn names(&self) -> Vec<UpstreamName> {
        self.table.load().keys().cloned().collect()
    }

    /// Activates other policies, also for open streams on replaced upstreams.
    pub(super) fn replace_policies(&self, policies: &Policies) {
        for state in self.all() {
            if let Some(policy) = policies.get(&state.name) {
                state.policy.store(Some(policy.clone()));
            }
        }
    }

    /// Returns the current upstreams, and those that are still draining.
    fn all(&self) -> Vec<Arc<UpstreamState>> {
        let mut all: Vec<_> = self.table.load().values().cloned().collect();
        all.extend(self.retiring.lock().iter().filter_map(Weak::upgrade));
        all
    }

    /// Shuts down all of them.
    pub(super) async fn shutdown(&self) {
        let all = self.all();
        join_all(all.iter().map(|state| state.shutdown())).await;
    }
}

impl Gate {
    /// Returns the upstreams with their names.
    pub fn upstreams(&self) -> Vec<(UpstreamName, Arc<Upstream>)> {
        self.upstreams
            .table
            .load()
            .iter()
            .map(|(name, state)| (name.clone(), state.upstream.clone()))
            .collect()
    }

    /// Returns the name of the upstream with this name, if there is one.
    pub fn find_upstream(&self, name: &str) -> Option<UpstreamName> {
        self.upstreams
            .table
            .load()
            .get_key_value(name)
            .map(|(name, _)| name.clone())
    }

    /// Reports whether the replies of an upstream have a status and headers of the server's own;
    /// false if there is no such upstream.
    pub fn speaks_http(&self, name: &UpstreamName) -> bool {
        self.upstreams
            .table
            .load()
            .get(name)
            .is_some_and(|state| state.upstream.speaks_http())
    }

    /// Returns the name of the upstream, if there is only one.
    pub fn only_upstream(&self) -> Option<UpstreamName> {
        let table = self.upstreams.table.load();
        let mut names = table.keys();
        names.next().filter(|_| names.next().is_none()).cloned()
    }

    /// Returns a receiver that is notified when upstreams were added, replaced or removed.
    pub fn upstream_changes(&self) -> watch::Receiver<()> {
        self.upstreams.changed.subscribe()
    }

    /// Activates other policies and upstreams. Open calls of replaced or removed upstreams continue
    /// there to their end.
    pub fn replace_upstreams(self: &Arc<Self>, policies: Policies, changes: UpstreamChanges) {
        self.replace_policies(policies);
        let policies = self.policies();
        let inputs = UpstreamInputs {
            policies: &policies,
            pins: &self.pins,
            limits: &self.limits,
            in_flight: &self.in_flight,
        };
        let old = self.upstreams.table.load_full();
        let mut new = Table::clone(&old);
        let mut retired = Vec::new();
        for (name, upstream, is_same_server) in changes.set {
            let state = UpstreamState::new(name.clone(), upstream, &inputs);
            let state = match old.get(&name) {
                Some(old_state) if is_same_server => state.with_state_of(old_state),
                _ => state,
            };
            retired.extend(
                new.insert(name.clone(), Arc::new(state))
                    .map(|state| (name, state)),
            );
        }
        retired.extend(
            changes
                .removed
                .into_iter()
                .filter_map(|name| new.remove(&name).map(|state| (name, state))),
        );
        self.upstreams.table.store(Arc::new(new));
        self.upstreams.changed.send_replace(());
        for (name, state) in retired {
            let mut retiring = self.upstreams.retiring.lock();
            retiring.retain(|state| state.strong_count() > 0);
            retiring.push(Arc::downgrade(&state));
            drop(retiring);
            let gate = self.clone();
            tokio::spawn(async move {
                state.retire(&gate.limits).await;
                if gate.upstreams.get(&name).is_none() {
                    gate.sessions.forget_upstream(&name);
                }
            });
        }
    }
}
