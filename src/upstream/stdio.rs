//! Servers that are child processes (all revisions, Transports, stdio). Two agents never share a
//! child.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use super::channel::Channel;
use super::child::{Child, ChildExit, ChildSpec};
use super::health::{Health, HealthTracker};
use super::http::empty_reply;
use super::in_flight_call::InFlightCall;
use super::probe::{self, ProbeResult};
use super::sessions::{ServerLink, Sessions, Timeouts, or_cancelled, send_registered};
use crate::config::{Limits, StdioTransport, UpstreamConfig};
use crate::message::Message;
use crate::protocol::{
    Call, CallError, CallKind, Era, Holder, ProcessFault, ProcessOutput, Reply, UpstreamName,
};

/// A server that is a child process: one child for each legacy session; for modern calls one for
/// each agent, and another one if ids or progress tokens would collide.
pub(super) struct Stdio {
    spec: ChildSpec,
    permits: Arc<Semaphore>,
    sessions: Sessions<Child>,
    pools: Mutex<HashMap<Holder, Vec<Arc<Child>>>>,
    timeouts: Timeouts,
    abandoned_after: Duration,
    closing: watch::Sender<bool>,
    history: Arc<SpawnHistory>,
}

/// Facts about earlier children that matter for later ones.
#[derive(Default)]
struct SpawnHistory {
    health_tracker: HealthTracker,
    crashes: Mutex<HashMap<Holder, CrashBackoff>>,
}

/// How many of an agent's children in a row ended by themselves, and when the next may start.
struct CrashBackoff {
    count: u32,
    next: Instant,
    last: Arc<ProcessFault>,
}

/// How long a modern child may be unused before it is ended: it holds no state that an agent could
/// miss, and agents that only probe which era the server supports leave one behind.
const MODERN_IDLE: Duration = Duration::from_secs(600);
/// How long a session may be unused before it counts as abandoned: agents that stop without DELETE
/// leave their session behind. An abandoned session gives way to a new one of the same agent when
/// no place is left.
const ABANDONED: Duration = Duration::from_secs(60);
/// Number of agents (each with each of its users) above which those without a child are forgotten.
const MAX_HOLDERS: usize = 4096;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Stdio {
    /// # Errors
    /// An error message about the config, for the user.
    pub(super) fn new(
        name: UpstreamName,
        transport: &StdioTransport,
        config: &UpstreamConfig,
        limits: &Limits,
    ) -> Result<Self, String> {
        if transport.program().is_empty() {
            return Err("`command` names no program".into());
        }
        let timeouts = Timeouts::new(config, limits);
        Ok(Self {
            spec: ChildSpec {
                upstream: name,
                transport: transport.clone(),
                limits: limits.clone(),
                output: Arc::default(),
            },
            permits: Arc::new(Semaphore::new(limits.children_per_upstream)),
            sessions: Sessions::new(limits.sessions, timeouts),
            pools: Mutex::default(),
            timeouts,
            abandoned_after: ABANDONED,
            closing: watch::Sender::new(false),
            history: Arc::default(),
        })
    }

    /// Sends one call. Dropping the frames of a modern reply sends `notifications/cancelled` to the
    /// child; dropping those of a legacy one cancels nothing, and the late answer is dropped.
    pub(super) async fn call(&self, call: &Call) -> Result<Reply, CallError> {
        let outcome = match call.context.era {
            Era::Legacy => {
                self.sessions
                    .dispatch(call, self.connect(&call.context.holder(), Era::Legacy))
                    .await
            }
            Era::Modern => self.call_modern(call).await,
        };
        if outcome.is_ok() {
            self.history.crashes.lock().remove(&call.context.holder());
        }
        if let Err(error @ CallError::Silent(_)) = &outcome {
            // A process cannot be probed on the side.
            self.history.health_tracker.record_down(error.to_string());
        }
        or_cancelled(self.history.health_tracker.record_outcome(outcome))
    }

    /// Returns the state of the last child; before the first one, whether its program exists.
    pub(super) fn health(&self) -> Health {
        self.history.health_tracker.last_known().unwrap_or_else(|| {
            match probe::probe_program(self.spec.transport.program()) {
                ProbeResult::Down(reason) => Health::Down(reason),
                _ => Health::Up,
            }
        })
    }

    /// Returns the last lines that the processes printed outside the protocol.
    pub(super) fn output(&self) -> ProcessOutput {
        self.spec.output.process_output()
    }

    /// Ends all children and waits until they are gone: at most three times the grace period of
    /// each, in parallel.
    pub(super) async fn shutdown(&self) {
        self.closing.send_replace(true);
        let all = u32::try_from(self.spec.limits.children_per_upstream).unwrap_or(u32::MAX);
        drop(self.permits.acquire_many(all).await);
    }

    async fn call_modern(&self, call: &Call) -> Result<Reply, CallError> {
        let CallKind::Send(message) = &call.kind else {
            return Err(CallError::NotOffered);
        };
        let holder = &call.context.holder();
        if message.requests().next().is_none() {
            return self.notify(holder, message).await;
        }
        self.pause(holder).await?;
        let (child, ticket) = self.assign_child(holder, message)?;
        Ok(send_registered(&*child, ticket, message, &self.timeouts)
            .await?
            .reply)
    }

    /// Sends a notification to the child that works on the request it names, otherwise to the
    /// agent's first child. Without a child it concerns nothing.
    async fn notify(&self, holder: &Holder, message: &Message) -> Result<Reply, CallError> {
        let request = message.single_body().and_then(|body| body.get("requestId"));
        let child = {
            let pools = self.pools.lock();
            let pool = pools.get(holder).map(Vec::as_slice).unwrap_or_default();
            let concerned = pool
                .iter()
                .find(|child| request.is_some_and(|id| child.channel().has_request(id)));
            concerned
                .or_else(|| pool.iter().find(|child| is_alive(child.channel())))
                .cloned()
        };
        if let Some(child) = child {
            child.send(message, self.timeouts.request).await?;
        }
        Ok(empty_reply(StatusCode::ACCEPTED, HeaderMap::new()))
    }

    /// Finds the agent's first child on which the call's ids are free, or starts one. The pool
    /// stays locked meanwhile, so that two concurrent calls do not start two.
    fn assign_child(
        &self,
        holder: &Holder,
        message: &Message,
    ) -> Result<(Arc<Child>, InFlightCall), CallError> {
        let mut pools = self.pools.lock();
        if pools.len() >= MAX_HOLDERS {
            pools.retain(|_, pool| pool.iter().any(|child| is_alive(child.channel())));
        }
        let pool = pools.entry(holder.clone()).or_default();
        pool.retain(|child| is_alive(child.channel()));
        for child in pool.iter() {
            // A child that has just ended is skipped.
            if let Ok(Some(ticket)) = child.channel().register(message) {
                return Ok((child.clone(), ticket));
            }
        }
        let child = self.start(holder, Era::Modern)?;
        let ticket = child
            .channel()
            .register(message)?
            .ok_or(CallError::BadReply("a new process is busy"))?;
        pool.push(child.clone());
        Ok((child, ticket))
    }

    async fn connect(&self, holder: &Holder, era: Era) -> Result<Arc<Child>, CallError> {
        self.pause(holder).await?;
        if self.permits.available_permits() == 0
            && self.sessions.retire(holder, self.abandoned_after)
        {
            tracing::warn!(upstream = %self.spec.upstream, agent = %holder.agent, limit = "children_per_upstream", "an unused session was ended");
            // The next step checks whether its place was freed in time.
            drop(tokio::time::timeout(self.timeouts.initialize, self.permits.acquire()).await);
        }
        self.start(holder, era)
    }

    /// Waits for the backoff after crashes; if that is longer than the agent would wait, fails at
    /// once.
    async fn pause(&self, holder: &Holder) -> Result<(), CallError> {
        let (pause, last) = match self.history.crashes.lock().get(holder) {
            Some(crashes) => (
                crashes.next.saturating_duration_since(Instant::now()),
                crashes.last.clone(),
            ),
            None => return Ok(()),
        };
        if pause > self.timeouts.initialize {
            let message = format!(
                "{last}, and keeps ending; the next start is in {} s",
                pause.as_secs()
            );
            return Err(CallError::Process(Box::new(ProcessFault::exited(
                message,
                last.output.clone(),
            ))));
        }
        tokio::time::sleep(pause).await;
        Ok(())
    }

    fn start(&self, holder: &Holder, era: Era) -> Result<Arc<Child>, CallError> {
        if *self.closing.borrow() {
            return Err(CallError::Draining);
        }
        let limit = CallError::Limit("children_per_upstream");
        let permit = self
            .permits
            .clone()
            .try_acquire_owned()
            .map_err(|_| limit)?;
        let history = self.history.clone();
        let owner = holder.clone();
        let upstream = self.spec.upstream.clone();
        let on_exit = move |exit| {
            if let ChildExit::ByItself(fault) = exit {
                let output = (!fault.output.is_empty()).then(|| fault.output.to_string());
                tracing::warn!(%upstream, agent = %owner.agent, output, "{fault}");
                history.record_crash(&owner, fault);
            }
        };
        let idle = match era {
            Era::Legacy => self.spec.limits.session_idle,
            Era::Modern => self.spec.limits.session_idle.min(MODERN_IDLE),
        };
        Child::start(
            &self.spec,
            era,
            idle,
            permit,
            self.closing.subscribe(),
            on_exit,
        )
        .map_err(|error| {
            let why = format!("cannot start the server's process: {error}");
            self.history.record_crash(
                holder,
                Arc::new(ProcessFault::exited(why, ProcessOutput::default())),
            );
            CallError::NotStarted(error)
        })
    }
}

fn is_alive(channel: &Channel) -> bool {
    channel.end_reason().is_none()
}

impl SpawnHistory {
    fn record_crash(&self, holder: &Holder, fault: Arc<ProcessFault>) {
        self.health_tracker.record_down(fault.describe());
        let mut backoffs = self.crashes.lock();
        if backoffs.len() >= MAX_HOLDERS {
            backoffs.retain(|_, crashes| crashes.next > Instant::now());
        }
        let crashes = backoffs.entry(holder.clone()).or_insert(CrashBackoff {
            count: 0,
            next: Instant::now(),
            last: fault.clone(),
        });
        crashes.last = fault;
        let pause = FIRST_PAUSE
            .saturating_mul(1 << crashes.count.min(16))
            .min(LONGEST_PAUSE);
        crashes.count = crashes.count.saturating_add(1);
        crashes.next = Instant::now() + pause;
    }
}

#[cfg(test)]
mod tests;
