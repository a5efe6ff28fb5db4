//! The words of a name: `mcp__desk__runShellCommand` is `mcp desk run shell command`.

use std::collections::HashSet;
use std::sync::OnceLock;

use super::names;

/// Longest name that is read, in bytes.
const NAME_BYTES: usize = 128;
/// Most words of a name that are read.
const WORDS: usize = 16;

/// Words, written with spaces between them and made a set of when first asked for.
pub(super) struct Table {
    words: &'static str,
    set: OnceLock<HashSet<&'static str>>,
}

impl Table {
    pub(super) const fn new(words: &'static str) -> Self {
        Self { words, set: OnceLock::new() }
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.set.get_or_init(|| self.words.split_ascii_whitespace().collect()).contains(word)
    }
}

/// The words of a name in lower case, split at signs and capitals, and where two known words are run together.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![String::new()];
    let letters: Vec<char> = name.chars().take(NAME_BYTES).collect();
    for (at, c) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        // `runCommand`, `SSHExec`.
        let begins = c.is_ascii_uppercase()
            && (before.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                || (before.is_some_and(char::is_ascii_uppercase) && after.is_some_and(char::is_ascii_lowercase)));
        if begins || !c.is_ascii_alphanumeric() {
            out.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(last) = out.last_mut()
        {
            last.push(c.to_ascii_lowercase());
        }
    }
    let words = out.iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit())).filter(|word| !word.is_empty());
    words.take(WORDS).flat_map(parts).map(str::to_owned).collect()
}

/// Each way to make two of a word.
fn two(word: &str) -> impl Iterator<Item = (&str, &str)> {
    (2..word.len().saturating_sub(1)).filter_map(|at| word.split_at_checked(at))
}

/// The known words that a word is made of, or the word.
fn parts(word: &str) -> Vec<&str> {
    if word.len() < 5 || word.len() > 24 || names::is_known(word) {
        return vec![word];
    }
    for (first, rest) in two(word) {
        if !names::is_known(first) {
            continue;
        }
        if names::is_known(rest) {
            return vec![first, rest];
        }
        if let Some((second, third)) = two(rest).find(|(a, b)| names::is_known(a) && names::is_known(b)) {
            return vec![first, second, third];
        }
    }
    vec![word]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_style() {
        for (name, want) in [
            ("run_shell_command", "run shell command"),
            ("runShellCommand", "run shell command"),
            ("SSHExec", "ssh exec"),
            ("desktop-commander/start_process", "desktop commander start process"),
            ("mcp__x__Bash", "mcp x bash"),
            ("runcommand", "run command"),
            ("commandtorun", "command to run"),
            ("filePath2", "file path"),
            ("description", "description"),
            ("transcript", "transcript"),
            ("", ""),
            ("日本", ""),
        ] {
            assert_eq!(words(name).join(" "), want, "{name}");
        }
        assert_eq!(words(&"a_".repeat(1000)).len(), WORDS);
    }
}
