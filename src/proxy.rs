//! The path of a call: from an agent to a server and back, with the messages of both sides judged.

mod access;
mod agent_memory;
mod approval_wait;
mod budgets;
mod carry;
mod classify;
mod definitions;
mod evidence;
mod inbound;
mod judge;
pub mod lines;
mod list_changed;
mod logins;
mod offload;
mod open_calls;
mod outbound;
mod param_headers;
mod presence;
mod quarantine_release;
mod resolve;
mod result_paging;
mod route;
mod session;
mod sessions;
mod stream_openings;
mod upstreams;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::approval::{self, ApprovalApi, Approvals};
use crate::config::{Config, Limits};
use crate::document::Fault;
use crate::inspect::{CleanTexts, Policy};
use crate::pins::PinStore;
use crate::protocol::{CallError, Context, InFlight, UpstreamName};
use crate::record::{Event, Recorder};
use crate::upstream::Upstream;
use budgets::Budgets;
use classify::Classifiers;
use list_changed::ListChanges;
use offload::Offload;
use quarantine_release::PendingReleases;
use resolve::Resolver;
use result_paging::StoredResults;
use sessions::Sessions;
use upstreams::{UpstreamInputs, Upstreams};

pub use presence::ConnectedClient;
pub use upstreams::UpstreamChanges;

/// The active policies by upstream; a reload replaces all of them at once.
pub type Policies = HashMap<UpstreamName, Arc<Policy>>;

/// Forwards calls from agents to upstreams and their replies back.
pub struct Gate {
    policies: ArcSwap<Policies>,
    upstreams: Upstreams,
    sessions: Sessions,
    stored_results: StoredResults,
    budgets: Budgets,
    approvals: Arc<Approvals>,
    pins: Arc<PinStore>,
    list_changes: ListChanges,
    pending_releases: Arc<PendingReleases>,
    resolver: Resolver,
    classifiers: Classifiers,
    offload: Offload,
    clean_texts: Arc<CleanTexts>,
    in_flight: Arc<InFlight>,
    recorder: Arc<Recorder>,
    limits: Limits,
}

impl Gate {
    /// Builds a gate from its parts. `config` supplies the settings that the parts do not contain.
    ///
    /// # Errors
    /// Fails if the stored approvals or the lock file cannot be read.
    pub fn new(
        upstreams: Vec<(UpstreamName, Upstream)>,
        policies: Policies,
        recorder: Arc<Recorder>,
        config: &Config,
    ) -> Result<Self, Vec<Fault>> {
        Self::build(
            upstreams,
            policies,
            recorder,
            config,
            PinStore::open(config.pins.file.as_deref())?,
            false,
        )
    }

    /// Like [`Self::new`], with these pins; a gate of `one_session` ends with that session.
    fn build(
        upstreams: Vec<(UpstreamName, Upstream)>,
        policies: Policies,
        recorder: Arc<Recorder>,
        config: &Config,
        pins: PinStore,
        one_session: bool,
    ) -> Result<Self, Vec<Fault>> {
        let limits = config.limits.clone();
        let hint = "see what `file` under `[approval]` names";
        let fault = |error: std::io::Error| {
            vec![Fault::of_file(
                "approval.file",
                error.to_string(),
                Some(hint),
            )]
        };
        let approvals = Approvals::new(&config.approval, &limits, recorder.clone(), one_session)
            .map_err(fault)?;
        let approvals = approvals.with_notifier(approval::notifier(config, &recorder)?);
        let in_flight = InFlight::new(limits.bytes_in_flight, limits.bytes_in_flight_per_agent);
        let inputs = UpstreamInputs {
            policies: &policies,
            pins: &pins,
            limits: &limits,
            in_flight: &in_flight,
        };
        Ok(Self {
            upstreams: Upstreams::new(upstreams, &inputs),
            policies: ArcSwap::from_pointee(policies),
            budgets: Budgets::new(&limits),
            sessions: Sessions::new(&limits),
            stored_results: StoredResults::new(&limits.stored_results),
            approvals: Arc::new(approvals),
            pins: Arc::new(pins),
            list_changes: ListChanges::default(),
            pending_releases: Arc::default(),
            resolver: Resolver::default(),
            classifiers: Classifiers::default(),
            offload: Offload::new(),
            clean_texts: Arc::new(CleanTexts::new(limits.clean_texts)),
            in_flight,
            recorder,
            limits,
        })
    }

    /// Activates other policies, for calls that arrive from now on and for open streams on which
    /// agents listen.
    pub fn replace_policies(&self, policies: Policies) {
        let (old, new) = (self.policies.load_full(), Arc::new(policies));
        self.upstreams.replace_policies(&new);
        self.policies.store(new.clone());
        self.notify_changed_lists(&old, &new);
    }

    /// Returns the active policies.
    pub fn policies(&self) -> Arc<Policies> {
        self.policies.load_full()
    }

    /// Returns the recorder of events.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns the API for answering approval requests through the gate itself. From now on they
    /// have someone to answer them.
    pub fn approval_api(&self) -> ApprovalApi {
        ApprovalApi::open(self.approvals.clone())
    }

    /// Removes expired approval requests, and records them. Call it periodically.
    pub fn sweep(&self) {
        self.approvals.sweep();
    }

    /// Returns the account of message bytes in flight.
    pub fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }

    /// Returns the active limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Records a call that failed, and the limit if one was reached.
    pub fn record_failure(&self, context: &Context, error: &CallError) {
        if let Some(name) = error.limit() {
            self.record(Event::Limit { name });
        }
        self.record(Event::Failed { context, error });
    }

    /// Records an event that is not a message: if the log cannot be written, the next message will
    /// not pass.
    pub fn record(&self, event: Event<'_>) {
        if let Err(error) = self.recorder.record(event) {
            tracing::error!(%error, "cannot write the audit log");
        }
    }

    /// Shuts down every upstream.
    pub async fn shutdown(&self) {
        self.upstreams.shutdown().await;
    }
}
