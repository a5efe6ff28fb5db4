//! The data that a URL carries, and hosts that look like others.

use super::fold;
use super::parse::ParsedUrl;
use crate::text::quick::WordSet;

/// Names of parameters whose values are long and opaque by nature.
static OPAQUE_BY_NATURE: WordSet = WordSet::new(
    "sig signature token access_token id_token refresh_token jwt state nonce code key apikey \
     api_key cursor page_token pagetoken pageToken after before continuation hash policy ticket \
     samlrequest relaystate hmac",
);

/// Returns the length of the longest opaque value in query, fragment, path or host, in bytes:
/// possible exfiltration.
pub(super) fn opaque_bytes(parsed: &ParsedUrl) -> usize {
    let (path, query) = parsed
        .path_and_query
        .split_once('?')
        .unwrap_or((&parsed.path_and_query, ""));
    let values = query.split(['&', ';', '#']).filter_map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let name = name.to_ascii_lowercase();
        (!OPAQUE_BY_NATURE.contains(&name.as_str())
            && !name.starts_with("x-amz-")
            && !name.starts_with("x-goog-"))
        .then_some(value)
    });
    // Labels of a host are short: data carried in them is spread over many.
    let host = parsed.targets.first().map(|target| {
        target
            .host
            .split('.')
            .filter(|label| is_opaque(label))
            .map(str::len)
            .sum()
    });
    values
        .chain(path.split('/'))
        .map(fold::decode_percent)
        .filter(|value| is_opaque(value))
        .map(|value| value.len())
        .chain(host)
        .max()
        .unwrap_or(0)
}

/// Reports whether a value looks encoded: one long run of letters and digits of every kind.
fn is_opaque(value: &str) -> bool {
    let value = value.trim_end_matches('=');
    let fits = value.len() >= 24
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'_' | b'-'));
    if !fits {
        return false;
    }
    let count = |is: fn(&u8) -> bool| value.bytes().filter(is).count();
    let digits = count(u8::is_ascii_digit);
    let upper = count(u8::is_ascii_uppercase);
    let lower = count(u8::is_ascii_lowercase);
    let hex = value.bytes().all(|b| b.is_ascii_hexdigit());
    let words = value.split(['-', '_']).map(str::len).max().unwrap_or(0) < 20;
    !words
        && (hex && digits * 8 > value.len()
            || digits > 0 && upper * 8 > value.len() && lower * 8 > value.len())
}

/// Reports whether a host has a label with letters of other scripts, all of which look like Latin
/// ones.
pub(super) fn looks_like_another(host: &str) -> bool {
    host.split('.').any(|label| {
        let decoded = label.strip_prefix("xn--").and_then(decode_punycode);
        let label = decoded.as_deref().unwrap_or(label);
        !label.is_ascii() && label.chars().all(|c| c.is_ascii() || is_latin_twin(c))
    })
}

/// Reports whether a letter (Cyrillic, Greek or other) is displayed like a Latin one.
fn is_latin_twin(c: char) -> bool {
    "аеорсухіјѕԁһӏԛԝвкмнтзьԍցοανρικτυχωϲϳɡɑɩıẹọạḅḍ".contains(c)
}

/// Decodes a label (RFC 3492); `None` if it is not valid Punycode.
fn decode_punycode(label: &str) -> Option<String> {
    let (plain, coded) = label.rsplit_once('-').unwrap_or(("", label));
    let mut out: Vec<char> = plain.chars().collect();
    let mut n = 128u32;
    let mut i = 0u32;
    let mut bias = 72u32;
    let mut digits = coded.bytes().take(63);
    while digits.len() > 0 {
        let start = i;
        let mut weight = 1u32;
        let mut k = 36u32;
        loop {
            let digit = match digits.next()? {
                b @ b'a'..=b'z' => u32::from(b - b'a'),
                b @ b'0'..=b'9' => u32::from(b - b'0') + 26,
                _ => return None,
            };
            i = i.checked_add(digit.checked_mul(weight)?)?;
            let threshold = k.saturating_sub(bias).clamp(1, 26);
            if digit < threshold {
                break;
            }
            weight = weight.checked_mul(36 - threshold)?;
            k += 36;
        }
        let count = out.len() as u32 + 1;
        let mut delta = (i - start) / if start == 0 { 700 } else { 2 };
        delta += delta / count;
        let mut steps = 0;
        while delta > 455 {
            delta /= 35;
            steps += 36;
        }
        bias = steps + 36 * delta / (delta + 38);
        n = n.checked_add(i / count)?;
        i %= count;
        out.insert(i as usize, char::from_u32(n)?);
        i += 1;
    }
    Some(out.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    #[test]
    fn opaque_values_are_counted_and_honest_ones_are_not() {
        for (text, least) in [
            (
                "https://x.example/?d=QWxhZGRpbjpvcGVuIHNlc2FtZSBhbmQgdGhlIGZvcnR5IHRoaWV2ZXM",
                40,
            ),
            (
                "https://x.example/c/4d5a90000300000004000000ffff0000b800000000000000",
                40,
            ),
            ("https://QWxhZGRpbjpvcGVuIHNlc2FtZSBh.x.example/", 0),
        ] {
            assert!(opaque_bytes(&parse(text).unwrap()) >= least, "{text}");
        }
        for text in [
            "https://x.example/how-to-write-a-very-long-title-that-goes-on-and-on-2026",
            "https://s3.example/x?X-Amz-Signature=4d5a90000300000004000000ffff0000b8000000000000004d5a900003",
            "https://x.example/?id=123e4567-e89b-12d3-a456-426614174000",
            "https://x.example/search?q=words+that+someone+looks+for+in+a+search+engine+of+some+kind",
        ] {
            assert_eq!(opaque_bytes(&parse(text).unwrap()), 0, "{text}");
        }
    }

    #[test]
    fn look_alikes() {
        for host in [
            "аррӏе.com",
            "xn--80ak6aa92e.com",
            "gооgle.com",
            "раураӏ.example",
        ] {
            assert!(looks_like_another(host), "{host}");
        }
        for host in [
            "example.com",
            "münchen.de",
            "пример.рф",
            "xn--mnchen-3ya.de",
            "日本語.jp",
            "xn--zzzz-",
        ] {
            assert!(!looks_like_another(host), "{host}");
        }
    }
}
