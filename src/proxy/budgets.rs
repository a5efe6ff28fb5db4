//! How many calls of tools, how fast and how large: by agent, upstream, tool and session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::pages;
use crate::config::{CallLimits, Limits, ToolLimits};
use crate::inspect::Policy;
use crate::message::Message;
use crate::protocol::{CallError, Context, SessionId};

const MINUTE: Duration = Duration::from_secs(60);
/// Most rates and places remembered. What a config names needs fewer; past it, those at rest are forgotten.
const COUNTED: usize = 20_000;

/// What has been called so far.
pub(super) struct Budgets {
    limits: CallLimits,
    sessions: usize,
    session_idle: Duration,
    state: Mutex<State>,
}

/// What a call needs while it is open: given back when it is dropped.
pub(super) type Held = Vec<OwnedSemaphorePermit>;

#[derive(Default)]
struct State {
    /// When each rate will be at rest again (the theoretical arrival time of GCRA, ITU-T I.371).
    rates: HashMap<String, Instant>,
    /// Calls of each session so far, and when the last one was.
    spent: HashMap<String, (u32, Instant)>,
    places: HashMap<String, Arc<Semaphore>>,
}

/// Calls that are counted together, and how many may be.
struct Counted {
    name: &'static str,
    key: String,
    most: u32,
}

impl Budgets {
    pub(super) fn new(limits: &Limits) -> Self {
        let (sessions, session_idle) = (limits.sessions, limits.session_idle);
        Self { limits: limits.calls.clone(), sessions, session_idle, state: Mutex::default() }
    }

    /// Counts the calls of tools in a message, and requests for parts of what they answered; they may go on only if every
    /// limit has room for each.
    ///
    /// # Errors
    /// The limit that was hit, and how long to wait where waiting helps.
    pub(super) fn spend(&self, message: &Message, context: &Context, policy: &Policy, now: Instant) -> Result<Held, CallError> {
        let mut held = Held::new();
        for envelope in message.envelopes() {
            if pages::asked(message).is_some() {
                self.spend_one(0, context, None, now, &mut held)?;
                continue;
            }
            if !(envelope.is_request() && envelope.method() == Some("tools/call")) {
                continue;
            }
            let Some(body) = message.body(envelope) else { continue };
            let name = body.get("name").and_then(|name| name.str()).unwrap_or_default();
            let size = body.get("arguments").map_or(0, |arguments| arguments.raw().len());
            self.spend_one(size, context, policy.tool_limits(&name), now, &mut held)?;
        }
        Ok(held)
    }

    fn spend_one(
        &self,
        size: usize,
        context: &Context,
        of_tool: Option<(&str, &ToolLimits)>,
        now: Instant,
        held: &mut Held,
    ) -> Result<(), CallError> {
        let (mut rates, mut budgets, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let mut longest = self.limits.argument_bytes;
        let (agent, upstream) = (context.holder(), &context.upstream);
        let session = || context.session.as_ref().map_or("", SessionId::digest);
        // A key is made only where there is a limit.
        let count = |to: &mut Vec<Counted>, name, most: Option<u32>, key: &dyn Fn() -> String| {
            to.extend(most.map(|most| Counted { name, key: key(), most }));
        };
        let CallLimits { per_minute_per_agent, per_minute_per_upstream, per_session, .. } = self.limits;
        count(&mut rates, "calls_per_minute_per_agent", per_minute_per_agent, &|| format!("agent\n{agent}"));
        count(&mut rates, "calls_per_minute_per_upstream", per_minute_per_upstream, &|| format!("upstream\n{upstream}"));
        count(&mut budgets, "calls_per_session", per_session, &|| format!("{agent}\n{upstream}\n{}", session()));
        if let Some((glob, limits)) = of_tool {
            let shared = || format!("{agent}\n{upstream}\n{glob}");
            count(&mut rates, "calls_per_minute", limits.per_minute, &|| format!("tool\n{}", shared()));
            count(&mut places, "concurrent_calls", limits.concurrent, &shared);
            count(&mut budgets, "calls_per_session", limits.per_session, &|| format!("{}\n{}", shared(), session()));
            longest = limits.argument_bytes.or(longest);
        }
        if let Some(most) = longest.filter(|most| size > *most) {
            return Err(CallError::TooLong { limit: "argument_bytes", most });
        }
        if rates.is_empty() && budgets.is_empty() && places.is_empty() {
            return Ok(());
        }
        let mut state = self.state();
        for place in places {
            held.push(state.place(&place)?);
        }
        for budget in &budgets {
            let (spent, _) =
                state.spent.get(&budget.key).filter(|(_, last)| now < *last + self.session_idle).copied().unwrap_or((0, now));
            if spent >= budget.most {
                return Err(CallError::Spent { limit: budget.name, most: budget.most });
            }
        }
        for rate in &rates {
            if let Some(wait) = state.wait(rate, now) {
                return Err(CallError::TooFast { limit: rate.name, wait });
            }
        }
        // Nothing is counted of a call that one limit keeps back.
        for rate in rates {
            state.go(rate, now);
        }
        for budget in budgets {
            state.count(budget.key, now, self.session_idle, self.sessions);
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How long until a rate has room for one more.
    fn wait(&self, rate: &Counted, now: Instant) -> Option<Duration> {
        let ahead = self.rates.get(&rate.key)?.saturating_duration_since(now);
        (ahead + MINUTE / rate.most).checked_sub(MINUTE).filter(|wait| !wait.is_zero())
    }

    fn go(&mut self, rate: Counted, now: Instant) {
        if self.rates.len() >= COUNTED {
            self.rates.retain(|_, rest| *rest > now);
        }
        let rest = self.rates.entry(rate.key).or_insert(now);
        *rest = (*rest).max(now) + MINUTE / rate.most;
    }

    fn place(&mut self, place: &Counted) -> Result<OwnedSemaphorePermit, CallError> {
        if self.places.len() >= COUNTED {
            self.places.retain(|_, places| Arc::strong_count(places) > 1);
        }
        // A reload may have changed how many there are: those of before run out.
        let key = format!("{}\n{}", place.key, place.most);
        let most = usize::try_from(place.most).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        let places = self.places.entry(key).or_insert_with(|| Arc::new(Semaphore::new(most))).clone();
        places.try_acquire_owned().map_err(|_| CallError::Limit(place.name))
    }

    fn count(&mut self, key: String, now: Instant, idle: Duration, sessions: usize) {
        if self.spent.len() >= sessions.saturating_mul(2) && !self.spent.contains_key(&key) {
            self.spent.retain(|_, (_, last)| now < *last + idle);
            if self.spent.len() >= sessions.saturating_mul(2)
                && let Some(oldest) = self.spent.iter().min_by_key(|(_, (_, last))| *last).map(|(key, _)| key.clone())
            {
                self.spent.remove(&oldest);
            }
        }
        let (spent, last) = self.spent.entry(key).or_insert((0, now));
        *spent = if now < *last + idle { spent.saturating_add(1) } else { 1 };
        *last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(most: u32) -> Counted {
        Counted { name: "calls_per_minute", key: "k".into(), most }
    }

    #[test]
    fn a_rate_lets_a_minutes_worth_through_at_once_and_then_one_at_a_time() {
        let (mut state, now) = (State::default(), Instant::now());
        for _ in 0..3 {
            assert_eq!(state.wait(&rate(3), now), None);
            state.go(rate(3), now);
        }
        assert_eq!(state.wait(&rate(3), now), Some(Duration::from_secs(20)));
        assert_eq!(state.wait(&rate(3), now + Duration::from_secs(20)), None);
        state.go(rate(3), now + Duration::from_secs(20));
        assert_eq!(state.wait(&rate(3), now + Duration::from_secs(21)), Some(Duration::from_secs(19)));
    }

    #[test]
    fn sessions_are_bounded_and_forgotten_when_idle() {
        let (mut state, now, idle) = (State::default(), Instant::now(), Duration::from_secs(10));
        for n in 0..50_u64 {
            state.count(format!("s{n}"), now + Duration::from_millis(n), idle, 5);
        }
        assert_eq!(state.spent.len(), 10);
        assert!(state.spent.contains_key("s49") && !state.spent.contains_key("s0"));
        state.count("s49".into(), now + Duration::from_secs(1), idle, 5);
        assert_eq!(state.spent["s49"].0, 2);
        state.count("s49".into(), now + Duration::from_secs(60), idle, 5);
        assert_eq!(state.spent["s49"].0, 1);
    }

    #[test]
    fn places_are_given_back() {
        let mut state = State::default();
        let held = state.place(&rate(1)).unwrap();
        assert!(matches!(state.place(&rate(1)), Err(CallError::Limit("calls_per_minute"))));
        drop(held);
        assert!(state.place(&rate(1)).is_ok());
    }
}
