//! Words that are too short for a four-byte run and the byte after it.

use super::filter::SPREAD;
use super::words::Hit;
use crate::detect::prepared::{Reader, Writer};

/// Number of bits of the hash of a word.
const HASH_BITS: u32 = 14;

/// Words of `N` bytes, where `N` is three or four.
pub(super) struct ShortWords<const N: usize> {
    /// The words with their indices, sorted.
    words: Vec<([u8; N], u32)>,
    /// One bit for each hash.
    bits: Box<[u64; (1 << HASH_BITS) / 64]>,
}

impl<const N: usize> ShortWords<N> {
    pub(super) fn new() -> Self {
        Self {
            words: Vec::new(),
            bits: Box::new([0; (1 << HASH_BITS) / 64]),
        }
    }

    pub(super) fn add(&mut self, word: [u8; N], index: u32) {
        let bit = hash(&word);
        self.bits
            .get_mut(bit / 64)
            .into_iter()
            .for_each(|bits| *bits |= 1 << (bit % 64));
        self.words.push((word, index));
    }

    /// Writes the words, sorted.
    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(super) fn write(&self, out: &mut Writer) {
        out.number(self.words.len());
        for (word, index) in &self.words {
            out.0.extend(word);
            out.number(*index as usize);
        }
    }

    /// Reads words that [`ShortWords::write`] has written.
    pub(super) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let mut short_words = Self::new();
        for _ in 0..from.number()? {
            short_words.add(*from.bytes(N)?.first_chunk()?, from.number()?);
        }
        Some(short_words)
    }

    /// Sorts the words. Must be called after all words have been added.
    pub(super) fn sort(&mut self) {
        self.words.sort_unstable();
    }

    /// Calls `hit` for each word that equals these bytes.
    #[inline]
    pub(super) fn compare(&self, bytes: [u8; N], at: usize, hit: &mut impl FnMut(Hit)) {
        let bit = hash(&bytes);
        if self
            .bits
            .get(bit / 64)
            .is_some_and(|bits| bits >> (bit % 64) & 1 == 1)
        {
            let first = self.words.partition_point(|(word, _)| *word < bytes);
            let same = self
                .words
                .iter()
                .skip(first)
                .take_while(|(word, _)| *word == bytes);
            same.for_each(|(_, word)| {
                hit(Hit {
                    word: *word as usize,
                    start: at,
                    end: at + N,
                })
            });
        }
    }
}

#[inline]
fn hash<const N: usize>(word: &[u8; N]) -> usize {
    let bytes = word
        .iter()
        .rev()
        .fold(0, |bytes, b| bytes << 8 | u32::from(*b));
    (bytes.wrapping_mul(SPREAD) >> (32 - HASH_BITS)) as usize
}
