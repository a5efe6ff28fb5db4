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
/// Codes of errors: RFC 6749, 6750, 7591, 8628, 8707, 9101, 9449 and OpenID Connect Core, and some that are common.
const CODES: [&str; 33] = [
    "access_denied",
    "account_selection_required",
    "authorization_pending",
    "bad_verification_code",
    "consent_required",
    "expired_token",
    "incorrect_client_credentials",
    "insufficient_scope",
    "interaction_required",
    "invalid_client",
    "invalid_client_metadata",
    "invalid_dpop_proof",
    "invalid_grant",
    "invalid_redirect_uri",
    "invalid_request",
    "invalid_request_object",
    "invalid_request_uri",
    "invalid_scope",
    "invalid_software_statement",
    "invalid_target",
    "invalid_token",
    "login_required",
    "redirect_uri_mismatch",
    "request_not_supported",
    "server_error",
    "slow_down",
    "temporarily_unavailable",
    "unapproved_software_statement",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
    "unsupported_token_type",
    "use_dpop_nonce",
];

/// A URL as it came, if it can be one: not too long, visible ASCII.
pub(super) fn url(text: &str) -> bool {
    !text.is_empty() && text.len() <= URL_BYTES && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Words of a list.
pub(super) fn words(list: Vec<String>) -> Vec<String> {
    list.into_iter()
        .filter(|word| word.len() <= WORD_BYTES)
        .take(WORDS)
        .collect()
}

/// The scopes among some words (RFC 6749, section 3.3).
pub(super) fn scopes<'t>(words: impl Iterator<Item = &'t str>) -> Scopes {
    let letter = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\\';
    let fits =
        |word: &&str| !word.is_empty() && word.len() <= WORD_BYTES && word.bytes().all(letter);
    let mut room = SCOPE_BYTES;
    let within = |word: &&str| {
        room = room.saturating_sub(word.len() + 1);
        room > 0
    };
    Scopes(
        words
            .filter(fits)
            .take(WORDS)
            .take_while(within)
            .map(str::to_owned)
            .collect(),
    )
}

/// The code of an error, if it is a known one: answers, logs and pages repeat it, and any other could be a sentence.
pub(super) fn code(text: String) -> Option<String> {
    CODES.contains(&text.as_str()).then_some(text)
}
