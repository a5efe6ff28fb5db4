//! Words that are too short for a four-byte run and the byte after it.

use super::filter::SPREAD;
use super::grams::GRAM_BYTES;
use super::grouped::sort_by_group;
use super::words::Hit;
use crate::detect::prepared::{Reader, Writer};

/// Number of bits of the hash of a word.
const HASH_BITS: u32 = 14;
/// Number of its highest bits that select a bucket.
const BUCKET_BITS: u32 = 9;

/// Words of the same length, three or four bytes.
pub(super) struct ShortWords {
    length: usize,
    /// The bits of a run that are compared.
    mask: u32,
    /// The words as little-endian numbers with their indices, sorted by their buckets.
    words: Vec<(u32, u32)>,
    /// Where the words of each bucket begin, and where the last ones end.
    buckets: Vec<u32>,
    /// One bit for each hash.
    bits: Box<[u64; (1 << HASH_BITS) / 64]>,
}

impl ShortWords {
    pub(super) fn new(length: usize) -> Self {
        let unused = GRAM_BYTES.saturating_sub(length).min(GRAM_BYTES - 1);
        Self {
            length,
            mask: u32::MAX >> (8 * unused),
            words: Vec::new(),
            buckets: Vec::new(),
            bits: Box::new([0; (1 << HASH_BITS) / 64]),
        }
    }

    /// Adds the word with which a run begins.
    pub(super) fn add(&mut self, gram: [u8; GRAM_BYTES], index: u32) {
        let word = self.word(gram);
        let bit = hash(word);
        self.bits
            .get_mut(bit / 64)
            .into_iter()
            .for_each(|bits| *bits |= 1 << (bit % 64));
        self.words.push((word, index));
    }

    /// Writes the words.
    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(super) fn write(&self, out: &mut Writer) {
        out.number(self.words.len());
        for (word, index) in &self.words {
            out.0.extend(word.to_le_bytes());
            out.number(*index as usize);
        }
    }

    /// Reads words that [`ShortWords::write`] has written.
    pub(super) fn read(length: usize, from: &mut Reader<'_>) -> Option<Self> {
        let mut short_words = Self::new(length);
        for _ in 0..from.number()? {
            short_words.add(*from.bytes(GRAM_BYTES)?.first_chunk()?, from.number()?);
        }
        short_words.sort();
        Some(short_words)
    }

    /// Sorts the words. Must be called after all words have been added.
    pub(super) fn sort(&mut self) {
        (self.buckets, self.words) =
            sort_by_group(&self.words, 1 << BUCKET_BITS, |(word, _)| bucket(*word));
    }

    /// Reports whether a run may begin with one of the words.
    #[inline]
    pub(super) fn may_contain(&self, gram: [u8; GRAM_BYTES]) -> bool {
        let bit = hash(self.word(gram));
        self.bits
            .get(bit / 64)
            .is_some_and(|bits| bits >> (bit % 64) & 1 == 1)
    }

    /// Adds a hit for each word with which the run at `at` begins.
    #[inline(never)]
    pub(super) fn add_hits(&self, gram: [u8; GRAM_BYTES], at: usize, hits: &mut Vec<Hit>) {
        let bytes = self.word(gram);
        let bucket = bucket(bytes);
        let bounds = self.buckets.get(bucket).zip(self.buckets.get(bucket + 1));
        let words = bounds.and_then(|(start, end)| self.words.get(*start as usize..*end as usize));
        for (word, index) in words.unwrap_or_default() {
            if *word == bytes {
                hits.push(Hit {
                    word: *index as usize,
                    start: at,
                    end: at + self.length,
                });
            }
        }
    }

    #[inline]
    fn word(&self, gram: [u8; GRAM_BYTES]) -> u32 {
        u32::from_le_bytes(gram) & self.mask
    }
}

#[inline]
fn bucket(word: u32) -> usize {
    hash(word) >> (HASH_BITS - BUCKET_BITS)
}

#[inline]
fn hash(word: u32) -> usize {
    (word.wrapping_mul(SPREAD) >> (u32::BITS - HASH_BITS)) as usize
}
