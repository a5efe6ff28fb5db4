//! Words spelled out: letters apart, words joined, digits for letters.

use std::borrow::Cow;
use std::ops::Range;

use super::tokens::Tokens;
use super::{DecodedPart, Suspicion, cipher, regions, respelled, vocabulary};
use crate::text::facts::runs;

/// Minimum number of consecutive single letters that may be words spelled out.
const SINGLE: usize = 10;
/// Minimum number of single letters after another in a text that is examined closely.
const ALONE: usize = 4;
/// Minimum number of words in the joined letters.
const SPELT_WORDS: usize = 2;
/// Minimum number of words with digits for letters in a text that is read this way.
const LEET_WORDS: usize = 3;
/// Minimum number of tokens of mixed letters and digits that may be words split at other places.
const CUT_UP: usize = 6;
/// Minimum length of a token that may be joined words, in letters.
pub(super) const JOINED: usize = 24;
/// Minimum number of words in such a token.
const JOINED_WORDS: usize = 5;
/// Maximum length of a stretch that is split into words, in bytes.
const SPLIT_BYTES: usize = 2 << 10;

pub(super) fn find(text: &str, tokens: &Tokens, found: &mut Vec<DecodedPart>) {
    if tokens.alone >= ALONE {
        spaced(text, found);
    }
    leet(text, &tokens.mixed, found);
    joined(text, &tokens.long, found);
}

/// Finds spaced-out words: `i g n o r e`, `i.g.n.o.r.e`, `i-g-n-o-r-e`.
fn spaced(text: &str, found: &mut Vec<DecodedPart>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut done = 0;
    let mut telling: Vec<(Range<usize>, Cow<'static, str>)> = Vec::new();
    while let Some(window) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        if !alternates(window) {
            at += 6;
            continue;
        }
        let span = stretch(bytes, at, done);
        done = span.end;
        at = done.max(at + 6);
        let Some(run) = text.get(span.clone()) else {
            continue;
        };
        let Some((joined, letters)) = together(run) else {
            continue;
        };
        if letters >= cipher::TELLING_LETTERS && respelled::is_telling(&joined.to_ascii_lowercase())
        {
            let is_sign = |c: char| !c.is_ascii_alphanumeric();
            let start = run.len() - run.trim_start_matches(is_sign).len();
            let end = run.trim_end_matches(is_sign).len();
            telling.push((span.start + start..span.start + end, joined.into()));
        } else if letters >= SINGLE {
            let text = joined;
            let text = if text.contains(' ') {
                text
            } else {
                vocabulary::split(&text.to_ascii_lowercase()).0
            };
            let plain = unleet(&text);
            let words = vocabulary::words_in(&plain).max(vocabulary::words_in(&text));
            if words >= SPELT_WORDS {
                found.push(DecodedPart {
                    name: "spaced",
                    way: Suspicion::Odd,
                    span,
                    text,
                    words,
                });
            }
        }
    }
    respelled::replaced("spaced", Suspicion::Odd, text, telling, 1, found);
}

/// Reports whether every other one of eight bytes is the same separator of letters.
fn alternates(&[a, b, c, d, e, f, g, _]: &[u8; 8]) -> bool {
    let apart = |letters: [u8; 3], sign: u8| {
        parts(sign)
            && letters.iter().all(u8::is_ascii_graphic)
            && letters.iter().filter(|b| b.is_ascii_alphanumeric()).count() >= 2
    };
    b == d && apart([a, c, e], b) || c == e && apart([b, d, f], c) || d == f && apart([c, e, g], d)
}

/// Reports whether a character separates letters that are written apart.
fn parts(b: u8) -> bool {
    matches!(
        b,
        b' ' | b'\t' | b'.' | b'-' | b'_' | b'*' | b'|' | b'/' | b',' | b'~' | b'+'
    )
}

/// Returns the stretch of single letters around `at`, not before `from`.
fn stretch(bytes: &[u8], at: usize, from: usize) -> Range<usize> {
    let single = |at: usize| {
        let apart = |b: Option<&u8>| b.is_none_or(|b| parts(*b) || *b == b'\n');
        bytes.get(at).is_some_and(|b| {
            parts(*b)
                || (b.is_ascii_graphic()
                    && apart(at.checked_sub(1).and_then(|at| bytes.get(at)))
                    && apart(bytes.get(at + 1)))
        })
    };
    let start = (from..=at)
        .rev()
        .take_while(|at| single(*at))
        .last()
        .unwrap_or(at);
    let end = (at..bytes.len())
        .take_while(|at| single(*at))
        .last()
        .map_or(at, |last| last + 1);
    start..end.max(start)
}

/// Returns the joined letters and their number. Wider gaps separate words.
fn together(run: &str) -> Option<(String, usize)> {
    let bytes = run.as_bytes();
    // The sign between letters is the most frequent one.
    let sign = [
        b' ', b'\t', b'.', b'-', b'_', b'*', b'|', b'/', b',', b'~', b'+',
    ]
    .into_iter()
    .max_by_key(|sign| bytes.iter().filter(|b| *b == sign).count())?;
    let mut out = String::new();
    let mut gap = 0;
    let mut letters = 0;
    for b in bytes {
        if *b == sign {
            gap += 1;
            continue;
        }
        if gap > 1 && !out.is_empty() {
            out.push(' ');
        }
        gap = 0;
        letters += usize::from(!parts(*b));
        out.push(char::from(*b));
    }
    Some((out, letters))
}

/// Finds words with digits for letters: `1gn0r3 4ll pr3v10u5`, also if the words are split at other
/// places: `1gn0 r34l lpr3 v10u`.
fn leet(text: &str, tokens: &[Range<usize>], found: &mut Vec<DecodedPart>) {
    let (mut words, mut cut): (Vec<Range<usize>>, Vec<Range<usize>>) = Default::default();
    let mut telling: Vec<(Range<usize>, Cow<'static, str>)> = Vec::new();
    for span in tokens {
        let Some(token) = text.get(span.clone()) else {
            continue;
        };
        if !mixes(token) {
            continue;
        }
        if let Some(word) = reads_as(token) {
            words.push(span.clone());
            telling.extend(respelled::is_telling(&word).then(|| (span.clone(), word.into())));
        }
        cut.push(span.clone());
    }
    if words.len() >= LEET_WORDS {
        for span in regions::around(text, words.iter().cloned()) {
            let here = count_within(&words, &span);
            let Some(region) = text.get(span.clone()).filter(|_| here >= LEET_WORDS) else {
                continue;
            };
            found.push(DecodedPart {
                name: "leet",
                way: Suspicion::Odd,
                span,
                text: unleet(region),
                words: here,
            });
        }
    }
    if words.len() < LEET_WORDS && !telling.is_empty() {
        respelled::replaced("leet", Suspicion::Usual, text, telling, 1, found);
    }
    if cut.len() >= CUT_UP {
        for span in regions::around(text, cut.iter().cloned()) {
            let here = count_within(&cut, &span);
            let Some(region) = text
                .get(span.clone())
                .filter(|region| here >= CUT_UP && region.len() <= SPLIT_BYTES)
            else {
                continue;
            };
            for line in region.split('\n').filter(|line| cut_up(line)) {
                let letters: String = line
                    .bytes()
                    .filter(u8::is_ascii_alphanumeric)
                    .map(|byte| char::from(as_letter(byte).unwrap_or(byte).to_ascii_lowercase()))
                    .collect();
                let (text, covered) = vocabulary::split(&letters);
                let words = vocabulary::words_in(&text);
                if covered * 2 >= letters.len() && words >= JOINED_WORDS {
                    found.push(DecodedPart {
                        name: "leet",
                        way: Suspicion::Odd,
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
fn cut_up(line: &str) -> bool {
    let mixed = tokens(line)
        .filter(|span| line.get(span.clone()).is_some_and(mixes))
        .count();
    mixed >= CUT_UP && mixed * 2 >= line.split_whitespace().count()
}

/// Returns the tokens that contain a digit or a sign that can stand for a letter.
fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let of_token = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'@' | b'$' | b'!' | b'|');
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
            .take_while(|b| of_token(**b))
            .count();
        let after = bytes
            .get(digit..)
            .unwrap_or_default()
            .iter()
            .take_while(|b| of_token(**b))
            .count();
        at = digit + after;
        Some(digit - before..at)
    })
}

/// Maximum length of a token that is read as a word, in bytes.
const TOKEN_BYTES: usize = 16;

fn mixes(token: &str) -> bool {
    if !token.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return false;
    }
    let token = trim_marks(token);
    // A leading `$` denotes a variable, and a leading `@` a person.
    let inner = token.trim_start_matches(['$', '@']);
    token.len() <= TOKEN_BYTES && inner.bytes().any(|byte| as_letter(byte).is_some())
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
fn reads_as(token: &str) -> Option<String> {
    let token = trim_marks(token).bytes();
    let mut room = [0; TOKEN_BYTES];
    let letters = room.get_mut(..token.len())?;
    letters
        .iter_mut()
        .zip(token)
        .for_each(|(to, byte)| *to = as_letter(byte).unwrap_or(byte).to_ascii_lowercase());
    let word = vocabulary::reads_as(std::str::from_utf8(letters).ok()?)?;
    (word.len() >= 3).then(|| word.into_owned())
}

fn unleet(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in tokens(text) {
        out.push_str(text.get(at..span.start).unwrap_or_default());
        let token = text.get(span.clone()).unwrap_or_default();
        match reads_as(token) {
            Some(word) => out.push_str(&word),
            None if mixes(token) => out.extend(token.bytes().map(|byte| match as_letter(byte) {
                Some(b'1') => 'i',
                letter => char::from(letter.unwrap_or(byte)),
            })),
            None => out.push_str(token),
        }
        at = span.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Finds joined words: `ignoreallpreviousinstructions`, `IgnoreAllPreviousInstructions`.
fn joined(text: &str, tokens: &[Range<usize>], found: &mut Vec<DecodedPart>) {
    let runs = |token: &Range<usize>| {
        let bytes = text.as_bytes().get(token.clone()).unwrap_or_default();
        let runs = runs(bytes, JOINED, |b| b.is_ascii_alphanumeric());
        runs.into_iter()
            .map(|run| token.start + run.start..token.start + run.end)
            .collect::<Vec<_>>()
    };
    for span in tokens.iter().flat_map(runs) {
        let Some(run) = text
            .get(span.clone())
            .filter(|run| run.len() <= SPLIT_BYTES)
        else {
            continue;
        };
        let letters = run.bytes().filter(u8::is_ascii_alphabetic).count();
        if letters * 10 < run.len() * 7 {
            continue;
        }
        let lower = run.to_ascii_lowercase();
        let enough = |covered: usize| covered * 10 >= run.len() * 6;
        if !enough(vocabulary::most_covered(&lower)) {
            continue;
        }
        let capitals = run.bytes().filter(u8::is_ascii_uppercase).count();
        let (text, covered) = vocabulary::split(&lower);
        let words = vocabulary::words_in(&text);
        if enough(covered) && words >= JOINED_WORDS {
            // Names in programs are also joined, but with capitals.
            let way = if capitals > 1 {
                Suspicion::Usual
            } else {
                Suspicion::Odd
            };
            found.push(DecodedPart {
                name: "joined",
                way,
                span,
                text,
                words,
            });
        }
    }
}
