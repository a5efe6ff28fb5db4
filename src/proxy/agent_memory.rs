//! The state kept for an agent across its upstreams: the secrets that they sent, and traces of
//! their content.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::detect::flow::{TaintLimits, TaintStore};
use crate::detect::secret::{Fingerprints, UPSTREAMS, remember};
use crate::inspect::memory::Memory;
use crate::protocol::UpstreamName;

/// Maximum number of secrets remembered from one agent's upstreams; the oldest is forgotten first.
const SECRETS: usize = 512;

/// The state of one agent.
pub(super) struct AgentMemory {
    pub(super) last_used: Instant,
    upstreams: Vec<UpstreamName>,
    /// Their names, in the form in which the inspection uses them.
    names: Arc<[Box<str>]>,
    fingerprints: Arc<Fingerprints>,
    /// The owners in `prints`, oldest first.
    owners: VecDeque<usize>,
    next: usize,
    traces: Arc<TaintStore>,
}

impl AgentMemory {
    pub(super) fn new(flow: TaintLimits, now: Instant) -> Self {
        Self {
            last_used: now,
            upstreams: Vec::new(),
            names: Arc::default(),
            fingerprints: Arc::default(),
            owners: VecDeque::new(),
            next: 0,
            traces: Arc::new(TaintStore::new(flow)),
        }
    }

    /// Returns the number of an upstream. There are at most as many as the config names.
    pub(super) fn number(&mut self, upstream: &UpstreamName) -> usize {
        self.upstreams
            .iter()
            .position(|known| known == upstream)
            .unwrap_or_else(|| {
                self.upstreams.push(upstream.clone());
                self.names = self
                    .upstreams
                    .iter()
                    .map(|upstream| upstream.0.as_ref().into())
                    .collect();
                self.upstreams.len() - 1
            })
    }

    /// Returns the state that applies to a message to or from an upstream.
    pub(super) fn view(&mut self, upstream: usize, now: Instant) -> Memory {
        self.last_used = now;
        self.traces.expire(now);
        Memory {
            fingerprints: self.fingerprints.clone(),
            upstream,
            traces: self.traces.clone(),
            upstreams: self.names.clone(),
            now: Some(now),
            ..Memory::default()
        }
    }

    pub(super) fn traces(&self) -> Arc<TaintStore> {
        self.traces.clone()
    }

    /// Stores a secret that an upstream has sent.
    pub(super) fn remember(&mut self, value: &str, upstream: usize) {
        let owner = self.next * UPSTREAMS + upstream;
        let fingerprints = Arc::make_mut(&mut self.fingerprints);
        if !remember(fingerprints, value, owner) {
            return;
        }
        self.next += 1;
        self.owners.push_back(owner);
        while self.owners.len() > SECRETS {
            self.owners
                .pop_front()
                .into_iter()
                .for_each(|owner| fingerprints.remove_owner(owner));
        }
    }
}
