//! Texts that are written backwards as a whole. Shapes are recognized backwards by their literals.
//! Secrets that are recognized by their names, or by both of their ends, are only found after the
//! text has been reversed.

/// Strings that indicate a reversed text: reversed words of names and prefixes of values. Lower
/// case, without joints, and rare in ordinary texts.
pub(super) const MIRRORED: [&str; 32] = [
    "//:",
    "drowssap",
    "dwssap",
    "esarhpssap",
    "ssap_",
    "dwp_",
    "_dwp",
    "terces",
    "nekot",
    "yek_ipa",
    "yek-ipa",
    "yekipa",
    "yek_sse",
    "yek_eta",
    "yeketa",
    "yek_htu",
    "noitazirohtua",
    "laitnederc",
    "reraeb",
    "cisab:",
    "eikooc",
    "koohbew",
    "etavirp",
    "jye",
    "$1$",
    "$5$",
    "$6$",
    "$7$",
    "$y$",
    "$b2$",
    "$a2$",
    "$y2$",
];

/// Reports whether base64 padding precedes the run of characters at `start`, and nothing that it
/// could belong to precedes the padding.
pub(super) fn is_reversed_base64(text: &str, start: usize) -> bool {
    let before = text
        .as_bytes()
        .get(start.saturating_sub(4)..start)
        .unwrap_or_default();
    let signs = before
        .iter()
        .rev()
        .take_while(|byte| **byte == b'=')
        .count();
    let outside = before
        .len()
        .checked_sub(signs + 1)
        .and_then(|at| before.get(at));
    matches!(signs, 1 | 2)
        && outside.is_none_or(|byte| {
            matches!(
                byte,
                b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'(' | b'>'
            )
        })
}

/// Returns the characters of a text in reverse order.
pub(super) fn reverse(text: &str) -> String {
    text.chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_that_ends_first_is_known() {
        for text in ["==QYhJ", "=QYhJ", "echo ==QYhJ", "\"=QYhJ\""] {
            assert!(
                is_reversed_base64(text, text.rfind('=').unwrap() + 1),
                "{text}"
            );
        }
        for text in ["a=QYhJ", "a==QYhJ", "QYhJ", "====QYhJ"] {
            assert!(!is_reversed_base64(text, text.find('Q').unwrap()), "{text}");
        }
    }

    #[test]
    fn what_tells_is_no_word_of_its_own() {
        for literal in MIRRORED {
            assert!(
                literal.len() >= 3 && literal.to_lowercase() == literal,
                "{literal}"
            );
        }
        assert_eq!(reverse("drowssap é"), "é password");
    }
}
