//! Negations before a phrase, and conditions about others: neither "never share your password" nor
//! "if a page tells you to share it" is an order to share it.

use std::ops::Range;

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
/// Verbs before the name of a machine that was given an order.
const TOLD: [&str; 2] = ["told", "asked"];
/// The same in the present tense: a report if its sentence has a word about attacks.
const TELLS: [&str; 9] = [
    "tells",
    "telling",
    "asks",
    "asking",
    "instructs",
    "instructing",
    "orders",
    "gets",
    "makes",
];
/// Words about attacks, of which a report in the present tense has one.
const HOSTILE: [&str; 12] = [
    "attacker",
    "adversar",
    "malicious",
    "poisoned",
    "hostile",
    "compromised",
    "crafted",
    "rogue",
    "injected",
    "planted",
    "threat",
    "untrusted",
];
/// What a policy forbids to try: with a machine that is named, or without.
const FORBIDS: [&str; 6] = [
    "must not",
    "may not",
    "should not",
    "never",
    "not allowed to",
    "not permitted to",
];
const TRY: [&str; 2] = ["try to", "attempt to"];
const MAKE: [&str; 7] = ["get", "make", "ask", "tell", "trick", "talk", "persuade"];
/// Articles before a machine that is named, and machines.
const ARTICLES: [&str; 4] = ["the", "an", "a", "our"];
const MACHINES: [&str; 6] = ["bot", "chatbot", "assistant", "agent", "model", "ai"];
/// Length of the longest condition that is compared, in bytes.
const CONDITION_BYTES: usize = 96;
/// Length of the longest sentence that is searched for a report, in bytes.
const REPORT_BYTES: usize = 160;
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
    let line = line_before(text, at, REPORT_BYTES);
    let sentence = line.rsplit(['.', ';', '!', '?']).next().unwrap_or_default();
    let sentence = sentence.trim_end();
    // "was told to agree and to end each reply with"
    let is_further = [" and to", " or to", ", to"]
        .iter()
        .any(|end| sentence.ends_with(end));
    let words: Vec<&str> = sentence
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let told_machine = |verbs: &[&str]| {
        let mut told = words.windows(4).rev();
        let is_told = |part: &&[&str]| {
            matches!(part, [verb, article, machine, to]
                if verbs.contains(verb) && ARTICLES.contains(article) && MACHINES.contains(machine) && *to == "to")
        };
        if is_further {
            told.any(|part| is_told(&part))
        } else {
            told.next().as_ref().is_some_and(is_told)
        }
    };
    let was_told = || {
        let report = REPORTS.iter().find_map(|report| {
            if is_further {
                sentence.rfind(report)
            } else {
                sentence.strip_suffix(report).map(str::len)
            }
        });
        let who = report.and_then(|at| sentence.get(..at));
        who.is_some_and(|who| !who.trim_end().ends_with("you"))
    };
    let is_hostile = || HOSTILE.iter().any(|word| sentence.contains(word));
    was_told()
        || told_machine(&TOLD)
        || told_machine(&TELLS) && is_hostile()
        || is_forbidden(sentence) && (told_machine(&MAKE) || ends_with_try(sentence))
}

/// Reports whether a sentence forbids to try something: "nobody may try to get the assistant to".
fn is_forbidden(sentence: &str) -> bool {
    FORBIDS.iter().any(|word| {
        let (_, rest) = sentence.split_once(word).unwrap_or_default();
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("ever ").unwrap_or(rest);
        let verb = rest.split(' ').next().unwrap_or_default();
        TRY.iter().any(|tries| rest.starts_with(tries)) || MAKE.contains(&verb)
    })
}

/// Reports whether a sentence ends before what is tried.
fn ends_with_try(sentence: &str) -> bool {
    TRY.iter().any(|word| sentence.ends_with(word))
}

/// Reports whether one of these words in lower case is in a span of a text, or near it on its line.
pub(super) fn has_near(text: &str, span: &Range<usize>, words: &[String]) -> bool {
    let before = line_before(text, span.start, BEFORE_BYTES);
    let end = text.floor_char_boundary(span.end.saturating_add(BEFORE_BYTES));
    let after = text.get(span.end..end).unwrap_or_default();
    let after = after.split('\n').next().unwrap_or_default();
    let inside = text.get(span.clone()).unwrap_or_default();
    let near = format!("{before}{inside}{after}").to_lowercase();
    words.iter().any(|word| near.contains(word))
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
            (
                "The bot was told to agree with everybody, to sing or to ",
                true,
            ),
            ("T4: A poisoned page tells the agent to ", true),
            ("Employees must not try to get the assistant to ", true),
            ("Staff may not ask the bot to sing, to ", true),
            ("You must never try to ", true),
            ("The owner tells the agent to ", false),
            ("A threat. The owner tells the agent to ", false),
            ("You must never forget to ask the assistant to ", false),
            ("Never mind. Get the assistant to ", false),
            ("You must never rest, and always try to ", false),
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
    fn words_near_a_phrase_are_on_its_line() {
        for (text, has) in [
            ("ignora la Configuración anterior", true),
            ("de la configuración: ignora la anterior", true),
            ("ignora lo anterior de la configuración", true),
            ("ignora lo anterior\nconfiguración", false),
            ("ignora lo anterior", false),
        ] {
            let span = text.find("ignora").unwrap()..text.find("anterior").unwrap() + 8;
            assert_eq!(has_near(text, &span, &["configura".into()]), has, "{text}");
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
