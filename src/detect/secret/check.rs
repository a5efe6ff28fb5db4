//! Conditions under which a match counts as a secret: for example, that it looks random, that its
//! checksum is correct, or that it decodes to the expected format.

use super::decode::base64_text;
use super::random::{CharStats, is_common, is_standin, surprise};

enum_with_names! {
    /// The condition that a match must meet. Named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
    pub enum Check {
        /// It looks random and is not a placeholder.
        #[default]
        Random = "random",
        /// It clearly looks random: it is long and mixes letters and digits.
        Strong = "strong",
        /// It is not a placeholder.
        Any = "any",
        /// It is a password and not a common one.
        Password = "password",
        /// Its last six characters are the CRC-32 of the preceding ones (GitHub, npm). A match that
        /// looks random also counts.
        Crc32 = "crc32",
        /// Its first part decodes to JSON with an `alg` (RFC 7515).
        Jwt = "jwt",
        /// It is the base64 encoding of a name and a password (RFC 7617).
        Basic = "basic",
        /// It contains the body of a key.
        Body = "body",
    }
}

/// Minimum randomness of a key that is recognized by its shape, in bits.
const SURPRISE: f32 = 3.0;
/// Minimum randomness of a key that is only recognized by its name, in bits.
const STRONG: f32 = 10.0;
/// Minimum randomness of a secret that was assembled from pieces, in bits.
const ASSEMBLED: f32 = 8.0;
/// Values shorter than this are too short to measure their randomness.
const SHORT: usize = 12;
/// Minimum number of base64 characters in the body of a key, and of distinct ones among them.
const BODY: usize = 40;
const BODY_DIFFERENT: usize = 14;

/// Reports whether a match is a secret. `body` is the part of it that the shape does not fix.
pub(super) fn passes_check(check: Check, whole: &str, body: &str) -> bool {
    match check {
        Check::Random => is_random(body),
        Check::Strong => is_strong(body),
        Check::Any => !is_standin(body),
        Check::Password => is_chosen(body),
        Check::Crc32 => checksum_fits(whole) || is_random(body),
        Check::Jwt => is_jwt(whole),
        Check::Basic => {
            base64_text(body).and_then(|text| {
                text.split_once(':')
                    .map(|(_, password)| is_chosen(password))
            }) == Some(true)
        }
        Check::Body => is_body(body),
    }
}

fn is_random(body: &str) -> bool {
    if is_standin(body) {
        return false;
    }
    let stats = CharStats::new(body);
    let min_distinct = if body.len() < SHORT { 4 } else { 7 };
    stats.distinct >= min_distinct
        && (body.len() < SHORT
            || stats.is_random_hex()
            || stats.digits == body.len()
            || randomness(body, ['-', '.', '_', ':']) >= SURPRISE)
}

/// Returns the sum of the randomness of the parts of a text, in bits.
fn randomness(text: &str, separators: [char; 4]) -> f32 {
    text.split(separators)
        .map(|part| part_randomness(part).max(0.0))
        .sum()
}

/// Returns the randomness of a part in bits. In a hexadecimal part, the individual letters and
/// digits are less significant than their mixture.
fn part_randomness(text: &str) -> f32 {
    if text.len() >= 8 && CharStats::new(text).is_random_hex() {
        SURPRISE
    } else {
        surprise(text)
    }
}

/// Reports whether a text in the place of a password is one, and not a common one or a placeholder.
pub(super) fn is_password(text: &str) -> bool {
    let variable = text.starts_with(['$', '%', '<', '{', '[', '*', '('])
        || text.contains("${")
        || text.contains("{{")
        || text.contains("$(");
    text.len() >= 4 && !variable && !is_standin(text) && !is_common(text)
}

/// Reports whether a text is a password that was chosen to be hard to guess. A single word in lower
/// case is not.
fn is_chosen(text: &str) -> bool {
    is_password(text)
        && (text.len() >= 6 && CharStats::new(text).kinds() >= 2 || surprise(text) >= 4.0)
}

fn is_strong(body: &str) -> bool {
    let stats = CharStats::new(body);
    !is_standin(body)
        && !body.contains("://")
        && !is_uuid(body)
        && stats.digits > 0
        && (stats.upper > 0 && stats.lower > 0 || body.len() >= 32)
        && randomness(body, ['-', '.', '_', '/']) >= STRONG
}

/// Reports whether text that was assembled from pieces was a single value: ordinary words can be
/// joined, too.
pub(super) fn is_single_value(body: &str) -> bool {
    let bits = |text: &str| {
        if CharStats::new(text).is_random_hex() {
            text.len() as f32
        } else {
            surprise(text).max(0.0)
        }
    };
    body.split(['-', '.', '_', ':']).map(bits).sum::<f32>() >= ASSEMBLED
}

/// Reports whether a value is a UUID, which is more often an identifier than a key.
pub(super) fn is_uuid(value: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| {
        if matches!(at, 8 | 13 | 18 | 23) {
            byte == b'-'
        } else {
            byte.is_ascii_hexdigit()
        }
    };
    value.len() == 36 && value.bytes().enumerate().all(fits)
}

/// Reports whether the checksum of a token is correct. In tokens of GitHub and npm, the last six
/// characters are the CRC-32 of the text between prefix and checksum, in base 62.
fn checksum_fits(whole: &str) -> bool {
    let Some((_, body)) = whole.rsplit_once('_') else {
        return false;
    };
    let Some((random, sum)) = body
        .len()
        .checked_sub(6)
        .and_then(|at| body.split_at_checked(at))
    else {
        return false;
    };
    sum.bytes()
        .try_fold(0_u64, |number, byte| Some(number * 62 + digit62(byte)?))
        == Some(u64::from(crc32(random.as_bytes())))
}

fn digit62(byte: u8) -> Option<u64> {
    Some(u64::from(match byte {
        b'0'..=b'9' => byte - b'0',
        b'A'..=b'Z' => byte - b'A' + 10,
        b'a'..=b'z' => byte - b'a' + 36,
        _ => return None,
    }))
}

/// Returns the CRC-32 of `bytes` as defined by ISO 3309.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            if sum & 1 == 1 {
                sum >> 1 ^ 0xEDB8_8320
            } else {
                sum >> 1
            }
        })
    })
}

fn is_jwt(whole: &str) -> bool {
    let header = whole.split('.').next().and_then(base64_text);
    let is_header = |text: &str| {
        text.trim_start().starts_with('{') && (text.contains("\"alg\"") || text.contains("\"enc\""))
    };
    header.is_some_and(|text| is_header(&text))
        && whole
            .rsplit('.')
            .next()
            .is_some_and(|signature| !is_standin(signature))
}

fn is_body(body: &str) -> bool {
    let code: String = body
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/'))
        .take(400)
        .collect();
    let folded = code.to_ascii_lowercase();
    code.len() >= BODY
        && CharStats::new(&code).distinct >= BODY_DIFFERENT
        && ![
            "yourprivatekey",
            "privatekeyhere",
            "placeholder",
            "xxxxxxxx",
        ]
        .iter()
        .any(|word| folded.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_makers() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        let random = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let mut sum = u64::from(crc32(random.as_bytes()));
        let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut last = String::new();
        for _ in 0..6 {
            last.insert(0, char::from(digits[usize::try_from(sum % 62).unwrap()]));
            sum /= 62;
        }
        let key = format!("ghp_{random}{last}");
        assert!(
            passes_check(Check::Crc32, &key, key.get(4..).unwrap()),
            "right, however it looks"
        );
        assert!(!passes_check(
            Check::Crc32,
            &key.replace('a', "b"),
            &"b".repeat(36)
        ));
    }

    #[test]
    fn what_is_decoded_is_what_it_claims() {
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert!(passes_check(Check::Jwt, jwt, jwt));
        assert!(!passes_check(Check::Jwt, "eyJmb28i.eyJ.x", ""));
        assert!(passes_check(
            Check::Basic,
            "",
            "c3ZjOjJBYnc2UEV1cTFKbGdFWXI="
        ));
        assert!(
            !passes_check(Check::Basic, "", "dXNlcjpwYXNzd29yZA=="),
            "user:password"
        );
    }

    #[test]
    fn passwords_are_told_from_what_stands_for_them() {
        assert!(is_password("rkmlwcZrPd") && is_password("blue-Kettle7"));
        for not in [
            "$DB_PASS",
            "${PASS}",
            "password",
            "<password>",
            "****",
            "pass",
            "your-password",
        ] {
            assert!(!is_password(not), "{not}");
        }
    }
}
