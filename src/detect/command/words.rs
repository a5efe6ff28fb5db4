//! The role of a word at the start of a command: a keyword, an assignment, or neither.

use super::lex::Word;
use crate::text::quick::WordSet;

/// Returns the text of a word that is plain text, unquoted.
pub(super) fn plain(word: &Word) -> Option<&str> {
    match word.as_slice() {
        [only] => only.as_plain(),
        _ => None,
    }
}

/// Returns the keyword that a word is.
pub(super) fn keyword(word: &Word) -> Option<&str> {
    static KEYWORDS: WordSet = WordSet::new(
        "! then do else elif fi done esac } { while until for select if case in function coproc",
    );
    plain(word).filter(|text| KEYWORDS.contains(text))
}

/// Returns the name that a word assigns to, and whether it appends.
pub(super) fn assignment(word: &Word) -> Option<(String, bool)> {
    let (name, _) = word.first()?.as_plain()?.split_once('=')?;
    let name = name.split('[').next().unwrap_or(name);
    let (name, appends) = name
        .strip_suffix('+')
        .map_or((name, false), |name| (name, true));
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    valid.then(|| (name.to_owned(), appends))
}
