//! Which runs of four bytes begin somewhere in some words, by one bit for each hash.

use super::grams::GRAM_BYTES;
use crate::detect::prepared::{Reader, Writer};

/// Bits of a hash.
pub(super) const HASH_BITS: u32 = 18;
/// 2^32 divided by the golden ratio.
pub(super) const SPREAD: u32 = 0x9e37_79b9;
/// 2^32 divided by the square root of three: unrelated to the first.
const LONG_SPREAD: u32 = 0x93cd_3a2d;

/// One bit for each hash.
pub(super) type Bits = [u64; (1 << HASH_BITS) / 64];

/// Runs of four bytes, and the same with the byte that follows: the second is looked up where the first is set.
#[derive(Clone)]
pub(super) struct Filter {
    pub(super) first: Box<Bits>,
    pub(super) second: Box<Bits>,
}

impl Filter {
    pub(super) fn new() -> Self {
        Self { first: Box::new([0; (1 << HASH_BITS) / 64]), second: Box::new([0; (1 << HASH_BITS) / 64]) }
    }

    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(super) fn write(&self, out: &mut Writer) {
        out.longs(&self.first[..]);
        out.longs(&self.second[..]);
    }

    #[allow(dead_code, reason = "for the gateway")]
    pub(super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let mut bits = || from.longs()?.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect::<Box<[u64]>>().try_into().ok();
        Some(Self { first: bits()?, second: bits()? })
    }

    pub(super) fn add(&mut self, gram: [u8; GRAM_BYTES], next: u8) {
        set(&mut self.first, hash(gram));
        set(&mut self.second, long_hash(gram, next));
    }
}

#[inline]
pub(super) fn hash(gram: [u8; GRAM_BYTES]) -> usize {
    (u32::from_le_bytes(gram).wrapping_mul(SPREAD) >> (32 - HASH_BITS)) as usize
}

#[inline]
pub(super) fn long_hash(gram: [u8; GRAM_BYTES], next: u8) -> usize {
    ((u32::from_le_bytes(gram).wrapping_mul(SPREAD) ^ u32::from(next)).wrapping_mul(LONG_SPREAD) >> (32 - HASH_BITS)) as usize
}

pub(super) fn set(bits: &mut Bits, hash: usize) {
    bits.get_mut(hash / 64).into_iter().for_each(|bits| *bits |= 1 << (hash % 64));
}

#[inline]
pub(super) fn may_hold(bits: &Bits, hash: usize) -> bool {
    bits.get(hash / 64).is_some_and(|bits| bits >> (hash % 64) & 1 == 1)
}
