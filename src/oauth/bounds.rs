//! How much of what servers say of themselves is taken. What is beyond is left out, or makes the whole unreadable where
//! leaving it out would change what it says.

use super::Scopes;

/// Longest URL, in bytes.
pub(super) const URL_BYTES: usize = 2048;
/// Longest scope, code of an error, name of a method, grant or algorithm, in bytes.
const WORD_BYTES: usize = 256;
/// Most of them in one list.
const WORDS: usize = 1000;
/// All scopes of one list together, in bytes: they travel in a URL.
const SCOPE_BYTES: usize = 16 << 10;
/// Longest code of an error that is repeated.
const CODE_BYTES: usize = 64;

/// A URL as it came, if it can be one: not too long, visible ASCII.
pub(super) fn url(text: &str) -> bool {
    !text.is_empty() && text.len() <= URL_BYTES && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Words of a list.
pub(super) fn words(list: Vec<String>) -> Vec<String> {
    list.into_iter().filter(|word| word.len() <= WORD_BYTES).take(WORDS).collect()
}

/// The scopes among some words (RFC 6749, section 3.3).
pub(super) fn scopes<'t>(words: impl Iterator<Item = &'t str>) -> Scopes {
    let letter = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\\';
    let fits = |word: &&str| !word.is_empty() && word.len() <= WORD_BYTES && word.bytes().all(letter);
    let mut room = SCOPE_BYTES;
    let within = |word: &&str| {
        room = room.saturating_sub(word.len() + 1);
        room > 0
    };
    Scopes(words.filter(fits).take(WORDS).take_while(within).map(str::to_owned).collect())
}

/// The code of an error, where it looks like one: what else a server says of itself is not repeated.
pub(super) fn code(text: String) -> Option<String> {
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    (!text.is_empty() && text.len() <= CODE_BYTES && text.bytes().all(letter)).then_some(text)
}
