//! Looks for many words at once, in a text that holds hardly any of them.
//!
//! Of each word the rarest four bytes are looked for, by one bit for each hash of four bytes: 8 kB that stay in the
//! nearest cache, and no step that waits for the one before. An automaton over the same two thousand words takes
//! megabytes, and a text wanders all over it: it took twenty times as long. (The idea is Wu and Manber's, 1994, with
//! their blocks of letters but without shifts, which many words make short.)

use super::rarity;

/// Bytes of a word that are looked for.
const GRAM_BYTES: usize = 4;
/// Bits of a hash.
const HASH_BITS: u32 = 16;
/// 2^32 divided by the golden ratio.
const SPREAD: u32 = 0x9e37_79b9;
const WORDS_OF_BITS: usize = (1 << HASH_BITS) / 64;

/// Words to look for in any ASCII case.
pub(super) struct Sieve {
    words: Vec<Box<[u8]>>,
    grams: Table,
    /// For words of less than four bytes: the last two.
    pairs: Option<Table>,
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
    /// Hash, word, and how many bytes of the word come after what is hashed; sorted.
    owners: Vec<(u16, u32, usize)>,
}

impl Sieve {
    /// Of words of two bytes at the least; shorter ones are never found.
    pub(super) fn new(words: &[Vec<u8>]) -> Self {
        let (mut grams, mut pairs) = (Vec::new(), Vec::new());
        for (index, word) in words.iter().enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let rarest = word.windows(GRAM_BYTES).enumerate().max_by_key(|(_, gram)| rarity::bits(gram));
            match rarest {
                Some((at, gram)) => {
                    let window = gram.iter().fold(0, |window, b| shift(window, *b));
                    grams.push((hash(window), index, word.len() - at - GRAM_BYTES));
                }
                None => {
                    if let [.., a, b] = word.as_slice() {
                        pairs.push((pair(shift(shift(0, *a), *b)), index, 0));
                    }
                }
            }
        }
        let pairs = (!pairs.is_empty()).then(|| Table::new(pairs));
        Self { words: words.iter().map(|word| word.clone().into_boxed_slice()).collect(), grams: Table::new(grams), pairs }
    }

    /// Every place of every word, by where it ends.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        match &self.pairs {
            None => self.grams(text, &mut hits),
            Some(pairs) => self.both(pairs, text, &mut hits),
        }
        hits.sort_unstable_by_key(|hit| (hit.end, hit.start));
        hits
    }

    fn grams(&self, text: &[u8], hits: &mut Vec<Hit>) {
        let mut window = 0;
        for (at, b) in text.iter().enumerate() {
            window = shift(window, *b);
            if self.grams.may_hold(hash(window)) {
                self.check(&self.grams, hash(window), text, at + 1, hits);
            }
        }
    }

    fn both(&self, pairs: &Table, text: &[u8], hits: &mut Vec<Hit>) {
        let mut window = 0;
        for (at, b) in text.iter().enumerate() {
            window = shift(window, *b);
            if self.grams.may_hold(hash(window)) {
                self.check(&self.grams, hash(window), text, at + 1, hits);
            }
            if pairs.may_hold(pair(window)) {
                self.check(pairs, pair(window), text, at + 1, hits);
            }
        }
    }

    #[inline(never)]
    fn check(&self, table: &Table, hash: u16, text: &[u8], end: usize, hits: &mut Vec<Hit>) {
        for (_, word, after) in table.of(hash).iter().take_while(|(other, ..)| *other == hash) {
            let index = *word as usize;
            let Some(word) = self.words.get(index) else { continue };
            let end = end + after;
            let Some(start) = end.checked_sub(word.len()) else { continue };
            if text.get(start..end).is_some_and(|there| there.eq_ignore_ascii_case(word)) {
                hits.push(Hit { start, end, word: index });
            }
        }
    }
}

impl std::fmt::Debug for Sieve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sieve({} words)", self.words.len())
    }
}

impl Table {
    fn new(mut owners: Vec<(u16, u32, usize)>) -> Self {
        owners.sort_unstable();
        let mut bits = Box::new([0_u64; WORDS_OF_BITS]);
        for (hash, ..) in &owners {
            bits.get_mut(usize::from(*hash) / 64).into_iter().for_each(|bits| *bits |= 1 << (hash % 64));
        }
        let mut before = Box::new([0; WORDS_OF_BITS]);
        let mut sum = 0;
        for (before, bits) in before.iter_mut().zip(bits.iter()) {
            *before = sum;
            sum += bits.count_ones();
        }
        let last = |at: usize| at.checked_sub(1).and_then(|at| owners.get(at)).map(|(hash, ..)| *hash);
        let starts = (0..owners.len()).filter(|at| last(*at) != owners.get(*at).map(|(hash, ..)| *hash)).collect();
        Self { bits, before, starts, owners }
    }

    /// The owners from the first of a hash on, which there is one of.
    fn of(&self, hash: u16) -> &[(u16, u32, usize)] {
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

/// Letters of either case are one; so are a few other characters, which the comparison tells apart.
#[inline]
fn shift(window: u32, b: u8) -> u32 {
    window << 8 | u32::from(b | 0x20)
}

#[inline]
fn hash(window: u32) -> u16 {
    (window.wrapping_mul(SPREAD) >> (32 - HASH_BITS)) as u16
}

#[inline]
fn pair(window: u32) -> u16 {
    window as u16
}

#[cfg(test)]
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
        assert_eq!(found(&["b@nk", "nk"], "b`nk"), [(2, 4, 1)], "what the hash confuses");
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
