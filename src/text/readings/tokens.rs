//! Finds runs of letters and digits in a text, in one pass that several readings share.

use std::ops::Range;

use crate::text::blocks::{self, BLOCK};

/// Maximum distance of a single letter from the one before it, in bytes: separators between them, and
/// perhaps a sign in place of a letter.
const SINGLE_DISTANCE: usize = 5;

/// Tokens of a text from which readings may be made, in order.
#[derive(Default)]
pub(super) struct Tokens {
    /// Letters that reveal a cipher.
    pub(super) telling: Vec<Range<usize>>,
    /// Tokens with letters, and with a digit or a sign that can stand for a letter.
    pub(super) mixed: Vec<Range<usize>>,
    /// Tokens as long as several words.
    pub(super) long: Vec<Range<usize>>,
    /// Approximate maximum number of consecutive single letters that follow another one.
    pub(super) single_letters: usize,
}

impl Tokens {
    /// Finds the tokens of a text. `tells` reports whether letters, of which there are at least
    /// `telling`, reveal a cipher. Joined words have at least `long` bytes.
    pub(super) fn new(
        text: &str,
        telling: usize,
        long: usize,
        tells: impl Fn(&[u8]) -> bool,
    ) -> Self {
        let bytes = text.as_bytes();
        let mut tokens = Self::default();
        let mut before: Option<(usize, Letters)> = None;
        let mut consecutive = 0;
        let bars = |token: Range<usize>| count_bars(bytes.get(token).unwrap_or_default());
        for_each_token(bytes, telling, |token, letters| {
            let length = token.len();
            if length == 1 {
                let follows =
                    before
                        .replace((token.start, letters))
                        .is_some_and(|(start, other)| {
                            token.start - start <= SINGLE_DISTANCE
                                && (letters == Letters::All || other == Letters::All)
                        });
                consecutive = if follows { consecutive + 1 } else { 0 };
                tokens.single_letters = tokens.single_letters.max(consecutive);
            }
            if length >= long {
                tokens.long.push(token.clone());
            }
            let mut add = |letters: Range<usize>| {
                if letters.len() >= telling && bytes.get(letters.clone()).is_some_and(&tells) {
                    tokens.telling.push(letters);
                }
            };
            match letters {
                Letters::All => return add(token),
                Letters::None => {
                    tokens.single_letters = tokens.single_letters.max(bars(token));
                    return;
                }
                Letters::Some => {}
            }
            let mut from = token.start;
            let mut is_mixed = false;
            for (byte, at) in bytes
                .get(token.clone())
                .unwrap_or_default()
                .iter()
                .zip(token.clone())
            {
                if !byte.is_ascii_alphabetic() {
                    add(from..at);
                    from = at + 1;
                    is_mixed |= byte.is_ascii_digit() || matches!(byte, b'@' | b'$');
                }
            }
            add(from..token.end);
            tokens.single_letters = tokens.single_letters.max(bars(token.clone()));
            if is_mixed {
                tokens.mixed.push(token);
            }
        });
        tokens
    }
}

/// Returns the number of bars in a token: they separate letters, too.
fn count_bars(token: &[u8]) -> usize {
    token.iter().filter(|byte| **byte == b'|').count()
}

/// Which bytes of a token are letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letters {
    All,
    Some,
    None,
}

impl Letters {
    /// Compares the letters of a token with all of it, as masks or as numbers.
    fn new<T: Default + PartialEq>(letters: T, all: T) -> Self {
        match letters {
            _ if letters == all => Self::All,
            _ if letters == T::default() => Self::None,
            _ => Self::Some,
        }
    }
}

/// Passes on every run of letters, digits and marks that can stand for letters, and which of it are
/// letters. Words of several letters, but fewer than `least`, are left out.
#[inline]
fn for_each_token(bytes: &[u8], least: usize, mut visit: impl FnMut(Range<usize>, Letters)) {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let block = blocks::first(rest);
        let letters = blocks::mask(&block, |byte| byte.is_ascii_alphabetic());
        let mut token_bits = letters;
        if blocks::any(&block, is_other) {
            token_bits |= blocks::mask(&block, is_other);
        }
        let open = token_bits.leading_ones() as usize;
        if open == BLOCK {
            let length = rest
                .iter()
                .take_while(|byte| byte.is_ascii_alphabetic() || is_other(**byte))
                .count();
            let letters = rest
                .iter()
                .take(length)
                .filter(|byte| byte.is_ascii_alphabetic())
                .count();
            visit(at..at + length, Letters::new(letters, length));
            at += length;
            continue;
        }
        // A token that does not end in this block is read from its start with the next block.
        token_bits &= u64::MAX >> open;
        let mut starts = token_bits & !(token_bits << 1);
        if letters & token_bits == token_bits {
            let long = (1..least).fold(token_bits, |long, nth| long & token_bits >> nth);
            starts &= long | !(token_bits >> 1);
        }
        for start in blocks::bits(starts) {
            let length = (token_bits >> start).trailing_ones();
            let token = blocks::below(length) << start;
            let (start, end) = (at + start as usize, at + (start + length) as usize);
            visit(start..end, Letters::new(letters & token, token));
        }
        at += BLOCK - open;
    }
}

/// Reports whether a byte that is not a letter may be part of a token.
const fn is_other(byte: u8) -> bool {
    byte.is_ascii_digit() | (byte == b'@') | (byte == b'$') | (byte == b'!') | (byte == b'|')
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
                let Some(text) = text.get(cut..) else {
                    continue;
                };
                let mut found = Vec::new();
                for_each_token(text.as_bytes(), 4, |token, letters| {
                    found.push((text[token].to_owned(), letters))
                });
                let of_token =
                    |c: char| c.is_ascii_alphanumeric() || matches!(c, '@' | '$' | '!' | '|');
                let tokens = text
                    .split(|c| !of_token(c))
                    .filter(|token| !token.is_empty());
                let letters = |token: &str| token.bytes().filter(u8::is_ascii_alphabetic).count();
                let expected = tokens
                    .map(|token| (token.to_owned(), Letters::new(letters(token), token.len())));
                let left_out = |(token, letters): &(String, Letters)| {
                    *letters == Letters::All && (2..4).contains(&token.len())
                };
                let expected: Vec<_> = expected.filter(|token| !left_out(token)).collect();
                found.retain(|token| !left_out(token));
                assert_eq!(found, expected, "{text:?}");
            }
        }
    }
}
