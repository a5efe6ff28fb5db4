//! Hashing of short words for tables that outside input cannot add to, at a tenth of the cost of a
//! keyed hash.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Deref;
use std::sync::OnceLock;

/// A map whose keys are all known in advance. Not for keys from messages: they could be made to
/// collide.
pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
/// A set with the same hash function and the same restriction.
pub type QuickSet<K> = HashSet<K, BuildHasherDefault<Quick>>;

/// Words that a table lists in one text, with white space between them. Their order has no meaning.
#[derive(Debug)]
pub struct WordSet {
    listed: &'static str,
    words: OnceLock<QuickSet<&'static str>>,
}

impl WordSet {
    /// Creates the set of the words in `listed`, which is split when first needed.
    pub const fn new(listed: &'static str) -> Self {
        Self {
            listed,
            words: OnceLock::new(),
        }
    }
}

impl Deref for WordSet {
    type Target = QuickSet<&'static str>;

    fn deref(&self) -> &Self::Target {
        self.words
            .get_or_init(|| self.listed.split_ascii_whitespace().collect())
    }
}

/// Multiplies and rotates eight bytes at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quick(u64);

/// 2^64 divided by the golden ratio: spreads neighbouring values far apart.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Quick {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(SPREAD);
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let (eights, rest) = bytes.as_chunks::<8>();
        for eight in eights {
            self.add(u64::from_le_bytes(*eight));
        }
        if !rest.is_empty() {
            self.add(
                rest.iter()
                    .rev()
                    .fold(0u64, |word, b| word << 8 | u64::from(*b)),
            );
        }
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}
