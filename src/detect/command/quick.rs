//! Hashing of short words for tables that nobody outside can add to: a tenth of what a keyed hash costs.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are all known beforehand. Not for keys from messages: they could be made to collide.
pub(super) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
/// A set of the same kind.
pub(super) type QuickSet<K> = HashSet<K, BuildHasherDefault<Quick>>;

/// Multiplies and rotates eight bytes at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Quick(u64);

/// 2^64 divided by the golden ratio: spreads neighbours far apart.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().rev().fold(0u64, |word, b| word << 8 | u64::from(*b));
            self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(SPREAD);
        }
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}
