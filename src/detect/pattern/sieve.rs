//! Looks for many words at once, in a text that holds hardly any of them.
//!
//! The text is folded first (case, white space), which vectorises. Of each word the rarest four bytes are looked for, by
//! one bit for each hash of four bytes: 8 kB that stay in the nearest cache, and no step that waits for the one before. An
//! automaton over the same two thousand words takes megabytes, and a text wanders all over it: it took twenty times as
//! long. (The idea is Wu and Manber's, 1994, with their blocks of letters but without shifts, which many words make short.)

use super::folded::{Folded, fold};
use super::rarity;

/// Bytes by which a word is looked for.
const GRAM_BYTES: usize = 4;
/// The same for words that have less.
const PAIR_BYTES: usize = 2;
/// Bits of a hash.
const HASH_BITS: u32 = 16;
/// 2^32 divided by the golden ratio.
const SPREAD: u32 = 0x9e37_79b9;

/// Words to look for in any ASCII case. A blank in them is any white space, and as much as there is.
pub(super) struct Sieve {
    words: Vec<Box<[u8]>>,
    /// Words of four bytes and more, by the rarest four of them.
    grams: Owners,
    /// Shorter words, by the two that they begin with.
    pairs: Owners,
}

/// A word that stands in a text. There may be many: they are kept small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    start: u32,
    end: u32,
    word: u32,
}

impl Hit {
    fn new(start: usize, end: usize, word: usize) -> Option<Self> {
        let [start, end, word] = [start, end, word].map(u32::try_from);
        Some(Self { start: start.ok()?, end: end.ok()?, word: word.ok()? })
    }

    pub(super) fn start(&self) -> usize {
        self.start as usize
    }

    pub(super) fn end(&self) -> usize {
        self.end as usize
    }

    /// Its index.
    pub(super) fn word(&self) -> usize {
        self.word as usize
    }
}

/// One for each hash.
type Bits = [u64; (1 << HASH_BITS) / 64];

/// Words by a hash of some of their bytes.
struct Owners {
    bits: Box<Bits>,
    /// By their hashes.
    owners: Vec<Owner>,
    /// Where the owners of each so many hashes begin, and where the last end.
    starts: Vec<usize>,
}

/// Hashes that share a place in [`Owners::starts`].
const SHARE: usize = 8;

/// A word that is looked for by some of its bytes.
#[derive(Clone, Copy)]
struct Owner {
    hash: usize,
    word: usize,
    /// Where in the word they begin.
    at: usize,
    /// The word's last byte, and where it stands.
    last: (usize, u8),
}

impl Sieve {
    /// Of words of two bytes at the least; shorter ones are never found.
    pub(super) fn new(words: &[Vec<u8>]) -> Self {
        let words: Vec<Box<[u8]>> = words.iter().map(|word| folded(word)).collect();
        let (mut by_gram, mut by_pair) = (Vec::new(), Vec::new());
        for (index, word) in words.iter().enumerate() {
            let Some(last) = word.len().checked_sub(1).zip(word.last().copied()) else { continue };
            let rarest = grams(word).enumerate().max_by_key(|(_, gram)| rarity::bits(gram));
            match (rarest, word.first_chunk::<PAIR_BYTES>()) {
                (Some((at, gram)), _) => by_gram.push(Owner { hash: hash(gram), word: index, at, last }),
                (None, Some(&[first, second])) => {
                    by_pair.push(Owner { hash: pair_of([first, second, 0, 0]), word: index, at: 0, last });
                }
                (None, None) => {}
            }
        }
        Self { words, grams: Owners::new(by_gram), pairs: Owners::new(by_pair) }
    }

    /// Every place of every word, by where it ends. In texts of less than four gigabytes.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Hit> {
        let text = Folded::new(text);
        let mut hits = Vec::new();
        let (gram_bits, pair_bits) = (&*self.grams.bits, &*self.pairs.bits);
        if self.pairs.owners.is_empty() {
            for (at, gram) in grams(text.padded()).enumerate() {
                if may_hold(gram_bits, hash(gram)) {
                    self.tell(&text, at, &self.grams, hash(gram), &mut hits);
                }
            }
        } else {
            for (at, gram) in grams(text.padded()).enumerate() {
                let (hash, pair) = (hash(gram), pair_of(gram));
                // One branch, which is hardly ever taken.
                if may_hold(gram_bits, hash) | may_hold(pair_bits, pair) {
                    self.tell(&text, at, &self.grams, hash, &mut hits);
                    self.tell(&text, at, &self.pairs, pair, &mut hits);
                }
            }
        }
        if !hits.is_sorted_by_key(|hit| (hit.end, hit.start)) {
            hits.sort_unstable_by_key(|hit| (hit.end, hit.start));
        }
        hits
    }

    /// Tells the words of which the whole stands around `at`.
    #[inline(never)]
    fn tell(&self, text: &Folded, at: usize, owners: &Owners, hash: usize, hits: &mut Vec<Hit>) {
        let bytes = text.bytes();
        for owner in owners.of(hash) {
            let Some(start) = at.checked_sub(owner.at) else { continue };
            // Most end here: what they share is in front.
            if bytes.get(start + owner.last.0) != Some(&owner.last.1) {
                continue;
            }
            let word: &[u8] = self.words.get(owner.word).map(AsRef::as_ref).unwrap_or_default();
            if bytes.get(start..start + word.len()) == Some(word) {
                hits.extend(Hit::new(text.place(start), text.end(start + word.len()), owner.word));
            }
        }
    }
}

impl Owners {
    fn new(mut owners: Vec<Owner>) -> Self {
        owners.sort_by_key(|owner| owner.hash);
        let mut bits = Box::new([0_u64; (1 << HASH_BITS) / 64]);
        for Owner { hash, .. } in &owners {
            bits.get_mut(hash / 64).into_iter().for_each(|bits| *bits |= 1 << (hash % 64));
        }
        let start = |share: usize| owners.partition_point(|owner| owner.hash < share * SHARE);
        let starts = (0..=(1 << HASH_BITS) / SHARE).map(start).collect();
        Self { bits, starts, owners }
    }

    fn of(&self, hash: usize) -> impl Iterator<Item = Owner> {
        let bounds = self.starts.get(hash / SHARE).zip(self.starts.get(hash / SHARE + 1));
        let owners = bounds.and_then(|(start, end)| self.owners.get(*start..*end)).unwrap_or_default();
        owners.iter().copied().filter(move |owner| owner.hash == hash)
    }
}

/// A word as it is looked for.
fn folded(word: &[u8]) -> Box<[u8]> {
    let mut folded: Vec<u8> = word.iter().map(|b| fold(*b)).collect();
    folded.dedup_by(|a, b| *a == b' ' && *b == b' ');
    folded.into()
}

impl std::fmt::Debug for Sieve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sieve({} words)", self.words.len())
    }
}

/// Every four bytes.
#[inline]
fn grams(bytes: &[u8]) -> impl Iterator<Item = [u8; GRAM_BYTES]> {
    bytes.windows(GRAM_BYTES).map(|gram| gram.first_chunk().copied().unwrap_or_default())
}

#[inline]
fn hash(gram: [u8; GRAM_BYTES]) -> usize {
    (u32::from_le_bytes(gram).wrapping_mul(SPREAD) >> (32 - HASH_BITS)) as usize
}

/// The first two bytes, which need no hash.
#[inline]
fn pair_of(gram: [u8; GRAM_BYTES]) -> usize {
    (u32::from_le_bytes(gram) & 0xffff) as usize
}

#[inline]
fn may_hold(bits: &Bits, hash: usize) -> bool {
    bits.get(hash / 64).is_some_and(|bits| bits >> (hash % 64) & 1 == 1)
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests {
    use super::*;

    fn found(words: &[&str], text: &str) -> Vec<(usize, usize, usize)> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Sieve::new(&words).find(text.as_bytes()).into_iter().map(|hit| (hit.start(), hit.end(), hit.word())).collect()
    }

    #[test]
    fn every_place_in_any_case() {
        assert_eq!(found(&["ignore", "no", "re all"], "IGNORE all"), [(2, 4, 1), (0, 6, 0), (4, 10, 2)]);
        assert_eq!(found(&["aaaa"], "aaaaaa"), [(0, 4, 0), (1, 5, 0), (2, 6, 0)]);
        assert_eq!(found(&["指令", "ai:"], "AI: 指令"), [(0, 3, 1), (4, 10, 0)]);
        assert_eq!(found(&["b@nk", "nk"], "b`nk"), [(2, 4, 1)]);
        assert_eq!(found(&["a b  cd", " x", "y "], "A \n B\tcd\n\nx y \t"), [(0, 8, 0), (8, 11, 1), (12, 14, 2)]);
        assert_eq!(found(&["you must", "t g"], "you \n  must  go"), [(0, 11, 0), (10, 14, 1)]);
        assert!(found(&["longer than it", "x"], "longer than").is_empty());
    }

    #[test]
    fn the_same_as_a_plain_search() {
        let text: String = (0..3_000_u32).map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 29) as u8)).collect();
        let words: Vec<&str> = (0..200).map(|n| &text[n * 7..n * 7 + 2 + n % 9]).collect();
        let told = found(&words, &text);
        for (index, word) in words.iter().enumerate() {
            let places = (0..text.len()).filter(|at| text[*at..].starts_with(word)).count();
            assert_eq!(told.iter().filter(|(.., word)| *word == index).count(), places, "{word}");
        }
    }
}
