//! A filter of the four-byte runs that occur in a set of words, with one bit for each hash.

use super::grams::GRAM_BYTES;
use crate::detect::prepared::{Reader, Writer};

/// Number of bits of a hash.
pub(super) const HASH_BITS: u32 = 18;
/// 2^32 divided by the golden ratio.
pub(super) const SPREAD: u32 = 0x9e37_79b9;
/// 2^32 divided by the square root of three: unrelated to the other multiplier.
const LONG_SPREAD: u32 = 0x93cd_3a2d;

/// One bit for each hash, in 64-bit numbers stored as bytes.
pub(super) type Bits = [[u8; 8]; (1 << HASH_BITS) / 64];

/// Bits in memory, or in the data that the build script wrote.
#[derive(Clone)]
pub(super) enum BitTable {
    Owned(Box<Bits>),
    Prepared(&'static Bits),
}

impl BitTable {
    pub(super) fn new() -> Self {
        Self::Owned(Box::new([[0; 8]; (1 << HASH_BITS) / 64]))
    }

    /// Sets a bit. A prepared table is never changed.
    pub(super) fn set(&mut self, hash: usize) {
        if let Self::Owned(table) = self
            && let Some(bits) = table.get_mut(hash / 64)
        {
            *bits = (u64::from_le_bytes(*bits) | 1 << (hash % 64)).to_le_bytes();
        }
    }

    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(super) fn write(&self, out: &mut Writer) {
        out.0.extend(self.as_flattened());
    }

    pub(super) fn read(from: &mut Reader<'static>) -> Option<Self> {
        from.bytes(size_of::<Bits>())?
            .as_chunks()
            .0
            .try_into()
            .ok()
            .map(Self::Prepared)
    }
}

impl std::ops::Deref for BitTable {
    type Target = Bits;

    fn deref(&self) -> &Bits {
        match self {
            Self::Owned(bits) => bits,
            Self::Prepared(bits) => bits,
        }
    }
}

/// Filters of four-byte runs, and of these runs with the byte after them. The second is only
/// consulted if the first one matches.
#[derive(Clone)]
pub(super) struct Filter {
    pub(super) first: BitTable,
    pub(super) second: BitTable,
}

impl Filter {
    pub(super) fn new() -> Self {
        Self {
            first: BitTable::new(),
            second: BitTable::new(),
        }
    }

    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(super) fn write(&self, out: &mut Writer) {
        self.first.write(out);
        self.second.write(out);
    }

    #[allow(dead_code, reason = "for the gateway")]
    pub(super) fn read(from: &mut Reader<'static>) -> Option<Self> {
        Some(Self {
            first: BitTable::read(from)?,
            second: BitTable::read(from)?,
        })
    }

    pub(super) fn add(&mut self, gram: [u8; GRAM_BYTES], next: u8) {
        self.first.set(hash(gram));
        self.second.set(long_hash(gram, next));
    }
}

#[inline]
pub(super) fn hash(gram: [u8; GRAM_BYTES]) -> usize {
    (u32::from_le_bytes(gram).wrapping_mul(SPREAD) >> (32 - HASH_BITS)) as usize
}

#[inline]
pub(super) fn long_hash(gram: [u8; GRAM_BYTES], next: u8) -> usize {
    ((u32::from_le_bytes(gram).wrapping_mul(SPREAD) ^ u32::from(next)).wrapping_mul(LONG_SPREAD)
        >> (32 - HASH_BITS)) as usize
}

#[inline]
pub(super) fn may_contain(bits: &Bits, hash: usize) -> bool {
    bits.get(hash / 64)
        .is_some_and(|bits| u64::from_le_bytes(*bits) >> (hash % 64) & 1 == 1)
}
