//! Characters written as escapes of URLs, programming languages, HTML and mail.

use super::class::Class;
use super::decode::{hex_byte, is_text};
use crate::text::Facts;

/// Reports whether a text has escapes: `%41`, `\x41`, `\u0041`, `\101`, `&#65;`, `=41`.
pub(super) fn has_escapes(text: &str, facts: &Facts) -> bool {
    let bytes = text.as_bytes();
    let signs = [b'%', b'\\', b'&', b'=']
        .into_iter()
        .filter(|sign| facts.has(*sign));
    signs
        .flat_map(|sign| memchr::memchr_iter(sign, bytes))
        .any(|at| is_escape(bytes, at))
}

fn is_escape(text: &[u8], at: usize) -> bool {
    escape(text.get(at..).unwrap_or_default()).is_some()
}

/// Returns the character that an escape encodes, and the length of the escape.
fn escape(text: &[u8]) -> Option<(char, usize)> {
    if let Some(found) = wide_escape(text) {
        return Some(found);
    }
    let hex = |from: usize, to: usize| {
        let digits = std::str::from_utf8(text.get(from..to)?).ok()?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then(|| {
                u32::from_str_radix(digits, 16)
                    .ok()
                    .and_then(char::from_u32)
            })?
    };
    let (c, length) = match text {
        [b'%' | b'=', a, b, ..]
            if a.is_ascii_hexdigit()
                && b.is_ascii_hexdigit()
                && !a.is_ascii_lowercase() | (text.first() == Some(&b'%')) =>
        {
            (hex(1, 3)?, 3)
        }
        [b'\\', b'x', ..] => (hex(2, 4)?, 4),
        [b'\\', b'u', b'{', ..] => {
            let end = text.iter().take(10).position(|byte| *byte == b'}')?;
            (hex(3, end)?, end + 1)
        }
        [b'\\', b'u', ..] => (hex(2, 6)?, 6),
        [b'\\', b'0'..=b'3', b'0'..=b'7', b'0'..=b'7', ..] => {
            let digits = text
                .get(1..4)?
                .iter()
                .fold(0, |sum, byte| sum * 8 + u32::from(*byte - b'0'));
            (char::from_u32(digits)?, 4)
        }
        [b'&', b'#', rest @ ..] => {
            let end = rest.iter().take(8).position(|byte| *byte == b';')?;
            let digits = std::str::from_utf8(rest.get(..end)?).ok()?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => digits.parse(),
            };
            (char::from_u32(code.ok()?)?, end + 3)
        }
        _ => return None,
    };
    // `%BA` alone is only a part of a character.
    let whole = c > '\u{ff}' || text.first() == Some(&b'&');
    (whole && is_ascii_variant(c) || c.is_ascii() && is_text(c as u8)).then_some((c, length))
}

/// Decodes an escape of a non-ASCII character that looks like an ASCII letter or is invisible, and
/// returns it with the length of the escape: `%EF%BD%8E`, `\uFF4E`, `\uD835\uDC5B`, `%uFF4E`. Other
/// characters are left escaped: most are letters of some language.
fn wide_escape(text: &[u8]) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = std::str::from_utf8(text.get(at + 2..at + 6)?).ok()?;
        let escaped = matches!(text.get(at..at + 2), Some(b"\\u" | b"%u"));
        (escaped && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then(|| u16::from_str_radix(digits, 16).ok())?
    };
    let (c, length) = match text {
        [sign @ (b'%' | b'='), b'c'..=b'f' | b'C'..=b'F', ..] => {
            let octet = |at: usize| {
                let group = text
                    .get(at * 3..at * 3 + 3)
                    .filter(|group| group.first() == Some(sign))?;
                hex_byte(group.get(1..)?)
            };
            let count = match octet(0)? {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => return None,
            };
            let mut octets = [0; 4];
            for (at, place) in octets.iter_mut().enumerate().take(count) {
                *place = octet(at)?;
            }
            (
                std::str::from_utf8(octets.get(..count)?)
                    .ok()?
                    .chars()
                    .next()?,
                count * 3,
            )
        }
        [b'\\' | b'%', b'u', ..] => match unit(0)? {
            high @ 0xd800..=0xdbff => (char::decode_utf16([high, unit(6)?]).next()?.ok()?, 12),
            one => (char::from_u32(u32::from(one))?, 6),
        },
        _ => return None,
    };
    (is_ascii_variant(c)
        || length == 6 && text.first() == Some(&b'%') && c.is_ascii() && is_text(c as u8))
    .then_some((c, length))
}

/// Reports whether a character is a variant of an ASCII one (full-width, mathematical, circled,
/// raised), or is not displayed.
fn is_ascii_variant(c: char) -> bool {
    matches!(u32::from(c),
        0xaa | 0xad | 0xb2 | 0xb3 | 0xb9 | 0xba | 0x34f | 0x180e | 0x200b..=0x200f | 0x2060..=0x2064 | 0x2070..=0x209c
        | 0x2100..=0x214f | 0x2460..=0x24ff | 0xfe00..=0xfe0f | 0xfeff | 0xff01..=0xff5e | 0x1d400..=0x1d7ff
        | 0x1f110..=0x1f189 | 0xe0000..=0xe007f)
}

/// Returns the text with its escapes decoded, if there are any. Escapes with `=` are only decoded
/// if there are enough of them for quoted-printable (RFC 2045, 6.7).
pub(in crate::detect) fn unescape(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let signs = memchr::memchr_iter(b'=', bytes)
        .filter(|at| !matches!(bytes.get(at + 1), Some(b'\r' | b'\n')));
    let (total, escapes) = signs.fold((0, 0), |(all, escapes), at| {
        (all + 1, escapes + usize::from(is_escape(bytes, at)))
    });
    // Assignments of numbers look like escapes, too.
    let quoted_printable = escapes >= QUOTED_ESCAPES && escapes * 5 >= total * 4;
    let mut out = String::new();
    let mut from = 0;
    let mut at = 0;
    while let Some(skipped) = bytes.get(at..).and_then(|rest| {
        rest.iter()
            .position(|byte| Class::from_byte(*byte).is_escape())
    }) {
        at += skipped;
        let rest = bytes.get(at..).unwrap_or_default();
        let resolved = match rest {
            [b'=', b'\r', b'\n', ..] if quoted_printable => Some((None, 3)),
            [b'=', b'\n', ..] if quoted_printable => Some((None, 2)),
            [b'=', ..] if !quoted_printable => None,
            _ => escape(rest).map(|(c, length)| (Some(c), length)),
        };
        match resolved {
            Some((c, length)) => {
                out.push_str(text.get(from..at).unwrap_or_default());
                out.extend(c);
                at += length;
                from = at;
            }
            None => at += 1,
        }
    }
    if from == 0 {
        return None;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Some(out)
}

/// Minimum number of escapes in a quoted-printable text.
const QUOTED_ESCAPES: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_every_kind() {
        for text in [
            "%6b%65y",
            r"\x6b\u0065y",
            r"\u{6b}e\171",
            "&#107;&#x65;y",
            "k%65%79",
        ] {
            assert_eq!(unescape(text).as_deref(), Some("key"), "{text}");
        }
        assert_eq!(
            unescape("=6B=65=79=6B=65=79=\r\n!").as_deref(),
            Some("keykey!")
        );
        for (text, wanted) in [
            ("%EF%BD%8Ek%ef%bd%85", "ｎkｅ"),
            (r"\uff4e\ud835\udc5b\u{ff4e}", "ｎ𝑛ｎ"),
            ("&#xFF4E;&#65358;%uFF4E%u006e", "ｎｎｎn"),
            ("A%E2%80%8BK", "A\u{200b}K"),
        ] {
            assert_eq!(unescape(text).as_deref(), Some(wanted), "{text}");
        }
        for text in [
            "Z%C3%BCrich %E6%9D%B1%E4%BA%AC",
            r"\u6771\u4eac \ud83d\ude00",
            "%EF%BD",
            "%F0%9F%98%80",
            r"\ud835x",
        ] {
            assert_eq!(unescape(text), None, "{text}");
        }
        for text in ["100% of a=41", r"C:\users\x", "a & b", "%zz"] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }
}
