//! Chooses where a message is judged: on the thread that carries it, or on a blocking thread if
//! judging is expected to take long, so that one message does not delay the others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Gate;
use super::judge::Subject;
use super::route::{OpenCall, Route};
use super::upstreams::UpstreamState;
use crate::inspect::{InspectContext, Inspection, Policy, TextInspection, expected_work};
use crate::message::Direction;
use crate::protocol::{AuditId, CallError, Context};
use crate::record::Event;

/// Maximum expected cost, in bytes of prose, of a message that is judged on the threads that carry
/// traffic.
pub(super) const INLINE_WORK: usize = 64 << 10;

/// Permits for judging on blocking threads.
pub(super) struct Offload {
    permits: Arc<Semaphore>,
}

impl Offload {
    pub(super) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(workers() * 2)),
        }
    }
}

/// Returns the maximum number of messages of one upstream that are judged on blocking threads at
/// the same time: half of the total.
pub(super) fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

impl Gate {
    /// Waits for the permits to judge a message of an upstream on a blocking thread.
    pub(super) async fn judging_permits(
        &self,
        upstream: &UpstreamState,
    ) -> Result<[OwnedSemaphorePermit; 2], CallError> {
        let permit = |of: &Arc<Semaphore>| of.clone().acquire_owned();
        // The upstream's permit first: messages that wait for it do not block other upstreams.
        let upstream_permit = permit(&upstream.judging_permits)
            .await
            .map_err(|_| CallError::Draining)?;
        Ok([
            upstream_permit,
            permit(&self.offload.permits)
                .await
                .map_err(|_| CallError::Draining)?,
        ])
    }

    /// Judges a message, and measures the time it took.
    pub(super) async fn inspect(
        &self,
        subject: &Subject<'_>,
        inspect_context: &InspectContext,
        route: &Route,
    ) -> Result<(Inspection, Duration), CallError> {
        let Subject {
            ref policy,
            direction,
            message,
            context,
            audit,
            ..
        } = *subject;
        if expected_work(message.bytes(), self.limits.work) <= INLINE_WORK {
            let started = Instant::now();
            let inspection = policy.inspect(direction, message, context, audit, inspect_context);
            let duration = started.elapsed();
            self.record_slow(context, direction, audit, duration);
            return Ok((inspection, duration));
        }
        // Boxed: few messages need it, and all calls would reserve space for it.
        Box::pin(async move {
            let _permits = self.judging_permits(&route.upstream).await?;
            let policy = policy.clone();
            let message = message.clone();
            let context = context.clone();
            let inspect_context = inspect_context.clone();
            let started = Instant::now();
            let judge =
                move || policy.inspect(direction, &message, &context, audit, &inspect_context);
            let result = tokio::task::spawn_blocking(judge).await;
            Ok((
                result.map_err(|_| CallError::BadReply("inspection failed"))?,
                started.elapsed(),
            ))
        })
        .await
    }

    /// Judges a text that is not a message.
    pub(super) async fn inspect_text(
        &self,
        policy: &Arc<Policy>,
        text: &Bytes,
        audit: AuditId,
        open: &OpenCall,
    ) -> Result<TextInspection, CallError> {
        let policy = policy.clone();
        let text = text.clone();
        let work = self.limits.work;
        let memory = Some(open.route.session.memory());
        let expected = expected_work(&text, work);
        let judge = move || {
            let text = std::str::from_utf8(&text)
                .map_err(|_| CallError::BadReply("its text is not UTF-8"))?;
            Ok(policy.inspect_text(
                text,
                audit,
                &InspectContext {
                    memory,
                    work,
                    ..InspectContext::default()
                },
            ))
        };
        if expected > INLINE_WORK {
            let _permits = self.judging_permits(&open.route.upstream).await?;
            return tokio::task::spawn_blocking(judge)
                .await
                .map_err(|_| CallError::BadReply("inspection failed"))?;
        }
        let started = Instant::now();
        let result = judge();
        self.record_slow(open.context(), Direction::Inbound, audit, started.elapsed());
        result
    }

    /// Counts and logs an inspection that blocked a thread that carries traffic for too long.
    fn record_slow(
        &self,
        context: &Context,
        direction: Direction,
        audit: AuditId,
        duration: Duration,
    ) {
        if duration <= self.limits.judging {
            return;
        }
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let upstream = &context.upstream;
        let direction = direction.name();
        tracing::warn!(%audit, %upstream, direction, milliseconds, "slow inspection delayed other traffic");
        self.record(Event::Limit {
            name: "judging_milliseconds",
        });
    }
}
