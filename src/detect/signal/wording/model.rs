//! The weights of the model of wording, and the interpretation of their sums.

/// The file that `train.py` writes; [`Model::builtin`] describes its format.
static BUILTIN: &[u8] = include_bytes!("../wording.bin");
/// First bytes of the file.
const MAGIC: &[u8] = b"wording2";
/// Number of pairs of a share of documents and a score in the file.
const LEVELS: usize = 7;
/// Number of factors by which sums are multiplied, one for each number of words.
const LENGTHS: usize = 256;
/// Fraction bits of a factor.
const LENGTH_BITS: u32 = 12;
/// The table has one weight for each hash of this many bits.
const TABLE_BITS: u32 = 22;
/// Number of different weights.
const STEPS: usize = 16;
/// Valid values of `per_100k`.
pub(in crate::detect::signal) const SHARES: std::ops::RangeInclusive<u64> = 20..=2000;

/// A parsed model.
#[derive(Debug)]
pub(in crate::detect::signal) struct Model {
    /// Ordinary documents per 100,000, and the score that at most this share reaches.
    levels: [(u32, i32); LEVELS],
    bias: i32,
    /// The bias of windows with characters beyond ASCII, most of which are not in English.
    bias_beyond_ascii: i32,
    lengths: [i32; LENGTHS],
    pub(super) weights: Weights,
}

/// One of a few weights for each hash.
#[derive(Debug)]
pub(super) struct Weights {
    /// The two weights of each byte of the table.
    of_byte: Box<[[i8; 2]; 256]>,
    /// The numbers of the weights, two in a byte.
    numbers: &'static [u8; 1 << (TABLE_BITS - 1)],
}

impl Weights {
    fn new(steps: &[u8; STEPS], numbers: &'static [u8; 1 << (TABLE_BITS - 1)]) -> Self {
        let weight = |number: usize| steps.get(number).map_or(0, |step| step.cast_signed());
        let mut of_byte = Box::new([[0; 2]; 256]);
        for (byte, weights) in of_byte.iter_mut().enumerate() {
            *weights = [weight(byte & 0xf), weight(byte >> 4)];
        }
        Self { of_byte, numbers }
    }

    /// Returns the weight of a pair of hashes. The tag identifies the kind of feature.
    #[inline]
    pub(super) fn weight(&self, a: u32, b: u32, tag: u32) -> i32 {
        let slot = slot(a, b, tag);
        let byte = self.numbers.get(slot / 2).copied().unwrap_or(0);
        let weights = self.of_byte.as_flattened();
        let place = usize::from(byte) * 2 + slot % 2;
        weights.get(place).copied().map_or(0, i32::from)
    }
}

impl Model {
    /// Returns the built-in model. Its file consists of the magic, the pairs of share and score,
    /// both biases, the length factors (32-bit little-endian integers), the different weights
    /// (signed bytes), and for each hash the number of its weight, two in a byte. Returns `None` if
    /// the file is malformed, which a test rules out.
    pub(in crate::detect::signal) fn builtin() -> Option<Self> {
        let mut rest = BUILTIN.strip_prefix(MAGIC)?;
        let mut number = || {
            let (number, after) = rest.split_first_chunk()?;
            rest = after;
            Some(i32::from_le_bytes(*number))
        };
        let mut levels = [(0, 0); LEVELS];
        for level in &mut levels {
            *level = (u32::try_from(number()?).ok()?, number()?);
        }
        let bias = number()?;
        let bias_beyond_ascii = number()?;
        let mut lengths = [0; LENGTHS];
        for length in &mut lengths {
            *length = number()?;
        }
        // `Model::max_score` relies on it.
        if !lengths.is_sorted_by(|shorter, longer| shorter >= longer) {
            return None;
        }
        let (steps, numbers) = rest.split_first_chunk()?;
        let weights = Weights::new(steps, numbers.try_into().ok()?);
        Some(Self {
            levels,
            bias,
            bias_beyond_ascii,
            lengths,
            weights,
        })
    }

    /// Returns the score of a window with this sum of weights and number of words.
    pub(super) fn score(&self, sum: i32, words: usize, is_ascii: bool) -> i32 {
        let length = self
            .lengths
            .get(words)
            .or(self.lengths.last())
            .copied()
            .unwrap_or(0);
        let score = (i64::from(sum) * i64::from(length)) >> LENGTH_BITS;
        // Cannot overflow: weights are signed bytes and windows are short.
        i32::try_from(score)
            .unwrap_or(i32::MAX)
            .saturating_add(if is_ascii {
                self.bias
            } else {
                self.bias_beyond_ascii
            })
    }

    /// Returns a score that no window exceeds whose weights add up to at most `sum`, which is not
    /// negative, and that has at least this number of words.
    pub(super) fn max_score(&self, sum: i32, words: usize) -> i32 {
        self.score(sum, words, true)
            .max(self.score(sum, words, false))
    }

    /// Returns the score that `share` of 100,000 ordinary documents reach. Between two shares in
    /// the file it is an estimate: the logarithm of the share falls about evenly with the score.
    pub(in crate::detect::signal) fn threshold(&self, share: u32) -> i32 {
        let Some((low, score)) = self.levels.iter().rev().find(|(level, _)| *level <= share) else {
            return i32::MAX;
        };
        let Some((high, next)) = self.levels.iter().find(|(level, _)| *level > share) else {
            return *score;
        };
        let [share, low, high] = [share, *low, *high].map(|share| f64::from(share).ln());
        score - (f64::from(score - next) * (share - low) / (high - low)) as i32
    }
}

/// Returns the position of the weight of a pair of hashes.
fn slot(a: u32, b: u32, tag: u32) -> usize {
    let mut hash = a.wrapping_mul(0x9e37_79b1) ^ b.wrapping_add(tag.wrapping_mul(0x85eb_ca6b));
    hash ^= hash >> 15;
    (hash.wrapping_mul(0x2c1b_3c6d) >> (u32::BITS - TABLE_BITS)) as usize
}
