//! Which kinds of characters a text contains, determined in one pass. Code that looks for rare
//! characters checks here before it searches the text.

use std::ops::Range;

use super::blocks;
use super::code_runs::{CODE_RUN, code_runs};

/// The kinds of characters and the code runs that a text contains.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// One bit for each kind of byte that occurs: see [`kind`].
    kinds: u64,
    code_runs: Vec<Range<usize>>,
}

const TAB: u64 = 1 << 32;
const LINE_FEED: u64 = 1 << 33;
const CONTROL: u64 = 1 << 34;
const NON_ASCII: u64 = 1 << 35;

impl Facts {
    /// Collects the facts about a text in one pass.
    pub fn new(text: &str) -> Self {
        Self {
            kinds: kinds(text.as_bytes()),
            code_runs: code_runs(text.as_bytes(), CODE_RUN).collect(),
        }
    }

    /// Reports whether one of these ASCII punctuation characters, tabs or line feeds occurs.
    pub const fn has_any(&self, signs: &[u8]) -> bool {
        let mut rest = signs;
        while let [sign, after @ ..] = rest {
            if self.kinds & kind(*sign) != 0 {
                return true;
            }
            rest = after;
        }
        false
    }

    /// Reports whether this ASCII punctuation character, tab or line feed occurs.
    pub const fn has(&self, sign: u8) -> bool {
        self.kinds & kind(sign) != 0
    }

    /// Reports whether the text contains only ASCII characters.
    pub const fn is_ascii(&self) -> bool {
        self.kinds & NON_ASCII == 0
    }

    /// Reports whether the text contains only printable ASCII characters, tabs and line feeds.
    pub const fn is_printable_ascii(&self) -> bool {
        self.kinds & (NON_ASCII | CONTROL) == 0
    }

    /// Returns the runs of code characters (those of base64 and hexadecimal numbers) of at least
    /// [`CODE_RUN`] bytes.
    pub fn code_runs(&self) -> &[Range<usize>] {
        &self.code_runs
    }
}

/// Returns the kinds of bytes that occur.
fn kinds(bytes: &[u8]) -> u64 {
    let kind_of = |byte: &u8| KINDS.get(usize::from(*byte)).copied().unwrap_or(0);
    let (blocks, rest) = bytes.as_chunks();
    let mut kinds = rest.iter().fold(0, |kinds, byte| kinds | kind_of(byte));
    for block in blocks {
        if blocks::any(block, |byte| !is_usual(byte)) {
            let unusual = blocks::mask(block, |byte| !is_usual(byte));
            kinds |= blocks::bits(unusual)
                .filter_map(|bit| block.get(bit as usize))
                .fold(0, |kinds, byte| kinds | kind_of(byte));
        }
        for sign in USUAL_SIGNS {
            if kinds & kind(sign) == 0 && blocks::any(block, |byte| byte == sign) {
                kinds |= kind(sign);
            }
        }
        if kinds & NON_ASCII == 0 && blocks::any(block, |byte| !byte.is_ascii()) {
            kinds |= NON_ASCII;
        }
    }
    kinds
}

/// Punctuation and line feeds that occur in nearly every block of prose.
const USUAL_SIGNS: [u8; 3] = [b'.', b',', b'\n'];

/// Reports whether a byte is a letter, a digit, a blank, one of [`USUAL_SIGNS`] or not ASCII.
const fn is_usual(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        | !byte.is_ascii()
        | (byte == b' ')
        | (byte == b'.')
        | (byte == b',')
        | (byte == b'\n')
}

/// Returns the bit for the kind of a byte. Each punctuation character is a kind of its own.
const fn kind(byte: u8) -> u64 {
    match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b' ' => 0,
        b'\t' => TAB,
        b'\n' => LINE_FEED,
        b'!'..=b'/' => 1 << (byte - b'!'),
        b':'..=b'@' => 1 << (byte - b':' + 15),
        b'['..=b'`' => 1 << (byte - b'[' + 22),
        b'{'..=b'~' => 1 << (byte - b'{' + 28),
        0..=0x7f => CONTROL,
        0x80.. => NON_ASCII,
    }
}

const KINDS: [u64; 256] = byte_table!(kind);

/// Returns the runs of at least `least` bytes of one kind. Where there are none, reads only the
/// last byte of each stretch that could contain one.
pub(super) fn runs(bytes: &[u8], least: usize, of_kind: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    // A run may begin at `start`, and all bytes from there to `known` are of the kind.
    let mut start = 0;
    let mut known = 0;
    while let Some(stretch) = bytes.get(known..start + least) {
        if let Some(other) = stretch.iter().rposition(|byte| !of_kind(*byte)) {
            (start, known) = (known + other + 1, start + least);
            continue;
        }
        known = start + least;
        let end = known
            + bytes
                .get(known..)
                .unwrap_or_default()
                .iter()
                .take_while(|byte| of_kind(**byte))
                .count();
        runs.push(start..end);
        (start, known) = (end, end);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_is_known_by_its_kind() {
        let all: Vec<char> = ('\0'..='\u{ff}').collect();
        for c in &all {
            let lead = "ab ".repeat(usize::from(*c as u8) % 5 * 9);
            let facts = Facts::new(&format!("{lead}{c}{lead}"));
            for sign in all
                .iter()
                .filter(|c| c.is_ascii_punctuation() || matches!(c, '\t' | '\n'))
            {
                assert_eq!(facts.has(*sign as u8), sign == c, "{c:?} {sign:?}");
                assert_eq!(
                    facts.has_any(&[b'<', *sign as u8]),
                    sign == c || *c == '<',
                    "{c:?} {sign:?}"
                );
            }
            assert_eq!(facts.is_ascii(), c.is_ascii(), "{c:?}");
            assert_eq!(
                facts.is_printable_ascii(),
                matches!(c, ' '..='~' | '\n' | '\t'),
                "{c:?}"
            );
        }
    }

    #[test]
    fn runs_have_the_minimum_length() {
        let of_kind = |byte: u8| byte == b'x';
        for least in 1..6 {
            for bits in 0..1 << 13 {
                let text: Vec<u8> = (0..13)
                    .map(|at| if bits >> at & 1 == 1 { b'x' } else { b' ' })
                    .collect();
                let mut at = 0;
                let mut expected = Vec::new();
                for run in text.split(|byte| !of_kind(*byte)) {
                    expected.extend((run.len() >= least).then_some(at..at + run.len()));
                    at += run.len() + 1;
                }
                assert_eq!(runs(&text, least, of_kind), expected, "{least} {bits:b}");
            }
        }
    }
}
