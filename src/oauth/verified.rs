//! Tokens whose signature has been verified, so that an agent's token need not be verified again
//! for every call.
//!
//! An entry is keyed by the SHA-256 of the whole token, signature included; the token itself is not
//! stored. An entry states one fact: these keys signed these claims. Issuer, audience and times are
//! checked on every use, and so is everything that the gate's config specifies for the caller. An
//! entry is valid only with the key set that verified it: after keys are fetched again, each token
//! is verified again, so that a withdrawn key remains valid no longer than without this cache.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::IntCounter;

use super::assertion::{Keys, SignedClaims};

/// SHA-256 of a whole token.
pub type TokenDigest = [u8; 32];

/// The verified tokens of one issuer, at most `limit`.
pub(super) struct VerifiedTokens {
    limit: usize,
    /// Counts tokens that were removed although they had not expired.
    evicted: IntCounter,
    cache: Mutex<Cache>,
}

#[derive(Default)]
struct Cache {
    /// The keys that verified all entries.
    keys: Option<Arc<Keys>>,
    entries: HashMap<TokenDigest, Entry>,
    /// Incremented with each use.
    clock: u64,
}

struct Entry {
    claims: SignedClaims,
    /// When the token expires, leeway included, in seconds since 1970.
    expires_unix: u64,
    last_use: u64,
}

impl VerifiedTokens {
    pub(super) fn new(limit: usize, evicted: IntCounter) -> Self {
        Self {
            limit,
            evicted,
            cache: Mutex::default(),
        }
    }

    /// Reports whether a token with this digest was verified, possibly with keys that have since
    /// been replaced: see [`Self::get`].
    pub(super) fn contains(&self, digest: &TokenDigest) -> bool {
        self.cache.lock().entries.contains_key(digest)
    }

    /// Returns the claims of a token that these keys have verified. Entries of other keys are
    /// removed.
    pub(super) fn get(&self, digest: &TokenDigest, keys: &Arc<Keys>) -> Option<SignedClaims> {
        let mut cache = self.cache.lock();
        let last_use = cache.next_use(keys);
        let entry = cache.entries.get_mut(digest)?;
        entry.last_use = last_use;
        Some(entry.claims.clone())
    }

    /// Stores a token that was verified with `keys`. If there is no room, expired tokens are
    /// removed; if there are none, the least recently used one.
    pub(super) fn insert(
        &self,
        digest: TokenDigest,
        keys: &Arc<Keys>,
        claims: SignedClaims,
        expires_unix: u64,
        now_unix: u64,
    ) {
        if self.limit == 0 {
            return;
        }
        let mut cache = self.cache.lock();
        let last_use = cache.next_use(keys);
        if cache.entries.len() >= self.limit && !cache.entries.contains_key(&digest) {
            cache
                .entries
                .retain(|_, entry| entry.expires_unix > now_unix);
            if cache.entries.len() >= self.limit {
                let oldest = cache
                    .entries
                    .iter()
                    .min_by_key(|(_, entry)| entry.last_use)
                    .map(|(digest, _)| *digest);
                oldest.map(|oldest| cache.entries.remove(&oldest));
                self.evicted.inc();
            }
        }
        cache.entries.insert(
            digest,
            Entry {
                claims,
                expires_unix,
                last_use,
            },
        );
    }

    pub(super) fn remove(&self, digest: &TokenDigest) {
        self.cache.lock().entries.remove(digest);
    }

    pub(super) fn clear(&self) {
        *self.cache.lock() = Cache::default();
    }

    #[cfg(test)]
    pub(super) fn evicted(&self) -> &IntCounter {
        &self.evicted
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.cache.lock().entries.len()
    }
}

impl Cache {
    /// Returns the time of a use with these keys; entries of other keys are removed.
    fn next_use(&mut self, keys: &Arc<Keys>) -> u64 {
        if self
            .keys
            .as_ref()
            .is_none_or(|current| !Arc::ptr_eq(current, keys))
        {
            *self = Self {
                keys: Some(keys.clone()),
                ..Self::default()
            };
        }
        self.clock += 1;
        self.clock
    }
}
