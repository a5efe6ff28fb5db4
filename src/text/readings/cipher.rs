//! Moved letters: shifted in the alphabet (Caesar, rot13), mirrored in it (Atbash), or written
//! backwards.
//!
//! All shifts are tested at once, because the differences between a word's letters stay the same. A
//! few long words that are typical of instructions reveal the shift.

use std::ops::Range;
use std::sync::LazyLock;

use super::tokens::Tokens;
use super::{DecodedPart, Suspicion, regions, vocabulary};
use crate::text::quick::QuickMap;

/// Words that reveal a cipher: so long that no other word has the same differences.
pub(super) const TELLING: [&str; 58] = [
    "ignore",
    "ignoring",
    "disregard",
    "forget",
    "previous",
    "prior",
    "earlier",
    "instructions",
    "instruction",
    "system",
    "prompt",
    "reveal",
    "override",
    "assistant",
    "remember",
    "permanently",
    "administrator",
    "password",
    "credentials",
    "secret",
    "following",
    "important",
    "immediately",
    "execute",
    "transfer",
    "forward",
    "message",
    "without",
    "customer",
    "attacker",
    "database",
    "approve",
    "approval",
    "bypass",
    "request",
    "response",
    "conversation",
    "confidential",
    "document",
    "question",
    "answer",
    "attention",
    "required",
    "critical",
    "urgent",
    "directive",
    "additional",
    "everything",
    "before",
    "should",
    "please",
    "summarize",
    "contents",
    "account",
    "command",
    "developer",
    "include",
    "records",
];
/// Further words that reveal a cipher. The letters of some of them, in another order, are other words.
const ENCIPHERED: [&str; 51] = [
    "whatever",
    "above",
    "directions",
    "restrictions",
    "unrestricted",
    "anything",
    "translate",
    "sentence",
    "transaction",
    "history",
    "guidelines",
    "policy",
    "instead",
    "reply",
    "output",
    "repeat",
    "nothing",
    "never",
    "always",
    "delete",
    "export",
    "upload",
    "recipient",
    "payment",
    "purchase",
    "token",
    "access",
    "private",
    "internal",
    "recommend",
    "rating",
    "summary",
    "review",
    "decode",
    "follow",
    "questions",
    "longer",
    "rules",
    "orders",
    "unlimited",
    "anyone",
    "directly",
    "mention",
    "processing",
    "oubliez",
    "toutes",
    "vergiss",
    "anweisungen",
    "ignora",
    "instrucciones",
    "precedenti",
];
/// Length of the shortest of them, in letters.
pub(super) const TELLING_LETTERS: usize = 5;
/// Minimum number of telling words in the same cipher.
const MIN_TELLING_WORDS: usize = 2;
/// Minimum number of common words in the deciphered text.
const WORDS: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AlphabetOrder {
    Forward,
    Mirrored,
    Backward,
}

static TABLE: LazyLock<QuickMap<u64, (AlphabetOrder, u8)>> = LazyLock::new(|| {
    let mut table = QuickMap::default();
    for word in TELLING.into_iter().chain(ENCIPHERED) {
        let letters: Vec<u8> = word.bytes().map(|b| b - b'a').collect();
        let mirrored: Vec<u8> = letters.iter().map(|l| 25 - l).collect();
        let backward: Vec<u8> = letters.iter().rev().copied().collect();
        for (order, letters) in [
            (AlphabetOrder::Forward, letters),
            (AlphabetOrder::Mirrored, mirrored),
            (AlphabetOrder::Backward, backward),
        ] {
            table.insert(
                differences(letters.iter().copied()),
                (order, letters.first().copied().unwrap_or(0)),
            );
        }
    }
    table
});

/// Returns a hash of the differences between letters (FNV-1a).
fn differences(letters: impl Iterator<Item = u8>) -> u64 {
    let mut last = None;
    letters.fold(0xcbf2_9ce4_8422_2325, |hash, letter| {
        match last.replace(letter) {
            Some(last) => (hash ^ u64::from(distance(last, letter))).wrapping_mul(0x100_0000_01b3),
            None => hash,
        }
    })
}

pub(super) fn find(text: &str, tokens: &Tokens, decoded_parts: &mut Vec<DecodedPart>) {
    let telling = telling_words(text.as_bytes(), &tokens.telling);
    if telling.len() < MIN_TELLING_WORDS {
        return;
    }
    let mut ciphers: Vec<(AlphabetOrder, u8)> = telling.iter().map(|(cipher, _)| *cipher).collect();
    ciphers.sort_by_key(|(order, shift)| (*order as u8, *shift));
    ciphers.dedup();
    for cipher in ciphers {
        let places: Vec<Range<usize>> = telling
            .iter()
            .filter(|(other, _)| *other == cipher)
            .map(|(_, place)| place.clone())
            .collect();
        if places.len() < MIN_TELLING_WORDS {
            continue;
        }
        for span in regions::enclosing(text, places) {
            let Some(region) = text.get(span.clone()) else {
                continue;
            };
            for (name, text) in decipher(region, cipher) {
                let words = vocabulary::count_words(&text);
                if words >= WORDS {
                    decoded_parts.push(DecodedPart {
                        name,
                        suspicion: Suspicion::Odd,
                        span: span.clone(),
                        text,
                        words,
                    });
                }
            }
        }
    }
}

/// How the first four letters of telling words differ in every order, one bit for each combination:
/// nearly all words are ruled out here.
static BEGINNINGS: LazyLock<Box<StartBits>> = LazyLock::new(|| {
    let mut bits = Box::new([0; 1 << 10]);
    for word in TELLING.into_iter().chain(ENCIPHERED) {
        let letters: Vec<u8> = word.bytes().collect();
        let backward: Vec<u8> = letters.iter().rev().copied().collect();
        for letters in [letters, backward] {
            let Some([a, b, c, d]) = letters.first_chunk().copied() else {
                continue;
            };
            let differences = [distance(a, b), distance(b, c), distance(c, d)];
            // Mirrored letters have the same distance in the opposite direction.
            for [first, second, third] in [differences, differences.map(|step| (26 - step) % 26)] {
                // A shift past the end of the alphabet makes a difference smaller by 26.
                for wraps in 0..8 {
                    let low_bits = |step: u8, nth: u8| {
                        usize::from(step.wrapping_sub(26 * (wraps >> nth & 1)) & 0x1f)
                    };
                    let slot = bits.get_mut(low_bits(first, 0) << 5 | low_bits(second, 1));
                    slot.into_iter()
                        .for_each(|bits: &mut u32| *bits |= 1 << low_bits(third, 2));
                }
            }
        }
    }
    bits
});
type StartBits = [u32; 1 << 10];

/// Returns how far `b` comes after `a` in the alphabet, cyclically.
fn distance(a: u8, b: u8) -> u8 {
    let difference = b.wrapping_sub(a);
    if b >= a {
        difference
    } else {
        difference.wrapping_add(26)
    }
}

/// Returns a function that reports whether letters are a telling word in some cipher.
pub(super) fn telling_matcher() -> impl Fn(&[u8]) -> bool {
    let beginnings: &StartBits = &BEGINNINGS;
    move |letters| {
        let Some(start) = letters.first_chunk::<4>() else {
            return false;
        };
        let [a, b, c, d] = start.map(|letter| letter & 0x1f);
        let low_bits = |a: u8, b: u8| usize::from(b.wrapping_sub(a) & 0x1f);
        let bits = beginnings.get(low_bits(a, b) << 5 | low_bits(b, c));
        bits.is_some_and(|bits| bits >> low_bits(c, d) & 1 == 1) && find_cipher(letters).is_some()
    }
}

/// Returns the cipher in which letters are a telling word. A telling word in plain text is in none.
fn find_cipher(letters: &[u8]) -> Option<(AlphabetOrder, u8)> {
    let letters = || letters.iter().map(|b| (b | 0x20) - b'a');
    let (order, first) = TABLE.get(&differences(letters()))?;
    let shift = (letters().next()? + 26 - first) % 26;
    Some((*order, shift)).filter(|cipher| *cipher != (AlphabetOrder::Forward, 0))
}

/// Returns the telling words, each with the cipher that it is written in.
fn telling_words(bytes: &[u8], words: &[Range<usize>]) -> Vec<((AlphabetOrder, u8), Range<usize>)> {
    let with_cipher =
        |word: &Range<usize>| Some((find_cipher(bytes.get(word.clone())?)?, word.clone()));
    words.iter().filter_map(with_cipher).collect()
}

fn decipher(text: &str, (order, shift): (AlphabetOrder, u8)) -> Vec<(&'static str, String)> {
    let shift_letter = |c: char| {
        let base = match c {
            'a'..='z' => b'a',
            'A'..='Z' => b'A',
            _ => return c,
        };
        let letter = (u8::try_from(c).unwrap_or(base) - base + 26 - shift) % 26;
        char::from(
            base + if order == AlphabetOrder::Mirrored {
                25 - letter
            } else {
                letter
            },
        )
    };
    match order {
        AlphabetOrder::Forward if shift == 13 => {
            vec![("rot13", text.chars().map(shift_letter).collect())]
        }
        AlphabetOrder::Forward => vec![("caesar", text.chars().map(shift_letter).collect())],
        AlphabetOrder::Mirrored => vec![("atbash", text.chars().map(shift_letter).collect())],
        // Reversed as a whole, or word by word.
        AlphabetOrder::Backward => vec![
            ("reversed", text.chars().rev().map(shift_letter).collect()),
            (
                "reversed",
                text.split(' ')
                    .map(|word| word.chars().rev().map(shift_letter).collect::<String>())
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn telling_words_are_told_in_every_cipher() {
        let tells = telling_matcher();
        let caught = |word: &str| tells(word.as_bytes());
        for word in TELLING {
            let mirrored: String = word
                .bytes()
                .map(|letter| char::from(b'a' + b'z' - letter))
                .collect();
            let backward: String = word.chars().rev().collect();
            let shift = |by: u8| {
                word.bytes()
                    .map(|letter| char::from((letter - b'a' + by) % 26 + b'a'))
                    .collect::<String>()
            };
            let all = (0..26).map(shift).chain([mirrored, backward]);
            for written in all.flat_map(|written| [written.to_uppercase(), written]) {
                assert_eq!(
                    caught(&written),
                    find_cipher(written.as_bytes()).is_some(),
                    "{written}"
                );
                assert!(
                    caught(&written) || written.eq_ignore_ascii_case(word),
                    "{written}"
                );
            }
        }
        assert!(!caught("kettle") && !caught("ign"));
    }
}
