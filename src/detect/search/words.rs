//! Searches for many words at once in a text that contains hardly any of them.
//!
//! Each word is found by its rarest run of four bytes, using a table with one bit for each hash of
//! four bytes: 32 kB, which stay in the nearest cache, and no step depends on the previous one. If
//! a bit is set, the run with the byte after it is checked in the same way. Where it passes, the
//! up to eight bytes around it that identify a word are the key of a hash table. An automaton over
//! the same words takes megabytes and misses the cache at nearly every byte. (The idea is from Wu
//! and Manber, 1994: their blocks of letters, but without shifts, which many words make short.)

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem::Finder;

use super::entry::{
    ENTRY_BYTES, Entry, GRAMS, KEY_BYTES, KeyFilter, RUN_BYTES, Shape, Shapes, key_hash,
};
use super::filter::{Bits, Filter, HASH_BITS, hash, long_hash, may_contain};
use super::folded::{Folded, PAD};
use super::grams::{self, GRAM_BYTES};
use super::grouped::sort_by_group;
use super::short_words::ShortWords;
use crate::detect::prepared::{Reader, Writer};

/// Minimum and maximum number of hash bits that select a bucket. Within these limits, there are at
/// least four buckets per entry.
const LEAST_BUCKET_BITS: u32 = 8;
const MOST_BUCKET_BITS: u32 = 16;
const BUCKETS_PER_ENTRY: usize = 4;
/// Number of positions that are searched before their words are compared, so that a position is a
/// byte, and number of bytes that runs at these positions and the bytes after them need.
const BLOCK: usize = 256;
const BLOCK_BYTES: usize = BLOCK + PAD;
/// Length of words that each take a separate pass.
const PAIR_BYTES: usize = 2;
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
    /// For each group of runs with the byte after them, by their hashes: the shapes of their
    /// entries, which determine the bytes of a text that are a key.
    shapes: Cow<'static, [u8]>,
    /// The entries, sorted by the hashes of their keys.
    entries: Cow<'static, [[u8; ENTRY_BYTES]]>,
    /// Where the entries of each bucket begin, and where the last ones end.
    buckets: Cow<'static, [Number]>,
    /// Number of hash bits that select a bucket, and shapes.
    bucket_bits: u32,
    keys: KeyFilter,
    threes: ShortWords,
    fours: ShortWords,
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
            shapes: Cow::default(),
            entries: Cow::default(),
            buckets: Cow::default(),
            bucket_bits: MOST_BUCKET_BITS,
            keys: KeyFilter::new(),
            threes: ShortWords::new(3),
            fours: ShortWords::new(GRAM_BYTES),
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
            let rate = |(at, [a, b, c, d, next]): (usize, [u8; RUN_BYTES])| {
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
                .filter(|(at, _)| Shape::of_key(word.len(), *at).is_some())
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
            entries.extend(Entry::new(word, index, at));
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
        out.text(&self.shapes);
        out.text(self.entries.as_flattened());
        out.text(self.buckets.as_flattened());
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
        let shapes = from.text()?;
        let bucket_bits = shapes.len().checked_ilog2()?;
        let shapes = Cow::Borrowed(shapes);
        let entries = Cow::Borrowed(from.text()?.as_chunks().0);
        let buckets = Cow::Borrowed(from.text()?.as_chunks().0);
        let keys = KeyFilter::read(from)?;
        let threes = ShortWords::read(3, from)?;
        let fours = ShortWords::read(GRAM_BYTES, from)?;
        let mut searcher = Self {
            bytes,
            starts,
            ascii,
            all,
            shapes,
            entries,
            buckets,
            bucket_bits,
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

    /// Sorts the entries by the buckets of their keys.
    fn set_entries(&mut self, entries: Vec<Entry>) {
        let bits = (entries.len() * BUCKETS_PER_ENTRY)
            .next_power_of_two()
            .ilog2();
        self.bucket_bits = bits.clamp(LEAST_BUCKET_BITS, MOST_BUCKET_BITS);
        let groups = 1 << self.bucket_bits;
        let mut shapes = vec![Shapes::default(); groups];
        for entry in &entries {
            let run = self
                .word(entry.word)
                .get(entry.gram()..)
                .and_then(<[u8]>::first_chunk);
            if let Some([a, b, c, d, next]) = run
                && let Some(shapes) =
                    shapes.get_mut(self.bucket_of(long_hash([*a, *b, *c, *d], *next)))
            {
                shapes.add(entry.shape());
            }
            self.keys.add(entry.key);
        }
        self.shapes = shapes.into_iter().map(Shapes::byte).collect();
        let (buckets, entries) = sort_by_group(&entries, groups, |entry| {
            self.bucket_of(key_hash(entry.key))
        });
        self.buckets = buckets.into_iter().map(u32::to_le_bytes).collect();
        self.entries = entries.iter().map(Entry::bytes).collect();
    }

    /// Adds a word of three bytes, which is found by every four-byte run that begins with it.
    fn add_three(&mut self, word: [u8; 3], index: u32) {
        let [a, b, c] = word;
        self.threes.add([a, b, c, 0], index);
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

    /// Calls `hit` for each occurrence of each word, roughly in order. `hits` is memory for the hits
    /// of a block.
    pub(super) fn find(&self, text: &Folded, hits: &mut Vec<Hit>, mut hit: impl FnMut(Hit)) {
        let filter = if text.is_ascii() {
            &self.ascii
        } else {
            &self.all
        };
        let padded = text.padded();
        let mut start = PAD;
        while start + PAD < padded.len() {
            let positions = BLOCK.min(padded.len() - PAD - start);
            self.add_hits_in_block(padded, start, positions, filter, hits);
            hits.drain(..).for_each(&mut hit);
            start += positions;
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

    /// Adds the words whose runs begin at one of a number of positions from `start`, at most
    /// [`BLOCK`]. In a function of its own, as those that it calls, so that the compiler keeps the
    /// variables of each in registers.
    #[inline(never)]
    fn add_hits_in_block(
        &self,
        padded: &[u8],
        start: usize,
        positions: usize,
        filter: &Filter,
        hits: &mut Vec<Hit>,
    ) {
        let (first, second): (&Bits, &Bits) = (&filter.first, &filter.second);
        let bytes = padded.get(start..).unwrap_or_default();
        let mut last = [0; BLOCK_BYTES];
        let block = bytes.first_chunk().unwrap_or_else(|| {
            last.iter_mut()
                .zip(bytes)
                .for_each(|(to, byte)| *to = *byte);
            &last
        });
        let mut candidates = [0; BLOCK];
        let count = find_candidates(block, positions, first, &mut candidates);
        for in_block in candidates.get(..count).unwrap_or_default() {
            let in_block = usize::from(*in_block);
            let Some([a, b, c, d, next]) = block.get(in_block..).and_then(<[u8]>::first_chunk)
            else {
                continue;
            };
            let gram = [*a, *b, *c, *d];
            let at = start + in_block;
            let long_hash = long_hash(gram, *next);
            if may_contain(second, long_hash) {
                self.add_hits(padded, at, long_hash, hits);
            }
            for short_words in [&self.fours, &self.threes] {
                if short_words.may_contain(gram) {
                    short_words.add_hits(gram, at, hits);
                }
            }
        }
    }

    /// Adds the words whose run is at `at` and, together with the byte after it, has this hash.
    #[inline(never)]
    fn add_hits(&self, padded: &[u8], at: usize, long_hash: usize, hits: &mut Vec<Hit>) {
        let Some(around) = at
            .checked_sub(KEY_BYTES)
            .and_then(|from| padded.get(from..)?.first_chunk())
        else {
            return;
        };
        let around = u128::from_le_bytes(*around);
        let shapes = self.shapes.get(self.bucket_of(long_hash)).copied();
        for shape in Shapes::from_byte(shapes.unwrap_or_default()).all() {
            let key = shape.key(around);
            if self.keys.may_contain(key) {
                self.add_hits_of_key(padded, at, shape, key, hits);
            }
        }
    }

    /// Adds the words with this key whose run is at `at`.
    #[inline(never)]
    fn add_hits_of_key(
        &self,
        padded: &[u8],
        at: usize,
        shape: Shape,
        key: u64,
        hits: &mut Vec<Hit>,
    ) {
        for entry in self.entries(self.bucket_of(key_hash(key))) {
            let entry = Entry::from_bytes(entry);
            if entry.key != key || entry.shape() != shape {
                continue;
            }
            let Some(start) = at.checked_sub(entry.gram()) else {
                continue;
            };
            let length = entry.length();
            let end = start + length.unwrap_or_else(|| self.word(entry.word).len());
            // Most words that have only their key in common with the text end in another byte.
            if padded.get(..end).and_then(<[u8]>::last) != Some(&entry.last) {
                continue;
            }
            if entry.has_whole_word() || padded.get(start..end) == Some(self.word(entry.word)) {
                hits.push(Hit {
                    word: entry.word as usize,
                    start,
                    end,
                });
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
fn runs_of(bytes: &[u8]) -> impl Iterator<Item = [u8; RUN_BYTES]> {
    bytes
        .windows(RUN_BYTES)
        .map(|run| run.first_chunk().copied().unwrap_or_default())
}

/// Records at which of the first positions of a block the bit of the run is set, and returns their
/// number.
#[inline]
fn find_candidates(
    block: &[u8; BLOCK_BYTES],
    positions: usize,
    bits: &Bits,
    candidates: &mut [u8; BLOCK],
) -> usize {
    let mut count = 0;
    // Four runs begin in every four bytes.
    let pieces = block.windows(2 * GRAM_BYTES).step_by(GRAM_BYTES);
    for (nth, piece) in pieces.take(positions.div_ceil(GRAM_BYTES)).enumerate() {
        let bytes = u64::from_le_bytes(piece.first_chunk().copied().unwrap_or_default());
        for in_piece in 0..GRAM_BYTES {
            let gram = (bytes >> (8 * in_piece)) as u32;
            // Always written, but only kept if the bit is set: this avoids a branch that would be
            // mispredicted.
            if let Some(candidate) = candidates.get_mut(count % BLOCK) {
                *candidate = (nth * GRAM_BYTES + in_piece) as u8;
            }
            count += usize::from(may_contain(bits, hash(gram.to_le_bytes())));
        }
    }
    count
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests {
    use super::*;
    use crate::detect::search::folded::fold_word;
    use crate::detect::search::lower_case::lower_text;

    fn find_all(words: &[&str], text: &str) -> Vec<(usize, usize, usize)> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| fold_word(word)).collect();
        let mut text_folded = Folded::default();
        text_folded.fold(&lower_text(text));
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let found = |words: &Words| {
            let mut found = Vec::new();
            words.find(&text_folded, &mut Vec::new(), |hit| {
                found.push((
                    text_folded.place(hit.start),
                    text_folded.place(hit.end - 1) + 1,
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
            let places = (0..text.len()).filter(|at| text[*at..].starts_with(word));
            let found = hits.iter().filter(|(.., word)| *word == index);
            assert_eq!(found.count(), places.count(), "{word}");
        }
    }
}
