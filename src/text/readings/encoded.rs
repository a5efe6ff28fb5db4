//! Text packed into letters that a person cannot read: base64, base32, hex, ascii85, Morse.

use std::ops::Range;

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::{DECODED_BYTES, DecodedPart, Facts, Suspicion, packed, vocabulary};
use crate::text::facts::runs;

/// Minimum length of a packed run, in bytes; shorter ones contain too little to steer a model.
pub(super) const PACKED_BYTES: usize = 20;
/// Minimum length of a run of Morse signs that cannot be a ruler of dots and dashes, in bytes.
const MORSE_BYTES: usize = 40;
/// Minimum number of words in decoded Morse.
const MORSE_WORDS: usize = 2;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
static BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
static BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

pub(super) fn find(text: &str, facts: &Facts, decoded_parts: &mut Vec<DecodedPart>) {
    for span in facts
        .code_runs()
        .iter()
        .filter(|run| run.len() >= PACKED_BYTES)
    {
        let Some(run) = text.get(span.clone()) else {
            continue;
        };
        let prefix = run.get(..DECODED_BYTES).unwrap_or(run);
        let others = [("hex", hex(prefix)), ("base32", base32(prefix))];
        let others = others
            .into_iter()
            .filter_map(|(name, bytes)| Some((name, readable_text(bytes?)?)));
        for (name, text) in packed::base64(prefix.as_bytes()).into_iter().chain(others) {
            decoded_parts.push(DecodedPart {
                name,
                suspicion: Suspicion::Usual,
                span: span.clone(),
                text,
                words: 0,
            });
        }
    }
    find_hex_numbers(text, decoded_parts);
    for span in runs(text.as_bytes(), MORSE_BYTES, |b| {
        matches!(b, b'.' | b'-' | b'/' | b' ' | b'_')
    }) {
        if let Some(text) = text.get(span.clone()).and_then(morse) {
            let words = vocabulary::count_words(&text);
            decoded_parts.push(DecodedPart {
                name: "morse",
                suspicion: Suspicion::Odd,
                span,
                text,
                words,
            });
        }
    }
    if facts.has(b'<')
        && facts.has(b'~')
        && let Some((span, inner)) = find_between(text, "<~", "~>")
        && let Some(text) = ascii85(inner).and_then(readable_text)
    {
        decoded_parts.push(DecodedPart {
            name: "ascii85",
            suspicion: Suspicion::Usual,
            span,
            text,
            words: 0,
        });
    }
}

/// Returns bytes as text, if people could read it.
pub(super) fn readable_text(bytes: Vec<u8>) -> Option<String> {
    if let Some(text) = utf16(&bytes) {
        return Some(text);
    }
    let text = String::from_utf8(bytes).or_else(|error| {
        // The end may be cut off within a character.
        let valid = error.utf8_error().valid_up_to();
        let mut bytes = error.into_bytes();
        if bytes.len() - valid > 3 {
            return Err(());
        }
        bytes.truncate(valid);
        String::from_utf8(bytes).map_err(|_| ())
    });
    let text = text.ok()?;
    let control_count = text
        .chars()
        .filter(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r' | '\u{1b}'))
        .count();
    (control_count == 0 && text.len() >= 8).then_some(text)
}

/// Decodes UTF-16 of either byte order, recognized by its byte order mark or by its zeros.
fn utf16(bytes: &[u8]) -> Option<String> {
    let count_zeros = |parity: usize| {
        bytes
            .iter()
            .skip(parity)
            .step_by(2)
            .filter(|b| **b == 0)
            .count()
    };
    let min_zeros = bytes.len() * 2 / 5;
    let is_big_endian = bytes.starts_with(&[0xFE, 0xFF]) || count_zeros(0) >= min_zeros;
    if bytes.len() < 16
        || !is_big_endian && count_zeros(1) < min_zeros && !bytes.starts_with(&[0xFF, 0xFE])
    {
        return None;
    }
    let unit = |pair: [u8; 2]| {
        if is_big_endian {
            u16::from_be_bytes(pair)
        } else {
            u16::from_le_bytes(pair)
        }
    };
    let units = bytes
        .chunks_exact(2)
        .filter_map(|pair| Some(unit([*pair.first()?, *pair.get(1)?])));
    let text: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
    let has_control = text.chars().any(|c| c.is_control() && !c.is_whitespace());
    (!has_control).then(|| text.trim_start_matches('\u{feff}').to_owned())
}

pub(super) fn base64(run: &[u8]) -> Option<Vec<u8>> {
    let is_mixed = run.iter().any(u8::is_ascii_lowercase) && run.iter().any(u8::is_ascii_uppercase);
    if !is_mixed {
        return None;
    }
    base64_bytes(run)
}

/// Decodes a run, even if its letters are all of the same case.
pub(super) fn base64_bytes(run: &[u8]) -> Option<Vec<u8>> {
    // A run that is cut off at its end, or joined to a word before it by a slash, still contains
    // most of its text.
    let trimmed = run
        .get(..run.len() - usize::from(run.len() % 4 == 1))
        .unwrap_or(run);
    if memchr::memchr2(b'-', b'_', trimmed).is_some() {
        BASE64_URL.decode(trimmed).ok()
    } else {
        BASE64.decode(trimmed).ok()
    }
}

fn hex(run: &str) -> Option<Vec<u8>> {
    let digits = run.strip_prefix("0x").unwrap_or(run).as_bytes();
    digits.chunks_exact(2).map(parse_hex_pair).collect()
}

fn parse_hex_pair(pair: &[u8]) -> Option<u8> {
    let digit = |b: Option<&u8>| char::from(*b?).to_digit(16);
    u8::try_from(digit(pair.first())? * 16 + digit(pair.get(1))?).ok()
}

/// Finds bytes written as separate numbers of two hexadecimal digits: `49 67 6e`, `0x49, 0x67`,
/// `U+0049 U+0067`.
fn find_hex_numbers(text: &str, decoded_parts: &mut Vec<DecodedPart>) {
    let of_kind = |b: u8| {
        b.is_ascii_hexdigit() || matches!(b, b' ' | b':' | b'x' | b',' | b'-' | b'U' | b'+')
    };
    for span in runs(text.as_bytes(), PACKED_BYTES * 2, of_kind) {
        let Some(run) = text.get(span.clone()) else {
            continue;
        };
        let pieces = run
            .split([' ', ':', ',', '-'])
            .filter(|piece| !piece.is_empty());
        let count = pieces.clone().count();
        let decoded: Vec<u8> = pieces.filter_map(hex_byte).collect();
        if decoded.len() + 2 >= count
            && decoded.len() >= PACKED_BYTES / 2
            && let Some(text) = readable_text(decoded)
        {
            decoded_parts.push(DecodedPart {
                name: "hex",
                suspicion: Suspicion::Usual,
                span,
                text,
                words: 0,
            });
        }
    }
}

fn hex_byte(piece: &str) -> Option<u8> {
    let digits = piece
        .strip_prefix("0x")
        .or_else(|| piece.strip_prefix("U+00"))
        .unwrap_or(piece);
    (digits.len() == 2)
        .then(|| parse_hex_pair(digits.as_bytes()))
        .flatten()
}

/// Decodes base32 (RFC 4648, section 6), in capitals or in small letters.
fn base32(run: &str) -> Option<Vec<u8>> {
    let first = if run.bytes().any(|b| b.is_ascii_lowercase()) {
        b'a'
    } else {
        b'A'
    };
    let mut bits = 0u32;
    let mut count = 0;
    let mut out = Vec::with_capacity(run.len() * 5 / 8);
    for b in run.bytes() {
        let value = match b {
            b'2'..=b'7' => b - b'2' + 26,
            _ if b.wrapping_sub(first) < 26 => b - first,
            _ => return None,
        };
        bits = bits << 5 | u32::from(value);
        count += 5;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xFF).unwrap_or(0));
        }
    }
    Some(out)
}

fn find_between<'t>(text: &'t str, open: &str, close: &str) -> Option<(Range<usize>, &'t str)> {
    let start = memchr::memmem::find(text.as_bytes(), open.as_bytes())?;
    let inner = text.get(start + open.len()..)?;
    let end = memchr::memmem::find(inner.as_bytes(), close.as_bytes())?;
    Some((
        start..start + open.len() + end + close.len(),
        inner.get(..end)?,
    ))
}

/// Decodes Adobe's variant of Ascii85.
pub(super) fn ascii85(inner: &str) -> Option<Vec<u8>> {
    let mut digits: Vec<u32> = Vec::with_capacity(inner.len());
    for b in inner
        .bytes()
        .filter(|b| !b.is_ascii_whitespace())
        .take(DECODED_BYTES)
    {
        match b {
            b'z' if digits.len().is_multiple_of(5) => digits.extend([0; 5]),
            b'!'..=b'u' => digits.push(u32::from(b - b'!')),
            _ => return None,
        }
    }
    decode_quads(&digits)
}

/// Converts digits of base 85 to bytes, five digits to four bytes. The last group may be short.
pub(super) fn decode_quads(digits: &[u32]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(digits.len() * 4 / 5);
    for group in digits.chunks(5).filter(|group| group.len() > 1) {
        let missing = 5 - group.len();
        let padded = group
            .iter()
            .copied()
            .chain(std::iter::repeat_n(84, missing));
        let quad = padded
            .fold(0u32, |sum, digit| sum.wrapping_mul(85).wrapping_add(digit))
            .to_be_bytes();
        out.extend(quad.into_iter().take(4 - missing));
    }
    (!out.is_empty()).then_some(out)
}

/// Decodes International Morse (ITU-R M.1677). Letters are separated by one blank, words by `/` or
/// several blanks.
fn morse(run: &str) -> Option<String> {
    const CODE: [(&str, char); 36] = [
        (".-", 'a'),
        ("-...", 'b'),
        ("-.-.", 'c'),
        ("-..", 'd'),
        (".", 'e'),
        ("..-.", 'f'),
        ("--.", 'g'),
        ("....", 'h'),
        ("..", 'i'),
        (".---", 'j'),
        ("-.-", 'k'),
        (".-..", 'l'),
        ("--", 'm'),
        ("-.", 'n'),
        ("---", 'o'),
        (".--.", 'p'),
        ("--.-", 'q'),
        (".-.", 'r'),
        ("...", 's'),
        ("-", 't'),
        ("..-", 'u'),
        ("...-", 'v'),
        (".--", 'w'),
        ("-..-", 'x'),
        ("-.--", 'y'),
        ("--..", 'z'),
        ("-----", '0'),
        (".----", '1'),
        ("..---", '2'),
        ("...--", '3'),
        ("....-", '4'),
        (".....", '5'),
        ("-....", '6'),
        ("--...", '7'),
        ("---..", '8'),
        ("----.", '9'),
    ];
    let run = run.get(..DECODED_BYTES).unwrap_or(run).replace('_', "-");
    let mut out = String::new();
    for word in run.split('/').flat_map(|part| part.split("  ")) {
        let letters = word.split(' ').filter(|sign| !sign.is_empty());
        out.extend(letters.filter_map(|sign| {
            CODE.iter()
                .find(|(code, _)| *code == sign)
                .map(|(_, letter)| *letter)
        }));
        out.push(' ');
    }
    (vocabulary::count_words(&out) >= MORSE_WORDS).then_some(out)
}
