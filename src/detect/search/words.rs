//! Searches for many words at once in a text that contains hardly any of them.
//!
//! Of each word, the rarest run of four bytes is looked for, by one bit for each hash of four bytes: 32 kB that stay in the
//! nearest cache, and no step that waits for the one before. Where a bit is set, the same is asked of the run with the byte that
//! follows it, then of up to eight bytes, and only then are words compared. An automaton over the same words takes megabytes and
//! misses the cache at nearly every byte. (The idea is Wu and Manber's, 1994, with their blocks of letters but without shifts, which
//! many words make short.)

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::entry::{ENTRY_BYTES, Entry, GRAMS, KEY_BYTES, KeyFilter, Shapes};
use super::filter::{Bits, Filter, HASH_BITS, hash, long_hash, may_hold, set};
use super::folded::{Folded, PAD};
use super::grams::{self, GRAM_BYTES};
use super::grouped::grouped;
use super::short_words::ShortWords;
use crate::detect::prepared::{Reader, Writer};

/// Entries are found by so many of the bits of their hash: by as many as give four buckets to an entry, within these limits.
const LEAST_BUCKET_BITS: u32 = 8;
const MOST_BUCKET_BITS: u32 = 16;
const BUCKETS_PER_ENTRY: usize = 4;
/// Positions that are searched before their words are compared.
const BLOCK: usize = 256;
/// Length of words that take a pass of their own.
const PAIR_BYTES: usize = 2;
/// A run of four bytes and the byte that follows.
const LONG_GRAM_BYTES: usize = GRAM_BYTES + 1;
/// What a bit of rarity counts in the choice of a run: as much as so many other words with the same run.
const BIT: i32 = 32;
/// How far a run with bytes beyond ASCII is preferred: texts without them pass it by.
const BEYOND_ASCII: i32 = 16 * BIT;
/// How far a run that other words have already is preferred: it costs a comparison, but no further place in texts.
const SHARED: i32 = 2 * BIT;

/// The words. A blank in them is any white space, as much as there is.
pub(crate) struct Words {
    /// The words one after the other, in the order of their indices.
    bytes: Cow<'static, [u8]>,
    /// Where each word begins in `bytes`, and where the last one ends.
    starts: Vec<u32>,
    /// Runs without bytes beyond ASCII, for texts without them.
    ascii: Filter,
    all: Filter,
    /// By the hashes of five bytes of theirs.
    entries: Vec<Entry>,
    /// Where the entries of each bucket begin, and where the last end.
    buckets: Vec<u32>,
    bucket_bits: u32,
    /// What of a text is compared with the entries of each bucket.
    shapes: Vec<Shapes>,
    keys: KeyFilter,
    threes: ShortWords<3>,
    fours: ShortWords<4>,
    /// Words of two bytes, each of which takes a pass of its own. Shorter ones are not found.
    pairs: Vec<(Finder<'static>, usize)>,
}

/// A word in a text, by places in the folded text with its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    pub(super) word: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Words {
    /// Of folded words of at least two bytes; shorter ones are not found.
    pub(crate) fn new(words: &[&[u8]]) -> Self {
        let mut made = Self {
            bytes: Cow::Owned(words.concat()),
            starts: vec![0],
            ascii: Filter::new(),
            all: Filter::new(),
            entries: Vec::new(),
            buckets: Vec::new(),
            bucket_bits: MOST_BUCKET_BITS,
            shapes: Vec::new(),
            keys: KeyFilter::new(),
            threes: ShortWords::new(),
            fours: ShortWords::new(),
            pairs: Vec::new(),
        };
        let (mut crowds, mut long_crowds) = (vec![0_u16; 1 << HASH_BITS], vec![0_u16; 1 << HASH_BITS]);
        let mut end = 0;
        for word in words {
            end += word.len();
            made.starts.push(u32::try_from(end).unwrap_or(u32::MAX));
        }
        // Short words first: longer ones have more runs to choose among, and share theirs.
        let mut order: Vec<(usize, usize)> = words.iter().enumerate().map(|(index, word)| (word.len(), index)).collect();
        order.sort_unstable();
        for (_, index) in order {
            let Some(word) = words.get(index).copied() else { continue };
            if word.len() == PAIR_BYTES {
                made.pairs.push((Finder::new(word).into_owned(), index));
                continue;
            }
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            if let Ok(three) = <[u8; 3]>::try_from(word) {
                made.add_three(three, index);
                continue;
            }
            if let Ok(four) = <[u8; 4]>::try_from(word) {
                made.add_four(four, index);
                continue;
            }
            let scored = |(at, [a, b, c, d, next]): (usize, [u8; LONG_GRAM_BYTES])| {
                let gram = [a, b, c, d];
                let is_known = crowds.get(hash(gram)).is_some_and(|crowd| *crowd > 0);
                let crowd = long_crowds.get(long_hash(gram, next)).copied().unwrap_or_default();
                let beyond = if gram.is_ascii() { 0 } else { BEYOND_ASCII };
                let shared = if is_known { SHARED } else { 0 };
                (grams::rarity(gram) * BIT + beyond + shared - i32::from(crowd), at, gram, next)
            };
            let best = runs_of(word).take(GRAMS).enumerate().map(scored).max_by_key(|(score, ..)| *score);
            let Some((_, at, gram, next)) = best else { continue };
            for (crowds, hash) in [(&mut crowds, hash(gram)), (&mut long_crowds, long_hash(gram, next))] {
                crowds.get_mut(hash).into_iter().for_each(|crowd| *crowd = crowd.saturating_add(1));
            }
            made.all.add(gram, next);
            if gram.is_ascii() && next.is_ascii() {
                made.ascii.add(gram, next);
            }
            made.entries.push(Entry::new(word, index, at));
        }
        made.starts.shrink_to_fit();
        made.threes.sort();
        made.fours.sort();
        made.order();
        made.note_keys();
        made
    }

    /// Writes the words and what finds them.
    #[allow(dead_code, reason = "the build writes what the gateway reads")]
    pub(crate) fn write(&self, out: &mut Writer) {
        out.text(&self.bytes);
        out.numbers(&self.starts);
        [&self.ascii, &self.all].into_iter().for_each(|filter| filter.write(out));
        out.number(self.entries.len());
        self.entries.iter().for_each(|entry| entry.write(out));
        out.numbers(&self.buckets);
        self.threes.write(out);
        self.fours.write(out);
        out.number(self.pairs.len());
        self.pairs.iter().for_each(|(_, word)| out.number(*word));
    }

    /// Reads what [`Words::write`] has written.
    #[allow(dead_code, reason = "for the gateway")]
    pub(super) fn read(from: &mut Reader<'static>) -> Option<Self> {
        let bytes = Cow::Borrowed(from.text()?);
        let starts = from.numbers()?.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let (ascii, all) = (Filter::read(from)?, Filter::read(from)?);
        let entries = from.number()? as usize;
        let entries = from.bytes(entries.checked_mul(ENTRY_BYTES)?)?.as_chunks().0.iter().map(Entry::read).collect();
        let buckets: Vec<u32> = from.numbers()?.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let bucket_bits = buckets.len().checked_sub(1)?.checked_ilog2()?;
        let (threes, fours) = (ShortWords::read(from)?, ShortWords::read(from)?);
        let (shapes, keys) = (Vec::new(), KeyFilter::new());
        let mut made =
            Self { bytes, starts, ascii, all, entries, buckets, bucket_bits, shapes, keys, threes, fours, pairs: Vec::new() };
        made.note_keys();
        for _ in 0..from.number()? {
            let word = from.number()?;
            let finder = Finder::new(made.word(word)).into_owned();
            made.pairs.push((finder, word as usize));
        }
        Some(made)
    }

    /// The number of words.
    pub(super) fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Puts the entries in the order of their buckets, and within these of their keys.
    fn order(&mut self) {
        let bits = (self.entries.len() * BUCKETS_PER_ENTRY).next_power_of_two().ilog2();
        self.bucket_bits = bits.clamp(LEAST_BUCKET_BITS, MOST_BUCKET_BITS);
        self.entries.sort_by_key(|entry| entry.key);
        let bucket = |entry: &Entry| {
            let word = self.starts.get(entry.word as usize).map_or(0, |start| *start as usize) + entry.gram();
            let run = self.bytes.get(word..).and_then(<[u8]>::first_chunk);
            run.map_or(0, |[a, b, c, d, next]| self.bucket_of(long_hash([*a, *b, *c, *d], *next)))
        };
        (self.buckets, self.entries) = grouped(&self.entries, 1 << self.bucket_bits, bucket);
    }

    /// Notes what the entries of each bucket are compared with.
    fn note_keys(&mut self) {
        let of_bucket = |bounds: &[u32]| match bounds {
            [start, end] => self.entries.get(*start as usize..*end as usize).unwrap_or_default(),
            _ => &[],
        };
        self.shapes = self.buckets.windows(2).map(|bounds| of_bucket(bounds).iter().map(Entry::shape).collect()).collect();
        self.entries.iter().for_each(|entry| self.keys.add(entry.key));
    }

    /// A word of three bytes is found by every run of four that begins with it.
    fn add_three(&mut self, word: [u8; 3], index: u32) {
        self.threes.add(word, index);
        let [a, b, c] = word;
        for next in 0..=u8::MAX {
            let hash = hash([a, b, c, next]);
            set(&mut self.all.first, hash);
            if word.is_ascii() && (next.is_ascii() || next == u8::MAX) {
                set(&mut self.ascii.first, hash);
            }
        }
    }

    fn add_four(&mut self, word: [u8; 4], index: u32) {
        self.fours.add(word, index);
        set(&mut self.all.first, hash(word));
        if word.is_ascii() {
            set(&mut self.ascii.first, hash(word));
        }
    }

    /// Calls `hit` for each place of each word, more or less in order.
    pub(super) fn find(&self, text: &Folded, mut hit: impl FnMut(Hit)) {
        let Filter { first, second } = if text.is_ascii() { &self.ascii } else { &self.all };
        let padded = text.padded();
        let mut found = [0_u16; BLOCK];
        let mut start = PAD;
        while start + PAD < padded.len() {
            let end = (start + BLOCK).min(padded.len() - PAD);
            let count = candidates(padded.get(start..end + GRAM_BYTES - 1).unwrap_or_default(), first, &mut found);
            for at in found.iter().take(count) {
                let at = start + usize::from(*at);
                let Some([a, b, c, d, next]) = padded.get(at..).and_then(<[u8]>::first_chunk) else { continue };
                let gram = [*a, *b, *c, *d];
                let long_hash = long_hash(gram, *next);
                if may_hold(second, long_hash) {
                    self.compare(padded, at, long_hash, &mut hit);
                }
                self.fours.compare(gram, at, &mut hit);
                self.threes.compare([*a, *b, *c], at, &mut hit);
            }
            start = end;
        }
        for (finder, word) in &self.pairs {
            finder.find_iter(padded).for_each(|start| hit(Hit { word: *word, start, end: start + PAIR_BYTES }));
        }
    }

    /// Calls `hit` for the words whose run, with the byte that follows it, is at `at` and has this hash.
    fn compare(&self, padded: &[u8], at: usize, long_hash: usize, hit: &mut impl FnMut(Hit)) {
        let bucket = self.bucket_of(long_hash);
        for shape in self.shapes.get(bucket).copied().unwrap_or_default().all() {
            let Some(key) = shape.key(padded, at).filter(|key| self.keys.may_hold(*key)) else { continue };
            // Hundreds of words begin with "ignore": they share a bucket.
            let entries = self.entries(bucket);
            let first = entries.partition_point(|entry| entry.key < key);
            let of_key = entries.iter().skip(first).take_while(|entry| entry.key == key);
            for entry in of_key.filter(|entry| entry.shape() == shape) {
                let Some((start, end)) = entry.place(padded, at) else { continue };
                let end = end.unwrap_or_else(|| start + self.word(entry.word).len());
                if end - start <= KEY_BYTES || padded.get(start..end) == Some(self.word(entry.word)) {
                    hit(Hit { word: entry.word as usize, start, end });
                }
            }
        }
    }

    fn entries(&self, bucket: usize) -> &[Entry] {
        let bounds = self.buckets.get(bucket).zip(self.buckets.get(bucket + 1));
        bounds.and_then(|(start, end)| self.entries.get(*start as usize..*end as usize)).unwrap_or_default()
    }

    fn bucket_of(&self, hash: usize) -> usize {
        hash >> (HASH_BITS - self.bucket_bits)
    }

    pub(super) fn word(&self, index: u32) -> &[u8] {
        let index = index as usize;
        let bounds = self.starts.get(index).zip(self.starts.get(index + 1));
        bounds.and_then(|(start, end)| self.bytes.get(*start as usize..*end as usize)).unwrap_or_default()
    }
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Words({})", self.len())
    }
}

/// Every four bytes with the byte that follows.
#[inline]
fn runs_of(bytes: &[u8]) -> impl Iterator<Item = [u8; LONG_GRAM_BYTES]> {
    bytes.windows(LONG_GRAM_BYTES).map(|run| run.first_chunk().copied().unwrap_or_default())
}

/// Every four bytes.
#[inline]
fn grams_of(bytes: &[u8]) -> impl Iterator<Item = [u8; GRAM_BYTES]> {
    bytes.windows(GRAM_BYTES).map(|gram| gram.first_chunk().copied().unwrap_or_default())
}

/// Notes where runs begin whose bit is set; gives how many.
fn candidates(block: &[u8], bits: &Bits, found: &mut [u16; BLOCK]) -> usize {
    let mut count = 0;
    let mut note = |at: u16, gram: u32| {
        // Written in any case, kept if the bit is set: no branch to guess wrong.
        if let Some(found) = found.get_mut(count) {
            *found = at;
        }
        count += usize::from(may_hold(bits, hash(gram.to_le_bytes())));
    };
    // Four runs begin in each four bytes.
    let pieces = block.windows(2 * GRAM_BYTES).step_by(GRAM_BYTES);
    let mut at = 0;
    for piece in pieces {
        let bytes = u64::from_le_bytes(piece.first_chunk().copied().unwrap_or_default());
        for shift in 0..4_u16 {
            note(at + shift, (bytes >> (8 * shift)) as u32);
        }
        at += 4;
    }
    for gram in grams_of(block.get(usize::from(at)..).unwrap_or_default()) {
        note(at, u32::from_le_bytes(gram));
        at += 1;
    }
    count
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests {
    use super::*;
    use crate::detect::search::folded::folded;

    fn found(words: &[&str], text: &str) -> Vec<(usize, usize, usize)> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| folded(word.as_bytes())).collect();
        let mut text_folded = Folded::default();
        text_folded.fold(text.as_bytes());
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let found = |words: &Words| {
            let mut found = Vec::new();
            words.find(&text_folded, |hit| {
                found.push((text_folded.place(hit.start), text_folded.end(hit.end), hit.word));
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
        assert_eq!(found(&["ignore", "no", "re all"], "IGNORE all"), [(0, 6, 0), (2, 4, 1), (4, 10, 2)]);
        assert_eq!(found(&["aaaa"], "aaaaaa"), [(0, 4, 0), (1, 5, 0), (2, 6, 0)]);
        assert_eq!(found(&["指令", "ai:", "令"], "AI: 指令"), [(0, 3, 1), (4, 10, 0), (7, 10, 2)]);
        assert_eq!(found(&["a b  cd", " x.", "y 1 "], "A \n B\tcd\n\nx.y 1 \t"), [(0, 8, 0), (8, 12, 1), (12, 16, 2)]);
        assert_eq!(found(&["you must", "t go"], "you \n  must  go"), [(0, 11, 0), (10, 15, 1)]);
        assert!(found(&["longer than it"], "longer than").is_empty());
        assert_eq!(found(&["end"], "the end"), [(4, 7, 0)]);
    }

    #[test]
    fn the_same_as_a_plain_search() {
        let text: String = (0..3_000_u32).map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 29) as u8)).collect();
        let words: Vec<&str> = (0..200).map(|n| &text[n * 7..n * 7 + 3 + n % 19]).collect();
        let told = found(&words, &text);
        for (index, word) in words.iter().enumerate() {
            let places = (0..text.len()).filter(|at| text[*at..].starts_with(word)).count();
            assert_eq!(told.iter().filter(|(.., word)| *word == index).count(), places, "{word}");
        }
    }
}
