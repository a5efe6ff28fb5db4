//! A secret in disguise is refused as it is in plain letters: keys of issuers and the operator's
//! own values, in each encoding, alone and within a text.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use lychgate::config::PolicyConfig;

use super::Tally;
use super::judge::Judge;
use super::random::Random;

/// An encoding of a text.
type Encoding = fn(&str) -> String;

const ENCODINGS: [(&str, Encoding); 12] = [
    ("plain", |text| text.to_owned()),
    ("reversed", |text| text.chars().rev().collect()),
    ("base64", |text| STANDARD.encode(text)),
    ("base64, unpadded", |text| STANDARD_NO_PAD.encode(text)),
    ("base64url", |text| URL_SAFE.encode(text)),
    ("base64url, unpadded", |text| URL_SAFE_NO_PAD.encode(text)),
    ("hex, lower", |text| {
        text.bytes().map(|byte| format!("{byte:02x}")).collect()
    }),
    ("hex, upper", |text| {
        text.bytes().map(|byte| format!("{byte:02X}")).collect()
    }),
    ("percent, every byte, upper", |text| {
        text.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }),
    ("percent, every byte, lower", |text| {
        text.bytes().map(|byte| format!("%{byte:02x}")).collect()
    }),
    ("percent, what must be", |text| {
        let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        text.bytes()
            .map(|byte| {
                if unreserved(byte) {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect()
    }),
    ("escapes of JSON", |text| {
        text.chars()
            .map(|c| format!("\\u{:04x}", c as u32))
            .collect()
    }),
];

/// Texts around an encoded secret.
const PLACES: [(&str, &str); 6] = [
    ("alone", "#"),
    ("in prose", "Please have a look at # and say what it is."),
    ("in a query", "https://example.com/a?x=1&data=#&y=2"),
    ("quoted", "{\"note\": \"#\"}"),
    ("assigned", "value=#"),
    ("on a line of its own", "one\n#\nthree"),
];

/// Texts around a secret that are encoded together with it.
const INSIDE: [&str; 5] = ["#", "x #", "xy: #", "the one is # and more", "a=1\nb=#\n"];

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

fn letters(random: &mut Random, from: &[u8], count: usize) -> String {
    (0..count).map(|_| char::from(*random.pick(from))).collect()
}

/// Returns random keys in the formats of their issuers.
fn keys(random: &mut Random) -> Vec<String> {
    let upper = &LETTERS[..26];
    vec![
        format!(
            "AKIA{}",
            letters(random, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)
        ),
        format!("glpat-{}", letters(random, LETTERS, 20)),
        format!("AIza{}", letters(random, LETTERS, 35)),
        format!(
            "SG.{}.{}",
            letters(random, LETTERS, 22),
            letters(random, LETTERS, 43)
        ),
        format!("sk_live_{}", letters(random, LETTERS, 24)),
        format!("hf_{}", letters(random, &LETTERS[..52], 34)),
        format!(
            "xoxb-{0}-{0}-{1}",
            letters(random, b"123456789", 12),
            letters(random, LETTERS, 24)
        ),
        format!(
            "https://hooks.slack.com/services/T{}/B{}/{}",
            letters(random, upper, 8),
            letters(random, upper, 8),
            letters(random, LETTERS, 24)
        ),
    ]
}

fn spread(judge: &Judge, secret: &str, tally: &mut Tally) {
    for (name, encode) in ENCODINGS {
        for (place, around) in PLACES {
            tally.add_text(
                judge,
                format!("{name}, {place}"),
                &around.replace('#', &encode(secret)),
            );
        }
        for inside in INSIDE {
            tally.add_text(
                judge,
                format!("{name}, with what stands around it"),
                &encode(&inside.replace('#', secret)),
            );
        }
    }
}

#[test]
fn keys_of_issuers() {
    let judge = Judge::new();
    let mut random = Random::new(4);
    let mut tally = Tally::default();
    for _ in 0..6 {
        for key in keys(&mut random) {
            assert!(judge.refuses_text(&key), "{key} in plain letters");
            spread(&judge, &key, &mut tally);
        }
    }
    assert!(tally.tried > 5_000, "{} tried", tally.tried);
    tally.require(0.998);
}

#[test]
fn values_of_the_operator() {
    let mut random = Random::new(5);
    let mut tally = Tally::default();
    for length in [8, 9, 10, 11, 12, 13, 16, 24, 31, 48, 64] {
        let mut value = letters(&mut random, LETTERS, length);
        let mut config = PolicyConfig::default();
        if random.coin() {
            value.replace_range(3..4, "/");
            value.replace_range(5..6, "+");
        }
        assert!(config.guarded_secrets.guarded.guard(&value));
        let judge = Judge::by(&config);
        assert!(!judge.refuses_text("nothing of that kind is in here"));
        spread(&judge, &value, &mut tally);
    }
    assert!(tally.tried > 800, "{} tried", tally.tried);
    tally.require(0.998);
}
