//! Where a message is judged: on the thread that carries it, or off it where judging is expected to take long, so that one
//! message does not hold up the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::judge::{Case, More};
use super::{By, Gate};
use crate::inspect::{Inspection, Known, Policy, TextInspection, expected_work};
use crate::message::Direction;
use crate::protocol::{AuditId, CallError, Context, UpstreamName};
use crate::record::Event;

/// Messages that are expected to cost more, in bytes of prose, are judged off the threads that carry traffic.
pub(super) const INLINE_WORK: usize = 64 << 10;

/// Permits for judging off the threads that carry traffic.
pub(super) struct Offload {
    all: Arc<Semaphore>,
}

impl Offload {
    pub(super) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(workers() * 2)) }
    }
}

/// Messages of one upstream that are judged so at the same time: half of all at most.
pub(super) fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

impl Gate {
    /// Waits for permission to judge a message of an upstream.
    pub(super) async fn judging_permits(&self, upstream: &UpstreamName) -> Result<Vec<OwnedSemaphorePermit>, CallError> {
        let of_upstream = self.upstreams.get(upstream).map(|state| state.judging.clone());
        let mut permits = Vec::with_capacity(2);
        // First that of the upstream: what waits for it holds up no other.
        for semaphore in of_upstream.into_iter().chain([self.offload.all.clone()]) {
            permits.push(semaphore.acquire_owned().await.map_err(|_| CallError::Draining)?);
        }
        Ok(permits)
    }

    /// Judges a message, and says how long it took.
    pub(super) async fn inspect(
        &self,
        case: &Case<'_>,
        by: &By,
        audit: AuditId,
        more: More,
    ) -> Result<(Inspection, Duration), CallError> {
        if expected_work(case.message.bytes(), self.limits.work) <= INLINE_WORK {
            let (inspection, took) = case.inspect(audit, &more);
            self.watch(case.context, case.direction, audit, took);
            return Ok((inspection, took));
        }
        // Boxed: few messages need it, and all calls would make room for it.
        Box::pin(self.inspect_elsewhere(case, by, audit, more)).await
    }

    /// Judges a message off the threads that carry traffic.
    async fn inspect_elsewhere(
        &self,
        case: &Case<'_>,
        by: &By,
        audit: AuditId,
        more: More,
    ) -> Result<(Inspection, Duration), CallError> {
        let _permits = self.judging_permits(&case.context.upstream).await?;
        let (direction, message, context, by) = (case.direction, case.message.clone(), case.context.clone(), by.clone());
        let started = Instant::now();
        let judged =
            tokio::task::spawn_blocking(move || by.policy.inspect(direction, &message, &context, audit, &more.with(by.known())));
        let inspection = judged.await.map_err(|_| CallError::BadReply("judging it failed"))?;
        Ok((inspection, started.elapsed()))
    }

    /// Judges a text that is no message.
    pub(super) async fn inspect_text(
        &self,
        policy: &Arc<Policy>,
        text: &Bytes,
        audit: AuditId,
        context: &Context,
    ) -> Result<TextInspection, CallError> {
        let (policy, text, memory, work) = (policy.clone(), text.clone(), self.memories.of(context), self.limits.work);
        let expected = expected_work(&text, work);
        let judge = move || {
            let text = std::str::from_utf8(&text).map_err(|_| CallError::BadReply("its text is not UTF-8"))?;
            Ok(policy.inspect_text(text, audit, &Known { memory: Some(&memory), work, ..Known::default() }))
        };
        if expected > INLINE_WORK {
            let _permits = self.judging_permits(&context.upstream).await?;
            return tokio::task::spawn_blocking(judge).await.map_err(|_| CallError::BadReply("judging it failed"))?;
        }
        let started = Instant::now();
        let judged = judge();
        self.watch(context, Direction::Inbound, audit, started.elapsed());
        judged
    }

    /// Counts and logs a judgement that held up a thread that carries traffic.
    fn watch(&self, context: &Context, direction: Direction, audit: AuditId, took: Duration) {
        if took <= self.limits.judging {
            return;
        }
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let (upstream, direction) = (&context.upstream, direction.name());
        tracing::warn!(%audit, %upstream, direction, milliseconds, "judging a message held up traffic");
        self.tell(Event::Limit { name: "judging_milliseconds" });
    }
}
