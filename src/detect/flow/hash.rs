//! Keyed hashes: they allow a piece to be recognized, but not to be reconstructed.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

/// A map with keys that are already keyed hashes: hashing them again would only cost time.
pub(super) type ByHash<V> = HashMap<u64, V, BuildHasherDefault<IdentityHasher>>;
/// A set of such hashes.
pub(super) type Hashes = HashSet<u64, BuildHasherDefault<IdentityHasher>>;

/// Uses a number as its own hash.
#[derive(Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(0, bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// Returns the key, which is generated at random on first use and never leaves the process.
fn key() -> &'static [u64; 3] {
    static KEY: OnceLock<[u64; 3]> = OnceLock::new();
    KEY.get_or_init(|| {
        std::array::from_fn(|_| {
            let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
            high.rotate_left(23) ^ low | 1
        })
    })
}

/// Returns the keyed hash of bytes of a given kind.
pub(super) fn hash(kind: u8, bytes: &[u8]) -> u64 {
    let [first, second, third] = key();
    let (whole, rest) = bytes.as_chunks::<8>();
    let start = first ^ u64::from(kind);
    let sum = whole.iter().fold(start, |sum, chunk| {
        fold(sum ^ u64::from_le_bytes(*chunk), *second)
    });
    let last = rest
        .iter()
        .fold(0, |last, byte| last << 8 | u64::from(*byte));
    fold(fold(sum ^ last, *second) ^ bytes.len() as u64, *third)
}

/// Mixes the hashes of words, and of rows of words, with the same key.
pub(super) struct Mixer([u64; 3]);

impl Mixer {
    pub(super) fn new() -> Self {
        Self(*key())
    }

    /// Returns the factor of rolling sums over a row of words.
    pub(super) fn factor(&self) -> u64 {
        let [_, second, _] = self.0;
        second
    }

    pub(super) fn mix(&self, value: u64) -> u64 {
        let [first, second, _] = self.0;
        fold(value ^ first, second)
    }

    /// Mixes the result of a rolling sum.
    pub(super) fn finish(&self, sum: u64) -> u64 {
        let [first, _, third] = self.0;
        fold(sum ^ first, third)
    }
}

/// Returns the XOR of both halves of a product.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}
