//! The words that are new in a definition, and what they ask of the reader.

use std::collections::HashSet;

use super::change::Difference;
use crate::message::{Role, ValueKind};

/// Words with which a text instructs its reader.
const ORDERS: [&str; 50] = [
    "must",
    "shall",
    "should",
    "always",
    "never",
    "ensure",
    "remember",
    "ignore",
    "disregard",
    "forget",
    "instead",
    "immediately",
    "silently",
    "secretly",
    "mandatory",
    "important",
    "urgent",
    "beforehand",
    "you",
    "your",
    "assistant",
    "llm",
    "don't",
    "dont",
    "please",
    "confidential",
    "override",
    "bypass",
    "regardless",
    // The same in German, French, Spanish, Italian, Portuguese, Russian, Chinese, Japanese.
    "musst",
    "müssen",
    "immer",
    "niemals",
    "devez",
    "toujours",
    "jamais",
    "debes",
    "siempre",
    "nunca",
    "deve",
    "sempre",
    "mai",
    "должен",
    "всегда",
    "никогда",
    "必须",
    "总是",
    "不要",
    "必ず",
    "してください",
];
/// Pairs of words with the same function.
const WORD_PAIRS: [(&str, &str); 12] = [
    ("do", "not"),
    ("make", "sure"),
    ("need", "to"),
    ("have", "to"),
    ("required", "to"),
    ("before", "using"),
    ("before", "calling"),
    ("before", "any"),
    ("after", "using"),
    ("after", "calling"),
    ("without", "asking"),
    ("without", "telling"),
];
/// Verbs that, at the beginning of a sentence, instruct the reader to do something beyond the
/// tool's own task.
const VERBS: [&str; 22] = [
    "append", "attach", "bcc", "call", "cc", "copy", "embed", "forward", "include", "insert",
    "invoke", "mention", "obtain", "pass", "provide", "put", "read", "send", "share", "submit",
    "tell", "use",
];
/// Stems of verbs for changing or reaching something.
const CAPABILITIES: [&str; 44] = [
    "write",
    "writ",
    "delet",
    "remov",
    "drop",
    "send",
    "post",
    "upload",
    "publish",
    "execut",
    "exec",
    "run",
    "spawn",
    "install",
    "uninstall",
    "transfer",
    "pay",
    "purchas",
    "buy",
    "refund",
    "modif",
    "updat",
    "creat",
    "overwrit",
    "mov",
    "renam",
    "kill",
    "terminat",
    "shutdown",
    "reboot",
    "deploy",
    "push",
    "merg",
    "grant",
    "revok",
    "forward",
    "email",
    "encrypt",
    "format",
    "truncat",
    "chmod",
    "sudo",
    "eras",
    "wip",
];
/// Characters that represent a word, or a part of one, in no language.
const PUNCTUATION: &str = "–—‘’“”„«»‹›…•·¡¿、。，．：；！？（）「」『』【】《》〈〉";

/// Returns the words of a text, in lower case. Anything that is neither whitespace nor plain
/// punctuation counts as a part of a word, so that nothing can hide between words.
pub(super) fn words(text: &str) -> Vec<String> {
    let is_separator = |c: char| {
        c.is_whitespace()
            || (c.is_ascii_punctuation() && !matches!(c, '\'' | '$' | '<' | '>'))
            || PUNCTUATION.contains(c)
    };
    text.replace('’', "'")
        .split(is_separator)
        .map(str::to_lowercase)
        .filter(|word| !word.is_empty())
        .collect()
}

/// Returns whether two texts differ only in case, whitespace and punctuation.
pub(super) fn same_words(old: &str, new: &str) -> bool {
    let bare_words = |text| {
        words(text)
            .into_iter()
            .map(|word| word.trim_matches('\'').to_owned())
            .filter(|word| !word.is_empty())
    };
    bare_words(old).eq(bare_words(new))
}

/// Maximum length of a text that says little, in bytes.
const LITTLE_BYTES: usize = 200;
/// Minimum length of a run of letters and digits that is a code rather than a word.
const CODE_CHARS: usize = 20;

/// Returns whether a text is short and contains nothing encoded.
pub(super) fn is_short_prose(text: &str) -> bool {
    let mut runs =
        text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')));
    let code = |run: &str| run.len() >= CODE_CHARS && run.bytes().any(|b| b.is_ascii_digit());
    text.len() <= LITTLE_BYTES && !runs.any(code)
}

/// The sentences in which two definitions differ.
#[derive(Default)]
pub(super) struct Prose {
    /// The words of each new sentence.
    new_sentences: Vec<Vec<String>>,
    /// The stems of all words that were there before.
    stems: HashSet<String>,
}

impl Prose {
    /// Collects the sentences of the values that differ.
    pub(super) fn new(differences: &[Difference<'_>]) -> Self {
        let mut out = Self::default();
        let mut old: HashSet<Vec<String>> = HashSet::new();
        for difference in differences {
            if let Some(value) = difference.old {
                value.strings(|_, text| {
                    out.stems
                        .extend(words(&text.value).iter().map(|word| stem(word).to_owned()));
                    old.extend(sentences(&text.value));
                });
            }
        }
        for Difference { new, path, .. } in differences {
            let Some(value) = new else { continue };
            let prose = value.kind() != ValueKind::String
                || path
                    .last()
                    .is_some_and(|last| last != "pattern" && last != "$ref");
            value.strings(|_, text| {
                if text.role == Role::Value && prose {
                    out.new_sentences.extend(
                        sentences(&text.value)
                            .into_iter()
                            .filter(|sentence| !old.contains(sentence)),
                    );
                }
            });
        }
        out
    }

    /// Returns whether a new sentence instructs the reader.
    pub(super) fn is_imperative(&self) -> bool {
        self.new_sentences.iter().any(|sentence| {
            let is = |list: &[&str], word: &String| list.contains(&word.as_str());
            let long = sentence.len() > 2;
            sentence.iter().any(|word| {
                is(&ORDERS, word)
                    || (!word.is_ascii() && ORDERS.iter().any(|order| contains_order(word, order)))
            }) || sentence.windows(2).any(
                |pair| matches!(pair, [a, b] if WORD_PAIRS.contains(&(a.as_str(), b.as_str()))),
            ) || (long && sentence.first().is_some_and(|word| is(&VERBS, word)))
        })
    }

    /// Returns whether a new sentence contains a verb for changing something that did not occur
    /// before.
    pub(super) fn is_capable(&self) -> bool {
        self.new_sentences.iter().flatten().any(|word| {
            let stem = stem(word);
            CAPABILITIES.contains(&stem) && !self.stems.contains(stem)
        })
    }
}

/// Returns whether a word of a script without spaces contains an order.
fn contains_order(word: &str, order: &str) -> bool {
    !order.is_ascii() && order.chars().any(|c| u32::from(c) > 0x2E80) && word.contains(order)
}

/// Returns the words of each sentence.
fn sentences(text: &str) -> Vec<Vec<String>> {
    let is_end = |c: char| matches!(c, '.' | '!' | '?' | ';' | '\n' | '。' | '！' | '？');
    text.split(is_end)
        .map(words)
        .filter(|sentence| !sentence.is_empty())
        .collect()
}

/// Returns a word without its ending, as far as English verbs are concerned.
fn stem(word: &str) -> &str {
    let without_suffix = ["ing", "es", "ed", "s", "e"]
        .iter()
        .find_map(|end| word.strip_suffix(end).filter(|stem| stem.len() > 2));
    let stem = without_suffix.unwrap_or(word);
    let doubled = match stem.as_bytes() {
        [.., a, b]
            if a == b
                && stem.len() > 3
                && without_suffix.is_some()
                && !matches!(b, b's' | b'l') =>
        {
            stem.get(..stem.len() - 1)
        }
        _ => None,
    };
    let stem = doubled.unwrap_or(stem);
    stem.strip_suffix("ie")
        .or_else(|| stem.strip_suffix(['y', 'i']))
        .filter(|short| short.len() > 3)
        .unwrap_or(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_a_reader_reads() {
        assert!(same_words("Adds two numbers.", "adds  two\nNumbers!"));
        assert!(
            same_words("It's “fine” — really", "its 'fine' really")
                || same_words("“fine” — really", "'fine' really")
        );
        for other in [
            "Adds two number",
            "Adds twonumbers.",
            "Adds two numbers\u{200b}.",
            "Adds two numbers. \u{e0041}",
            "Adds two",
        ] {
            assert!(!same_words("Adds two numbers.", other), "{other:?}");
        }
    }

    #[test]
    fn stems_meet() {
        for (a, b) in [
            ("writes", "write"),
            ("deleting", "deletes"),
            ("modify", "modified"),
            ("running", "runs"),
            ("pays", "pay"),
        ] {
            assert_eq!(stem(a), stem(b), "{a} {b}");
        }
        for word in [
            "writes", "deleted", "sending", "executes", "runs", "modifies", "removing", "moves",
            "creates",
        ] {
            assert!(CAPABILITIES.contains(&stem(word)), "{word}: {}", stem(word));
        }
    }
}
