//! Bounds on calls in flight, for each agent (and each of its users) and each upstream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::budgets::Held;
use super::roster::Here;
use crate::config::Limits;
use crate::protocol::{Ask, Call, CallError, Holder};

/// Past so many, those without a call in flight are forgotten.
const HOLDERS: usize = 4096;

/// Places for calls in flight.
pub(super) struct Slots {
    /// Those with calls in flight, and some that had.
    holders: Mutex<HashMap<Holder, Arc<Semaphore>>>,
    per_agent: usize,
}

/// A call's places, given back when it is dropped.
#[derive(Default)]
pub(super) struct Permit {
    _held: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
    /// Its places among the calls of its tool.
    pub(super) of_tool: Held,
    /// Its place among what its agent does.
    pub(super) here: Option<Here>,
}

impl Slots {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { holders: Mutex::default(), per_agent: limits.calls_per_agent }
    }

    /// Takes a call's places, one of those of its upstream. Streams that only listen need none: they are bounded with the
    /// connections they hold.
    pub(super) fn take(&self, call: &Call, of_upstream: &Arc<Semaphore>) -> Result<Permit, CallError> {
        let listens = match &call.ask {
            Ask::Listen => true,
            Ask::Send(message) => message.single().and_then(|envelope| envelope.method()) == Some("subscriptions/listen"),
            Ask::Close => false,
        };
        if listens {
            return Ok(Permit::default());
        }
        let agent = {
            let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
            if holders.len() >= HOLDERS {
                holders.retain(|_, places| Arc::strong_count(places) > 1);
            }
            holders.entry(call.context.holder()).or_insert_with(|| Arc::new(Semaphore::new(self.per_agent))).clone()
        };
        let agent = agent.try_acquire_owned().map_err(|_| CallError::Limit("calls_per_agent"))?;
        let upstream = of_upstream.clone().try_acquire_owned().map_err(|_| CallError::Limit("calls_per_upstream"))?;
        Ok(Permit { _held: Some((agent, upstream)), of_tool: Held::new(), here: None })
    }
}
