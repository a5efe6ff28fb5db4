//! The path of a call: from an agent to a server and back, judged both ways.

mod access;
pub mod approve;
mod asking;
mod budgets;
mod changed;
mod classify;
mod inbound;
mod judge;
mod keep;
pub mod lines;
mod lists;
mod logins;
mod memories;
mod mirrors;
mod offload;
mod open_calls;
mod outbound;
mod pages;
pub mod pins;
mod releases;
mod repeats;
mod resolve;
pub mod roster;
mod sessions;
mod slots;
mod upstreams;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use arc_swap::ArcSwap;
use http::StatusCode;

use crate::config::{Config, Limits};
use crate::detect::shadow::Names;
use crate::detect::work::WorkLimits;
use crate::document::Fault;
use crate::inspect::definitions::Pins;
use crate::inspect::memory::Memory;
use crate::inspect::tools::Tools;
use crate::inspect::{Heard, Known, Paging, Policy};
use crate::message::{Direction, Message};
use crate::protocol::{Ask, AuditId, Call, CallError, Context, Era, InFlight, Reply, UpstreamName, answer, header, headers};
use crate::record::{Event, Recorder};
use crate::upstream::Upstream;
use approve::{Approvals, Desk, Matter, asks};
use asking::Next;
use budgets::Budgets;
use changed::{Changed, Listens};
use classify::Classifiers;
use inbound::Waiting;
use judge::{Case, Judged, More};
use memories::Memories;
use offload::Offload;
use pins::Store;
use releases::Releases;
use resolve::Resolver;
use sessions::Sessions;
use slots::{Permit, Slots};
pub use upstreams::UpstreamChanges;
use upstreams::{UpstreamState, Upstreams};

/// The policies in force, by upstream; a reload swaps them whole.
pub type Policies = HashMap<UpstreamName, Arc<Policy>>;

/// Makes ready what rules otherwise make when a text first calls for it. Takes a while, and twice the memory.
pub fn warm(policies: &Policies) {
    for policy in policies.values() {
        policy.rules(Direction::Outbound).warm();
        policy.rules(Direction::Inbound).warm();
    }
}

/// Carries calls from agents to upstreams and their replies back.
pub struct Gate {
    policies: ArcSwap<Policies>,
    /// Whether the first call has come, with which the policies are made ready.
    used: AtomicBool,
    upstreams: Upstreams,
    sessions: Sessions,
    memories: Arc<Memories>,
    slots: Slots,
    budgets: Budgets,
    approvals: Arc<Approvals>,
    pins: Arc<Store>,
    changed: Changed,
    releases: Arc<Releases>,
    resolver: Resolver,
    classifiers: Classifiers,
    offload: Offload,
    in_flight: Arc<InFlight>,
    recorder: Arc<Recorder>,
    limits: Limits,
}

/// What a message is judged by, for whichever thread does it.
#[derive(Clone)]
struct By {
    policy: Arc<Policy>,
    tools: Option<Arc<Tools>>,
    memory: Memory,
    paging: Option<Paging>,
    pins: Arc<Pins>,
    names: Arc<Names>,
    heard: Heard,
    server: Box<str>,
    work: WorkLimits,
}

impl By {
    fn known(&self) -> Known<'_> {
        Known {
            tools: self.tools.as_deref(),
            memory: Some(&self.memory),
            pins: Some(&self.pins),
            paging: self.paging.as_ref(),
            names: Some((&self.names, &self.server)),
            heard: Some(&self.heard),
            work: self.work,
            ..Known::default()
        }
    }
}

impl Gate {
    /// Puts the parts together. `config` is what the parts themselves leave open.
    ///
    /// # Errors
    /// The approvals of earlier times, or the lock file, cannot be read.
    pub fn new(
        upstreams: Vec<(UpstreamName, Upstream)>,
        policies: Policies,
        recorder: Arc<Recorder>,
        config: &Config,
    ) -> Result<Self, Vec<Fault>> {
        Self::build(upstreams, policies, recorder, config, Store::open(config.pins.file.as_deref())?, false)
    }

    /// The same with these pins; a gate of `one_session` ends with it.
    fn build(
        upstreams: Vec<(UpstreamName, Upstream)>,
        policies: Policies,
        recorder: Arc<Recorder>,
        config: &Config,
        pins: Store,
        one_session: bool,
    ) -> Result<Self, Vec<Fault>> {
        let limits = config.limits.clone();
        let hint = "see what `file` under `[approval]` names";
        let fault = |error: std::io::Error| vec![Fault::of_file("approval.file", error.to_string(), Some(hint))];
        let approvals = Approvals::new(&config.approval, &limits, recorder.clone(), one_session).map_err(fault)?;
        let approvals = approvals.notified_by(approve::notifier(config, &recorder)?);
        let in_flight = InFlight::new(limits.bytes_in_flight, limits.bytes_in_flight_per_agent);
        Ok(Self {
            policies: ArcSwap::from_pointee(policies),
            used: AtomicBool::new(false),
            slots: Slots::new(&limits),
            budgets: Budgets::new(&limits),
            upstreams: Upstreams::new(upstreams, &limits, &in_flight),
            sessions: Sessions::new(limits.sessions, limits.session_idle),
            memories: Arc::new(Memories::new(&limits, limits.sessions)),
            approvals: Arc::new(approvals),
            pins: Arc::new(pins),
            changed: Changed::default(),
            releases: Arc::default(),
            resolver: Resolver::default(),
            classifiers: Classifiers::default(),
            offload: Offload::new(),
            in_flight,
            recorder,
            limits,
        })
    }

    /// Puts other policies in force: messages that arrive from now on are judged by them, in open streams too.
    pub fn replace(&self, policies: Policies) {
        let (old, new) = (self.policies.load_full(), Arc::new(policies));
        self.policies.store(new.clone());
        self.tell_shown_otherwise(&old, &new);
    }

    /// The policies in force.
    pub fn policies(&self) -> Arc<Policies> {
        self.policies.load_full()
    }

    /// Who hears of what happens.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The questions to people, for whoever answers them through the gate itself. From now on there is somebody.
    pub fn desk(&self) -> Desk {
        Desk::open(self.approvals.clone())
    }

    /// Forgets the questions whose time is over, and tells of them. To be called now and then.
    pub fn sweep(&self) {
        self.approvals.sweep();
    }

    /// The bytes of messages in flight.
    pub fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Carries one call: agree, admit, judge, call, judge what comes back.
    ///
    /// # Errors
    /// Whatever keeps it from a reply; `answer::failed` turns it into one. The recorder has been told.
    pub async fn carry(self: &Arc<Self>, mut call: Call) -> Result<Reply, CallError> {
        call.context.trace = self.recorder.trace_of(&call);
        let context = call.context.clone();
        let carried = self.try_carry(call).await;
        if let Err(error) = &carried {
            self.tell_failed(&context, error);
        }
        carried
    }

    async fn try_carry(self: &Arc<Self>, mut call: Call) -> Result<Reply, CallError> {
        if !self.used.swap(true, Ordering::Relaxed) {
            let policies = self.policies();
            tokio::task::spawn_blocking(move || warm(&policies));
        }
        let upstream = self.upstreams.get(&call.context.upstream).ok_or(CallError::NotOffered)?;
        let barred = self.barred(&call, &upstream)?;
        Self::agree(&upstream, &call, barred.is_none())?;
        self.sessions.admit(&mut call.context)?;
        let mut permit = self.slots.take(&call, &upstream.places)?;
        permit.here = Some(self.sessions.roster.enter(&call));
        if let Ask::Send(message) = &call.ask {
            permit.of_tool = self.spend(message, &call.context)?;
        }
        if let Some(barred) = barred {
            return Ok(barred.reply());
        }
        if let Ask::Send(message) = &call.ask
            && let Some(reply) = self.served(message, &call.context).await?
        {
            return Ok(reply);
        }
        let mut approved = None;
        if let Ask::Send(message) = &call.ask {
            if self.approvals.take(message, &call.context)? {
                return Ok(answer::empty(StatusCode::ACCEPTED));
            }
            let restored = self.approvals.restored(&call.context, message)?;
            let message = restored.as_ref().map_or_else(|| message.clone(), |restored| restored.message.clone());
            let next = self.judge_outbound(&message, &call, restored.as_ref()).await?;
            if let Next::Send(_) = &next
                && let Some(reply) =
                    self.released(self.releases.of_call(&message, &call.context), &message, &call.context).await?
            {
                return Ok(reply);
            }
            call.ask = Ask::Send(message);
            match next {
                Next::Send(matter) => approved = matter,
                Next::Answer(reply) => return Ok(*reply),
                Next::Stream(asked) => return Ok(self.ask_on_stream(call, asked, permit)),
            }
        }
        self.send(call, permit, approved).await
    }

    /// Sends what may go on, and judges what comes back. `approved` is what a person was asked about it.
    async fn send(self: &Arc<Self>, mut call: Call, permit: Permit, approved: Option<Box<Matter>>) -> Result<Reply, CallError> {
        let upstream = self.upstreams.get(&call.context.upstream).ok_or(CallError::NotOffered)?;
        let mut elicits = None;
        if let Ask::Send(message) = &call.ask {
            call.context.asked = self.sessions.asking(&call.context, message);
            let opens = message.single().is_some_and(|envelope| envelope.method() == Some("initialize"));
            elicits = opens.then(|| asks(message, Era::Legacy));
        } else {
            call.context.asked = self.sessions.asked(&call.context);
        }
        let (context, headers, started, listens) =
            (call.context.clone(), call.headers.clone(), Instant::now(), Listens::of(&call));
        let heard = upstream.heard();
        let sent = if let Ask::Send(message) = &call.ask { Some(message.clone()) } else { None };
        let permit = Mutex::new(permit);
        let waiting = Waiting { context, headers, sent, started, approved, listens, heard, upstream: upstream.clone(), permit };
        let waiting = Arc::new(waiting);
        upstream.open.iter().for_each(|open| open.add(&waiting));
        let closes = matches!(call.ask, Ask::Close);
        let reply = match upstream.call(call).await {
            Ok(reply) => reply,
            Err(error) => {
                upstream.open.iter().for_each(|open| open.remove(&waiting));
                return match self.login_asked(&error, &waiting.context, waiting.sent.as_ref()) {
                    Some(reply) => Ok(reply),
                    None => Err(self.inspect_output(error, &waiting.context).await),
                };
            }
        };
        if closes && reply.status.is_success() {
            self.sessions.forget(&waiting.context);
        } else {
            self.sessions.learn(&waiting.context, &reply, elicits);
        }
        Ok(self.judge_reply(reply, waiting).await)
    }

    /// Counts the calls of tools against the limits.
    fn spend(&self, message: &Message, context: &Context) -> Result<budgets::Held, CallError> {
        let policy = self.policy_of(context)?;
        self.budgets.spend(message, context, &policy, Instant::now())
    }

    /// Whether headers and body agree. Which arguments a tool mirrors in headers is known to those only for whom it `is_there`.
    fn agree(upstream: &UpstreamState, call: &Call, is_there: bool) -> Result<(), CallError> {
        let Ask::Send(message) = &call.ask else { return Ok(()) };
        if call.context.wire.is_pipe() {
            // Lines have no headers, and what revisions they are of is for their two ends.
            return Ok(());
        }
        // Only 2025-03-26 has batches; its clients send no version header, or that one.
        if message.is_batch() && call.headers.get(header::VERSION).is_some_and(|version| version != "2025-03-26") {
            return Err(CallError::NoBatches);
        }
        let tool = message.single().filter(|_| is_there).and_then(|envelope| headers::named(message, envelope));
        let mirrors = tool.and_then(|tool| upstream.mirrors.of(&tool));
        headers::agree(&call.headers, message, call.context.era, mirrors.as_deref())
    }

    /// Judges a message and tells of it. What must be told and cannot be is not passed on. For a reply, `waiting` is the
    /// call that it belongs to.
    async fn judge(
        &self,
        direction: Direction,
        message: &Message,
        context: &Context,
        waiting: Option<&Waiting>,
    ) -> Result<Judged, CallError> {
        let policy = self.policy_of(context)?;
        let upstream = waiting.map(|waiting| waiting.upstream.clone()).or_else(|| self.upstreams.get(&context.upstream));
        let tools = upstream.map(|upstream| upstream.tools.clone());
        let memory = self.memories.of(context);
        let waited = waiting.filter(|waiting| waiting.sent.is_some()).map(|waiting| waiting.started.elapsed());
        let paging = waiting.and_then(|waiting| self.memories.pages.paging(headers::knows_links(&waiting.headers, context.era)));
        let server = self.pins.pinned_as(&context.upstream.0).into();
        let (pins, names) = (self.pins.of(&context.upstream.0), self.pins.names());
        let heard = waiting.map(Waiting::heard).unwrap_or_default();
        let work = self.limits.work;
        let (audit, by) = (AuditId::make(), By { policy, tools, memory, paging, pins, names, heard, server, work });
        let known = by.known();
        let case = Case { policy: &by.policy, direction, message, context, waited, known, memories: &self.memories };
        let (mut inspection, mut took) = self.inspect(&case, &by, audit, More::default()).await?;
        let looked_up = self.resolver.more_for(&by.policy, &mut inspection).await;
        let classified = self.classifiers.more_for(&by.policy, &mut inspection).await;
        if let Some(more) = More::of(looked_up, classified, &self.recorder)? {
            let (knowing_more, again) = self.inspect(&case, &by, audit, more).await?;
            (inspection, took) = (knowing_more, took + again);
        }
        let call = || waiting.and_then(Waiting::call);
        let kept = case.taken_out(&inspection, audit, call);
        let kept = self.quarantines(kept).await;
        let (mut judged, written) = case.tell(&self.recorder, audit, inspection, took, kept)?;
        written.durable().await.map_err(CallError::Audit)?;
        if let Some(waiting) = waiting.filter(|_| judged.goes_on()) {
            waiting.hears(judged.heard());
        }
        Ok(judged)
    }

    /// Tells of a call that failed, and of the limit if one was hit.
    pub fn tell_failed(&self, context: &Context, error: &CallError) {
        if let Some(name) = error.limit() {
            self.tell(Event::Limit { name });
        }
        self.tell(Event::Failed { context, error });
    }

    /// Tells of something that is no message: if the log cannot take it, the next message will not pass.
    pub fn tell(&self, event: Event<'_>) {
        if let Err(error) = self.recorder.tell(event) {
            tracing::error!(%error, "the audit log cannot be written");
        }
    }

    /// Ends every upstream.
    pub async fn shutdown(&self) {
        self.upstreams.shutdown().await;
    }
}
