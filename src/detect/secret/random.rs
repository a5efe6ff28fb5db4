//! Estimates whether a run of characters is random, or is a word, a name, or a placeholder for a
//! secret.

use std::sync::LazyLock;

use crate::text::quick::WordSet;
use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// For each letter, the letters that hardly ever follow it in words and names: 61 % of all possible
/// pairs, but 4 % of the pairs in use (counted in source code and documentation).
const RARE: [u32; 26] = [
    0x201_4291, 0x2eb_b4ee, 0x3e1_b24a, 0x2e9_b6a6, 0x210_4680, 0x3e9_b68e, 0x3e9_deef, 0x3f5_beee,
    0x151_0780, 0x3ff_ffef, 0x3ff_feef, 0x2e3_b6c6, 0x3e3_2eec, 0x3c3_1282, 0x381_0291, 0x2e1_366e,
    0x3ef_ffff, 0x2c1_0282, 0x2e3_226a, 0x2e1_2662, 0x3f1_4688, 0x3ff_feee, 0x3f9_9e6e, 0x3f7_7fef,
    0x3f3_5fff, 0x3ff_ffef,
];

/// Finds words that mark a placeholder, in any case.
static STANDINS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    #[allow(clippy::expect_used, reason = "the words are those below")]
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(STANDIN_WORDS)
        .expect("few short words")
});
/// In lower case, and long enough not to occur by chance.
const STANDIN_WORDS: [&str; 49] = [
    "example",
    "xxxx",
    "****",
    "....",
    "0000000",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "change_this",
    "dummy",
    "redacted",
    "insert",
    "replace",
    "sample",
    "your-",
    "your_",
    "yourapi",
    "yourkey",
    "yourtoken",
    "yoursecret",
    "yourpass",
    "my-secret",
    "my_secret",
    "my-token",
    "my_token",
    "mypassword",
    "fake",
    "mock",
    "foobar",
    "todo",
    "fixme",
    "not-a-",
    "not_a_",
    "notreal",
    "1234567",
    "abcdefg",
    "abcd1234",
    "deadbeef",
    "password",
    "test-",
    "test_key",
    "test_token",
    "dontuse",
    "hunter2",
    // Keys from documentation: the signature of jwt.io, the storage and Cosmos DB emulators of
    // Azure, the examples of Stripe.
    "sflkxwrjsmekkf2qt4fwpmejf36pok6yjv_adqssw5c",
    "eby8vdm02xnocqflquwjpllmetlcdxj1ouzft50usrz6ifsufq2uverc",
    "c2y6ydjf5/r+ob0n8a7cgv30vrdjiwehlm+4qdu5de2nq9nduv",
    "4ec39hqlyjwdarjtt1zdp7dc",
];

/// Passwords that protect nothing, after digits and signs have been replaced by the letters they
/// look like.
static WORDS: WordSet = WordSet::new(
    "password passwd passw pass secret admin administrator root user username test testing guest \
     demo default letmein welcome qwerty changeit changeme postgres mysql redis mongo rabbitmq \
     minio minioadmin docker sonar sa abc supersecret topsecret none",
);

/// Returns how much more likely `run` is as a random string than as words, in bits. Above 4 it is
/// hardly a word; a random string of 20 letters and digits has about 20.
pub(super) fn surprise(run: &str) -> f32 {
    let mut bits = 0.0;
    for (a, b) in run.bytes().zip(run.bytes().skip(1)) {
        bits += match (class(a), class(b)) {
            (Class::Lower | Class::Upper, Class::Lower | Class::Upper) => {
                let case_change = if class(a) == class(b) { 0.0 } else { 1.0 };
                case_change + if is_rare(a, b) { 3.0 } else { -1.3 }
            }
            (Class::Digit, Class::Digit) => -0.5,
            (Class::Other, _) | (_, Class::Other) => -0.5,
            _ => 1.7,
        };
    }
    bits
}

fn is_rare(a: u8, b: u8) -> bool {
    let letter = |byte: u8| usize::from(byte.to_ascii_lowercase().wrapping_sub(b'a'));
    RARE.get(letter(a))
        .is_some_and(|rare| rare >> letter(b).min(31) & 1 == 1)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Other,
}

fn class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        _ => Class::Other,
    }
}

/// Statistics about the characters of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CharStats {
    pub(super) lower: usize,
    pub(super) upper: usize,
    pub(super) digits: usize,
    pub(super) other: usize,
    /// Number of distinct characters.
    pub(super) distinct: usize,
    /// Whether all characters are hexadecimal digits, in one case.
    pub(super) hex: bool,
}

impl CharStats {
    pub(super) fn new(run: &str) -> Self {
        let mut stats = Self::default();
        let mut seen = [false; 256];
        let mut low = true;
        let mut high = true;
        for byte in run.bytes() {
            match class(byte) {
                Class::Lower => stats.lower += 1,
                Class::Upper => stats.upper += 1,
                Class::Digit => stats.digits += 1,
                Class::Other => stats.other += 1,
            }
            low &= matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            high &= matches!(byte, b'0'..=b'9' | b'A'..=b'F');
            if let Some(seen) = seen.get_mut(usize::from(byte)) {
                stats.distinct += usize::from(!std::mem::replace(seen, true));
            }
        }
        stats.hex = (low || high) && !run.is_empty();
        stats
    }

    /// Returns how many of these kinds of characters occur: lower-case letters, capitals, digits,
    /// other characters.
    pub(super) fn kinds(&self) -> usize {
        [self.lower, self.upper, self.digits, self.other]
            .iter()
            .filter(|count| **count > 0)
            .count()
    }

    /// Reports whether the run is hexadecimal, with digits and letters in a random mixture.
    pub(super) fn is_random_hex(&self) -> bool {
        self.hex
            && self.distinct >= 7
            && self.digits * 4 >= self.lower + self.upper
            && self.lower + self.upper >= self.digits / 8
    }
}

/// Reports whether a value is a placeholder for a secret: a variable, an instruction, a sequence,
/// or one character repeated.
pub(super) fn is_standin(value: &str) -> bool {
    if value.contains(['<', '>', '{', '}', '$', '…'])
        && (value.contains("${") || value.contains("{{") || value.contains('<'))
    {
        return true;
    }
    let mut run = 1;
    let mut last = 0;
    for byte in value.bytes() {
        run = if byte == last { run + 1 } else { 1 };
        if run >= 7 {
            return true;
        }
        last = byte;
    }
    STANDINS.is_match(value) || has_few_distinct(value)
}

/// Reports whether a value of sufficient length has suspiciously few distinct characters, ignoring
/// case.
fn has_few_distinct(value: &str) -> bool {
    if value.len() < 16 {
        return false;
    }
    let mut seen = [false; 256];
    let distinct = value.bytes().filter(|byte| {
        seen.get_mut(usize::from(byte.to_ascii_lowercase()))
            .is_some_and(|seen| !std::mem::replace(seen, true))
    });
    distinct.take(6).count() < 6
}

/// Reports whether a password is a commonly known one or a placeholder.
pub(super) fn is_common(password: &str) -> bool {
    let letters: String = password
        .chars()
        .filter_map(|c| match c.to_ascii_lowercase() {
            '0' => Some('o'),
            '1' | '!' => Some('i'),
            '3' => Some('e'),
            '4' | '@' => Some('a'),
            '5' | '$' => Some('s'),
            '7' => Some('t'),
            c if c.is_ascii_alphabetic() => Some(c),
            _ => None,
        })
        .collect();
    let plain: String = password
        .chars()
        .filter(char::is_ascii_alphabetic)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let is_common_word = |text: &str| {
        text.is_empty()
            || WORDS.contains(&text)
            || WORDS.contains(&text.trim_end_matches(['i', 'e', 's', 'o']))
    };
    is_common_word(&plain)
        || is_common_word(&letters)
        || plain.chars().all(|c| plain.starts_with(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_told_from_words() {
        for random in [
            "TfU9e8bi1y1FRVSrVdj5",
            "BcAbfmn5jtotqpyHnm",
            "wAgLM_nwvRgQyLVnzCE8",
            "rkmlwcZrPdnaBEcybtehwy",
            "q8zt4vnp2rkx7wdf",
        ] {
            assert!(surprise(random) > 6.0, "{random} {}", surprise(random));
        }
        for words in [
            "getAccessTokenFromHeader",
            "secret-manager-service",
            "authentication",
            "MAX_TOKEN_COUNT_2",
            "tokenizer_v2",
        ] {
            assert!(surprise(words) < 2.0, "{words} {}", surprise(words));
        }
    }

    #[test]
    fn standins_are_known() {
        for standin in [
            "<YOUR_API_KEY>",
            "${TOKEN}",
            "xxxxxxxx",
            "AKIAIOSFODNN7EXAMPLE",
            "{{ token }}",
            "aaaaaaaaaaaaaaaa",
            "abcdefghijkl",
        ] {
            assert!(is_standin(standin), "{standin}");
        }
        let of_documentation = [
            "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
            "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==",
        ];
        assert!(of_documentation.iter().all(|key| is_standin(key)));
        assert!(!is_standin("TfU9e8bi1y1FRVSrVdj5") && !is_standin("p$ss{w0rd"));
    }

    #[test]
    fn common_passwords_are_known() {
        for common in [
            "password123",
            "P@ssw0rd!",
            "admin",
            "root",
            "Test1234",
            "123456",
            "letmein!",
            "aaaa1",
        ] {
            assert!(is_common(common), "{common}");
        }
        for own in ["BcAbfmn5", "blue-Kettle7", "tr0ub4dor&3"] {
            assert!(!is_common(own), "{own}");
        }
    }
}
