//! Limits on the metadata that servers provide about themselves. Entries beyond a limit are left
//! out; if leaving them out would change the meaning, the whole is treated as unreadable.

use super::Scopes;

/// Maximum length of a URL, in bytes.
pub(super) const URL_BYTES: usize = 2048;
/// Maximum length of a scope, an error code, or the name of a method, grant or algorithm, in bytes.
const WORD_BYTES: usize = 256;
/// Maximum number of these in one list.
const MAX_WORDS: usize = 1000;
/// Maximum total length of the scopes in one list, in bytes: they are sent in a URL.
const SCOPE_BYTES: usize = 16 << 10;
/// Error codes of RFC 6749, 6750, 7591, 8628, 8707, 9101, 9449 and OpenID Connect Core, and some
/// others in common use.
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

/// Reports whether a string can be a URL: not too long, visible ASCII. The string itself is not
/// changed.
pub(super) fn is_url(text: &str) -> bool {
    !text.is_empty() && text.len() <= URL_BYTES && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Returns the words of a list, within the limits.
pub(super) fn limit_words(list: Vec<String>) -> Vec<String> {
    list.into_iter()
        .filter(|word| word.len() <= WORD_BYTES)
        .take(MAX_WORDS)
        .collect()
}

/// Returns the valid scopes among some words (RFC 6749, section 3.3).
pub(super) fn valid_scopes<'t>(words: impl Iterator<Item = &'t str>) -> Scopes {
    let is_scope_char = |b: u8| b.is_ascii_graphic() && b != b'"' && b != b'\\';
    let fits = |word: &&str| {
        !word.is_empty() && word.len() <= WORD_BYTES && word.bytes().all(is_scope_char)
    };
    let mut remaining_bytes = SCOPE_BYTES;
    let within = |word: &&str| {
        remaining_bytes = remaining_bytes.saturating_sub(word.len() + 1);
        remaining_bytes > 0
    };
    Scopes(
        words
            .filter(fits)
            .take(MAX_WORDS)
            .take_while(within)
            .map(str::to_owned)
            .collect(),
    )
}

/// Returns an error code if it is a known one: codes are repeated in responses, logs and pages, and
/// an unknown one could be a sentence.
pub(super) fn known_error_code(text: String) -> Option<String> {
    CODES.contains(&text.as_str()).then_some(text)
}
