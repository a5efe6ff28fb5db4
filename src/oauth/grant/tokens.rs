//! Responses of token endpoints (RFC 6749, section 5.1), as servers actually send them.

use std::collections::HashMap;
use std::time::Duration;

use oauth2::{AccessToken, RefreshToken, Scope, TokenResponse, TokenType};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use super::GrantError;
use crate::message::Json;
use crate::oauth::bounds;
use crate::oauth::{Scopes, SecretText, TokenGrant, unix_now};

/// Maximum length of a token, in bytes.
const MOST_TOKEN_BYTES: usize = 32 << 10;
/// Maximum number of elements in a list of scopes.
const MOST_PARTS: usize = 1000;
/// Maximum lifetime of a token; those that claim to last longer are renewed after ten years.
const MOST_SECONDS: u64 = 10 * 365 * 86_400;

/// The response of a token endpoint.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Tokens {
    access_token: AccessToken,
    token_type: TokenKind,
    #[serde(default)]
    expires_in: Seconds,
    #[serde(default)]
    refresh_token: Option<RefreshToken>,
    #[serde(default)]
    scope: Option<Words>,
    #[serde(default)]
    issued_token_type: Option<String>,
}

impl Tokens {
    /// Parses the response to a request that the crate does not support.
    pub(super) fn read(json: &Json) -> Result<Self, GrantError> {
        serde_json::from_slice(json.bytes()).map_err(|_| GrantError::Unreadable)
    }

    /// Returns the tokens, if they are usable. `requested_scopes` are their scopes if the response
    /// names none; `earlier_token` is the refresh token that is kept if no new one is issued (RFC
    /// 6749, section 6).
    pub(super) fn into_grant(
        self,
        requested_scopes: &Scopes,
        earlier_token: Option<&SecretText>,
    ) -> Result<TokenGrant, GrantError> {
        if !self.token_type.0.eq_ignore_ascii_case("bearer") {
            return Err(GrantError::NotBearer);
        }
        let given_unix = unix_now();
        let refresh_token = self
            .refresh_token
            .map(|token| SecretText::new(token.into_secret()));
        let refresh_token = refresh_token.filter(|token| !token.expose().is_empty());
        if refresh_token
            .as_ref()
            .is_some_and(|token| !is_sendable(token, b' '))
        {
            return Err(GrantError::Unreadable);
        }
        let access = SecretText::new(self.access_token.into_secret());
        if !is_sendable(&access, b'!') {
            return Err(GrantError::Unreadable);
        }
        Ok(TokenGrant {
            access,
            refresh: refresh_token.or_else(|| earlier_token.cloned()),
            expires_unix: self
                .expires_in
                .0
                .map(|seconds| given_unix.saturating_add(seconds.min(MOST_SECONDS))),
            given_unix,
            scopes: self.scope.map_or_else(
                || requested_scopes.clone(),
                |words| Scopes(words.0.iter().map(|scope| scope.to_string()).collect()),
            ),
        })
    }

    /// Returns the token of this type that an exchange returned (RFC 8693, section 2.2.1).
    pub(super) fn into_exchanged_token(self, kind: &str) -> Result<SecretText, GrantError> {
        let token = SecretText::new(self.access_token.into_secret());
        if self.issued_token_type.as_deref() != Some(kind) || !is_sendable(&token, b'!') {
            return Err(GrantError::Unreadable);
        }
        Ok(token)
    }
}

/// Reports whether a token can be sent in a header or form: printable ASCII, starting at `lowest`.
pub(super) fn is_sendable(token: &SecretText, lowest: u8) -> bool {
    let token = token.expose();
    (1..=MOST_TOKEN_BYTES).contains(&token.len())
        && token.bytes().all(|b| (lowest..=b'~').contains(&b))
}

impl TokenResponse for Tokens {
    type TokenType = TokenKind;

    fn access_token(&self) -> &AccessToken {
        &self.access_token
    }

    fn token_type(&self) -> &TokenKind {
        &self.token_type
    }

    fn expires_in(&self) -> Option<Duration> {
        self.expires_in.0.map(Duration::from_secs)
    }

    fn refresh_token(&self) -> Option<&RefreshToken> {
        self.refresh_token.as_ref()
    }

    fn scopes(&self) -> Option<&Vec<Scope>> {
        self.scope.as_ref().map(|words| &words.0)
    }
}

/// The type of a token, as received.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct TokenKind(String);

impl TokenType for TokenKind {}

/// A number of seconds, as a number or in a string. A value that is not a number, or not more than
/// 0, counts as not stated: the token is used until the server rejects it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Seconds(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Scalar::deserialize(deserializer)? {
            Scalar::Number(number) if number >= 1.0 => {
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "positive; `as` saturates"
                )]
                let seconds = number as u64;
                Some(seconds)
            }
            Scalar::Text(text) => text.trim().parse().ok().filter(|seconds| *seconds > 0),
            _ => None,
        }))
    }
}

/// Scopes: words separated by spaces, or a list.
#[derive(Debug, Serialize)]
struct Words(Vec<Scope>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = match Scalar::deserialize(deserializer)? {
            Scalar::Text(text) => vec![text],
            Scalar::Texts(texts) => texts,
            _ => vec![],
        };
        let texts = texts.iter().take(MOST_PARTS);
        let scopes = bounds::valid_scopes(texts.flat_map(|text| text.split_ascii_whitespace()));
        Ok(Self(scopes.0.into_iter().map(Scope::new).collect()))
    }
}

/// A value as found where a standard requires a certain type.
#[derive(Deserialize)]
#[serde(untagged)]
#[allow(dead_code, reason = "some kinds are read only to be passed over")]
enum Scalar {
    Number(f64),
    Text(String),
    Texts(Vec<String>),
    Flag(bool),
    Null(()),
    Object(HashMap<String, IgnoredAny>),
}
