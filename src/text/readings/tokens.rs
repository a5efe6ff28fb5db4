//! Where letters and digits stand together in a text: one look at it that several readings share.

use std::ops::Range;

/// Bytes that are looked at together.
const BLOCK: usize = 64;

/// Tokens of a text that a reading may be made of, in order.
#[derive(Default)]
pub(super) struct Tokens {
    /// Letters that give a cipher away.
    pub(super) telling: Vec<Range<usize>>,
    /// With a digit in them, or a sign that can stand for a letter.
    pub(super) mixed: Vec<Range<usize>>,
    /// As long as several words.
    pub(super) long: Vec<Range<usize>>,
    /// How often a letter that stands alone follows another, about.
    pub(super) alone: usize,
}

impl Tokens {
    /// `tells` says whether letters give a cipher away, which are `telling` at the least; words that are joined are `long`.
    pub(super) fn of(text: &str, telling: usize, long: usize, tells: impl Fn(&[u8]) -> bool) -> Self {
        let bytes = text.as_bytes();
        let mut tokens = Self::default();
        let mut before = None;
        each(bytes, |token, plain| {
            let length = token.len();
            if length == 1 {
                // With a sign between them and perhaps one in the place of a letter.
                tokens.alone += usize::from(before.replace(token.start).is_some_and(|before| token.start - before <= 4));
            }
            if length >= long {
                tokens.long.push(token.clone());
            }
            let Some(part) = bytes.get(token.clone()) else { return };
            if plain {
                if length >= telling && tells(part) {
                    tokens.telling.push(token);
                }
                return;
            }
            let mut at = token.start;
            for letters in part.split(|b| !b.is_ascii_alphabetic()) {
                if letters.len() >= telling && tells(letters) {
                    tokens.telling.push(at..at + letters.len());
                }
                at += letters.len() + 1;
            }
            // A bar parts letters, too.
            tokens.alone += part.iter().filter(|b| **b == b'|').count();
            if part.iter().any(|b| b.is_ascii_digit() || matches!(b, b'@' | b'$')) {
                tokens.mixed.push(token);
            }
        });
        tokens
    }
}

/// Every run of letters, digits and marks that can stand for letters, and whether it is letters only. By masks of sixty-four
/// bytes: a branch for each byte would be guessed wrong at both ends of every word.
fn each(bytes: &[u8], mut tell: impl FnMut(Range<usize>, bool)) {
    let all_letters =
        |token: &Range<usize>| bytes.get(token.clone()).is_some_and(|token| token.iter().all(u8::is_ascii_alphabetic));
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut last = [0; BLOCK];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    let mut open = None;
    for (nth, block) in blocks.iter().chain(std::iter::once(&last)).enumerate() {
        let base = nth * BLOCK;
        let letters = mask(block, |b| b.is_ascii_alphabetic());
        let any = letters | mask(block, |b| b.is_ascii_digit() | (b == b'@') | (b == b'$') | (b == b'!') | (b == b'|'));
        let before = any << 1 | u64::from(open.is_some());
        let (mut starts, mut ends) = (any & !before, before & !any);
        while ends != 0 {
            let end = ends.trailing_zeros() as usize;
            ends &= ends - 1;
            if let Some(start) = open.take() {
                let token = start..base + end;
                let plain = all_letters(&token);
                tell(token, plain);
                continue;
            }
            let start = starts.trailing_zeros() as usize;
            starts &= starts.wrapping_sub(1);
            let within = (1_u64 << end) - (1_u64 << start);
            tell(base + start..base + end, letters & within == within);
        }
        if starts != 0 {
            open = Some(base + starts.trailing_zeros() as usize);
        }
    }
}

/// A bit for each byte that is of a kind.
#[inline]
fn mask(block: &[u8; BLOCK], of_kind: impl Fn(u8) -> bool) -> u64 {
    let mut flags = [0; BLOCK];
    flags.iter_mut().zip(block).for_each(|(flag, b)| *flag = u8::from(of_kind(*b)));
    // Eight flags become eight bits by one multiplication.
    let bits = |flags: &[u8; 8]| u64::from_le_bytes(*flags).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    flags.as_chunks().0.iter().enumerate().fold(0, |mask, (nth, flags)| mask | bits(flags) << (nth * 8))
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests {
    use super::*;

    #[test]
    fn every_run_once() {
        let texts = [
            "",
            "a",
            " ",
            "one two",
            "a1 b!|c  @d$",
            &"word ".repeat(40),
            &"x".repeat(200),
            &"ab1,".repeat(60),
            "é l\u{e9}ger x",
        ];
        for text in texts {
            for cut in 0..text.len().min(70) {
                let Some(text) = text.get(cut..) else { continue };
                let mut found = Vec::new();
                each(text.as_bytes(), |token, plain| found.push((text[token].to_owned(), plain)));
                let of_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '@' | '$' | '!' | '|');
                let tokens = text.split(|c| !of_token(c)).filter(|token| !token.is_empty());
                let expected: Vec<_> =
                    tokens.map(|token| (token.to_owned(), token.bytes().all(|b| b.is_ascii_alphabetic()))).collect();
                assert_eq!(found, expected, "{text:?}");
            }
        }
    }
}
