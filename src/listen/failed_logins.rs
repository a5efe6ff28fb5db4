//! Counts invalid credentials by remote address, so that an attacker who guesses is slowed down and
//! nobody else is.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long an invalid credential counts.
pub(super) const WINDOW: Duration = Duration::from_secs(60);
/// Maximum number of addresses that are remembered. Beyond it, the least recently seen one is
/// forgotten, addresses without a valid credential first.
const ADDRESSES: usize = 4096;
/// Maximum number of valid credentials that are remembered for one address.
const VALID: usize = 1024;

/// The digest of a credential.
pub(super) type Digest = [u8; 32];

/// Invalid credentials of the last minute, by address.
pub(super) struct FailedLogins {
    limit: usize,
    addresses: Mutex<HashMap<IpAddr, Address>>,
}

struct Address {
    /// Distinct ones only: an agent that repeats an outdated token is not guessing.
    invalid: VecDeque<(Digest, Instant)>,
    /// Valid credentials that came from this address. They are accepted while the address is
    /// locked: other agents behind the same proxy, or on the same host, do not guess.
    valid: HashSet<Digest>,
    last_seen: Instant,
}

impl FailedLogins {
    /// Creates an instance that checks at most `limit` distinct invalid credentials of each address
    /// within a minute.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            addresses: Mutex::default(),
        }
    }

    /// Reports whether the address is locked, so that credentials from it are not checked except
    /// for those that were valid there.
    pub(super) fn is_locked(&self, from: IpAddr, digest: &Digest, now: Instant) -> bool {
        let mut addresses = self.addresses.lock();
        let Some(address) = addresses.get_mut(&from) else {
            return false;
        };
        address.expire(now);
        address.invalid.len() >= self.limit && !address.valid.contains(digest)
    }

    /// Counts an invalid credential. Returns whether the address was already locked.
    pub(super) fn record_failure(&self, from: IpAddr, digest: &Digest, now: Instant) -> bool {
        let mut addresses = self.addresses.lock();
        let address = make_room(&mut addresses, from, now);
        address.expire(now);
        if address.invalid.len() >= self.limit {
            return true;
        }
        if !address
            .invalid
            .iter()
            .any(|(recorded, _)| recorded == digest)
        {
            address.invalid.push_back((*digest, now));
            if address.invalid.len() == self.limit {
                tracing::warn!(address = %from, limit = "wrong_tokens_per_minute", "address locked after invalid tokens");
            }
        }
        false
    }

    /// Remembers a valid credential.
    pub(super) fn record_valid(&self, from: IpAddr, digest: &Digest, now: Instant) {
        let mut addresses = self.addresses.lock();
        let address = make_room(&mut addresses, from, now);
        if address.valid.len() < VALID {
            address.valid.insert(*digest);
        }
    }

    /// Checks a secret that the gate created itself; `is_valid` is the result of the comparison. A
    /// valid one is also accepted from a locked address: it is too long to be guessed, and nobody
    /// who shares an address with its holder can lock them out.
    ///
    /// # Errors
    /// It is invalid, or one of too many invalid ones from this address.
    pub(super) fn check_secret(
        &self,
        from: IpAddr,
        digest: &Digest,
        is_valid: bool,
        now: Instant,
    ) -> Result<(), SecretError> {
        match is_valid {
            true => Ok(()),
            false if self.record_failure(from, digest, now) => Err(SecretError::TooMany),
            false => Err(SecretError::Invalid),
        }
    }
}

/// Why a secret is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SecretError {
    Invalid,
    /// It is invalid, and so were many before it.
    TooMany,
}

fn make_room(addresses: &mut HashMap<IpAddr, Address>, from: IpAddr, now: Instant) -> &mut Address {
    if addresses.len() >= ADDRESSES && !addresses.contains_key(&from) {
        let oldest = addresses
            .iter()
            .min_by_key(|(_, address)| (!address.valid.is_empty(), address.last_seen));
        let oldest = oldest.map(|(from, _)| *from);
        oldest.map(|oldest| addresses.remove(&oldest));
    }
    let address = addresses.entry(from).or_insert_with(|| Address {
        invalid: VecDeque::new(),
        valid: HashSet::new(),
        last_seen: now,
    });
    address.last_seen = now;
    address
}

impl Address {
    fn expire(&mut self, now: Instant) {
        while self
            .invalid
            .front()
            .is_some_and(|(_, since)| now.duration_since(*since) >= WINDOW)
        {
            self.invalid.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const TWO: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn an_address_that_guesses_is_locked_for_a_minute_and_no_other_is() {
        let guesses = FailedLogins::new(3);
        let now = Instant::now();
        guesses.record_valid(ONE, &[9; 32], now);
        for wrong in 0..3 {
            assert!(!guesses.is_locked(ONE, &[wrong; 32], now), "{wrong}");
            assert!(!guesses.record_failure(ONE, &[wrong; 32], now));
        }
        assert!(
            guesses.is_locked(ONE, &[7; 32], now) && guesses.record_failure(ONE, &[7; 32], now)
        );
        assert!(
            !guesses.is_locked(ONE, &[9; 32], now),
            "what was right there before"
        );
        assert!(!guesses.is_locked(TWO, &[7; 32], now), "another address");
        assert!(!guesses.is_locked(ONE, &[7; 32], now + WINDOW));
    }

    #[test]
    fn a_secret_of_the_gates_own_is_accepted_from_a_locked_address() {
        let guesses = FailedLogins::new(1);
        let now = Instant::now();
        assert_eq!(
            guesses.check_secret(ONE, &[1; 32], false, now),
            Err(SecretError::Invalid)
        );
        assert_eq!(
            guesses.check_secret(ONE, &[2; 32], false, now),
            Err(SecretError::TooMany)
        );
        assert_eq!(
            guesses.check_secret(TWO, &[2; 32], false, now),
            Err(SecretError::Invalid)
        );
        assert_eq!(guesses.check_secret(ONE, &[3; 32], true, now), Ok(()));
    }

    #[test]
    fn the_same_wrong_credential_counts_once() {
        let guesses = FailedLogins::new(3);
        let now = Instant::now();
        (0..100).for_each(|_| assert!(!guesses.record_failure(ONE, &[1; 32], now)));
        assert!(!guesses.is_locked(ONE, &[2; 32], now));
    }

    #[test]
    fn few_addresses_are_remembered_and_those_of_agents_the_longest() {
        let guesses = FailedLogins::new(1);
        let now = Instant::now();
        guesses.record_valid(ONE, &[9; 32], now);
        for address in 0..=u32::try_from(ADDRESSES).unwrap() {
            guesses.record_failure(
                IpAddr::from(address.to_be_bytes()),
                &[1; 32],
                now + Duration::from_millis(u64::from(address)),
            );
        }
        let known = guesses.addresses.lock();
        assert!(known.len() == ADDRESSES && known.contains_key(&ONE));
    }
}
