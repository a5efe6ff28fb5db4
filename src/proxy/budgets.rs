//! Limits on tool calls (number, rate and size) by agent, upstream, tool and session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::result_paging;
use super::session::Session;
use crate::config::{CallLimits, Limits, ToolLimits};
use crate::inspect::Policy;
use crate::message::Message;
use crate::protocol::{CallError, Context};

const MINUTE: Duration = Duration::from_secs(60);
/// Maximum number of rates and concurrency slots remembered. The entries that a config names are
/// fewer; beyond it, idle ones are forgotten.
const MAX_ENTRIES: usize = 20_000;

/// The calls counted so far.
pub(super) struct Budgets {
    limits: CallLimits,
    session_idle: Duration,
    state: Mutex<State>,
}

/// Concurrency slots of tools, returned when they are dropped.
pub(super) type Permits = Vec<OwnedSemaphorePermit>;

/// A call that is counted.
struct CallCharge<'a> {
    context: &'a Context,
    session: &'a Session,
    now: Instant,
}

#[derive(Default)]
struct State {
    /// When each rate will be idle again (the theoretical arrival time of GCRA, ITU-T I.371).
    rates: HashMap<String, Instant>,
    slots: HashMap<String, Arc<Semaphore>>,
}

/// Calls that are counted together, and their maximum number.
struct CallGroup {
    name: &'static str,
    key: String,
    limit: u32,
}

impl Budgets {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            limits: limits.calls.clone(),
            session_idle: limits.session_idle,
            state: Mutex::default(),
        }
    }

    /// Counts the tool calls in a message, and requests for parts of their results; they may
    /// proceed only if every limit has room for each.
    ///
    /// # Errors
    /// The limit that was reached, and how long to wait if waiting helps.
    pub(super) fn spend(
        &self,
        message: &Message,
        context: &Context,
        session: &Session,
        policy: &Policy,
    ) -> Result<Permits, CallError> {
        let mut permits = Permits::new();
        let charge = CallCharge {
            context,
            session,
            now: Instant::now(),
        };
        for envelope in message.envelopes() {
            if result_paging::requested_part(message).is_some() {
                self.spend_one(0, &charge, None, &mut permits)?;
                continue;
            }
            if !(envelope.is_request() && envelope.method() == Some("tools/call")) {
                continue;
            }
            let Some(body) = message.body(envelope) else {
                continue;
            };
            let name = body.get_str("name").unwrap_or_default();
            let size = body
                .get("arguments")
                .map_or(0, |arguments| arguments.raw().len());
            self.spend_one(size, &charge, policy.tool_limits(&name), &mut permits)?;
        }
        Ok(permits)
    }

    fn spend_one(
        &self,
        size: usize,
        charge: &CallCharge<'_>,
        tool_limits: Option<(&str, &ToolLimits)>,
        permits: &mut Permits,
    ) -> Result<(), CallError> {
        let max_bytes = tool_limits
            .and_then(|(_, limits)| limits.argument_bytes)
            .or(self.limits.argument_bytes);
        if let Some(most) = max_bytes.filter(|most| size > *most) {
            return Err(CallError::TooLong {
                limit: "argument_bytes",
                most,
            });
        }
        let CallCharge {
            context,
            session,
            now,
        } = *charge;
        let agent = &session.agent.holder;
        let upstream = &context.upstream;
        let tool_key = |glob: &str| format!("{agent}\n{upstream}\n{glob}");
        // A key is created only if there is a limit.
        let mut rates = Vec::new();
        let mut rate = |name, most: Option<u32>, key: &dyn Fn() -> String| {
            rates.extend(most.map(|most| CallGroup {
                name,
                key: key(),
                limit: most,
            }));
        };
        rate(
            "calls_per_minute_per_agent",
            self.limits.per_minute_per_agent,
            &|| format!("agent\n{agent}"),
        );
        rate(
            "calls_per_minute_per_upstream",
            self.limits.per_minute_per_upstream,
            &|| format!("upstream\n{upstream}"),
        );
        if let Some((glob, limits)) = tool_limits {
            rate("calls_per_minute", limits.per_minute, &|| {
                format!("tool\n{}", tool_key(glob))
            });
        }
        // The budgets of a session: for all tools, and for those that a glob matches.
        let session_budget =
            tool_limits.and_then(|(glob, limits)| Some((glob, limits.per_session?)));
        let budgets: [Option<(&str, u32)>; 2] = [
            self.limits.per_session.map(|most| ("", most)),
            session_budget,
        ];
        let slot_group = tool_limits.and_then(|(glob, limits)| {
            let most = limits.concurrent?;
            Some(CallGroup {
                name: "concurrent_calls",
                key: tool_key(glob),
                limit: most,
            })
        });
        if rates.is_empty() && slot_group.is_none() && budgets == [None, None] {
            return Ok(());
        }
        // Locked to the end, so that two calls never take the last slot.
        let mut state = self.state.lock();
        if let Some(group) = slot_group {
            permits.push(state.acquire_slot(&group)?);
        }
        for (glob, most) in budgets.into_iter().flatten() {
            if !session.has_budget(glob, most, now, self.session_idle) {
                return Err(CallError::BudgetSpent {
                    limit: "calls_per_session",
                    most,
                });
            }
        }
        for rate in &rates {
            if let Some(wait) = state.wait(rate, now) {
                return Err(CallError::TooFast {
                    limit: rate.name,
                    wait,
                });
            }
        }
        // A call that one limit stops is not counted by any.
        for rate in rates {
            state.count(rate, now);
        }
        for (glob, _) in budgets.into_iter().flatten() {
            session.spend(glob, now, self.session_idle);
        }
        Ok(())
    }
}

impl State {
    /// Returns how long to wait until a rate has room for one more call.
    fn wait(&self, rate: &CallGroup, now: Instant) -> Option<Duration> {
        let backlog = self.rates.get(&rate.key)?.saturating_duration_since(now);
        (backlog + MINUTE / rate.limit)
            .checked_sub(MINUTE)
            .filter(|wait| !wait.is_zero())
    }

    fn count(&mut self, rate: CallGroup, now: Instant) {
        if self.rates.len() >= MAX_ENTRIES {
            self.rates.retain(|_, rest| *rest > now);
        }
        let idle_at = self.rates.entry(rate.key).or_insert(now);
        *idle_at = (*idle_at).max(now) + MINUTE / rate.limit;
    }

    fn acquire_slot(&mut self, place: &CallGroup) -> Result<OwnedSemaphorePermit, CallError> {
        if self.slots.len() >= MAX_ENTRIES {
            self.slots.retain(|_, places| Arc::strong_count(places) > 1);
        }
        // A reload may have changed the number of slots, so it is part of the key: the old slots
        // expire with their calls.
        let key = format!("{}\n{}", place.key, place.limit);
        let most = usize::try_from(place.limit)
            .unwrap_or(usize::MAX)
            .min(Semaphore::MAX_PERMITS);
        let slots = self
            .slots
            .entry(key)
            .or_insert_with(|| Arc::new(Semaphore::new(most)))
            .clone();
        slots
            .try_acquire_owned()
            .map_err(|_| CallError::Limit(place.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(most: u32) -> CallGroup {
        CallGroup {
            name: "calls_per_minute",
            key: "k".into(),
            limit: most,
        }
    }

    #[test]
    fn a_rate_lets_a_minutes_worth_through_at_once_and_then_one_at_a_time() {
        let mut state = State::default();
        let now = Instant::now();
        for _ in 0..3 {
            assert_eq!(state.wait(&rate(3), now), None);
            state.count(rate(3), now);
        }
        assert_eq!(state.wait(&rate(3), now), Some(Duration::from_secs(20)));
        assert_eq!(state.wait(&rate(3), now + Duration::from_secs(20)), None);
        state.count(rate(3), now + Duration::from_secs(20));
        assert_eq!(
            state.wait(&rate(3), now + Duration::from_secs(21)),
            Some(Duration::from_secs(19))
        );
    }

    #[test]
    fn places_are_given_back() {
        let mut state = State::default();
        let held = state.acquire_slot(&rate(1)).unwrap();
        assert!(matches!(
            state.acquire_slot(&rate(1)),
            Err(CallError::Limit("calls_per_minute"))
        ));
        drop(held);
        assert!(state.acquire_slot(&rate(1)).is_ok());
    }
}
