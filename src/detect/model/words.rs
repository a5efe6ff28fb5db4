//! Takes a text apart into words, runs of words and sentences, in one pass and without a copy.
//! `tests/bench/detection/model/features.py` does the same for training.

use std::ops::Range;

use super::WINDOW_BYTES;

/// What is told while a text is read.
pub(super) enum Told {
    /// One to three words in a row, or two with one between them: its hash and its place. Told when its last word is read.
    Run(u32, Range<usize>),
    /// Told after the runs that end with a word in it.
    Piece(Piece),
}

/// A sentence, or a part of a long one.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A word and where it begins.
#[derive(Clone, Copy)]
struct Word {
    hash: u32,
    start: usize,
}

/// What is shorter is one with what comes next.
const SENTENCE_BYTES: usize = 24;
/// Beginning and multiplier of FNV-1a, for 32 bits.
const FNV: (u32, u32) = (0x811C_9DC5, 0x0100_0193);

pub(super) struct Reader<'t> {
    text: &'t [u8],
    /// The word before, and the one before that.
    before: [Option<Word>; 2],
    pair: u32,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { text, before: [None; 2], pair: 0 }
    }

    /// Tells all runs and pieces of the text.
    pub(super) fn read(mut self, mut tell: impl FnMut(Told)) {
        let (mut at, mut start) = (0, 0);
        while let Some(byte) = self.text.get(at).copied() {
            if is_word(byte) {
                while at - start >= WINDOW_BYTES {
                    tell(Told::Piece(Piece { start, end: start + WINDOW_BYTES }));
                    start += WINDOW_BYTES;
                }
                at = self.word(at, &mut tell);
                continue;
            }
            at += 1;
            let stop = byte == b'\n' || matches!(byte, b'.' | b'!' | b'?') && self.text.get(at).is_some_and(|next| ends(*next));
            if stop && at - start >= SENTENCE_BYTES {
                start = close(start, at, &mut tell);
            }
        }
        close(start, self.text.len(), &mut tell);
    }

    /// Reads the word that begins at `start`; tells the runs that it ends; where it ends.
    fn word(&mut self, start: usize, tell: &mut impl FnMut(Told)) -> usize {
        let (mut hash, mut at, mut digit) = (FNV.0, start, false);
        while let Some(byte) = self.text.get(at).copied().filter(|byte| is_word(*byte)) {
            // A run of digits is one `0`.
            let (was, byte) = (digit, byte.to_ascii_lowercase());
            digit = byte.is_ascii_digit();
            if !(digit && was) {
                hash = (hash ^ u32::from(if digit { b'0' } else { byte })).wrapping_mul(FNV.1);
            }
            at += 1;
        }
        tell(Told::Run(hash, start..at));
        let [second, first] = self.before;
        if let Some(second) = second {
            let pair = mix(second.hash, hash, 1);
            tell(Told::Run(pair, second.start..at));
            if let Some(first) = first {
                tell(Told::Run(mix(self.pair, hash, 2), first.start..at));
                tell(Told::Run(mix(first.hash, hash, 3), first.start..at));
            }
            self.pair = pair;
        }
        self.before = [Some(Word { hash, start }), second];
        at
    }
}

/// Ends a sentence; the next begins where it ends.
fn close(mut start: usize, end: usize, tell: &mut impl FnMut(Told)) -> usize {
    while end - start > WINDOW_BYTES {
        tell(Told::Piece(Piece { start, end: start + WINDOW_BYTES }));
        start += WINDOW_BYTES;
    }
    if end > start {
        tell(Told::Piece(Piece { start, end }));
    }
    end
}

/// Letters and digits, and all beyond ASCII.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// What stands behind the full stop of a sentence.
fn ends(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | b'"' | b'\'' | b')' | b']')
}

/// One hash of two, in order; `kind` keeps pairs, triples and pairs with a gap apart.
pub(super) fn mix(left: u32, right: u32, kind: u32) -> u32 {
    let value = left.wrapping_mul(0x9E37_79B1).wrapping_add(right.wrapping_mul(0x85EB_CA77)).wrapping_add(kind);
    (value ^ (value >> 15)).wrapping_mul(0x2C1B_3C6D)
}
