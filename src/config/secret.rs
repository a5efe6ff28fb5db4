//! Secrets: strings that are never shown, and names that indicate them.

use std::fmt;

/// A string that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Maximum number of characters of a name that are examined.
const NAME_CHARS: usize = 256;

/// Reports whether the name of a header, variable or argument indicates that its value is a secret:
/// such a value must not be in the config file, and is not shown in the audit log.
pub fn is_secret_name(name: &str) -> bool {
    let markers = [
        "token",
        "secret",
        "passw",
        "passphrase",
        "credential",
        "apikey",
        "cookie",
        "authorization",
    ];
    // Most names are a single lowercase word.
    if name.len() <= NAME_CHARS && name.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return markers.iter().any(|part| name.contains(part))
            || matches!(name, "auth" | "pat" | "pwd" | "otp");
    }
    let words = name_words(name.chars().take(NAME_CHARS));
    let joined = words.concat();
    markers.iter().any(|part| joined.contains(part))
        || words.iter().any(|word| matches!(word.as_str(), "auth" | "pat" | "pwd" | "otp"))
        // A `key` by itself is more often a key in a table than a secret.
        || (words.len() > 1 && words.iter().any(|word| word == "key"))
}

/// Splits a name into its words, in lower case, however they are joined (`API_KEY`, `x-api-key`,
/// `apiKey`).
pub fn name_words(name: impl Iterator<Item = char>) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name {
        if !c.is_alphanumeric() || (after_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        after_lower = c.is_lowercase();
        if let (true, Some(word)) = (c.is_alphanumeric(), words.last_mut()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_tell_of_secrets() {
        for name in [
            "Authorization",
            "X-Api-Key",
            "apiKey",
            "privateKey",
            "GITHUB_TOKEN",
            "DB_PASSWORD",
            "Cookie",
            "AWS_SECRET_ACCESS_KEY",
            "GH_PAT",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "X-Region", "PATH", "NODE_ENV", "KEYBOARD", "AUTHOR", "PATIENCE", "key", "path", "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        assert_eq!(format!("{:?}", Secret("hunter2".into())), "Secret(…)");
    }
}
