//! Words that distinguish a sample from an instruction.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use unicode_normalization::UnicodeNormalization;

/// Maximum length of a sample, in bytes.
const SAMPLE_BYTES: usize = 120;
/// Maximum length of a regex, which spells out alternatives, in bytes.
const REGEX_BYTES: usize = 320;

/// Maximum length of a word of a sample, in bytes.
const WORD_BYTES: usize = 40;
/// Maximum length of a search phrase, in bytes.
const PHRASE_BYTES: usize = 60;

/// Beginnings of words in the names of lists of attacks, of tests and of searches.
const SAMPLE_NAMES: &str = "pattern phrase payload attack inject jailbreak blocklist blacklist denylist deny bann forbid suspicious \
    malicious trigger signature sample corpus case fixture test spec assert refute expect override detect guard filter classif scan \
    screen flag contains includes match regex compile positive negative bad probe canary adversar needle keyword threat fuzz yara \
    heuristic indicator saniti mock eval benchmark dataset label reject block example evil hostile poison moderat unsafe secrule \
    finding matched exfil bypass evasion grep it( it.each (t,";

/// Functions and statements that show a string to a reader.
const OUTPUT: [&str; 29] = [
    "print",
    "println",
    "eprintln",
    "printf",
    "fprintf",
    "sprintf",
    "echo",
    "puts",
    "write",
    "writeln",
    "log",
    "info",
    "warn",
    "warning",
    "error",
    "debug",
    "trace",
    "fatal",
    "panic",
    "raise",
    "throw",
    "exception",
    "alert",
    "say",
    "display",
    "show",
    "speak",
    "render",
    "notify",
];

/// Targets of instructions.
const TARGETS: [&str; 22] = [
    "://",
    "www.",
    "curl ",
    "wget ",
    "sudo ",
    "rm -",
    "pip install",
    "npm ",
    "~/",
    "/etc/",
    "/home",
    "c:\\",
    ".env",
    ".ssh",
    "id_rsa",
    ".aws",
    ".json",
    ".yaml",
    ".yml",
    ".pem",
    "`",
    "transfer ",
];
/// Addressees of instructions.
const ADDRESSEES: [&str; 20] = [
    "assistant,",
    "assistant:",
    "assistants",
    "agent,",
    "agent:",
    "agents",
    "ai agent",
    "ai:",
    "ai,",
    "the ai ",
    "coding agent",
    "copilot",
    "claude",
    "chatgpt",
    "gemini",
    "cursor",
    "llm:",
    "llms",
    "model:",
    "language model",
];

/// Minimum number of marks of a regex, and maximum number of words for each.
const MARKS: usize = 2;
const WORDS_PER_MARK: usize = 3;

/// Syntax of regexes that prose does not have.
const REGEX_MARKS: [&str; 10] = [
    "\\s", "\\b", "\\w", "\\d", "(?:", "(?i", ")?", "[^", ".{0", ")\\",
];

static NAMES: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| build_matcher(SAMPLE_NAMES.split_ascii_whitespace()));
static TARGET: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| build_matcher(TARGETS));
static ADDRESSEE: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| build_matcher(ADDRESSEES));

fn build_matcher<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(words)
        .ok()
}

/// Returns the end of the first word in a piece of code that denotes samples. A word may be part of
/// a name: `BAD_PHRASES`, `badPhrases`.
pub(super) fn names_samples(code: &str) -> Option<usize> {
    let begins_word = |at: usize| {
        let bytes = code.as_bytes();
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let is_capital = bytes.get(at).is_some_and(u8::is_ascii_uppercase);
        !bytes.get(at).is_some_and(u8::is_ascii_alphabetic)
            || before.is_none_or(|before| {
                !before.is_ascii_alphanumeric() || is_capital && before.is_ascii_lowercase()
            })
    };
    let names = NAMES.as_ref()?;
    names
        .find_overlapping_iter(code)
        .find(|word| begins_word(word.start()))
        .map(|word| word.end())
}

/// Reports whether a piece of code that ends with this name shows a string to a reader.
pub(super) fn is_output(name: &str) -> bool {
    let name = name.trim_end_matches('!');
    let last = name.rsplit(['.', ':', '>']).next().unwrap_or(name);
    OUTPUT.iter().any(|output| {
        let at = last
            .len()
            .checked_sub(output.len())
            .filter(|at| *at == 0 || output.len() > 4);
        at.and_then(|at| last.get(at..))
            .is_some_and(|tail| tail.eq_ignore_ascii_case(output))
    })
}

/// Reports whether a text gives its reader nothing to do beyond its own words.
pub(in crate::text) fn is_inert(content: &str, is_regex: bool) -> bool {
    if is_regex {
        // A regex names files and commands in order to find them.
        return content.len() <= REGEX_BYTES && !has_address(content) && !content.contains("://");
    }
    content.len() <= SAMPLE_BYTES && !names_any(&ADDRESSEE, content) && !names_action(content)
}

/// Reports whether a text names an address, a file, a command or a tool, or is encoded.
pub(in crate::text) fn names_action(content: &str) -> bool {
    // Encoded text cannot be read here.
    let is_encoded = |word: &str| word.len() > WORD_BYTES && word.is_ascii();
    has_address(content)
        || names_any(&TARGET, content)
        || has_identifier(content)
        || content.split_ascii_whitespace().any(is_encoded)
}

/// Reports whether a text contains one of the words, as written or with compatibility forms folded.
fn names_any(words: &LazyLock<Option<AhoCorasick>>, content: &str) -> bool {
    let is_in = |content: &str| words.as_ref().is_none_or(|words| words.is_match(content));
    is_in(content) || !content.is_ascii() && is_in(&content.nfkc().collect::<String>())
}

/// Reports whether a text names a tool or another part of a program, such as `delete_all`.
fn has_identifier(content: &str) -> bool {
    content.as_bytes().windows(3).any(
        |window| matches!(window, [a, b'_', b] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic()),
    )
}

/// Reports whether a text may contain an e-mail address.
fn has_address(content: &str) -> bool {
    content.match_indices('@').any(|(at, _)| {
        let has_local_part = content
            .get(..at)
            .is_some_and(|head| head.ends_with(|c: char| c.is_alphanumeric()));
        has_local_part
            && content
                .get(at + 1..)
                .is_some_and(|tail| tail.starts_with(|c: char| c.is_alphanumeric()))
    })
}

/// Reports whether a literal is a regex.
pub(super) fn is_regex(content: &str) -> bool {
    if !content.contains(['\\', '(', ')', '[', '{']) {
        return false;
    }
    let marks: usize = REGEX_MARKS
        .iter()
        .map(|mark| content.matches(mark).count())
        .sum();
    let alternatives = if marks > 0 && content.contains('(') {
        content.matches('|').count()
    } else {
        0
    };
    // A sentence with a few marks in it is still a sentence.
    marks + alternatives >= MARKS.max(content.matches(' ').count() / WORDS_PER_MARK)
}

/// Reports whether a text between two slashes of code is a regex. A path has neither syntax of
/// regexes nor alternatives.
pub(super) fn is_slashed_regex(content: &str) -> bool {
    let alternatives = content.split('(').skip(1).any(|group| {
        group
            .split(')')
            .next()
            .is_some_and(|group| group.contains('|'))
    });
    alternatives || REGEX_MARKS.iter().any(|mark| content.contains(mark))
}

/// Reports whether a text is written as programs compare it, rather than as a sentence.
pub(super) fn is_search_phrase(content: &str) -> bool {
    let phrase = content.trim_end_matches(':');
    let is_plain =
        |c: char| matches!(c, ' ' | '\'' | '-') || c.is_alphanumeric() && !c.is_uppercase();
    phrase.len() <= PHRASE_BYTES && phrase.contains(' ') && phrase.chars().all(is_plain)
}
