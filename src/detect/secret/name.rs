//! Names that suggest secrets: what `API_KEY`, `--password` or `authToken` indicate about the value
//! assigned to them.

use crate::text::quick::WordSet;

/// The kind of value that a name indicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamedValue {
    /// Possibly a key (`key`, `sessionKey`).
    PossibleKey,
    /// A key or a token.
    Key,
    /// A password, which need not be random.
    Password,
}

/// Substrings of names that suggest secrets. Every text is searched for them, so there are only a
/// few. Lower case.
pub(super) const ROOTS: [&str; 24] = [
    "pass",
    "pwd",
    "secret",
    "token",
    "key",
    "auth",
    "cred",
    "bearer",
    "jwt",
    "cookie",
    "session",
    "_pat",
    "-pat",
    "dsn",
    "webhook",
    "kennwort",
    "contrase",
    "senha",
    "clave",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "salt",
];

/// Words for "password" in other languages: those of the roots above that are whole names.
static FOREIGN: WordSet = WordSet::new("kennwort contrase senha clave пароль 密码 密碼 パスワード");

/// Words that make a name one of something other than a secret.
static UNRELATED_WORDS: WordSet = WordSet::new(
    "public pub hash hashed hashes checksum digest sha sha1 sha256 sha512 md5 etag fingerprint \
     thumbprint cache primary foreign sort partition index idempotency dedup max min count counts \
     total limit tokenizer tokenizers tokenize tokens keys keyboard shortcut hotkey keyword \
     keywords column next page cursor continuation row group routing author authors keyframe \
     monkey passive passed bypass compass passenger passage integrity commit keynote",
);

/// Last words of names that make a name one of something about a secret.
static ATTRIBUTE_WORDS: WordSet = WordSet::new(
    "id ids name names path paths file files filename dir folder url uri endpoint type kind \
     length len size expires expiry expiration ttl age date at time version format policy hint \
     field label prefix suffix env var variable ref arn enabled required status state algorithm \
     alg provider method mode scope scopes header param manager service store rotation domain \
     host issuer audience error",
);

/// Words before `key` that make it a secret key.
static KEY_QUALIFIERS: WordSet = WordSet::new(
    "api access private secret signing encryption encrypt master client app auth service account \
     storage shared webhook license admin ssh server subscription integration publishable \
     consumer",
);

/// Reports whether a name contains words that make it one of something other than a secret.
pub(super) fn is_unrelated(name: &str) -> bool {
    let mut words = Words::parse(name);
    let words = words.words();
    words.iter().any(|word| UNRELATED_WORDS.contains(word))
        || words.len() > 1
            && words
                .last()
                .is_some_and(|word| ATTRIBUTE_WORDS.contains(word))
}

/// Returns the kind of value that a name indicates; `None` if it does not indicate a secret.
pub(super) fn classify_name(name: &str) -> Option<NamedValue> {
    if matches!(name, "PWD" | "OLDPWD") {
        // The working directory of a shell.
        return None;
    }
    if FOREIGN
        .iter()
        .any(|word| name.to_lowercase().contains(word))
    {
        return Some(NamedValue::Password);
    }
    let mut words = Words::parse(name);
    let words = words.words();
    let last = words.last()?;
    if words.iter().any(|word| UNRELATED_WORDS.contains(word))
        || ATTRIBUTE_WORDS.contains(last) && words.len() > 1
    {
        return None;
    }
    let contains_part = |part: &str| words.iter().any(|word| word.contains(part));
    if words
        .iter()
        .any(|word| matches!(*word, "pass" | "pwd" | "psw" | "passcode" | "pw"))
        || contains_part("passw")
        || contains_part("passphrase")
        || contains_part("pwd")
    {
        return Some(NamedValue::Password);
    }
    let has_secret_key = words
        .windows(2)
        .any(|pair| matches!(pair, [before, "key"] if KEY_QUALIFIERS.contains(before)));
    let key = [
        "secret",
        "token",
        "apikey",
        "credential",
        "bearer",
        "accesskey",
        "privatekey",
        "authkey",
        "jwt",
        "webhook",
    ]
    .iter()
    .any(|part| contains_part(part));
    if key
        || has_secret_key
        || words.iter().any(|word| {
            matches!(
                *word,
                "pat" | "auth" | "authorization" | "creds" | "dsn" | "cookie" | "salt"
            )
        })
    {
        return Some(NamedValue::Key);
    }
    words
        .iter()
        .any(|word| word.ends_with("key"))
        .then_some(NamedValue::PossibleKey)
}

/// Maximum length of a name that is examined, in bytes, and maximum number of words.
const NAME_BYTES: usize = 96;
const NAME_WORDS: usize = 12;

/// The words of a name in lower case, in any naming style. Kept on the stack because names are
/// frequent.
struct Words {
    text: [u8; NAME_BYTES],
    ends: [usize; NAME_WORDS],
    count: usize,
    length: usize,
}

impl Words {
    fn parse(name: &str) -> Self {
        let mut words = Self {
            text: [0; NAME_BYTES],
            ends: [0; NAME_WORDS],
            count: 0,
            length: 0,
        };
        let mut after_lower = false;
        let bytes = name.as_bytes();
        for byte in bytes
            .get(bytes.len().saturating_sub(NAME_BYTES)..)
            .unwrap_or_default()
        {
            if !byte.is_ascii_alphanumeric() || after_lower && byte.is_ascii_uppercase() {
                words.end_word();
            }
            after_lower = byte.is_ascii_lowercase() || byte.is_ascii_digit();
            if let (true, Some(slot)) = (
                byte.is_ascii_alphanumeric(),
                words.text.get_mut(words.length),
            ) {
                *slot = byte.to_ascii_lowercase();
                words.length += 1;
            }
        }
        words.end_word();
        words
    }

    fn end_word(&mut self) {
        let before = self
            .count
            .checked_sub(1)
            .and_then(|last| self.ends.get(last))
            .copied()
            .unwrap_or(0);
        if let (true, Some(end)) = (self.length > before, self.ends.get_mut(self.count)) {
            *end = self.length;
            self.count += 1;
        }
    }

    fn words(&mut self) -> Vec<&str> {
        let mut start = 0;
        let ends = self.ends.get(..self.count).unwrap_or_default();
        ends.iter()
            .filter_map(|end| {
                std::str::from_utf8(self.text.get(std::mem::replace(&mut start, *end)..*end)?).ok()
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_are_given() {
        for (name, said) in [
            ("DB_PASSWORD", Some(NamedValue::Password)),
            ("smtpPass", Some(NamedValue::Password)),
            ("--password", Some(NamedValue::Password)),
            ("X-Api-Key", Some(NamedValue::Key)),
            ("OKTA_API_TOKEN", Some(NamedValue::Key)),
            ("clientSecret", Some(NamedValue::Key)),
            ("Authorization", Some(NamedValue::Key)),
            ("authtoken", Some(NamedValue::Key)),
            ("GH_PAT", Some(NamedValue::Key)),
            ("SHOPIFY_KEY", Some(NamedValue::PossibleKey)),
            ("key", Some(NamedValue::PossibleKey)),
            ("пароль", Some(NamedValue::Password)),
        ] {
            assert_eq!(classify_name(name), said, "{name}");
        }
        for name in [
            "cache_key",
            "public_key",
            "max_tokens",
            "token_count",
            "password_file",
            "secretName",
            "keyboard",
            "author",
            "primaryKey",
            "nextPageToken",
            "monkey",
            "passwordHash",
            "KeyId",
            "compass",
            "",
        ] {
            assert_eq!(classify_name(name), None, "{name}");
        }
    }
}
