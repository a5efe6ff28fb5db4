//! Words of a text and the ends of its sentences. `tests/bench/detection/model/features.py` must
//! agree.

use std::ops::Range;

/// Length of a stem in characters. Words are looked up as a whole and by stem, which covers
/// inflected forms.
const STEM_CHARS: usize = 5;

/// Longer words are identifiers or encoded data; all of them have the same hash.
const WORD_CHARS: usize = 24;

/// The role of a character in words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Letter,
    /// A character of a script without spaces between words. Each counts as a word.
    Word,
    Other,
}

/// Returns the role of a character. Uses fixed ranges of code points, so that training and gate
/// agree regardless of their versions of Unicode.
#[inline]
pub(super) fn kind(letter: char) -> Kind {
    match u8::try_from(letter) {
        Ok(byte) if byte.is_ascii_alphanumeric() => Kind::Letter,
        Ok(byte) if byte.is_ascii() => Kind::Other,
        _ => kind_beyond_ascii(letter),
    }
}

fn kind_beyond_ascii(letter: char) -> Kind {
    match letter {
        '\0'..'\u{c0}' | '\u{d7}' | '\u{f7}' => Kind::Other,
        // Thai and Lao, Burmese, Khmer, kana, Han.
        '\u{e00}'..='\u{eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => Kind::Word,
        // Punctuation, symbols and private use.
        '\u{60c}'
        | '\u{61b}'
        | '\u{61f}'
        | '\u{6d4}'
        | '\u{964}'..='\u{965}'
        | '\u{2000}'..='\u{2bff}'
        | '\u{3000}'..='\u{303f}'
        | '\u{e000}'..='\u{f8ff}'
        | '\u{fe10}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff0f}'
        | '\u{ff1a}'..='\u{ff20}'
        | '\u{1f000}'..='\u{1ffff}' => Kind::Other,
        _ => Kind::Letter,
    }
}

/// Shorter lines are not lines of a paragraph.
const PARAGRAPH_LINE_BYTES: usize = 40;

/// Reports whether a sentence ends with this character, which `next` follows; `line_bytes` is the
/// length of the line up to it. A line break before a letter does not end a sentence if it may be
/// inside a paragraph.
#[inline]
pub(super) fn ends_sentence(
    letter: char,
    next: impl FnOnce() -> Option<char>,
    line_bytes: usize,
) -> bool {
    match letter {
        '!' | '?' | '。' | '！' | '？' | '؟' | '।' => true,
        '.' => next().is_none_or(|next| matches!(next, ' ' | '\t' | '\r' | '\n')),
        '\n' if line_bytes < PARAGRAPH_LINE_BYTES => true,
        '\n' => next().is_none_or(|next| kind(next) == Kind::Other),
        _ => false,
    }
}

/// Hashes eight bytes at a time.
#[derive(Clone, Copy)]
struct Hash(u64);

impl Hash {
    const EMPTY: Self = Self(0);
    const NUMBER: u32 = Self::EMPTY.add(b'0' as u64).finish();
    const LONG: u32 = Self::EMPTY.add(b'#' as u64).finish();
    /// 2^64 divided by the golden ratio.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

    const fn add(self, chunk: u64) -> Self {
        Self((self.0.rotate_left(23) ^ chunk).wrapping_mul(Self::SPREAD))
    }

    const fn finish(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// A word of a text.
pub(super) struct Word {
    pub(super) span: Range<usize>,
    pub(super) whole: u32,
    pub(super) stem: u32,
}

impl Word {
    /// Returns the word that starts with the letter at this place.
    pub(super) fn read(text: &str, start: usize) -> Self {
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        let length = rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        if rest.get(length).is_none_or(u8::is_ascii) {
            return Self::ascii(rest, length, start);
        }
        let mut hasher = WordHasher::default();
        let mut end = start;
        while let Some(letter) = char_at(text, end).filter(|letter| kind(*letter) == Kind::Letter) {
            hasher.push(letter);
            end += letter.len_utf8();
        }
        hasher.finish(start..end)
    }

    /// Returns the word of this length at the start of `rest`, which is at position `start` of the
    /// text. It consists of ASCII letters and digits.
    #[inline]
    pub(super) fn ascii(rest: &[u8], length: usize, start: usize) -> Self {
        let span = start..start + length;
        let Some(chunk) = rest.first_chunk().filter(|eight| length <= eight.len()) else {
            return Self::long_or_last(rest, length, span);
        };
        if is_number(chunk, length) {
            return Self {
                span,
                whole: Hash::NUMBER,
                stem: Hash::NUMBER,
            };
        }
        let lower = lower_case(*chunk, length);
        let stem = Hash::EMPTY.add(lower & STEM_MASK).finish();
        Self {
            span,
            whole: Hash::EMPTY.add(lower).finish(),
            stem,
        }
    }

    /// Does the same for words of more than eight bytes, and for those within the last eight bytes
    /// of a text.
    fn long_or_last(rest: &[u8], length: usize, span: Range<usize>) -> Self {
        let letters = rest.get(..length).unwrap_or_default();
        if is_number(letters, length) {
            return Self {
                span,
                whole: Hash::NUMBER,
                stem: Hash::NUMBER,
            };
        }
        if length > WORD_CHARS {
            return Self {
                span,
                whole: Hash::LONG,
                stem: Hash::LONG,
            };
        }
        let mut whole = Hash::EMPTY;
        let mut stem = None;
        for part in letters.chunks(8) {
            let mut bytes = [0; 8];
            bytes
                .iter_mut()
                .zip(part)
                .for_each(|(slot, letter)| *slot = *letter);
            let lower = lower_case(bytes, part.len());
            stem = stem.or(Some(Hash::EMPTY.add(lower & STEM_MASK)));
            whole = whole.add(lower);
        }
        Self {
            span,
            whole: whole.finish(),
            stem: stem.unwrap_or(whole).finish(),
        }
    }

    /// Returns a character of a script without spaces as a word.
    pub(super) fn new(letter: char, start: usize) -> Self {
        // These scripts have no letter case.
        let mut bytes = [0; 8];
        let length = letter.encode_utf8(&mut bytes).len();
        let whole = Hash::EMPTY.add(u64::from_le_bytes(bytes)).finish();
        Self {
            span: start..start + length,
            whole,
            stem: whole,
        }
    }
}

/// Reports whether a word of this length, with which `letters` begin, consists of digits.
#[inline]
fn is_number(letters: &[u8], length: usize) -> bool {
    letters.first().is_some_and(u8::is_ascii_digit)
        && letters.iter().take(length).all(u8::is_ascii_digit)
}

/// The bytes of a stem among the first eight of a word.
const STEM_MASK: u64 = u64::MAX >> (64 - 8 * STEM_CHARS);

/// Returns the lower case of the first ASCII letters and digits of eight bytes, with zeros in place
/// of the bytes after them.
#[inline]
fn lower_case(bytes: [u8; 8], length: usize) -> u64 {
    // The bit by which small letters differ from capitals is set in digits, too.
    let lower = u64::from_le_bytes(bytes) | u64::from_le_bytes([b' '; 8]);
    lower & (u64::MAX >> (64 - 8 * length.clamp(1, 8)))
}

/// Hashes the lower case of a word.
#[derive(Default)]
struct WordHasher {
    whole: PartialHash,
    stem: PartialHash,
    chars: usize,
    lower_chars: usize,
}

/// A hash of complete groups of eight bytes, and the bytes after them.
#[derive(Clone, Copy, Default)]
struct PartialHash {
    whole_groups: u64,
    pending: [u8; 8],
    count: usize,
}

impl PartialHash {
    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.pending.get_mut(self.count) {
            *slot = byte;
            self.count += 1;
        }
        if self.count == self.pending.len() {
            *self = Self {
                whole_groups: Hash(self.whole_groups)
                    .add(u64::from_le_bytes(self.pending))
                    .0,
                ..Self::default()
            };
        }
    }

    fn finish(self) -> u32 {
        let groups = Hash(self.whole_groups);
        if self.count == 0 {
            groups.finish()
        } else {
            groups.add(u64::from_le_bytes(self.pending)).finish()
        }
    }
}

impl WordHasher {
    fn push(&mut self, letter: char) {
        self.chars += 1;
        for lower in letter.to_lowercase() {
            lower
                .encode_utf8(&mut [0; 4])
                .bytes()
                .for_each(|byte| self.whole.push(byte));
            self.lower_chars += 1;
            if self.lower_chars <= STEM_CHARS {
                self.stem = self.whole;
            }
        }
    }

    fn finish(self, span: Range<usize>) -> Word {
        if self.chars > WORD_CHARS {
            return Word {
                span,
                whole: Hash::LONG,
                stem: Hash::LONG,
            };
        }
        Word {
            span,
            whole: self.whole.finish(),
            stem: self.stem.finish(),
        }
    }
}

/// Returns the character at this place.
pub(super) fn char_at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at) {
        Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
        _ => text.get(at..)?.chars().next(),
    }
}
