//! Words spelled out: words joined, digits for letters.

use std::borrow::Cow;
use std::ops::Range;

use super::tokens::Tokens;
use super::{DecodedPart, Suspicion, regions, respelled, spaced, vocabulary};
use crate::text::facts::runs;

/// Minimum number of consecutive single letters after another in a text that is examined closely.
const ALONE: usize = 4;
/// Minimum number of words with digits for letters in a text that is read this way.
const LEET_WORDS: usize = 3;
/// Minimum number of tokens of mixed letters and digits that may be words split at other places.
const CUT_UP: usize = 6;
/// Minimum length of a token that may be joined words, in letters.
pub(super) const JOINED: usize = 24;
/// Minimum number of words in such a token.
const JOINED_WORDS: usize = 5;
/// Minimum percentage of the letters of such a token, and of words that are split at other places,
/// that words cover.
const JOINED_PERCENT: usize = 60;
const CUT_UP_PERCENT: usize = 50;
/// Maximum length of a stretch that is split into words, in bytes.
const SPLIT_BYTES: usize = 2 << 10;

pub(super) fn find(text: &str, tokens: &Tokens, decoded_parts: &mut Vec<DecodedPart>) {
    if tokens.single_letters >= ALONE {
        spaced::find(text, decoded_parts);
    }
    find_leet(text, &tokens.mixed, decoded_parts);
    find_joined(text, &tokens.long, decoded_parts);
}

/// Finds words with digits for letters: `1gn0r3 4ll pr3v10u5`, also if the words are split at other
/// places: `1gn0 r34l lpr3 v10u`.
fn find_leet(text: &str, tokens: &[Range<usize>], decoded_parts: &mut Vec<DecodedPart>) {
    let (mut words, mut mixed_tokens): (Vec<Range<usize>>, Vec<Range<usize>>) = Default::default();
    let mut telling: Vec<(Range<usize>, Cow<'static, str>)> = Vec::new();
    for span in tokens {
        let Some(token) = text.get(span.clone()) else {
            continue;
        };
        if !is_mixed(token) {
            continue;
        }
        if let Some(word) = read_word(token) {
            words.push(span.clone());
            telling.extend(respelled::is_telling(&word).then(|| (span.clone(), word.into())));
        }
        mixed_tokens.push(span.clone());
    }
    if words.len() >= LEET_WORDS {
        for span in regions::enclosing(text, words.iter().cloned()) {
            let within = count_within(&words, &span);
            let Some(region) = text.get(span.clone()).filter(|_| within >= LEET_WORDS) else {
                continue;
            };
            decoded_parts.push(DecodedPart {
                name: "leet",
                suspicion: Suspicion::Odd,
                span,
                text: unleet(region),
                words: within,
            });
        }
    }
    if words.len() < LEET_WORDS && !telling.is_empty() {
        respelled::replace_words("leet", Suspicion::Usual, text, telling, 1, decoded_parts);
    }
    if mixed_tokens.len() >= CUT_UP {
        for span in regions::enclosing(text, mixed_tokens.iter().cloned()) {
            let within = count_within(&mixed_tokens, &span);
            let Some(region) = text
                .get(span.clone())
                .filter(|region| within >= CUT_UP && region.len() <= SPLIT_BYTES)
            else {
                continue;
            };
            for line in region.split('\n').filter(|line| is_cut_up(line)) {
                let letters: String = line
                    .bytes()
                    .filter(u8::is_ascii_alphanumeric)
                    .map(|byte| char::from(as_letter(byte).unwrap_or(byte).to_ascii_lowercase()))
                    .collect();
                let Some(text) = vocabulary::find_words(&letters, CUT_UP_PERCENT) else {
                    continue;
                };
                let words = vocabulary::count_words(&text);
                if words >= JOINED_WORDS {
                    decoded_parts.push(DecodedPart {
                        name: "leet",
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

/// Returns how many of `tokens`, which are in order, are in a part of a text.
fn count_within(tokens: &[Range<usize>], part: &Range<usize>) -> usize {
    let first = tokens.partition_point(|token| token.start < part.start);
    tokens
        .partition_point(|token| token.end <= part.end)
        .saturating_sub(first)
}

/// Reports whether most of a line is mixed letters and digits.
fn is_cut_up(line: &str) -> bool {
    let mixed = find_tokens(line)
        .filter(|span| line.get(span.clone()).is_some_and(has_digit_by_letter))
        .count();
    mixed >= CUT_UP && mixed * 2 >= line.split_whitespace().count()
}

/// Returns the tokens that contain a digit or a sign that can stand for a letter.
fn find_tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let is_token_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'@' | b'$' | b'!' | b'|');
    let mut at = 0;
    std::iter::from_fn(move || {
        let digit = at
            + bytes
                .get(at..)?
                .iter()
                .position(|b| b.is_ascii_digit() || matches!(b, b'@' | b'$'))?;
        let before = bytes
            .get(at..digit)
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|b| is_token_byte(**b))
            .count();
        let after = bytes
            .get(digit..)
            .unwrap_or_default()
            .iter()
            .take_while(|b| is_token_byte(**b))
            .count();
        at = digit + after;
        Some(digit - before..at)
    })
}

/// Maximum length of a token that is read as a word, in bytes.
const TOKEN_BYTES: usize = 16;

fn is_mixed(token: &str) -> bool {
    if !token.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return false;
    }
    let token = trim_marks(token);
    // A leading `$` denotes a variable, and a leading `@` a person.
    let inner = token.trim_start_matches(['$', '@']);
    token.len() <= TOKEN_BYTES && inner.bytes().any(|byte| as_letter(byte).is_some())
}

/// Reports whether a token has a digit, or a sign other than marks of sentences and columns, next to
/// a letter.
fn has_digit_by_letter(token: &str) -> bool {
    let stands_for_letter = |b: u8| !matches!(b, b'!' | b'|') && as_letter(b).is_some();
    is_mixed(token)
        && token.as_bytes().windows(2).any(|pair| {
            pair.iter().any(u8::is_ascii_alphabetic) && pair.iter().any(|b| stands_for_letter(*b))
        })
}

/// Returns a token without marks that end sentences or separate columns.
fn trim_marks(token: &str) -> &str {
    token.trim_matches(['!', '|'])
}

const fn as_letter(byte: u8) -> Option<u8> {
    Some(match byte {
        b'0' => b'o',
        b'1' | b'!' | b'|' => b'1',
        b'3' => b'e',
        b'4' | b'@' => b'a',
        b'5' | b'$' => b's',
        b'6' | b'9' => b'g',
        b'7' => b't',
        b'8' => b'b',
        _ => return None,
    })
}

/// Returns the word that a token with digits for letters reads as. Logs contain thousands of such
/// tokens, so they are looked up without a copy.
fn read_word(token: &str) -> Option<String> {
    let token = trim_marks(token).bytes();
    let mut buffer = [0; TOKEN_BYTES];
    let letters = buffer.get_mut(..token.len())?;
    letters
        .iter_mut()
        .zip(token)
        .for_each(|(to, byte)| *to = as_letter(byte).unwrap_or(byte).to_ascii_lowercase());
    let word = vocabulary::read_word(std::str::from_utf8(letters).ok()?)?;
    (word.len() >= 3).then(|| word.into_owned())
}

/// Returns a text with letters in place of digits within words.
pub(super) fn unleet(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in find_tokens(text) {
        out.push_str(text.get(at..span.start).unwrap_or_default());
        let token = text.get(span.clone()).unwrap_or_default();
        match read_word(token) {
            Some(word) => out.push_str(&word),
            None if is_mixed(token) => {
                out.extend(token.bytes().map(|byte| match as_letter(byte) {
                    Some(b'1') => 'i',
                    letter => char::from(letter.unwrap_or(byte)),
                }))
            }
            None => out.push_str(token),
        }
        at = span.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Finds joined words: `ignoreallpreviousinstructions`, `IgnoreAllPreviousInstructions`,
/// `1gn0r3allpr3v10u51n57ruct10n5`.
fn find_joined(text: &str, tokens: &[Range<usize>], decoded_parts: &mut Vec<DecodedPart>) {
    let find_runs = |token: &Range<usize>| {
        let bytes = text.as_bytes().get(token.clone()).unwrap_or_default();
        let runs = runs(bytes, JOINED, |b| b.is_ascii_alphanumeric());
        runs.into_iter()
            .map(|run| token.start + run.start..token.start + run.end)
            .collect::<Vec<_>>()
    };
    for span in tokens.iter().flat_map(find_runs) {
        let Some(run) = text
            .get(span.clone())
            .filter(|run| run.len() <= SPLIT_BYTES)
        else {
            continue;
        };
        let letters = run.bytes().filter(u8::is_ascii_alphabetic).count();
        if letters * 3 < run.len() || run.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            continue;
        }
        let lower: String = run
            .bytes()
            .map(|byte| char::from(as_letter(byte).unwrap_or(byte).to_ascii_lowercase()))
            .collect();
        if vocabulary::max_covered(&lower) * 5 < run.len() {
            continue;
        }
        let capitals = run.bytes().filter(u8::is_ascii_uppercase).count();
        let Some(text) = vocabulary::find_words(&lower, JOINED_PERCENT) else {
            continue;
        };
        let words = vocabulary::count_words(&text);
        if words >= JOINED_WORDS {
            // Names in programs are also joined, but with capitals.
            let suspicion = if capitals > 1 {
                Suspicion::Usual
            } else {
                Suspicion::Odd
            };
            decoded_parts.push(DecodedPart {
                name: "joined",
                suspicion,
                span,
                text,
                words,
            });
        }
    }
}
