//! Accounting of message bytes in flight, limited in total and for each agent, and reserved before
//! they are read. The reservation is attached to the bytes: it is released when the last reference
//! to them is dropped.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::{AgentName, CallError};

/// The limit in total, by its name in the config.
pub const BYTES_IN_FLIGHT: &str = "bytes_in_flight";
/// The limit for each agent, by its name in the config.
pub const BYTES_IN_FLIGHT_PER_AGENT: &str = "bytes_in_flight_per_agent";

/// Number of agents above which those without a reservation are forgotten.
const AGENTS: usize = 1024;

/// Step size in which a body without a known length is reserved.
const STEP_BYTES: usize = 64 << 10;

/// The bytes in flight, and their limits.
#[derive(Debug)]
pub struct InFlight {
    total: AtomicUsize,
    /// Bytes of each agent: of agents with reservations, and of some that had one.
    agents: Mutex<HashMap<AgentName, Arc<AtomicUsize>>>,
    limit: usize,
    limit_per_agent: usize,
}

impl InFlight {
    /// Creates an account with these limits and nothing in flight.
    pub fn new(limit: usize, limit_per_agent: usize) -> Arc<Self> {
        Arc::new(Self {
            total: AtomicUsize::new(0),
            agents: Mutex::default(),
            limit,
            limit_per_agent,
        })
    }

    /// Creates an account without limits.
    pub fn unlimited() -> Arc<Self> {
        Self::new(usize::MAX, usize::MAX)
    }

    /// Creates an empty reservation for a message to or from an agent.
    pub fn reservation(self: &Arc<Self>, agent: &AgentName) -> Reservation {
        let mut agents = self.agents.lock();
        let agent_bytes = match agents.get(agent) {
            Some(agent_bytes) => agent_bytes.clone(),
            None => {
                if agents.len() >= AGENTS {
                    agents.retain(|_, agent_bytes| Arc::strong_count(agent_bytes) > 1);
                }
                agents.entry(agent.clone()).or_default().clone()
            }
        };
        drop(agents);
        Reservation {
            in_flight: self.clone(),
            agent_bytes,
            bytes: 0,
        }
    }

    /// Returns the bytes reserved for all agents.
    pub fn bytes(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}

/// Adds to a counter, unless it would exceed its limit.
fn add(
    counter: &AtomicUsize,
    bytes: usize,
    limit: usize,
    name: &'static str,
) -> Result<(), CallError> {
    let increase = |current: usize| current.checked_add(bytes).filter(|all| *all <= limit);
    let added = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, increase);
    added.map(drop).map_err(|_| CallError::Limit(name))
}

/// Bytes reserved for one body. Released when dropped.
#[derive(Debug)]
pub struct Reservation {
    in_flight: Arc<InFlight>,
    agent_bytes: Arc<AtomicUsize>,
    bytes: usize,
}

impl Reservation {
    /// Reserves `bytes` in total, which the body announces.
    ///
    /// # Errors
    /// The limit that is exceeded.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), CallError> {
        let additional = bytes.saturating_sub(self.bytes);
        if additional > 0 {
            add(
                &self.agent_bytes,
                additional,
                self.in_flight.limit_per_agent,
                BYTES_IN_FLIGHT_PER_AGENT,
            )?;
            if let Err(error) = add(
                &self.in_flight.total,
                additional,
                self.in_flight.limit,
                BYTES_IN_FLIGHT,
            ) {
                self.agent_bytes.fetch_sub(additional, Ordering::Relaxed);
                return Err(error);
            }
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Releases all but `bytes`.
    fn shrink(&mut self, bytes: usize) {
        let excess = self.bytes.saturating_sub(bytes);
        if excess > 0 {
            self.agent_bytes.fetch_sub(excess, Ordering::Relaxed);
            self.in_flight.total.fetch_sub(excess, Ordering::Relaxed);
            self.bytes -= excess;
        }
    }

    /// Reserves at least `bytes` in total, which are about to be stored.
    ///
    /// # Errors
    /// The limit that is exceeded.
    pub fn grow(&mut self, bytes: usize) -> Result<(), CallError> {
        if bytes > self.bytes {
            self.reserve(bytes.next_multiple_of(STEP_BYTES))
        } else {
            Ok(())
        }
    }

    /// Returns the reservation so far, and leaves an empty one in its place.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let empty = Self {
            in_flight: self.in_flight.clone(),
            agent_bytes: self.agent_bytes.clone(),
            bytes: 0,
        };
        mem::replace(self, empty)
    }

    /// Attaches the reservation to the body, which holds it from now on.
    pub fn attach(mut self, body: Bytes) -> Bytes {
        self.shrink(body.len());
        Bytes::from_owner(ReservedBytes {
            body,
            _reservation: self,
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

struct ReservedBytes {
    body: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for ReservedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(result: Result<(), CallError>) -> &'static str {
        match result {
            Ok(()) => "",
            Err(error) => error.limit().unwrap(),
        }
    }

    #[test]
    fn bytes_are_reserved_until_the_last_reference_is_dropped() {
        let in_flight = InFlight::new(1000, 1000);
        let mut reservation = in_flight.reservation(&AgentName("a".into()));
        assert_eq!(
            (hit(reservation.reserve(900)), in_flight.bytes()),
            ("", 900)
        );
        let body = reservation.attach(Bytes::from_static(b"a short body"));
        assert_eq!((&body[..], in_flight.bytes()), (&b"a short body"[..], 12));
        let part = body.slice(2..7);
        drop(body);
        assert_eq!((&part[..], in_flight.bytes()), (&b"short"[..], 12));
        drop(part);
        assert_eq!(in_flight.bytes(), 0);
    }

    #[test]
    fn agents_without_a_reservation_are_forgotten() {
        let in_flight = InFlight::new(1000, 1000);
        let mut reservation = in_flight.reservation(&AgentName("held".into()));
        reservation.reserve(900).unwrap();
        for number in 0..3 * AGENTS {
            drop(in_flight.reservation(&AgentName(format!("{number}").into())));
        }
        assert!(in_flight.agents.lock().len() <= AGENTS);
        assert_eq!(
            hit(in_flight
                .reservation(&AgentName("held".into()))
                .reserve(200)),
            BYTES_IN_FLIGHT_PER_AGENT
        );
    }

    #[test]
    fn all_and_each_agent_have_a_limit() {
        let in_flight = InFlight::new(300 << 10, 200 << 10);
        let mut first = in_flight.reservation(&AgentName("a".into()));
        let mut second = in_flight.reservation(&AgentName("a".into()));
        assert_eq!(hit(first.reserve(150 << 10)), "");
        assert_eq!(hit(second.grow(60 << 10)), BYTES_IN_FLIGHT_PER_AGENT);
        let mut other = in_flight.reservation(&AgentName("b".into()));
        assert_eq!((hit(other.grow(1)), in_flight.bytes()), ("", 214 << 10));
        assert_eq!(hit(other.reserve(160 << 10)), BYTES_IN_FLIGHT);
        drop(first);
        assert_eq!(
            (hit(other.reserve(160 << 10)), in_flight.bytes()),
            ("", 160 << 10)
        );
        drop((second, other));
        assert_eq!(in_flight.bytes(), 0);
    }
}
