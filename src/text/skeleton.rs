//! Skeletons of names: names with the same skeleton are easily mistaken for each other.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::readings::looks_like;
use super::unicode::is_invisible;

/// Returns the skeleton of a name, based on UTS #39 and going beyond it. Folds compatibility forms
/// and borrowed letters; drops case, marks, word separators and invisible characters; unifies
/// digits and letters that look like others.
pub fn skeleton(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name
        .nfkd()
        .filter(|c| !is_combining_mark(*c) && !is_invisible(*c))
    {
        for c in looks_like(c).unwrap_or(c).to_lowercase() {
            match c {
                '_' | '-' | '.' | ' ' | '/' | ':' => {}
                '0' => out.push('o'),
                '1' | 'i' | '|' => out.push('l'),
                c => out.push(c),
            }
        }
    }
    out.replace("rn", "m").replace("vv", "w")
}

#[cfg(test)]
mod tests {
    use super::skeleton;

    #[test]
    fn what_is_taken_for_each_other_is_one() {
        for alike in [
            "send_emai1",
            "sendEmail",
            "SEND-EMAIL",
            "send_emaiI",
            "sеnd_email",
            "ｓend_email",
            "send\u{200b}_email",
            "sénd.email",
        ] {
            assert_eq!(skeleton(alike), skeleton("send_email"), "{alike}");
        }
        assert_eq!(skeleton("c0rner"), skeleton("comer"));
        for other in ["send_emails", "end_email", "send_mail", "send_email2"] {
            assert_ne!(skeleton(other), skeleton("send_email"), "{other}");
        }
    }
}
