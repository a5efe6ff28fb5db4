//! Negations before a phrase: "never share your password" is no order to share it.

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
/// Length of the longest text before a phrase that is compared, in bytes: an adverb may be between.
const BEFORE_BYTES: usize = 32;

/// Reports whether a negation is directly before a position of a text on its line, or before an adverb
/// there.
pub(super) fn is_negated(text: &str, at: usize) -> bool {
    let start = text.floor_char_boundary(at.saturating_sub(BEFORE_BYTES));
    let before = text.get(start..at).unwrap_or_default();
    // What ends a line before the phrase may be of another sentence.
    let before = before.rsplit('\n').next().unwrap_or_default();
    let before = before.to_ascii_lowercase().replace('’', "'");
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

#[cfg(test)]
mod tests {
    use super::*;

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
            ("It is not so: ", false),
            ("", false),
        ] {
            let text = format!("{before}share your password");
            assert_eq!(is_negated(&text, before.len()), negated, "{before}");
        }
    }
}
