//! Words of a text and the ends of its sentences. `tests/bench/detection/model/features.py` must agree.

use std::ops::Range;

/// Length of a stem in characters. Words are looked up as a whole and by stem, which covers inflected forms.
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

/// Uses fixed ranges of code points, so that training and gate agree regardless of their versions of Unicode.
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

/// Whether a sentence ends with this character, which `next` follows; `line_bytes` is the length of the line up to it. A line
/// break before a letter does not end a sentence if it may be inside a paragraph.
#[inline]
pub(super) fn ends_sentence(letter: char, next: impl FnOnce() -> Option<char>, line_bytes: usize) -> bool {
    match letter {
        '!' | '?' | '。' | '！' | '？' | '؟' | '।' => true,
        '.' => next().is_none_or(|next| matches!(next, ' ' | '\t' | '\r' | '\n')),
        '\n' if line_bytes < PARAGRAPH_LINE_BYTES => true,
        '\n' => next().is_none_or(|next| kind(next) == Kind::Other),
        _ => false,
    }
}

/// FNV-1a of 32 bits.
#[derive(Clone, Copy)]
struct Hash(u32);

impl Hash {
    const EMPTY: Self = Self(0x811c_9dc5);
    const NUMBER: Self = Self::EMPTY.add(b'0');
    const LONG: Self = Self::EMPTY.add(b'#');

    const fn add(self, byte: u8) -> Self {
        Self((self.0 ^ byte as u32).wrapping_mul(0x0100_0193))
    }
}

/// The lower case of each ASCII letter and digit; zero for other bytes.
#[allow(clippy::indexing_slicing, reason = "done by the compiler, which would say so")]
const LOWER: [u8; 256] = {
    let mut lower = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        if (byte as u8).is_ascii_alphanumeric() {
            lower[byte] = (byte as u8).to_ascii_lowercase();
        }
        byte += 1;
    }
    lower
};

/// The lower case of an ASCII letter or digit.
#[inline]
fn ascii_lower(byte: u8) -> Option<u8> {
    LOWER.get(usize::from(byte)).copied().filter(|lower| *lower != 0)
}

/// A word of a text.
pub(super) struct Word {
    pub(super) span: Range<usize>,
    pub(super) whole: u32,
    pub(super) stem: u32,
}

impl Word {
    /// The word that starts with the letter at this place.
    pub(super) fn read(text: &str, start: usize) -> Self {
        let rest = text.as_bytes().get(start..).unwrap_or_default();
        let mut hasher = WordHasher::of_ascii(rest.iter().map_while(|byte| ascii_lower(*byte)));
        let mut end = start + hasher.chars;
        // Most words end here, before a byte that was just looked at.
        if rest.get(hasher.chars).is_some_and(|byte| !byte.is_ascii()) {
            while let Some(letter) = char_at(text, end).filter(|letter| kind(*letter) == Kind::Letter) {
                hasher.push(letter);
                end += letter.len_utf8();
            }
        }
        hasher.finish(start..end)
    }

    /// A character of a script without spaces as a word.
    pub(super) fn of(letter: char, start: usize) -> Self {
        let mut hasher = WordHasher::of_ascii([]);
        hasher.push(letter);
        hasher.finish(start..start + letter.len_utf8())
    }
}

/// Hashes the lower case of a word.
struct WordHasher {
    whole: Hash,
    stem: Hash,
    chars: usize,
    lower_chars: usize,
    /// The greatest character, at most 255. Of a number it is an ASCII digit.
    greatest: u8,
}

impl WordHasher {
    /// A word that starts with these letters and digits. Most words have no others; the state stays in registers here.
    fn of_ascii(lower: impl IntoIterator<Item = u8>) -> Self {
        let mut lower = lower.into_iter().fuse();
        let (mut whole, mut chars, mut greatest) = (Hash::EMPTY, 0, 0);
        let mut add = |byte: u8| {
            whole = whole.add(byte);
            greatest = byte.max(greatest);
            chars += 1;
            whole
        };
        let mut stem = Hash::EMPTY;
        for byte in lower.by_ref().take(STEM_CHARS) {
            stem = add(byte);
        }
        lower.for_each(|byte| _ = add(byte));
        Self { whole, stem, chars, lower_chars: chars, greatest }
    }

    fn push(&mut self, letter: char) {
        self.greatest = self.greatest.max(u8::try_from(letter).unwrap_or(u8::MAX));
        self.chars += 1;
        for lower in letter.to_lowercase() {
            lower.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| self.whole = self.whole.add(byte));
            self.lower_chars += 1;
            if self.lower_chars <= STEM_CHARS {
                self.stem = self.whole;
            }
        }
    }

    fn finish(self, span: Range<usize>) -> Word {
        let (whole, stem) = if self.greatest <= b'9' {
            (Hash::NUMBER, Hash::NUMBER)
        } else if self.chars > WORD_CHARS {
            (Hash::LONG, Hash::LONG)
        } else {
            (self.whole, self.stem)
        };
        Word { span, whole: whole.0, stem: stem.0 }
    }
}

/// The character at this place.
pub(super) fn char_at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at) {
        Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
        _ => text.get(at..)?.chars().next(),
    }
}
