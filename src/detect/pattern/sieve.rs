//! Looks for many words at once, in a text that holds hardly any of them.
//!
//! Of each word the rarest four bytes are looked for, by one bit for each hash of four bytes: 8 kB that stay in the
//! nearest cache, and no step that waits for the one before. An automaton over the same two thousand words takes
//! megabytes, and a text wanders all over it: it took twenty times as long. (The idea is Wu and Manber's, 1994, with
//! their blocks of letters but without shifts, which many words make short.)

use std::collections::HashSet;
use std::sync::LazyLock;

use super::rarity;

/// Bytes of a word that are looked for.
const GRAM_BYTES: usize = 4;
/// The same for shorter words.
const PAIR_BYTES: usize = 2;
/// How much rarer four bytes must be to be worth a bit of their own.
const SHARED_BITS: u32 = 4;
/// Bits of a hash.
const HASH_BITS: u32 = 16;
/// 2^32 divided by the golden ratio.
const SPREAD: u32 = 0x9e37_79b9;
const WORDS_OF_BITS: usize = (1 << HASH_BITS) / 64;

/// Words to look for in any ASCII case. A blank in them is any white space, and as much as there is.
pub(super) struct Sieve {
    words: Vec<Box<[u8]>>,
    /// For words of four bytes and more.
    grams: Table,
    /// For shorter words: their last two bytes.
    pairs: Table,
}

/// A word that stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Its index.
    pub(super) word: usize,
}

/// Which words a hash may belong to.
struct Table {
    bits: Box<[u64; WORDS_OF_BITS]>,
    /// How many bits are set before each 64.
    before: Box<[u32; WORDS_OF_BITS]>,
    /// For each bit that is set, in order, where its owners begin.
    starts: Vec<usize>,
    /// By their hashes.
    owners: Vec<Owner>,
}

/// A word that is looked for by a hash.
#[derive(Clone, Copy)]
struct Owner {
    hash: u16,
    word: u32,
    /// How many bytes of the word come after what is hashed.
    after: usize,
    /// The last eight bytes of the word up to there, and which of them there are.
    last: u64,
    mask: u64,
}

impl Sieve {
    /// Of words of two bytes at the least; shorter ones are never found.
    pub(super) fn new(words: &[Vec<u8>]) -> Self {
        let words: Vec<Box<[u8]>> = words.iter().map(|word| folded(word)).collect();
        let (mut grams, mut pairs) = (Vec::new(), Vec::new());
        let mut taken = HashSet::new();
        for (index, word) in words.iter().enumerate() {
            // One that another word is looked for by is nearly as good as the rarest: the fewer, the fewer bits are set.
            let worth = |gram: &[u8]| rarity::bits(gram) + if taken.contains(gram) { SHARED_BITS } else { 0 };
            let best = word.windows(GRAM_BYTES).enumerate().max_by_key(|(_, gram)| worth(gram));
            match best {
                Some((at, gram)) => {
                    taken.insert(gram);
                    grams.extend(Owner::new(index, word, at + GRAM_BYTES, hash));
                }
                None if word.len() >= PAIR_BYTES => pairs.extend(Owner::new(index, word, word.len(), pair)),
                None => {}
            }
        }
        Self { words, grams: Table::new(grams), pairs: Table::new(pairs) }
    }

    /// Every place of every word, by where it ends.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        let fold = &*FOLDED;
        let mut window = 0_u64;
        for (at, b) in text.iter().enumerate() {
            let b = fold.get(usize::from(*b)).copied().unwrap_or(*b);
            // Of white space the first byte counts.
            if b == b' ' && window as u8 == b' ' {
                continue;
            }
            window = window << 8 | u64::from(b);
            if self.grams.may_hold(hash(window)) {
                self.check(&self.grams, hash(window), window, (text, at + 1), &mut hits);
            }
            if self.pairs.may_hold(pair(window)) {
                self.check(&self.pairs, pair(window), window, (text, at + 1), &mut hits);
            }
        }
        hits.sort_unstable_by_key(|hit| (hit.end, hit.start));
        hits
    }

    #[inline(never)]
    fn check(&self, table: &Table, hash: u16, window: u64, (text, end): (&[u8], usize), hits: &mut Vec<Hit>) {
        for owner in table.of(hash).iter().take_while(|owner| owner.hash == hash) {
            if (window ^ owner.last) & owner.mask != 0 {
                continue;
            }
            let index = owner.word as usize;
            let word = self.words.get(index).and_then(|word| word.split_at_checked(word.len() - owner.after));
            if let Some((before, after)) = word
                && let Some(start) = backward(text, end, before)
                && let Some(end) = forward(text, end, before, after)
            {
                hits.push(Hit { start, end, word: index });
            }
        }
    }
}

impl Owner {
    /// Of a word that is looked for by what stands before its `end`.
    fn new(index: usize, word: &[u8], end: usize, hash: fn(u64) -> u16) -> Option<Self> {
        let last = word.get(..end)?.iter().fold(0, |window, b| window << 8 | u64::from(*b));
        let mask = if end >= 8 { u64::MAX } else { (1 << (8 * end)) - 1 };
        Some(Self { hash: hash(last), word: u32::try_from(index).ok()?, after: word.len() - end, last, mask })
    }
}

/// A word as it is looked for.
fn folded(word: &[u8]) -> Box<[u8]> {
    let mut folded: Vec<u8> = word.iter().map(|b| fold(*b)).collect();
    folded.dedup_by(|a, b| *a == b' ' && *b == b' ');
    folded.into()
}

/// Where `word` begins if it ends at `end`.
fn backward(text: &[u8], end: usize, word: &[u8]) -> Option<usize> {
    let mut at = end;
    for b in word.iter().rev() {
        at = at.checked_sub(1)?;
        if fold(*text.get(at)?) != *b {
            return None;
        }
        if *b == b' ' {
            at -= text.get(..at)?.iter().rev().take_while(|b| fold(**b) == b' ').count();
        }
    }
    Some(at)
}

/// Where `word` ends if it goes on from `at`, before which `before` stands.
fn forward(text: &[u8], mut at: usize, before: &[u8], word: &[u8]) -> Option<usize> {
    let mut last = before.last().copied();
    for b in word {
        if last.replace(*b) == Some(b' ') {
            at += text.get(at..)?.iter().take_while(|b| fold(**b) == b' ').count();
        }
        if fold(*text.get(at)?) != *b {
            return None;
        }
        at += 1;
    }
    Some(at)
}

impl std::fmt::Debug for Sieve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sieve({} words)", self.words.len())
    }
}

impl Table {
    fn new(mut owners: Vec<Owner>) -> Self {
        owners.sort_by_key(|owner| owner.hash);
        let mut bits = Box::new([0_u64; WORDS_OF_BITS]);
        for Owner { hash, .. } in &owners {
            bits.get_mut(usize::from(*hash) / 64).into_iter().for_each(|bits| *bits |= 1 << (hash % 64));
        }
        let mut before = Box::new([0; WORDS_OF_BITS]);
        let mut sum = 0;
        for (before, bits) in before.iter_mut().zip(bits.iter()) {
            *before = sum;
            sum += bits.count_ones();
        }
        let last = |at: usize| at.checked_sub(1).and_then(|at| owners.get(at)).map(|owner| owner.hash);
        let starts = (0..owners.len()).filter(|at| last(*at) != owners.get(*at).map(|owner| owner.hash)).collect();
        Self { bits, before, starts, owners }
    }

    /// The owners from the first of a hash on, which there is one of.
    fn of(&self, hash: u16) -> &[Owner] {
        let at = usize::from(hash) / 64;
        let below = self.bits.get(at).map_or(0, |bits| (bits & ((1 << (hash % 64)) - 1)).count_ones());
        let nth = self.before.get(at).map_or(u32::MAX, |before| before + below);
        self.starts.get(nth as usize).and_then(|start| self.owners.get(*start..)).unwrap_or_default()
    }

    #[inline]
    fn may_hold(&self, hash: u16) -> bool {
        self.bits.get(usize::from(hash) / 64).is_some_and(|bits| bits >> (hash % 64) & 1 == 1)
    }
}

/// What each byte is looked for as.
static FOLDED: LazyLock<[u8; 256]> = LazyLock::new(|| std::array::from_fn(|b| fold(b as u8)));

/// Letters of either case are one, and so is all white space.
fn fold(b: u8) -> u8 {
    if matches!(b, b'\t'..=b'\r') { b' ' } else { b.to_ascii_lowercase() }
}

/// Of the last four bytes.
#[inline]
fn hash(window: u64) -> u16 {
    ((window as u32).wrapping_mul(SPREAD) >> (32 - HASH_BITS)) as u16
}

/// Of the last two.
#[inline]
fn pair(window: u64) -> u16 {
    window as u16
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests {
    use super::*;

    fn found(words: &[&str], text: &str) -> Vec<(usize, usize, usize)> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        Sieve::new(&words).find(text.as_bytes()).into_iter().map(|hit| (hit.start, hit.end, hit.word)).collect()
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
