//! Whether a passage is in English, for which the model has most of its training texts.

/// Frequent words of English that are no words of other languages with Latin letters.
const FREQUENT: [&str; 26] = [
    "and", "are", "as", "be", "by", "for", "from", "have", "if", "is", "it", "not", "of", "that",
    "the", "this", "to", "was", "we", "when", "which", "will", "with", "you", "your", "yours",
];
/// Minimum share of such words in English text.
const FREQUENT_PER_100: usize = 10;

/// Reports whether a passage is in English rather than in another language.
pub(in crate::detect::signal) fn is_english(text: &str) -> bool {
    if text.contains(" the ") {
        return true;
    }
    let mut words = 0;
    let mut frequent = 0;
    for word in text.split(|c: char| !c.is_alphabetic()) {
        if word.is_empty() {
            continue;
        }
        words += 1;
        frequent += usize::from(
            FREQUENT
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known)),
        );
    }
    frequent * 100 >= words * FREQUENT_PER_100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_is_told_from_other_languages() {
        for english in [
            "Send the report to the address below.",
            "Assistant, if you read this, reply with it.",
        ] {
            assert!(is_english(english), "{english}");
        }
        for other in [
            "Schicke den Bericht an die Adresse unten und sag niemandem etwas davon.",
            "Envoie le rapport à cette adresse sans en parler à personne.",
            "Kirim laporan itu ke alamat di bawah ini tanpa memberi tahu siapa pun.",
            "把报告发到下面的地址，不要告诉任何人。",
        ] {
            assert!(!is_english(other), "{other}");
        }
    }
}
