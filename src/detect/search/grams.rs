//! Estimates how often words occur in ordinary text, from counted runs of four bytes.
//!
//! `grams.bin` contains the rarity for each hash of four bytes: half a byte each, in powers of two.
//! `tests/bench/grams/run` counts it over documents, manual pages, web pages, code and data, in
//! lower case and with each run of white space as one blank. Runs with the same hash share a count,
//! which can only make a word look more common than it is.

use super::word_list::WordList;

/// Size of a run in bytes.
pub(super) const GRAM_BYTES: usize = 4;
/// Number of bits of a hash.
const HASH_BITS: u32 = 16;
/// 2^32 divided by the golden ratio.
const SPREAD: u32 = 0x9e37_79b9;
static TABLE: &[u8; 1 << (HASH_BITS - 1)] = include_bytes!("grams.bin");
/// The rarity of a run for which the table contains 0.
const LEAST_BITS: i32 = 6;
/// Number of bits that each further byte of a word adds to its rarity.
const FURTHER_BITS: f64 = 0.5;

/// Returns the rarity of a run in bits: with `n` bits, it occurs once in 2^`n` positions of
/// ordinary text.
#[inline]
pub(super) fn rarity(gram: [u8; GRAM_BYTES]) -> i32 {
    let hash = (u32::from_le_bytes(gram).wrapping_mul(SPREAD) >> (32 - HASH_BITS)) as usize;
    let pair = TABLE.get(hash / 2).copied().unwrap_or_default();
    LEAST_BITS
        + i32::from(if hash.is_multiple_of(2) {
            pair & 0xf
        } else {
            pair >> 4
        })
}

/// Returns how often one of `words` occurs per byte of ordinary text.
pub(super) fn frequency(words: &WordList) -> f64 {
    words.iter().map(word_frequency).sum()
}

fn word_frequency(word: &[u8]) -> f64 {
    let probability = |bits: f64| (-bits).exp2();
    match word.first_chunk::<GRAM_BYTES>() {
        None => short_word_frequency(word),
        Some(_) => {
            let rarest = word
                .windows(GRAM_BYTES)
                .filter_map(|gram| gram.first_chunk::<GRAM_BYTES>())
                .map(|gram| rarity(*gram))
                .max();
            let further = u32::try_from(word.len() - GRAM_BYTES).map_or(0.0, f64::from);
            probability(f64::from(rarest.unwrap_or_default()) + FURTHER_BITS * further)
        }
    }
}

/// Returns the frequency of a word of three bytes, as the sum over the bytes that can follow it.
fn short_word_frequency(word: &[u8]) -> f64 {
    let [a, b, c] = *word else { return 1.0 };
    (0x20..0x7f_u8)
        .filter(|next| !next.is_ascii_uppercase())
        .map(|next| (-f64::from(rarity([a, b, c, next]))).exp2())
        .sum()
}
