//! What must hold of a match for it to be taken for a secret: that it was drawn at random, that its checksum is right, that
//! what it decodes to is what it claims.

use super::decode::base64_text;
use super::random::{Made, is_common, is_standin, surprise};

/// What must hold of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Check {
    /// It looks drawn at random, and stands for nothing.
    #[default]
    Random,
    /// The same beyond doubt: long, of letters and digits of all kinds.
    Strong,
    /// It is no stand-in for a secret.
    Any,
    /// It is a password that is not everybody's.
    Password,
    /// Its last six characters are the CRC-32 of those before (GitHub, npm); one that looks random counts without.
    Crc32,
    /// Its first part decodes to JSON with an `alg` (RFC 7515).
    Jwt,
    /// It is base64 of a name and a password (RFC 7617).
    Basic,
    /// It holds the body of a key.
    Body,
}

impl Check {
    /// Words of rule files.
    pub const WORDS: [(&'static str, Self); 8] = [
        ("random", Self::Random),
        ("strong", Self::Strong),
        ("any", Self::Any),
        ("password", Self::Password),
        ("crc32", Self::Crc32),
        ("jwt", Self::Jwt),
        ("basic", Self::Basic),
        ("body", Self::Body),
    ];
}

/// Random enough for a key that its shape already gives away, in bits.
const SURPRISE: f32 = 3.0;
/// Random enough where only a name says that something is a key, in bits.
const STRONG: f32 = 10.0;
/// Random enough for what was put together of pieces, in bits.
const TOGETHER: f32 = 8.0;
/// Shorter ones are too short to tell.
const SHORT: usize = 12;
/// Least base64 that makes a key's body, in characters, and different ones among them.
const BODY: usize = 40;
const BODY_DIFFERENT: usize = 14;

/// Whether a match is a secret. `body` is what the shape leaves open of it.
pub(super) fn holds(check: Check, whole: &str, body: &str) -> bool {
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
    let made = Made::of(body);
    let least = if body.len() < SHORT { 4 } else { 7 };
    made.different >= least
        && (body.len() < SHORT
            || made.random_hex()
            || made.digits == body.len()
            || body
                .split(['-', '.', '_', ':'])
                .map(part)
                .map(|bits| bits.max(0.0))
                .sum::<f32>()
                >= SURPRISE)
}

/// Of a part that is hexadecimal, letters and digits say less than their mixture.
fn part(text: &str) -> f32 {
    if text.len() >= 8 && Made::of(text).random_hex() {
        SURPRISE
    } else {
        surprise(text)
    }
}

/// Whether a text that stands where a password does is one, and not everybody's.
pub(super) fn is_password(text: &str) -> bool {
    let variable = text.starts_with(['$', '%', '<', '{', '[', '*', '('])
        || text.contains("${")
        || text.contains("{{")
        || text.contains("$(");
    text.len() >= 4 && !variable && !is_standin(text) && !is_common(text)
}

/// A password that someone chose so that it cannot be guessed: a single word in lower case is none.
fn is_chosen(text: &str) -> bool {
    is_password(text) && (text.len() >= 6 && Made::of(text).kinds() >= 2 || surprise(text) >= 4.0)
}

fn is_strong(body: &str) -> bool {
    let made = Made::of(body);
    !is_standin(body)
        && !body.contains("://")
        && !is_uuid(body)
        && made.digits > 0
        && (made.upper > 0 && made.lower > 0 || body.len() >= 32)
        && body
            .split(['-', '.', '_', '/'])
            .map(part)
            .map(|bits| bits.max(0.0))
            .sum::<f32>()
            >= STRONG
}

/// Whether what was put together of pieces was one thing: words can be put together too.
pub(super) fn belongs_together(body: &str) -> bool {
    let bits = |text: &str| {
        if Made::of(text).random_hex() {
            text.len() as f32
        } else {
            surprise(text).max(0.0)
        }
    };
    body.split(['-', '.', '_', ':']).map(bits).sum::<f32>() >= TOGETHER
}

/// Whether it is a UUID: an identifier, more often than a key.
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

/// GitHub and npm write the CRC-32 of what stands between prefix and checksum, in base 62, as the last six characters.
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

/// CRC-32 as of ISO 3309.
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
    let says = |text: &str| {
        text.trim_start().starts_with('{') && (text.contains("\"alg\"") || text.contains("\"enc\""))
    };
    header.is_some_and(|text| says(&text))
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
        && Made::of(&code).different >= BODY_DIFFERENT
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
            holds(Check::Crc32, &key, key.get(4..).unwrap()),
            "right, however it looks"
        );
        assert!(!holds(
            Check::Crc32,
            &key.replace('a', "b"),
            &"b".repeat(36)
        ));
    }

    #[test]
    fn what_is_decoded_is_what_it_claims() {
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert!(holds(Check::Jwt, jwt, jwt));
        assert!(!holds(Check::Jwt, "eyJmb28i.eyJ.x", ""));
        assert!(holds(Check::Basic, "", "c3ZjOjJBYnc2UEV1cTFKbGdFWXI="));
        assert!(
            !holds(Check::Basic, "", "dXNlcjpwYXNzd29yZA=="),
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
