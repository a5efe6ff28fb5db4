//! Letters written as numbers: `%41`, `&#65;`, `\u0041`, `\U00000041`, `\x41`, `\101`, `\41 ` (CSS),
//! `=41`.

use std::ops::Range;

use super::{DecodedPart, Facts, Suspicion, regions, vocabulary};

/// Minimum number of escaped letters that need no escape and cannot be an accident.
const LETTERS: usize = 8;
/// Minimum number of words in them that make them prose.
const WORDS: usize = 3;
/// Minimum number of escapes in a text that is decoded.
const ESCAPES: usize = 3;

/// Reads an escape at the start of a text. Returns its length and the code that it stands for.
type ReadEscape = fn(&[u8]) -> Option<(usize, u32)>;

pub(super) fn find(text: &str, facts: &Facts, decoded_parts: &mut Vec<DecodedPart>) {
    let notations: [(u8, &'static str, ReadEscape, bool); 4] = [
        (b'%', "percent", read_percent, true),
        (b'&', "html", read_entity, true),
        (b'\\', "backslash", read_backslash, false),
        (b'=', "quoted-printable", read_quoted, true),
    ];
    for (mark, name, read, can_disguise) in
        notations.into_iter().filter(|(mark, ..)| facts.has(*mark))
    {
        let bytes = text.as_bytes();
        let mut places: Vec<Range<usize>> = Vec::new();
        for at in memchr::memchr_iter(mark, bytes) {
            if let Some((length, _)) = bytes.get(at..).and_then(read) {
                places.push(at..at + length);
            }
        }
        if places.len() < ESCAPES {
            continue;
        }
        for span in regions::enclosing(text, places) {
            let Some(region) = text.get(span.clone()) else {
                continue;
            };
            let (decoded, letters) = decode(region, mark, read);
            let words = vocabulary::count_words(&letters);
            let is_disguise = can_disguise
                && words >= WORDS
                && letters.bytes().filter(u8::is_ascii_alphabetic).count() >= LETTERS;
            decoded_parts.push(DecodedPart {
                name,
                suspicion: if is_disguise {
                    Suspicion::Disguise
                } else {
                    Suspicion::Usual
                },
                span,
                text: decoded,
                words,
            });
        }
    }
}

/// Returns the text with its escapes decoded, and the plain letters that were escaped, with blanks
/// in place of other text between them.
fn decode(text: &str, mark: u8, read: ReadEscape) -> (String, String) {
    let bytes = text.as_bytes();
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut letters = String::new();
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let plain = memchr::memchr(mark, rest).unwrap_or(rest.len());
        out.extend_from_slice(rest.get(..plain).unwrap_or_default());
        at += plain;
        if plain > 0 {
            letters.push(' ');
        }
        let Some(rest) = rest.get(plain..).filter(|rest| !rest.is_empty()) else {
            break;
        };
        match read(rest) {
            Some((length, code)) => {
                letters.push(
                    u8::try_from(code)
                        .ok()
                        .filter(u8::is_ascii_alphabetic)
                        .map_or(' ', char::from),
                );
                // `%` and `=` escape single bytes of UTF-8, the others whole characters.
                match u8::try_from(code) {
                    Ok(byte) if matches!(mark, b'%' | b'=') || byte.is_ascii() => out.push(byte),
                    _ => {
                        let c = char::from_u32(code).unwrap_or('\u{fffd}');
                        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                }
                at += length;
            }
            None => {
                out.push(mark);
                at += 1;
            }
        }
    }
    (String::from_utf8_lossy(&out).into_owned(), letters)
}

fn parse_hex(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok()?;
    text.bytes()
        .all(|b| b.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(text, 16).ok())?
}

fn read_percent(text: &[u8]) -> Option<(usize, u32)> {
    Some((3, parse_hex(text.get(1..3)?)?))
}

fn read_quoted(text: &[u8]) -> Option<(usize, u32)> {
    if text.get(1) == Some(&b'\n') {
        return Some((2, u32::from(b' ')));
    }
    Some((3, parse_hex(text.get(1..3)?)?))
}

fn read_entity(text: &[u8]) -> Option<(usize, u32)> {
    let body = text.strip_prefix(b"&#")?;
    let (radix, body, skipped) = match body.first()? {
        b'x' | b'X' => (16, body.get(1..)?, 3),
        _ => (10, body, 2),
    };
    let digits = body
        .iter()
        .take(7)
        .take_while(|b| char::from(**b).is_digit(radix))
        .count();
    let code = u32::from_str_radix(std::str::from_utf8(body.get(..digits)?).ok()?, radix).ok()?;
    let closed = usize::from(body.get(digits) == Some(&b';'));
    Some((skipped + digits + closed, code))
}

fn read_backslash(text: &[u8]) -> Option<(usize, u32)> {
    // Backslashes may be escaped again, as in JSON text within a string.
    let slashes = text.iter().take(4).take_while(|b| **b == b'\\').count();
    let body = text.get(slashes..)?;
    let (length, code) = match body {
        [b'u', b'{', rest @ ..] => {
            let end = rest.iter().take(7).position(|b| *b == b'}')?;
            (end + 3, parse_hex(rest.get(..end)?)?)
        }
        [b'u', rest @ ..] => (5, parse_hex(rest.get(..4)?)?),
        [b'U', rest @ ..] => (9, parse_hex(rest.get(..8)?)?),
        [b'x', rest @ ..] => (3, parse_hex(rest.get(..2)?)?),
        [a @ b'0'..=b'1', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => (
            3,
            u32::from(a - b'0') * 64 + u32::from(b - b'0') * 8 + u32::from(c - b'0'),
        ),
        // CSS (CSS Syntax Level 3, section 4.3.7); a blank ends the number.
        [a, b, b' ', ..] if a.is_ascii_digit() && b.is_ascii_hexdigit() => {
            (3, parse_hex(body.get(..2)?)?)
        }
        _ => return None,
    };
    Some((slashes + length, code))
}
