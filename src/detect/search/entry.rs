//! Words that are found by some of their bytes.

use super::filter::{BitTable, Bits, HASH_BITS, may_contain};
use crate::detect::prepared::{Reader, Writer};

/// Size of a serialized entry in bytes.
pub(super) const ENTRY_BYTES: usize = 16;
/// Number of runs of a word that are candidates for its entry.
pub(super) const GRAMS: usize = 256;
/// Maximum size of a key in bytes.
pub(super) const KEY_BYTES: usize = 8;
/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A word that is found by some of its bytes. Stored as bytes: the build writes tens of thousands
/// of entries.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Up to eight bytes of the word.
    pub(super) key: u64,
    pub(super) word: u32,
    /// Position of the four-byte run in the word.
    gram: u8,
    shape: Shape,
    /// Length of the word in bytes; 0 if it exceeds 255.
    length: u8,
    /// Last byte of the word. Rules out most other words with the same key.
    last: u8,
}

impl Entry {
    /// Creates the entry for a word whose run begins at `gram`, which is less than [`GRAMS`].
    pub(super) fn new(word: &[u8], index: u32, gram: usize) -> Self {
        let from = gram.min(word.len().saturating_sub(KEY_BYTES));
        let part = word.get(from..).unwrap_or_default();
        let mut key = [0; KEY_BYTES];
        key.iter_mut().zip(part).for_each(|(key, b)| *key = *b);
        let shape = Shape::new(gram - from, KEY_BYTES.saturating_sub(part.len()));
        Self {
            key: u64::from_le_bytes(key) << shape.unused_bits(),
            word: index,
            gram: u8::try_from(gram).unwrap_or_default(),
            shape,
            length: u8::try_from(word.len()).unwrap_or_default(),
            last: word.last().copied().unwrap_or_default(),
        }
    }

    /// Returns where the word begins in a padded text if its run is at `at`, and where it ends if
    /// its length is known; `None` if the last byte does not match.
    #[inline]
    pub(super) fn place(&self, padded: &[u8], at: usize) -> Option<(usize, Option<usize>)> {
        let start = at.checked_sub(usize::from(self.gram))?;
        if self.length == 0 {
            return Some((start, None));
        }
        let end = start + usize::from(self.length);
        (padded.get(end - 1) == Some(&self.last)).then_some((start, Some(end)))
    }

    /// Returns the position of the run in the word.
    pub(super) fn gram(&self) -> usize {
        usize::from(self.gram)
    }

    #[inline]
    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn bytes(&self) -> [u8; ENTRY_BYTES] {
        let [k0, k1, k2, k3, k4, k5, k6, k7] = self.key.to_le_bytes();
        let [w0, w1, w2, w3] = self.word.to_le_bytes();
        [
            k0,
            k1,
            k2,
            k3,
            k4,
            k5,
            k6,
            k7,
            w0,
            w1,
            w2,
            w3,
            self.gram,
            self.shape.0,
            self.length,
            self.last,
        ]
    }

    /// Reads an entry that [`Entry::bytes`] has written.
    #[inline]
    pub(super) fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let [
            k0,
            k1,
            k2,
            k3,
            k4,
            k5,
            k6,
            k7,
            w0,
            w1,
            w2,
            w3,
            gram,
            shape,
            length,
            last,
        ] = *bytes;
        Self {
            key: u64::from_le_bytes([k0, k1, k2, k3, k4, k5, k6, k7]),
            word: u32::from_le_bytes([w0, w1, w2, w3]),
            gram,
            shape: Shape(shape),
            length,
            last,
        }
    }
}

/// The bytes around a run that are compared with a key. The lowest two bits contain how many bytes
/// before the run they begin, the next two how many bytes of the key are unused. Both are at most
/// three, since a run and the byte after it are five bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape(u8);

impl Shape {
    fn new(before: usize, unused_bytes: usize) -> Self {
        Self(u8::try_from(before & 3 | (unused_bytes & 3) << 2).unwrap_or_default())
    }

    fn unused_bits(self) -> u32 {
        u32::from(self.0 >> 2) * u8::BITS
    }

    /// Returns the key of an entry of this shape, from the eight bytes of a text before its run and
    /// the eight bytes from there.
    #[inline]
    pub(super) fn key(self, around: u128) -> u64 {
        let before = u32::from(self.0 & 3);
        ((around >> (u64::BITS - before * u8::BITS)) as u64) << self.unused_bits()
    }
}

/// A set of shapes, with one bit for each.
#[derive(Clone, Copy, Default)]
pub(super) struct Shapes(u16);

impl Shapes {
    pub(super) fn add(&mut self, shape: Shape) {
        self.0 |= 1 << (shape.0 & 15);
    }

    pub(super) fn bytes(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }

    /// Reads shapes that [`Shapes::bytes`] has written.
    #[inline]
    pub(super) fn from_bytes(bytes: [u8; 2]) -> Self {
        Self(u16::from_le_bytes(bytes))
    }

    /// Returns all shapes of the set.
    #[inline]
    pub(super) fn all(self) -> impl Iterator<Item = Shape> {
        let mut remaining = self.0;
        std::iter::from_fn(move || {
            let bit = u8::try_from(remaining.trailing_zeros()).unwrap_or_default();
            (remaining != 0).then(|| {
                remaining &= remaining - 1;
                Shape(bit)
            })
        })
    }
}

/// A filter of the existing keys, with one bit for each hash.
pub(super) struct KeyFilter(BitTable);

impl KeyFilter {
    pub(super) fn new() -> Self {
        Self(BitTable::new())
    }

    pub(super) fn add(&mut self, key: u64) {
        self.0.set(key_hash(key));
    }

    #[inline]
    pub(super) fn may_contain(&self, key: u64) -> bool {
        let bits: &Bits = &self.0;
        may_contain(bits, key_hash(key))
    }

    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(super) fn write(&self, out: &mut Writer) {
        self.0.write(out);
    }

    #[allow(dead_code, reason = "for the gateway")]
    pub(super) fn read(from: &mut Reader<'static>) -> Option<Self> {
        BitTable::read(from).map(Self)
    }
}

#[inline]
pub(super) fn key_hash(key: u64) -> usize {
    (key.wrapping_mul(SPREAD) >> (u64::BITS - HASH_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_found_around_the_run() {
        for word in ["abcde", "abcdef", "abcdefg", "abcdefgh", "abcdefghijk"] {
            for gram in 0..=word.len() - 5 {
                let entry = Entry::new(word.as_bytes(), 0, gram);
                let padded = format!("--------{word}--------");
                let around = *padded.as_bytes()[gram..].first_chunk().unwrap();
                assert_eq!(
                    entry.shape().key(u128::from_le_bytes(around)),
                    entry.key,
                    "{word} {gram}"
                );
                let mut shapes = Shapes::default();
                shapes.add(entry.shape());
                assert!(shapes.all().eq([entry.shape()]), "{word} {gram}");
                let mut keys = KeyFilter::new();
                assert!(!keys.may_contain(entry.key));
                keys.add(entry.key);
                assert!(keys.may_contain(entry.key));
            }
        }
    }
}
