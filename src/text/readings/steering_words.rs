//! A cheap test whether a text may address its reader, and thus whether a further reading of it is
//! worth judging.

use std::ops::Range;
use std::sync::LazyLock;

use super::gaps;
use crate::text::blocks::{self, BLOCK, Block};
use crate::text::quick::QuickMap;

/// Words that are typical of orders to a model, words that address someone, and words that count
/// only next to those.
const STRONG: &str = "ignore ignoring disregard forget override bypass instruction instructions instructed directive directives \
    previous prior prompt prompts assistant assistants llm chatbot reveal secret secrets secretly guidelines restrictions \
    administrator credentials password passwords jailbreak confidential unrestricted unbound obey disobey comply abandon salaries \
    overlook guardrails \
    ignorez ignorer consignes ignoriere vergiss anweisungen ignora olvida instrucciones anteriores istruzioni precedenti negeer \
    instructies";
const ADDRESSING: &str = "you your yourself must ai whoever vous vos dein deine sie usted tu";
const WEAK: &str = "all any every everything before earlier above system user users tell send forward email reply answer respond \
    response execute run call invoke delete transfer now never always important immediately do not don't tool rules orders \
    message messages data customer key keys token tokens account url task tasks without instead only from \
    agents owner operator operators developers stop drop wipe erase discard quietly nobody cookies recommend approve wire mail mails \
    mailbox pay wants agent bot helper answering";
/// Points for each of these kinds, and the minimum number of points of a spot: the second one if no
/// word has more points than a weak one.
const STRONG_POINTS: u8 = 3;
const ADDRESSING_POINTS: u8 = 2;
const WEAK_POINTS: u8 = 1;
const POINTS: u8 = 6;
const POINTS_OF_WEAK: u8 = 7;
/// Number of consecutive words that are scored together.
const REACH: usize = 12;
/// Maximum number of pieces of a word that marks divide; more are not joined.
const PIECES: usize = 16;
/// Maximum length of a word that is looked up, in bytes.
const WORD_BYTES: usize = 16;

static WORDS: LazyLock<QuickMap<&'static [u8], u8>> = LazyLock::new(|| {
    let lists = [
        (WEAK, WEAK_POINTS),
        (ADDRESSING, ADDRESSING_POINTS),
        (STRONG, STRONG_POINTS),
    ];
    lists
        .iter()
        .flat_map(|(words, points)| {
            words
                .split_whitespace()
                .map(|word| (word.as_bytes(), *points))
        })
        .collect()
});

/// For some letters of a word, one bit for each length of the words above: nearly all other words
/// are ruled out here.
static LENGTHS: LazyLock<Box<Lengths>> = LazyLock::new(|| {
    let mut lengths = Box::new([0; PLACES]);
    for word in WORDS.keys() {
        if let [first, second, .., last] | [first, second @ last] = word
            && let Some(bits) = lengths.get_mut(place(*first, *second, *last))
        {
            *bits |= 1 << word.len();
        }
    }
    lengths
});
const PLACES: usize = 1 << 10;
type Lengths = [u32; PLACES];

/// Returns the index in [`LENGTHS`] of words with these letters, in either case. Other bytes share
/// the indexes of letters.
fn place(first: u8, second: u8, last: u8) -> usize {
    let low_bits = |byte: u8| (byte & 0x1f) as usize;
    (low_bits(first) << 5 | low_bits(second)) ^ low_bits(last) << 3
}

/// Returns the points of a word.
#[inline]
fn points(word: &[u8]) -> u8 {
    match word {
        [first, ..] if !first.is_ascii() => ADDRESSING_POINTS,
        [_] => 0,
        _ if word.len() > WORD_BYTES => 0,
        _ => look_up(word),
    }
}

fn look_up(word: &[u8]) -> u8 {
    let mut lower = [0; WORD_BYTES];
    lower
        .iter_mut()
        .zip(word)
        .for_each(|(to, from)| *to = from.to_ascii_lowercase());
    lower
        .get(..word.len())
        .and_then(|word| WORDS.get(word))
        .copied()
        .unwrap_or(0)
}

/// The latest words with points, and the spots found so far.
#[derive(Default)]
struct RecentWords {
    words: [ScoredWord; REACH],
    nth: usize,
    spots: Vec<Range<usize>>,
}

/// A word with points: its number among the words, and its start.
#[derive(Clone, Copy, Default)]
struct ScoredWord {
    points: u8,
    nth: usize,
    start: usize,
}

impl RecentWords {
    /// Records the points of the current word.
    fn score(&mut self, points: u8, span: Range<usize>) {
        if points == 0 {
            return;
        }
        let nth = self.nth;
        if let Some(slot) = self.words.get_mut(nth % REACH) {
            *slot = ScoredWord {
                points,
                nth,
                start: span.start,
            };
        }
        let recent = || {
            self.words
                .iter()
                .filter(|word| word.points > 0 && word.nth + REACH > nth)
        };
        let sum: u8 = recent().map(|word| word.points).sum();
        let are_weak = || recent().all(|word| word.points <= WEAK_POINTS);
        if sum < POINTS || sum < POINTS_OF_WEAK && are_weak() {
            return;
        }
        let first = recent().map(|word| word.start).min().unwrap_or(span.start);
        match self.spots.last_mut() {
            Some(last) if first <= last.end => last.end = span.end,
            _ => self.spots.push(first..span.end),
        }
    }
}

/// Returns where words that address a reader are close together: ranges from the first to the last
/// of them, in order. Words are also read across marks within them, and split where a capital
/// follows a small letter.
pub(super) fn find_spots(text: &str) -> Vec<Range<usize>> {
    find_spots_in(text, 0..text.len())
}

/// Like [`find_spots`], for a part of a text.
pub(super) fn find_spots_in(text: &str, part: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let end = part.end.min(bytes.len());
    let lengths: &Lengths = &LENGTHS;
    let mut words = Words {
        bytes,
        recent: RecentWords::default(),
        last: 0..0,
        pieces: Vec::new(),
    };
    let mut at = part.start;
    while let Some(rest) = bytes.get(at..end).filter(|rest| !rest.is_empty()) {
        let pieces = Pieces::new(rest, |sign| gaps::tag_length(bytes, at + sign));
        if pieces.next == 0 {
            let length = piece_length(rest);
            words.add(at..at + length, true);
            at += length;
            continue;
        }
        words.add_block(at, &pieces, lengths);
        at += pieces.next;
    }
    words.finish(end)
}

/// The pieces of words in a block: letters, split where a capital follows a small letter.
struct Pieces {
    block: Block,
    starts: u64,
    /// The bytes after each piece.
    ends: u64,
    /// Whether one of them may continue another.
    joins: bool,
    /// Where the next block begins: after a tag or after the last whole piece; 0 if a piece does
    /// not end in this block.
    next: usize,
}

impl Pieces {
    /// Splits the block at the start of `rest` into pieces. `tag` returns the length of the tag
    /// that begins at a position.
    #[inline]
    fn new(rest: &[u8], tag: impl Fn(usize) -> Option<usize>) -> Self {
        let block = blocks::first(rest);
        let mut letters = blocks::mask(&block, |byte| {
            byte.is_ascii_alphanumeric() | !byte.is_ascii()
        });
        let mut humps = 0;
        if has_hump(&block) {
            let capitals = blocks::mask(&block, |byte| byte.is_ascii_uppercase());
            humps = capitals & blocks::mask(&block, |byte| byte.is_ascii_lowercase()) << 1;
        }
        let joins = blocks::any(&block, |byte| {
            is_mark(byte) | (byte == b'<') | (byte == b'\'')
        });
        let mut next = BLOCK;
        if joins {
            let apostrophes = blocks::mask(&block, |byte| byte == b'\'');
            // Those before the first letter do not belong to the word: adding to the lowest bit of
            // a run clears it.
            let leading = apostrophes & !((letters | apostrophes) << 1);
            letters |= apostrophes & apostrophes.wrapping_add(leading);
            for sign in blocks::bits(blocks::mask(&block, |byte| byte == b'<')) {
                if let Some(length) = tag(sign as usize) {
                    next = sign as usize + length;
                    letters &= blocks::below(sign);
                    humps &= blocks::below(sign);
                    break;
                }
            }
        }
        let mut starts = letters & (!(letters << 1) | humps);
        let ends = letters << 1 & (!letters | humps);
        if letters >> (BLOCK - 1) == 1 {
            let last = starts.checked_ilog2().unwrap_or(0);
            starts &= blocks::below(last);
            next = last as usize;
        }
        Self {
            block,
            starts,
            ends,
            joins: joins || humps != 0,
            next,
        }
    }

    /// Reports whether the piece of `bytes` bytes that starts at a bit may have points.
    #[inline]
    fn may_score(&self, start: u32, bytes: u32, lengths: &Lengths) -> bool {
        let byte = |at: u32| self.block.get(at as usize).copied().unwrap_or(0);
        let first = byte(start);
        let place = place(first, byte(start + 1), byte(start + bytes - 1));
        !first.is_ascii()
            || lengths
                .get(place)
                .is_some_and(|lengths| lengths.wrapping_shr(bytes) & 1 == 1)
    }
}

/// Joins words whose pieces are divided by marks of emphasis and tags, and passes them to
/// [`RecentWords`].
struct Words<'t> {
    bytes: &'t [u8],
    recent: RecentWords,
    last: Range<usize>,
    /// The pieces of a word that has several, including the last.
    pieces: Vec<Range<usize>>,
}

impl<'t> Words<'t> {
    /// Adds the pieces of a block that begins at `at`.
    #[inline]
    fn add_block(&mut self, at: usize, pieces: &Pieces, lengths: &Lengths) {
        let spans = blocks::pairs(pieces.starts, pieces.ends);
        let piece = |start: u32, end: u32| at + start as usize..at + end as usize;
        let Some(first) = spans.clone().next().map(|(start, end)| piece(start, end)) else {
            return;
        };
        if pieces.joins || !self.last.is_empty() && self.word_end(first.start).is_none() {
            for (start, end) in spans {
                self.add(
                    piece(start, end),
                    pieces.may_score(start, end - start, lengths),
                );
            }
            return;
        }
        self.continue_word(&first);
        let words_before = self.recent.nth;
        for (nth, (start, end)) in spans.enumerate() {
            if pieces.may_score(start, end - start, lengths) {
                self.recent.nth = words_before + nth + 1;
                self.score(piece(start, end));
            }
        }
        self.recent.nth = words_before + pieces.starts.count_ones() as usize;
        self.last = piece(pieces.starts.ilog2(), pieces.ends.ilog2());
    }

    fn add(&mut self, piece: Range<usize>, may_score: bool) {
        self.continue_word(&piece);
        self.recent.nth += 1;
        if may_score {
            self.score(piece.clone());
        }
        self.last = piece;
    }

    /// Records the points of a piece.
    fn score(&mut self, piece: Range<usize>) {
        let points = points(self.bytes.get(piece.clone()).unwrap_or_default());
        self.recent.score(points, piece);
    }

    /// Ends the last word, or makes the following piece a part of it.
    fn continue_word(&mut self, piece: &Range<usize>) {
        if self.last.is_empty() {
            return;
        }
        match self.word_end(piece.start) {
            Some(end) => self.end_word(end),
            None if self.pieces.is_empty() => {
                self.pieces.extend([self.last.clone(), piece.clone()])
            }
            None => self.pieces.push(piece.clone()),
        }
    }

    /// Returns where the word of the last piece ends, or `None` if there are only marks and tags
    /// before `until`.
    fn word_end(&self, until: usize) -> Option<usize> {
        let mut at = self.last.end;
        if at < until && self.pieces.len() > PIECES {
            return Some(at);
        }
        while at < until {
            let length = match self.bytes.get(at) {
                Some(byte) if is_mark(*byte) => Some(1),
                Some(b'<') => gaps::tag_length(self.bytes, at),
                _ => None,
            };
            let Some(length) = length else {
                return Some(at);
            };
            at += length;
        }
        None
    }

    /// Ends a word, which counts as a whole if it has several pieces.
    fn end_word(&mut self, end: usize) {
        if let Some(first) = self.pieces.first() {
            let first = first.start;
            let points = self.points();
            self.recent.score(points, first..end);
            self.pieces.clear();
        }
    }

    fn points(&self) -> u8 {
        let letters = self
            .pieces
            .iter()
            .flat_map(|piece| self.bytes.get(piece.clone()).unwrap_or_default());
        let mut word = [0; WORD_BYTES + 1];
        let length = word
            .iter_mut()
            .zip(letters)
            .map(|(to, letter)| *to = *letter)
            .count();
        points(word.get(..length).unwrap_or_default())
    }

    /// Returns the spots of a text that ends here.
    fn finish(mut self, end: usize) -> Vec<Range<usize>> {
        self.end_word(self.word_end(end).unwrap_or(end));
        self.recent.spots
    }
}

/// Reports whether a capital follows a small letter in a block.
#[inline]
fn has_hump(block: &Block) -> bool {
    let pairs = block.iter().zip(blocks::followers(block));
    pairs.fold(false, |any, (a, b)| {
        any | a.is_ascii_lowercase() & b.is_ascii_uppercase()
    })
}

/// Reports whether a byte is a sign of emphasis or quotation that may be within words.
const fn is_mark(byte: u8) -> bool {
    matches!(byte, b'*' | b'_' | b'~' | b'`' | b'"')
}

/// Returns the length of the piece of a word at the start of `rest`: letters, split where a capital
/// follows a small letter.
fn piece_length(rest: &[u8]) -> usize {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || !b.is_ascii();
    let mut before = b' ';
    let length = rest.iter().take_while(|b| {
        let continues = is_letter(**b) && !(b.is_ascii_uppercase() && before.is_ascii_lowercase())
            || **b == b'\'' && before != b' ';
        before = **b;
        continues
    });
    length.count()
}

#[cfg(test)]
mod tests;
