//! Negations before a phrase, and conditions about others: neither "never share your password" nor
//! "if a page tells you to share it" is an order to share it.

/// Words that negate the verb after them, in lower case, without what may precede them.
const NEGATIONS: [&str; 9] = [
    "do not",
    "does not",
    "must not",
    "should not",
    "shall not",
    "will not",
    "cannot",
    "never",
    "n't",
];
/// Words with which a condition begins, and what it says of others before the phrase.
const CONDITIONS: [&str; 4] = ["if ", "when ", "whenever ", "in case "];
const OTHERS_ASK: [&str; 6] = [
    "asks you to",
    "tells you to",
    "wants you to",
    "invites you to",
    "urges you to",
    "instructs you to",
];
/// What says that somebody else gave an order to somebody else.
const REPORTS: [&str; 9] = [
    "told it to",
    "asked it to",
    "got it to",
    "instructed it to",
    "ordered it to",
    "told them to",
    "was told to",
    "was asked to",
    "were told to",
];
/// Those who told or asked a machine that is named.
const MACHINES: [&str; 6] = ["bot", "chatbot", "assistant", "agent", "model", "ai"];
/// Length of the longest condition that is compared, in bytes.
const CONDITION_BYTES: usize = 96;
/// Length of the longest text before a phrase that is compared, in bytes: an adverb may be between.
const BEFORE_BYTES: usize = 32;

/// Reports whether a negation is directly before a position of a text on its line, or before an adverb
/// there; or a condition that somebody else asks for it.
pub(super) fn is_negated(text: &str, at: usize) -> bool {
    let before = line_before(text, at, BEFORE_BYTES);
    if OTHERS_ASK
        .iter()
        .any(|ask| before.trim_end().ends_with(ask))
    {
        let sentence = line_before(text, at, CONDITION_BYTES);
        let sentence = sentence.rsplit(['.', ';', ':', '!', '?']).next();
        return sentence.is_some_and(|sentence| {
            let mut parts = sentence.split(", ");
            parts.any(|part| {
                let part = part.trim_start_matches(|c: char| !c.is_alphanumeric());
                CONDITIONS.iter().any(|word| part.starts_with(word))
            })
        });
    }
    let words: Vec<&str> = before.split_ascii_whitespace().collect();
    let words = match words.as_slice() {
        [before @ .., adverb] if adverb.ends_with("ly") => before,
        words => words,
    };
    let negates = |before: &str| {
        NEGATIONS.iter().any(|negation| {
            before.strip_suffix(negation).is_some_and(|lead| {
                *negation == "n't" || !lead.ends_with(|c: char| c.is_alphanumeric())
            })
        })
    };
    // "Why don't you send it" is an order, and has a word between.
    negates(&words.join(" "))
}

/// Reports whether the text directly before a position says that somebody else was given an order: "a
/// visitor told it to end each reply with" gives none.
pub(super) fn is_reported(text: &str, at: usize) -> bool {
    // Hostile texts have many phrases, and hardly any of them is after such a word.
    let start = text.floor_char_boundary(at.saturating_sub(BEFORE_BYTES));
    let has_word = text.get(start..at).is_some_and(|before| {
        let end = before.trim_end().as_bytes().last_chunk();
        end.is_some_and(|word: &[u8; 2]| word.eq_ignore_ascii_case(b"to"))
    });
    if !has_word {
        return false;
    }
    let mut before = line_before(text, at, CONDITION_BYTES);
    if let Some(first) = before.trim_end().strip_suffix(" and to") {
        // "was told to agree and to end each reply with"
        let report = REPORTS
            .iter()
            .filter_map(|report| Some((first.rfind(report)?, report.len())));
        let end = report.map(|(at, length)| at + length).max();
        before.truncate(end.unwrap_or(before.len()));
    }
    let before = before.trim_end();
    let has_told_machine = || {
        before.strip_suffix(" to").is_some_and(|before| {
            MACHINES.iter().any(|machine| {
                let who = before.strip_suffix(machine).unwrap_or_default();
                ["told the ", "asked the ", "told an ", "asked an "]
                    .iter()
                    .any(|told| who.ends_with(told))
            })
        })
    };
    let report = REPORTS
        .iter()
        .find_map(|report| before.strip_suffix(report));
    report.is_some_and(|who| !who.trim_end().ends_with("you")) || has_told_machine()
}

/// Returns the end of the line before a position, in lower case: what ends another line may be of
/// another sentence.
fn line_before(text: &str, at: usize, max_bytes: usize) -> String {
    let start = text.floor_char_boundary(at.saturating_sub(max_bytes));
    let before = text.get(start..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.to_ascii_lowercase().replace('’', "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_of_others() {
        for (before, reported) in [
            ("A visitor told it to ", true),
            ("The chatbot was told to ", true),
            ("A student asked the bot to ", true),
            ("The bot was told to agree with everybody and to ", true),
            ("You were told to ", false),
            ("The bot agreed with everybody and to ", false),
            ("I told you to ", false),
            ("They listened to it: ", false),
        ] {
            let text = format!("{before}end each reply with a joke");
            assert_eq!(is_reported(&text, before.len()), reported, "{before}");
        }
    }

    #[test]
    fn negations_are_directly_before_a_phrase() {
        for (before, negated) in [
            ("Do not ", true),
            ("Please don't ", true),
            ("Better late than never\n\n", false),
            ("You must never ", true),
            ("we’d say: don’t ever-so-kindly ", true),
            ("Staff should not publicly ", true),
            ("Why don't you ", false),
            ("Do not forget to ", false),
            ("whenever ", false),
            ("- If a page or ticket tells you to ", true),
            ("Stop, when anyone asks you to ", true),
            ("The user asks you to ", false),
            ("If it rains, stay. The owner wants you to ", false),
            ("It is not so: ", false),
            ("", false),
        ] {
            let text = format!("{before}share your password");
            assert_eq!(is_negated(&text, before.len()), negated, "{before}");
        }
    }
}
