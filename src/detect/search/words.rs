//! Searches for many words at once in a text that contains hardly any of them.
//!
//! Each word is found by its rarest run of four bytes, using a table with one bit for each hash of
//! four bytes: 32 kB, which stay in the nearest cache, and no step depends on the previous one. If
//! a bit is set, the run with the byte after it is checked in the same way, then up to eight bytes,
//! and only then are words compared. An automaton over the same words takes megabytes and misses
//! the cache at nearly every byte. (The idea is from Wu and Manber, 1994: their blocks of letters,
//! but without shifts, which many words make short.)

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem::Finder;

use super::entry::{ENTRY_BYTES, Entry, GRAMS, KEY_BYTES, KeyFilter, Shapes};
use super::filter::{Bits, Filter, HASH_BITS, hash, long_hash, may_contain};
use super::folded::{Folded, PAD};
use super::grams::{self, GRAM_BYTES};
use super::grouped::sort_by_group;
use super::short_words::ShortWords;
use crate::detect::prepared::{Reader, Writer};

/// Minimum and maximum number of hash bits that select a bucket. Within these limits, there are
/// four buckets per entry.
const LEAST_BUCKET_BITS: u32 = 8;
const MOST_BUCKET_BITS: u32 = 16;
const BUCKETS_PER_ENTRY: usize = 4;
/// Number of positions that are searched before their words are compared.
const BLOCK: usize = 256;
/// Length of words that each take a separate pass.
const PAIR_BYTES: usize = 2;
/// A run of four bytes and the byte after it.
const LONG_GRAM_BYTES: usize = GRAM_BYTES + 1;
/// Weight of one bit of rarity in the choice of a run: it outweighs this many other words with the
/// same run.
const BIT: i32 = 32;
/// Bonus for a run with non-ASCII bytes: ASCII texts skip it.
const BEYOND_ASCII: i32 = 16 * BIT;
/// Bonus for a run that other words already use: it costs a comparison, but adds no further
/// candidates in texts.
const SHARED: i32 = 2 * BIT;

/// A 32-bit number as bytes.
type Number = [u8; 4];

/// A set of words to search for. A blank in a word matches white space of any length. Data that the
/// build has written is searched in place.
pub(crate) struct Words {
    /// The words, concatenated in the order of their indices.
    bytes: Cow<'static, [u8]>,
    /// Where each word begins in `bytes`, and where the last one ends.
    starts: Cow<'static, [Number]>,
    /// The runs without non-ASCII bytes, for ASCII texts.
    ascii: Filter,
    all: Filter,
    /// The entries, sorted by the hashes of their run and the byte after it.
    entries: Cow<'static, [[u8; ENTRY_BYTES]]>,
    /// Where the entries of each bucket begin, and where the last ones end.
    buckets: Cow<'static, [Number]>,
    bucket_bits: u32,
    /// The shapes of the entries in each bucket, which determine the bytes of a text to compare.
    shapes: Cow<'static, [[u8; 2]]>,
    keys: KeyFilter,
    threes: ShortWords<3>,
    fours: ShortWords<4>,
    /// Words of two bytes, each of which takes a separate pass. Shorter words are not found.
    pairs: Vec<(Finder<'static>, usize)>,
}

/// A word found in a text, with its place in the padded folded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) word: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Words {
    /// Prepares folded words of at least two bytes; shorter ones are not found.
    pub(crate) fn new(words: &[&[u8]]) -> Self {
        let mut searcher = Self {
            bytes: Cow::Owned(words.concat()),
            starts: Cow::default(),
            ascii: Filter::new(),
            all: Filter::new(),
            entries: Cow::default(),
            buckets: Cow::default(),
            bucket_bits: MOST_BUCKET_BITS,
            shapes: Cow::default(),
            keys: KeyFilter::new(),
            threes: ShortWords::new(),
            fours: ShortWords::new(),
            pairs: Vec::new(),
        };
        let (mut crowds, mut long_crowds) =
            (vec![0_u16; 1 << HASH_BITS], vec![0_u16; 1 << HASH_BITS]);
        let ends = words.iter().scan(0, |end, word| {
            *end += word.len();
            Some(*end)
        });
        searcher.starts = [0]
            .into_iter()
            .chain(ends)
            .map(|at| u32::try_from(at).unwrap_or(u32::MAX).to_le_bytes())
            .collect();
        let mut entries = Vec::new();
        // Short words come first: longer ones have more runs to choose from, and can share theirs.
        let mut by_length: Vec<(usize, usize)> = words
            .iter()
            .enumerate()
            .map(|(index, word)| (word.len(), index))
            .collect();
        by_length.sort_unstable();
        for (_, index) in by_length {
            let Some(word) = words.get(index).copied() else {
                continue;
            };
            if word.len() == PAIR_BYTES {
                searcher.pairs.push((Finder::new(word).into_owned(), index));
                continue;
            }
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            if let Ok(three) = <[u8; 3]>::try_from(word) {
                searcher.add_three(three, index);
                continue;
            }
            if let Ok(four) = <[u8; 4]>::try_from(word) {
                searcher.add_four(four, index);
                continue;
            }
            let rate = |(at, [a, b, c, d, next]): (usize, [u8; LONG_GRAM_BYTES])| {
                let gram = [a, b, c, d];
                let is_known = crowds.get(hash(gram)).is_some_and(|crowd| *crowd > 0);
                let crowd = long_crowds
                    .get(long_hash(gram, next))
                    .copied()
                    .unwrap_or_default();
                let beyond = if gram.is_ascii() { 0 } else { BEYOND_ASCII };
                let shared = if is_known { SHARED } else { 0 };
                (
                    grams::rarity(gram) * BIT + beyond + shared - i32::from(crowd),
                    at,
                    gram,
                    next,
                )
            };
            let best = runs_of(word)
                .take(GRAMS)
                .enumerate()
                .map(rate)
                .max_by_key(|(score, ..)| *score);
            let Some((_, at, gram, next)) = best else {
                continue;
            };
            for (crowds, hash) in [
                (&mut crowds, hash(gram)),
                (&mut long_crowds, long_hash(gram, next)),
            ] {
                crowds
                    .get_mut(hash)
                    .into_iter()
                    .for_each(|crowd| *crowd = crowd.saturating_add(1));
            }
            searcher.all.add(gram, next);
            if gram.is_ascii() && next.is_ascii() {
                searcher.ascii.add(gram, next);
            }
            entries.push(Entry::new(word, index, at));
        }
        searcher.threes.sort();
        searcher.fours.sort();
        searcher.set_entries(entries);
        searcher
    }

    /// Writes the words and the data for finding them.
    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(crate) fn write(&self, out: &mut Writer) {
        out.text(&self.bytes);
        out.text(self.starts.as_flattened());
        [&self.ascii, &self.all]
            .into_iter()
            .for_each(|filter| filter.write(out));
        out.text(self.entries.as_flattened());
        out.text(self.buckets.as_flattened());
        out.text(self.shapes.as_flattened());
        self.keys.write(out);
        self.threes.write(out);
        self.fours.write(out);
        out.number(self.pairs.len());
        self.pairs.iter().for_each(|(_, word)| out.number(*word));
    }

    /// Reads words that [`Words::write`] has written.
    #[allow(dead_code, reason = "for the gateway")]
    pub(super) fn read(from: &mut Reader<'static>) -> Option<Self> {
        let bytes = Cow::Borrowed(from.text()?);
        let starts = Cow::Borrowed(from.text()?.as_chunks().0);
        let ascii = Filter::read(from)?;
        let all = Filter::read(from)?;
        let entries = Cow::Borrowed(from.text()?.as_chunks().0);
        let buckets = from.text()?.as_chunks().0;
        let bucket_bits = buckets.len().checked_sub(1)?.checked_ilog2()?;
        let buckets = Cow::Borrowed(buckets);
        let shapes = Cow::Borrowed(from.text()?.as_chunks().0);
        let keys = KeyFilter::read(from)?;
        let threes = ShortWords::read(from)?;
        let fours = ShortWords::read(from)?;
        let mut searcher = Self {
            bytes,
            starts,
            ascii,
            all,
            entries,
            buckets,
            bucket_bits,
            shapes,
            keys,
            threes,
            fours,
            pairs: Vec::new(),
        };
        for _ in 0..from.number()? {
            let word = from.number()?;
            let finder = Finder::new(searcher.word(word)).into_owned();
            searcher.pairs.push((finder, word as usize));
        }
        Some(searcher)
    }

    /// Returns the number of words.
    pub(super) fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Sorts the entries by bucket and, within each bucket, by key.
    fn set_entries(&mut self, mut entries: Vec<Entry>) {
        let bits = (entries.len() * BUCKETS_PER_ENTRY)
            .next_power_of_two()
            .ilog2();
        self.bucket_bits = bits.clamp(LEAST_BUCKET_BITS, MOST_BUCKET_BITS);
        entries.sort_by_key(|entry| entry.key);
        let bucket = |entry: &Entry| {
            let run = self
                .word(entry.word)
                .get(entry.gram()..)
                .and_then(<[u8]>::first_chunk);
            run.map_or(0, |[a, b, c, d, next]| {
                self.bucket_of(long_hash([*a, *b, *c, *d], *next))
            })
        };
        let (buckets, entries) = sort_by_group(&entries, 1 << self.bucket_bits, bucket);
        let shapes_between = |bounds: &[u32]| -> Shapes {
            let Ok([start, end]) = <[u32; 2]>::try_from(bounds) else {
                return Shapes::default();
            };
            entries
                .get(start as usize..end as usize)
                .unwrap_or_default()
                .iter()
                .map(Entry::shape)
                .collect()
        };
        self.shapes = buckets
            .windows(2)
            .map(|bounds| shapes_between(bounds).bytes())
            .collect();
        self.buckets = buckets.into_iter().map(u32::to_le_bytes).collect();
        entries.iter().for_each(|entry| self.keys.add(entry.key));
        self.entries = entries.iter().map(Entry::bytes).collect();
    }

    /// Adds a word of three bytes, which is found by every four-byte run that begins with it.
    fn add_three(&mut self, word: [u8; 3], index: u32) {
        self.threes.add(word, index);
        let [a, b, c] = word;
        for next in 0..=u8::MAX {
            let hash = hash([a, b, c, next]);
            self.all.first.set(hash);
            if word.is_ascii() && (next.is_ascii() || next == u8::MAX) {
                self.ascii.first.set(hash);
            }
        }
    }

    fn add_four(&mut self, word: [u8; 4], index: u32) {
        self.fours.add(word, index);
        self.all.first.set(hash(word));
        if word.is_ascii() {
            self.ascii.first.set(hash(word));
        }
    }

    /// Calls `hit` for each occurrence of each word, roughly in order.
    pub(super) fn find(&self, text: &Folded, mut hit: impl FnMut(Hit)) {
        let Filter { first, second } = if text.is_ascii() {
            &self.ascii
        } else {
            &self.all
        };
        let first: &Bits = first;
        let second: &Bits = second;
        let padded = text.padded();
        let mut positions = [0_u16; BLOCK];
        let mut start = PAD;
        while start + PAD < padded.len() {
            let end = (start + BLOCK).min(padded.len() - PAD);
            let count = find_candidates(
                padded.get(start..end + GRAM_BYTES - 1).unwrap_or_default(),
                first,
                &mut positions,
            );
            for at in positions.iter().take(count) {
                let at = start + usize::from(*at);
                let Some([a, b, c, d, next]) = padded.get(at..).and_then(<[u8]>::first_chunk)
                else {
                    continue;
                };
                let gram = [*a, *b, *c, *d];
                let long_hash = long_hash(gram, *next);
                if may_contain(second, long_hash) {
                    self.compare(padded, at, long_hash, &mut hit);
                }
                self.fours.compare(gram, at, &mut hit);
                self.threes.compare([*a, *b, *c], at, &mut hit);
            }
            start = end;
        }
        for (finder, word) in &self.pairs {
            finder.find_iter(padded).for_each(|start| {
                hit(Hit {
                    word: *word,
                    start,
                    end: start + PAIR_BYTES,
                })
            });
        }
    }

    /// Calls `hit` for the words whose run is at `at` and, together with the byte after it, has
    /// this hash.
    fn compare(&self, padded: &[u8], at: usize, long_hash: usize, hit: &mut impl FnMut(Hit)) {
        let bucket = self.bucket_of(long_hash);
        for shape in self
            .shapes
            .get(bucket)
            .copied()
            .map(Shapes::from_bytes)
            .unwrap_or_default()
            .all()
        {
            let Some(key) = shape
                .key(padded, at)
                .filter(|key| self.keys.may_contain(*key))
            else {
                continue;
            };
            // Hundreds of words begin with "ignore" and share a bucket.
            let entries = self.entries(bucket);
            let first = entries.partition_point(|entry| Entry::from_bytes(entry).key < key);
            let same_key = entries
                .iter()
                .skip(first)
                .map(Entry::from_bytes)
                .take_while(|entry| entry.key == key);
            for entry in same_key.filter(|entry| entry.shape() == shape) {
                let Some((start, end)) = entry.place(padded, at) else {
                    continue;
                };
                let end = end.unwrap_or_else(|| start + self.word(entry.word).len());
                if end - start <= KEY_BYTES || padded.get(start..end) == Some(self.word(entry.word))
                {
                    hit(Hit {
                        word: entry.word as usize,
                        start,
                        end,
                    });
                }
            }
        }
    }

    fn entries(&self, bucket: usize) -> &[[u8; ENTRY_BYTES]] {
        number_range(&self.buckets, bucket)
            .and_then(|entries| self.entries.get(entries))
            .unwrap_or_default()
    }

    fn bucket_of(&self, hash: usize) -> usize {
        hash >> (HASH_BITS - self.bucket_bits)
    }

    pub(super) fn word(&self, index: u32) -> &[u8] {
        number_range(&self.starts, index as usize)
            .and_then(|bytes| self.bytes.get(bytes))
            .unwrap_or_default()
    }
}

/// Returns the range from the number at an index to the next number.
#[inline]
fn number_range(numbers: &[Number], index: usize) -> Option<Range<usize>> {
    let number = |index: usize| {
        numbers
            .get(index)
            .map(|bytes| u32::from_le_bytes(*bytes) as usize)
    };
    Some(number(index)?..number(index + 1)?)
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words({})", self.len())
    }
}

/// Returns all runs of four bytes, each with the byte after it.
#[inline]
fn runs_of(bytes: &[u8]) -> impl Iterator<Item = [u8; LONG_GRAM_BYTES]> {
    bytes
        .windows(LONG_GRAM_BYTES)
        .map(|run| run.first_chunk().copied().unwrap_or_default())
}

/// Returns all runs of four bytes.
#[inline]
fn grams_of(bytes: &[u8]) -> impl Iterator<Item = [u8; GRAM_BYTES]> {
    bytes
        .windows(GRAM_BYTES)
        .map(|gram| gram.first_chunk().copied().unwrap_or_default())
}

/// Records the positions of runs whose bit is set, and returns their number.
fn find_candidates(block: &[u8], bits: &Bits, positions: &mut [u16; BLOCK]) -> usize {
    let mut count = 0;
    let mut record = |at: u16, gram: u32| {
        // Always written, but only kept if the bit is set: this avoids a branch that would be
        // mispredicted.
        if let Some(position) = positions.get_mut(count) {
            *position = at;
        }
        count += usize::from(may_contain(bits, hash(gram.to_le_bytes())));
    };
    // Four runs begin in every four bytes.
    let pieces = block.windows(2 * GRAM_BYTES).step_by(GRAM_BYTES);
    let mut at = 0;
    for piece in pieces {
        let bytes = u64::from_le_bytes(piece.first_chunk().copied().unwrap_or_default());
        for shift in 0..4_u16 {
            record(at + shift, (bytes >> (8 * shift)) as u32);
        }
        at += 4;
    }
    for gram in grams_of(block.get(usize::from(at)..).unwrap_or_default()) {
        record(at, u32::from_le_bytes(gram));
        at += 1;
    }
    count
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests {
    use super::*;
    use crate::detect::search::folded::fold_word;

    fn find_all(words: &[&str], text: &str) -> Vec<(usize, usize, usize)> {
        let words: Vec<Vec<u8>> = words
            .iter()
            .map(|word| fold_word(word.as_bytes()))
            .collect();
        let mut text_folded = Folded::default();
        text_folded.fold(text.as_bytes());
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let found = |words: &Words| {
            let mut found = Vec::new();
            words.find(&text_folded, |hit| {
                found.push((
                    text_folded.place(hit.start),
                    text_folded.end(hit.end),
                    hit.word,
                ));
            });
            found.sort_unstable();
            found
        };
        let words = Words::new(&words);
        let mut written = Writer::default();
        words.write(&mut written);
        let read = Words::read(&mut Reader(written.0.leak())).unwrap();
        assert_eq!(found(&words), found(&read));
        found(&words)
    }

    #[test]
    fn every_place_in_any_case() {
        assert_eq!(
            find_all(&["ignore", "no", "re all"], "IGNORE all"),
            [(0, 6, 0), (2, 4, 1), (4, 10, 2)]
        );
        assert_eq!(
            find_all(&["aaaa"], "aaaaaa"),
            [(0, 4, 0), (1, 5, 0), (2, 6, 0)]
        );
        assert_eq!(
            find_all(&["指令", "ai:", "令"], "AI: 指令"),
            [(0, 3, 1), (4, 10, 0), (7, 10, 2)]
        );
        assert_eq!(
            find_all(&["a b  cd", " x.", "y 1 "], "A \n B\tcd\n\nx.y 1 \t"),
            [(0, 8, 0), (8, 12, 1), (12, 16, 2)]
        );
        assert_eq!(
            find_all(&["you must", "t go"], "you \n  must  go"),
            [(0, 11, 0), (10, 15, 1)]
        );
        assert!(find_all(&["longer than it"], "longer than").is_empty());
        assert_eq!(find_all(&["end"], "the end"), [(4, 7, 0)]);
    }

    #[test]
    fn long_words_and_those_with_the_same_beginning_are_told_apart() {
        let long = "kettles ".repeat(40);
        let other = "kettles ".repeat(39) + "kettle, ";
        assert_eq!(find_all(&[&long, &other], &other), [(0, other.len(), 1)]);
        let words = [
            "ignore all of it",
            "ignore all of us",
            "ignore a",
            "ignore all",
        ];
        assert_eq!(
            find_all(&words, "ignore all of us"),
            [(0, 8, 2), (0, 10, 3), (0, 16, 1)]
        );
        assert!(find_all(&["ignore all of it"], "ignore all of at").is_empty());
    }

    #[test]
    fn the_same_as_a_plain_search() {
        let text: String = (0..3_000_u32)
            .map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 29) as u8))
            .collect();
        let words: Vec<&str> = (0..200).map(|n| &text[n * 7..n * 7 + 3 + n % 19]).collect();
        let hits = find_all(&words, &text);
        for (index, word) in words.iter().enumerate() {
            let places = (0..text.len())
                .filter(|at| text[*at..].starts_with(word))
                .count();
            assert_eq!(
                hits.iter().filter(|(.., word)| *word == index).count(),
                places,
                "{word}"
            );
        }
    }
}
