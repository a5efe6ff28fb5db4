//! The readings of a path, as the program that opens it may decode it: percent signs, overlong
//! UTF-8, escapes, look-alikes, what filters leave.

use unicode_normalization::UnicodeNormalization;

use crate::detect::url::ascii_look_alike;
use crate::text::Text;

/// Rounds of decoding: one for a server in front, one for a server behind, one for the tool itself,
/// and one in reserve.
const ROUNDS: usize = 4;
/// Maximum number of readings of one path.
const READINGS: usize = 24;
/// Maximum number of paths that braces expand to.
const BRACES: usize = 16;

/// Returns every reading of `text`, the text itself first. Bounded in number; none is longer than
/// the text.
pub(super) fn readings(text: &str) -> Vec<String> {
    let mut out = vec![text.to_owned()];
    if is_plain(text) {
        return out;
    }
    let mut at = 0;
    // Each reading is decoded further: a decoded text may contain look-alikes, escapes and dots
    // that a filter joins.
    while let Some(reading) = out.get(at).cloned() {
        at += 1;
        for next in [
            unescape(&reading),
            fold(&reading),
            without_controls(&reading),
            before_nul(&reading),
            filter_once(&reading),
            strip_component_ends(&reading),
        ] {
            if let Some(next) = next.filter(|next| !next.is_empty())
                && out.len() < READINGS
                && !out.contains(&next)
            {
                out.push(next);
            }
        }
        for next in expand_braces(&reading) {
            if out.len() < READINGS && !out.contains(&next) {
                out.push(next);
            }
        }
        if at > ROUNDS * 4 {
            break;
        }
    }
    out
}

/// Reports whether a step up is followed by an invalid escape, or by one that no name begins with:
/// `..%zz..`, `..%c1%afx`. However a broken decoder reads it, it is not written by accident.
pub(super) fn has_broken_escape(text: &str) -> bool {
    if !text.contains('%') {
        return false;
    }
    let text = text
        .to_ascii_lowercase()
        .replace("%25", "%")
        .replace("%2e", ".");
    text.match_indices("..%").take(READINGS).any(|(at, _)| {
        let at_component_start = text.get(..at).is_none_or(|before| {
            before.is_empty() || before.ends_with(['/', '\\', '%']) || {
                before.len() >= 3 && before.as_bytes().get(before.len() - 3) == Some(&b'%')
            }
        });
        let mut digits = text.get(at + 3..).unwrap_or_default().bytes();
        let broken = match (digits.next(), digits.next()) {
            (Some(first), Some(second)) => {
                !second.is_ascii_hexdigit()
                    || !first.is_ascii_hexdigit()
                    || matches!(first, b'8'..=b'9' | b'a'..=b'f')
            }
            _ => false,
        };
        at_component_start
            && broken
            && text
                .get(at + 3..)
                .is_some_and(|rest| !rest.starts_with('u'))
    })
}

/// Reports whether a text has only one reading.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| {
        b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'.' | b'@' | b'+' | b',')
    }) && !text.contains("...")
        && !text.contains("0x2")
        && !text.contains("0x5")
}

/// Decodes percent signs, `%u` forms and escapes of JSON and of HTML, one level.
fn unescape(text: &str) -> Option<String> {
    if !text.contains(['%', '\\', '&']) && !text.contains("0x") {
        return None;
    }
    let bytes = text.as_bytes();
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let rest = text.get(at..).unwrap_or_default();
        let (decoded, length) = match byte {
            b'%' | b'\\' | b'&' | b'0' => parse_escape(rest).unwrap_or((None, 1)),
            _ => (None, 1),
        };
        match decoded {
            Some(Decoded::Byte(value)) => out.push(value),
            Some(Decoded::Char(value)) => out.extend(value.to_string().as_bytes()),
            None => out.push(*byte),
        }
        at += length;
    }
    Some(decode_utf8(&out))
}

enum Decoded {
    Byte(u8),
    Char(char),
}

/// Returns the escape at the start of a text, and its length.
fn parse_escape(text: &str) -> Option<(Option<Decoded>, usize)> {
    let hex = |from: usize, digits: usize| {
        let digits = text.get(from..from + digits)?;
        digits
            .bytes()
            .all(|b| b.is_ascii_hexdigit())
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
    };
    let byte = |value: u32| Some(Decoded::Byte(value as u8));
    let char = |value: u32| char::from_u32(value).map(Decoded::Char);
    let bytes = text.as_bytes();
    match (bytes.first()?, bytes.get(1)?) {
        (b'%', b'u' | b'U') => Some((char(hex(2, 4)?), 6)),
        (b'%', _) => Some((byte(hex(1, 2)?), 3)),
        (b'\\', b'u') => Some((char(hex(2, 4)?), 6)),
        (b'\\', b'x') => Some((byte(hex(2, 2)?), 4)),
        (b'0', b'x') => match hex(2, 2)? {
            value @ (0x25 | 0x2e | 0x2f | 0x5c) => Some((byte(value), 4)),
            _ => None,
        },
        (b'&', b'#') => {
            let end = text.get(..10.min(text.len()))?.find(';')?;
            let digits = text.get(2..end)?;
            let value = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            Some((char(value), end + 1))
        }
        (b'&', _) => [("&period;", '.'), ("&sol;", '/'), ("&bsol;", '\\')]
            .into_iter()
            .find(|(name, _)| text.starts_with(name))
            .map(|(name, sign)| (Some(Decoded::Char(sign)), name.len())),
        _ => None,
    }
}

/// Decodes bytes as UTF-8; overlong forms (RFC 3629, 10) and the broken forms of old servers are
/// read as the characters they encode.
fn decode_utf8(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(first) = rest.first() {
        let (length, bits) = match first {
            0xc0 | 0xc1 => (2, u32::from(first & 1)),
            0xe0 => (3, 0),
            0xf0 => (4, 0),
            0xf8 => (5, 0),
            0xfc => (6, 0),
            _ => (0, 0),
        };
        let following = rest.get(1..length).unwrap_or_default();
        let value = following
            .iter()
            .fold(bits, |value, b| (value << 6) | u32::from(b & 0x3f));
        // Old decoders take the low bits of whichever bytes follow.
        if length > 0 && following.len() == length - 1 && value < 0x80 {
            let value = if length == 2 && following.first().is_some_and(|b| *b < 0x80) && bits == 0
            {
                following.first().map_or(value, |b| u32::from(*b))
            } else {
                value
            };
            out.extend(char::from_u32(value));
            rest = rest.get(length..).unwrap_or_default();
            continue;
        }
        let take = (1..=4.min(rest.len()))
            .find_map(|n| Some((n, std::str::from_utf8(rest.get(..n)?).ok()?)));
        match take {
            Some((n, text)) => {
                out.push_str(text);
                rest = rest.get(n..).unwrap_or_default();
            }
            None => {
                out.push('\u{fffd}');
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    out
}

/// Folds compatibility forms, and replaces look-alike dots and separators by what they resemble.
fn fold(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let visible: String = text.chars().filter(|c| !c.is_control()).collect();
    // Windows maps characters that names cannot contain to private-use characters.
    let sign = |c: char| {
        if matches!(c, '\u{e000}'..='\u{f8ff}') {
            '/'
        } else {
            ascii_look_alike(c)
        }
    };
    Some(
        Text::new(visible.as_str())
            .plain()
            .nfkc()
            .map(sign)
            .collect(),
    )
}

fn without_controls(text: &str) -> Option<String> {
    text.contains(char::is_control)
        .then(|| text.chars().filter(|c| !c.is_control()).collect())
}

/// Returns the part that a C library reads.
fn before_nul(text: &str) -> Option<String> {
    text.split_once('\0').map(|(before, _)| before.to_owned())
}

/// Returns what is left by a filter that removes `../` once.
fn filter_once(text: &str) -> Option<String> {
    if !text.contains("...")
        && !text.contains("../.")
        && !text.contains("..\\")
        && !text.contains("./.")
    {
        return None;
    }
    let remaining = text.replace("../", "").replace("..\\", "");
    (remaining.len() != text.len() && remaining.contains("..")).then_some(remaining)
}

/// Removes path parameters (`..;x/`), spaces and dots at a component's end, and alternate streams;
/// expands globs that can only mean `..`.
fn strip_component_ends(text: &str) -> Option<String> {
    if !text.contains(['.', ';', ' ', ':', '[', '?']) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut changed = false;
    // Three dots after a name are a name.
    let mut only_dots = true;
    let is_repeated =
        text.starts_with("..") || text.matches("....").count() > 1 || text.contains("//");
    for part in text.split_inclusive(['/', '\\']) {
        let (name, end) = match part.strip_suffix(['/', '\\']) {
            Some(name) => (name, part.get(name.len()..).unwrap_or_default()),
            None => (part, ""),
        };
        let cut = name.split(';').next().unwrap_or(name);
        let cut = cut
            .split("::")
            .next()
            .unwrap_or(cut)
            .split(":$")
            .next()
            .unwrap_or(cut);
        let cut = cut.trim_matches([' ', '\u{a0}']);
        let stripped = match cut {
            // `.. `, `..;x`, `..::$DATA`
            ".." | "." => cut,
            "[.][.]" | ".[.]" | "[.]." | ".?" | "?." | ". ." if !end.is_empty() => "..",
            // On Windows, a name ends where its trailing dots and spaces begin.
            // Some systems read three dots as two steps up; four are two with one removed, which
            // leaves a separator or another step behind. A single folder may have the name.
            dots if (dots.len() > 3 && is_repeated
                || dots.len() == 3 && !end.is_empty() && only_dots)
                && dots.bytes().all(|b| b == b'.') =>
            {
                ".."
            }
            _ if name.ends_with(['.', ' ']) && !name.ends_with("..") => {
                name.trim_end_matches(['.', ' '])
            }
            _ if cut.len() < name.len() && name.contains("::") => cut,
            _ => name,
        };
        only_dots &= name.bytes().all(|b| b == b'.');
        changed |= stripped != name;
        out.push_str(stripped);
        out.push_str(end);
    }
    changed.then_some(out)
}

/// Returns the paths that the first pair of braces expands to: `{..,a}/b`.
fn expand_braces(text: &str) -> Vec<String> {
    let Some((before, rest)) = text.split_once('{') else {
        return Vec::new();
    };
    let Some((inner, after)) = rest.split_once('}') else {
        return Vec::new();
    };
    if before.ends_with('$') || !inner.contains(',') {
        return Vec::new();
    }
    inner
        .split(',')
        .take(BRACES)
        .map(|choice| format!("{before}{choice}{after}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_disguise_of_a_climb_is_undone() {
        for text in [
            "%2e%2e/x",
            "%2e%2e%2fx",
            "..%2fx",
            "%252e%252e%252fx",
            "%25252e%25252e/x",
            "%%32%65%%32%65/x",
            "%c0%ae%c0%ae/x",
            "..%c0%afx",
            "..%e0%80%afx",
            "%e0%80%ae%e0%80%ae/x",
            "..%f0%80%80%afx",
            "..%c0%2fx",
            "..%c1%9cx",
            "..%uf025x",
            "...//x",
            "%u002e%u002e/x",
            "..%u2215x",
            "..%uff0fx",
            "．．/x",
            "․․/x",
            "‥/x",
            "..∕x",
            "..／x",
            "..＼x",
            "..\\x",
            "....//x",
            "....\\/x",
            "..././x",
            "..;/x",
            "..;a=b/x",
            ".. /x",
            "..\0/x",
            ".\0./x",
            ".\u{7}./x",
            "..%00/x",
            "\\u002e\\u002e/x",
            "\\x2e\\x2e/x",
            "&#46;&#46;/x",
            "&#x2e;.&sol;x",
            "0x2e0x2e0x2fx",
            "[.][.]/x",
            ".?/x",
            "{..,a}/x",
            "..::$INDEX_ALLOCATION/x",
        ] {
            let readings = readings(text);
            assert!(
                readings
                    .iter()
                    .any(|reading| reading.replace('\\', "/").starts_with("../")),
                "{text:?}: {readings:?}"
            );
        }
    }

    #[test]
    fn escapes_that_no_name_has_are_seen_behind_a_way_up() {
        for text in [
            "..%zz..%zzetc",
            "..%e0%zz..%e0%zzx",
            "..%c1%afx",
            "%2e%2e%c0%af%2e%2e%c0%afx",
            "a/..%g0..%g0x",
        ] {
            assert!(has_broken_escape(text), "{text}");
        }
        for text in [
            "100%.txt",
            "..%2fx",
            "a%zzb",
            "v1..%20v2",
            "%E4%BD%A0.md",
            "..%u2215x",
        ] {
            assert!(!has_broken_escape(text), "{text}");
        }
    }

    #[test]
    fn honest_paths_have_one_reading_or_harmless_ones() {
        for text in [
            "src/main.rs",
            "/a/b-c_d/e.f",
            ".github/workflows/ci.yml",
            "logo@2x.png",
        ] {
            assert_eq!(readings(text), [text]);
        }
        for text in [
            "100%.txt",
            "a b/c (1).txt",
            "app/[id]/page.tsx",
            "naïve/ü.txt",
            "./...",
            "a;b",
            "x/{a,b}/y",
        ] {
            assert!(
                readings(text)
                    .iter()
                    .all(|reading| !reading.split('/').any(|part| part == "..")),
                "{text}: {:?}",
                readings(text)
            );
        }
        assert!(readings(&"%25".repeat(2000)).len() <= READINGS);
        assert!(readings(&"{a,b}".repeat(500)).len() <= READINGS);
    }
}
