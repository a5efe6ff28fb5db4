//! Bytes of messages in flight, bounded for all agents and for each, and reserved before they are read. What is reserved
//! travels with the bytes: it is released when the last reference to them is dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::{AgentName, CallError};

/// The limit for all agents, by its name in the config.
pub const BYTES_IN_FLIGHT: &str = "bytes_in_flight";
/// The limit for each agent, by its name in the config.
pub const BYTES_IN_FLIGHT_PER_AGENT: &str = "bytes_in_flight_per_agent";

/// A body without a known length is reserved in steps of this size.
const STEP_BYTES: usize = 64 << 10;

/// The bytes in flight, and their limits.
#[derive(Debug)]
pub struct InFlight {
    reserved: Mutex<Reserved>,
    limit: usize,
    limit_per_agent: usize,
}

#[derive(Debug, Default)]
struct Reserved {
    all: usize,
    /// Agents with bytes in flight.
    agents: HashMap<AgentName, usize>,
}

impl InFlight {
    /// Nothing is in flight yet.
    pub fn new(limit: usize, limit_per_agent: usize) -> Arc<Self> {
        Arc::new(Self { reserved: Mutex::default(), limit, limit_per_agent })
    }

    /// Without limits.
    pub fn unlimited() -> Arc<Self> {
        Self::new(usize::MAX, usize::MAX)
    }

    /// A reservation of no bytes yet, for a message to or from an agent.
    pub fn reservation(self: &Arc<Self>, agent: &AgentName) -> Reservation {
        Reservation { in_flight: self.clone(), agent: agent.clone(), bytes: 0 }
    }

    /// Bytes reserved for all agents.
    pub fn bytes(&self) -> usize {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner).all
    }

    fn resize(&self, agent: &AgentName, from: usize, to: usize) -> Result<(), CallError> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let Reserved { all, agents } = &mut *reserved;
        let known = agents.get_mut(agent);
        let of_all = (*all - from).saturating_add(to);
        let of_agent = (known.as_deref().copied().unwrap_or(0) - from).saturating_add(to);
        if to > from && of_agent > self.limit_per_agent {
            return Err(CallError::Limit(BYTES_IN_FLIGHT_PER_AGENT));
        }
        if to > from && of_all > self.limit {
            return Err(CallError::Limit(BYTES_IN_FLIGHT));
        }
        *all = of_all;
        match known {
            Some(bytes) if of_agent > 0 => *bytes = of_agent,
            Some(_) => drop(agents.remove(agent)),
            None if of_agent > 0 => drop(agents.insert(agent.clone(), of_agent)),
            None => {}
        }
        Ok(())
    }
}

/// Bytes reserved for one body. Released when dropped.
#[derive(Debug)]
pub struct Reservation {
    in_flight: Arc<InFlight>,
    agent: AgentName,
    bytes: usize,
}

impl Reservation {
    /// Reserves `bytes` in all, which the body announces.
    ///
    /// # Errors
    /// The limit that leaves no room for them.
    pub fn announce(&mut self, bytes: usize) -> Result<(), CallError> {
        if bytes > self.bytes {
            self.in_flight.resize(&self.agent, self.bytes, bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Reserves at least `bytes` in all, which are about to be kept.
    ///
    /// # Errors
    /// The limit that leaves no room for them.
    pub fn grow(&mut self, bytes: usize) -> Result<(), CallError> {
        if bytes > self.bytes { self.announce(bytes.next_multiple_of(STEP_BYTES)) } else { Ok(()) }
    }

    /// What is reserved so far; this one goes on with nothing reserved.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let taken = Self { in_flight: self.in_flight.clone(), agent: self.agent.clone(), bytes: self.bytes };
        self.bytes = 0;
        taken
    }

    /// The body, which holds its reservation from now on.
    pub fn attach(mut self, body: Bytes) -> Bytes {
        if body.len() < self.bytes && self.in_flight.resize(&self.agent, self.bytes, body.len()).is_ok() {
            self.bytes = body.len();
        }
        Bytes::from_owner(Attached { body, _reservation: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // Releasing cannot exceed a limit.
        let _released = self.in_flight.resize(&self.agent, self.bytes, 0);
    }
}

struct Attached {
    body: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for Attached {
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
        assert_eq!((hit(reservation.announce(900)), in_flight.bytes()), ("", 900));
        let body = reservation.attach(Bytes::from_static(b"a short body"));
        assert_eq!((&body[..], in_flight.bytes()), (&b"a short body"[..], 12));
        let part = body.slice(2..7);
        drop(body);
        assert_eq!((&part[..], in_flight.bytes()), (&b"short"[..], 12));
        drop(part);
        assert_eq!(in_flight.bytes(), 0);
        assert!(in_flight.reserved.lock().unwrap().agents.is_empty());
    }

    #[test]
    fn all_and_each_agent_have_a_limit() {
        let in_flight = InFlight::new(300 << 10, 200 << 10);
        let mut first = in_flight.reservation(&AgentName("a".into()));
        let mut second = in_flight.reservation(&AgentName("a".into()));
        assert_eq!(hit(first.announce(150 << 10)), "");
        assert_eq!(hit(second.grow(60 << 10)), BYTES_IN_FLIGHT_PER_AGENT);
        let mut other = in_flight.reservation(&AgentName("b".into()));
        assert_eq!((hit(other.grow(1)), in_flight.bytes()), ("", 214 << 10));
        assert_eq!(hit(other.announce(160 << 10)), BYTES_IN_FLIGHT);
        drop(first);
        assert_eq!((hit(other.announce(160 << 10)), in_flight.bytes()), ("", 160 << 10));
        drop((second, other));
        assert_eq!(in_flight.bytes(), 0);
    }
}
