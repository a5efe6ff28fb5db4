//! Words that are found by some of their bytes.

use super::filter::{BitTable, Bits, HASH_BITS, may_contain};
use super::grams::GRAM_BYTES;
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
    /// Last byte of the word.
    pub(super) last: u8,
}

impl Entry {
    /// Creates the entry for a word whose run begins at `gram`, which is less than [`GRAMS`];
    /// `None` if no key has this run.
    pub(super) fn new(word: &[u8], index: u32, gram: usize) -> Option<Self> {
        let shape = Shape::of_key(word.len(), gram)?;
        let from = gram - shape.bytes_before();
        let part = word.get(from..).unwrap_or_default();
        let mut key = [0; KEY_BYTES];
        key.iter_mut().zip(part).for_each(|(key, b)| *key = *b);
        Some(Self {
            key: u64::from_le_bytes(key) << shape.unused_bits(),
            word: index,
            gram: u8::try_from(gram).unwrap_or_default(),
            shape,
            length: u8::try_from(word.len()).unwrap_or_default(),
            last: word.last().copied().unwrap_or_default(),
        })
    }

    /// Reports whether the key is the whole word.
    #[inline]
    pub(super) fn has_whole_word(&self) -> bool {
        self.gram() == self.shape.bytes_before() && (1..=KEY_BYTES).contains(&self.length.into())
    }

    /// Returns the length of the word in bytes, unless it exceeds 255.
    #[inline]
    pub(super) fn length(&self) -> Option<usize> {
        (self.length > 0).then_some(self.length.into())
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
        let rest = u32::from_le_bytes([self.gram, self.shape.0, self.length, self.last]);
        let word_and_rest = u64::from(self.word) | u64::from(rest) << u32::BITS;
        (u128::from(self.key) | u128::from(word_and_rest) << u64::BITS).to_le_bytes()
    }

    /// Reads an entry that [`Entry::bytes`] has written.
    #[inline]
    pub(super) fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let number = u128::from_le_bytes(*bytes);
        let word_and_rest = (number >> u64::BITS) as u64;
        let [gram, shape, length, last] = ((word_and_rest >> u32::BITS) as u32).to_le_bytes();
        Self {
            key: number as u64,
            word: word_and_rest as u32,
            gram,
            shape: Shape(shape),
            length,
            last,
        }
    }
}

/// The bytes around a run that are compared with a key: eight bytes that begin with the run or
/// [`BEFORE`] bytes before it, or fewer that end with the word. Few shapes, because each is
/// compared wherever the run occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape(u8);

/// Number of bytes before the run in keys of the shape [`Shape::BEFORE`].
const BEFORE: usize = KEY_BYTES - RUN_BYTES;
/// A run of four bytes and the byte after it.
pub(super) const RUN_BYTES: usize = GRAM_BYTES + 1;

impl Shape {
    /// Keys that begin before the run. The other shapes are the number of unused bytes of the key.
    const BEFORE: Self = Self(4);

    /// Returns the shape of the key for the run at `gram` of a word of this length. Words of at
    /// least eight bytes have keys of eight bytes; `None` if none includes this run.
    pub(super) fn of_key(length: usize, gram: usize) -> Option<Self> {
        let unused = KEY_BYTES.saturating_sub(length.saturating_sub(gram));
        match u8::try_from(unused) {
            Ok(0) => Some(Self(0)),
            Ok(unused) if length < KEY_BYTES && unused < Self::BEFORE.0 => Some(Self(unused)),
            _ if gram >= BEFORE && gram + RUN_BYTES <= length => Some(Self::BEFORE),
            _ => None,
        }
    }

    fn bytes_before(self) -> usize {
        if self == Self::BEFORE { BEFORE } else { 0 }
    }

    fn unused_bits(self) -> u32 {
        u32::from(self.0 % Self::BEFORE.0) * u8::BITS
    }

    /// Returns the key of an entry of this shape, from the eight bytes of a text before its run and
    /// the eight bytes from there.
    #[inline]
    pub(super) fn key(self, around: u128) -> u64 {
        if self == Self::BEFORE {
            return (around >> (8 * RUN_BYTES)) as u64;
        }
        ((around >> u64::BITS) as u64) << self.unused_bits()
    }
}

/// A set of shapes, with one bit for each.
#[derive(Clone, Copy, Default)]
pub(super) struct Shapes(u8);

impl Shapes {
    pub(super) fn add(&mut self, shape: Shape) {
        self.0 |= 1 << (shape.0 & 7);
    }

    pub(super) fn byte(self) -> u8 {
        self.0
    }

    /// Reads shapes that [`Shapes::byte`] has written.
    #[inline]
    pub(super) fn from_byte(byte: u8) -> Self {
        Self(byte)
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
        let word = "abcdefghijklm";
        for length in RUN_BYTES..=word.len() {
            let word = &word.as_bytes()[..length];
            let mut tried = 0;
            for gram in 0..=length - RUN_BYTES {
                let Some(entry) = Entry::new(word, 0, gram) else {
                    continue;
                };
                tried += 1;
                let padded = [b"--------", word, b"--------"].concat();
                let around = *padded[gram..].first_chunk().unwrap();
                assert_eq!(
                    entry.shape().key(u128::from_le_bytes(around)),
                    entry.key,
                    "{length} {gram}"
                );
                assert_eq!(
                    entry.has_whole_word(),
                    length <= KEY_BYTES && gram == entry.shape().bytes_before(),
                    "{length} {gram}"
                );
                let mut shapes = Shapes::default();
                shapes.add(entry.shape());
                assert!(shapes.all().eq([entry.shape()]), "{length} {gram}");
                let mut keys = KeyFilter::new();
                assert!(!keys.may_contain(entry.key));
                keys.add(entry.key);
                assert!(keys.may_contain(entry.key));
            }
            assert!(tried > (length - RUN_BYTES) / 2, "{length}: {tried}");
        }
    }
}
