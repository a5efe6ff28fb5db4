//! Characters written as escapes, of URLs, of programming languages, of HTML and of mail.

use super::class::Class;
use super::decode::is_text;
use crate::text::Facts;

/// Whether a text has escapes: `%41`, `\x41`, `\u0041`, `\101`, `&#65;`, `=41`.
pub(super) fn has_escapes(text: &str, facts: &Facts) -> bool {
    let bytes = text.as_bytes();
    let signs = [b'%', b'\\', b'&', b'='].into_iter().filter(|sign| facts.has(*sign));
    signs.flat_map(|sign| memchr::memchr_iter(sign, bytes)).any(|at| is_escape(bytes, at))
}

fn is_escape(text: &[u8], at: usize) -> bool {
    escape(text.get(at..).unwrap_or_default()).is_some()
}

/// The character that an escape stands for, and its length.
fn escape(text: &[u8]) -> Option<(char, usize)> {
    let hex = |from: usize, to: usize| {
        let digits = std::str::from_utf8(text.get(from..to)?).ok()?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit())
            .then(|| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32))?
    };
    let (c, length) = match text {
        [b'%' | b'=', a, b, ..]
            if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() && !a.is_ascii_lowercase() | (text.first() == Some(&b'%')) =>
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
            let digits = text.get(1..4)?.iter().fold(0, |sum, byte| sum * 8 + u32::from(*byte - b'0'));
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
    (c.is_ascii() && (is_text(c as u8))).then_some((c, length))
}

/// A text with its escapes resolved, where that makes another text of it. What `=` escapes is resolved only where there is
/// enough of it to be quoted-printable (RFC 2045, 6.7).
pub(in crate::detect) fn unescape(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let signs = memchr::memchr_iter(b'=', bytes).filter(|at| !matches!(bytes.get(at + 1), Some(b'\r' | b'\n')));
    let (all, escapes) = signs.fold((0, 0), |(all, escapes), at| (all + 1, escapes + usize::from(is_escape(bytes, at))));
    // Numbers that names are given look like escapes too.
    let quoted = escapes >= QUOTED && escapes * 5 >= all * 4;
    let (mut out, mut from, mut at) = (String::new(), 0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| Class::of(*byte).is_escape())) {
        at += found;
        let rest = bytes.get(at..).unwrap_or_default();
        let resolved = match rest {
            [b'=', b'\r', b'\n', ..] if quoted => Some((None, 3)),
            [b'=', b'\n', ..] if quoted => Some((None, 2)),
            [b'=', ..] if !quoted => None,
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

/// So many escapes of one text make it quoted-printable.
const QUOTED: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_every_kind() {
        for text in ["%6b%65y", r"\x6b\u0065y", r"\u{6b}e\171", "&#107;&#x65;y", "k%65%79"] {
            assert_eq!(unescape(text).as_deref(), Some("key"), "{text}");
        }
        assert_eq!(unescape("=6B=65=79=6B=65=79=\r\n!").as_deref(), Some("keykey!"));
        for text in ["100% of a=41", r"C:\users\x", "a & b", "%zz"] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }
}
