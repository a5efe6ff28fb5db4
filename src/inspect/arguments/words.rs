//! The words of a name: `mcp__desk__runShellCommand` is `mcp desk run shell command`.

use std::sync::OnceLock;

use super::names;
use crate::text::quick::QuickSet;

/// Maximum length of a name that is split, in bytes.
const NAME_BYTES: usize = 128;
/// Maximum number of words of a name.
const WORDS: usize = 16;

/// A set of words, written with spaces between them and built on first use.
pub(super) struct Table {
    words: &'static str,
    set: OnceLock<QuickSet<&'static str>>,
}

impl Table {
    pub(super) const fn new(words: &'static str) -> Self {
        Self {
            words,
            set: OnceLock::new(),
        }
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.set
            .get_or_init(|| self.words.split_ascii_whitespace().collect())
            .contains(word)
    }
}

/// A name in lower case, with a space wherever a word ends.
pub(super) struct Words(String);

impl Words {
    /// Splits a name at punctuation and capitals.
    pub(super) fn new(name: &str) -> Self {
        let mut words = String::with_capacity(name.len().min(NAME_BYTES) + 8);
        let mut letters = name.chars().take(NAME_BYTES).peekable();
        let mut before = ' ';
        while let Some(c) = letters.next() {
            // `runCommand`, `SSHExec`.
            let begins = c.is_ascii_uppercase()
                && (before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || before.is_ascii_uppercase()
                        && letters.peek().is_some_and(char::is_ascii_lowercase));
            if begins || !c.is_ascii_alphanumeric() {
                words.push(' ');
            }
            if c.is_ascii_alphanumeric() {
                words.push(c.to_ascii_lowercase());
            }
            before = c;
        }
        Self(words)
    }

    /// Returns the words of the name, without trailing digits; known words that are run together
    /// are returned separately.
    pub(super) fn list(&self) -> Vec<&str> {
        let mut list = Vec::with_capacity(8);
        let words = self
            .0
            .split(' ')
            .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
        for word in words.filter(|word| !word.is_empty()).take(WORDS) {
            add_words(word, &mut list);
        }
        list
    }
}

/// Returns each way to split a word in two.
fn splits_in_two(word: &str) -> impl Iterator<Item = (&str, &str)> {
    (2..word.len().saturating_sub(1)).filter_map(|at| word.split_at_checked(at))
}

/// Adds the known words that a word is composed of, or else the word itself.
fn add_words<'w>(word: &'w str, list: &mut Vec<&'w str>) {
    if word.len() >= 5 && word.len() <= 24 && !names::is_known(word) {
        for (first, rest) in splits_in_two(word).filter(|(first, _)| names::is_known(first)) {
            if names::is_known(rest) {
                return list.extend([first, rest]);
            }
            if let Some((second, third)) =
                splits_in_two(rest).find(|(a, b)| names::is_known(a) && names::is_known(b))
            {
                return list.extend([first, second, third]);
            }
        }
    }
    list.push(word);
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
            (
                "desktop-commander/start_process",
                "desktop commander start process",
            ),
            ("mcp__x__Bash", "mcp x bash"),
            ("runcommand", "run command"),
            ("commandtorun", "command to run"),
            ("filePath2", "file path"),
            ("description", "description"),
            ("transcript", "transcript"),
            ("", ""),
            ("日本", ""),
        ] {
            assert_eq!(Words::new(name).list().join(" "), want, "{name}");
        }
        assert_eq!(Words::new(&"a_".repeat(1000)).list().len(), WORDS);
    }
}
