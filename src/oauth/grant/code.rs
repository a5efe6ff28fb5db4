//! Logins by a person: the authorization code grant with PKCE (OAuth 2.1, section 4.1; RFC 7636,
//! RFC 8707, RFC 9207).

use std::borrow::Cow;
use std::fmt;

use oauth2::url::{Host, Url, form_urlencoded};
use oauth2::{
    AuthUrl, AuthorizationCode, ClientId, CsrfToken, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, Scope,
};
use subtle::ConstantTimeEq;

use super::GrantError;
use super::tokens::is_sendable;
use super::wire::{OAuth, TokenClient};
use crate::oauth::{AuthorizationServer, SecretText, TokenGrant};

/// Maximum length of an answer, in bytes.
const MOST_ANSWER_BYTES: usize = 32 << 10;
/// Parameters that the request sets; an endpoint whose own query contains one of them would make
/// the request ambiguous.
const OWN_PARAMETERS: [&str; 9] = [
    "response_type",
    "client_id",
    "state",
    "code_challenge",
    "code_challenge_method",
    "redirect_uri",
    "scope",
    "resource",
    "request_uri",
];

/// A login that was begun: where the person is sent, and how the answer is recognized.
#[derive(Clone)]
pub struct Attempt {
    /// The URL that the browser visits. Contains the state.
    pub url: String,
    /// The state that the answer must repeat: 256 random bits.
    pub state: SecretText,
    /// The verifier, which proves that the code is redeemed by the client that requested it (RFC
    /// 7636): 256 random bits.
    pub verifier: SecretText,
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoint = self.url.split('?').next().unwrap_or_default();
        f.debug_struct("Attempt")
            .field("endpoint", &endpoint)
            .finish_non_exhaustive()
    }
}

/// The answer that came back through the browser. Anyone can forge one.
#[derive(Clone, Default)]
pub struct Answer {
    /// The login that it answers.
    pub state: Option<SecretText>,
    /// The authorization code.
    pub code: Option<SecretText>,
    /// The issuer that answers (RFC 9207).
    pub iss: Option<String>,
    /// The error code.
    pub error: Option<String>,
    /// The server's description of the error. Never shown.
    pub error_description: Option<String>,
}

impl Answer {
    /// Reports whether it answers the login with this state.
    pub fn has_state(&self, expected: &SecretText) -> bool {
        let expected = expected.expose().as_bytes();
        self.state
            .as_ref()
            .is_some_and(|state| state.expose().as_bytes().ct_eq(expected).into())
    }

    /// Parses the query of the redirect. A query with a duplicate parameter, or one that is too
    /// long, counts as empty.
    pub fn from_query(query: &str) -> Self {
        let mut answer = Self::default();
        if query.len() > MOST_ANSWER_BYTES {
            return answer;
        }
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let is_duplicate = match name.as_ref() {
                "state" => answer.state.replace(SecretText::new(value)).is_some(),
                "code" => answer.code.replace(SecretText::new(value)).is_some(),
                "iss" => answer.iss.replace(value).is_some(),
                "error" => answer.error.replace(value).is_some(),
                "error_description" => answer.error_description.replace(value).is_some(),
                _ => false,
            };
            if is_duplicate {
                return Self::default();
            }
        }
        answer
    }

    /// Parses a redirected URL that a person pasted, or only its query.
    pub fn from_pasted(text: &str) -> Self {
        let text = text.trim();
        let text = text.split_once('#').map_or(text, |(text, _)| text);
        Self::from_query(text.split_once('?').map_or(text, |(_, query)| query))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.is_some();
        let error = self.error.is_some();
        f.debug_struct("Answer")
            .field("code", &code)
            .field("error", &error)
            .finish_non_exhaustive()
    }
}

impl TokenClient<'_> {
    /// Begins a login.
    ///
    /// # Errors
    /// Fails if the server has no authorization endpoint, or none that a browser may be sent to, or
    /// does not support S256.
    pub fn begin(&self, redirect_uri: &str) -> Result<Attempt, GrantError> {
        if !self.server.s256 {
            return Err(GrantError::NotOffered(
                "PKCE with S256 (`code_challenge_methods_supported`)",
            ));
        }
        let endpoint = self
            .server
            .authorization_endpoint
            .clone()
            .ok_or(GrantError::NotOffered("an authorization endpoint"))?;
        let endpoint =
            AuthUrl::new(endpoint).map_err(|_| GrantError::Url("authorization endpoint"))?;
        let clashes = endpoint
            .url()
            .query_pairs()
            .any(|(name, _)| OWN_PARAMETERS.contains(&name.as_ref()));
        if !is_safe_for_browser(endpoint.url()) || clashes {
            return Err(GrantError::Url("authorization endpoint"));
        }
        let oauth = OAuth::<oauth2::EndpointNotSet>::new(ClientId::new(self.client.id.clone()))
            .set_auth_uri(endpoint);
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let (url, state) = oauth
            .authorize_url(|| CsrfToken::new_random_len(32))
            .set_pkce_challenge(challenge)
            .set_redirect_uri(Cow::Owned(redirect_url(redirect_uri)?))
            .add_scopes(self.scopes.0.iter().cloned().map(Scope::new))
            .add_extra_param("resource", self.resource)
            .url();
        Ok(Attempt {
            url: url.into(),
            state: SecretText::new(state.into_secret()),
            verifier: SecretText::new(verifier.into_secret()),
        })
    }

    /// Redeems the code for tokens.
    ///
    /// # Errors
    /// Returns the error with which the server responds.
    pub async fn redeem(
        &self,
        redirect_uri: &str,
        code: &SecretText,
        verifier: &SecretText,
    ) -> Result<TokenGrant, GrantError> {
        let oauth = self.oauth()?;
        let mut request = oauth
            .exchange_code(AuthorizationCode::new(code.expose().to_owned()))
            .set_pkce_verifier(PkceCodeVerifier::new(verifier.expose().to_owned()))
            .set_redirect_uri(Cow::Owned(redirect_url(redirect_uri)?))
            .add_extra_param("resource", self.resource);
        for (name, value) in self.assertion_parameters()? {
            request = request.add_extra_param(name, value.expose().to_owned());
        }
        let tokens = request.request_async(self).await?;
        tokens.into_grant(self.scopes, None)
    }
}

/// Checks an answer: that it belongs to this login, then that it comes from the server that was
/// asked (RFC 9207, section 2.4), and only then its content. Returns the code.
///
/// # Errors
/// `State` and `Issuer`, after which nothing else in the answer may be shown; the error that the
/// server returned; or that there is no code.
pub fn check_answer(
    server: &AuthorizationServer,
    expected_state: &SecretText,
    answer: &Answer,
) -> Result<SecretText, GrantError> {
    if !answer.has_state(expected_state) {
        return Err(GrantError::State);
    }
    match &answer.iss {
        Some(issuer) if *issuer != server.issuer => return Err(GrantError::Issuer),
        None if server.iss_in_response => return Err(GrantError::Issuer),
        Some(_) | None => {}
    }
    if let Some(error) = &answer.error {
        return Err(match GrantError::of_code(error) {
            // Codes of the token endpoint: here they do not concern a grant or a registration.
            GrantError::InvalidGrant | GrantError::InvalidClient => GrantError::Refused {
                error: error.clone(),
            },
            error => error,
        });
    }
    answer
        .code
        .clone()
        .filter(|code| is_sendable(code, b' '))
        .ok_or(GrantError::Unreadable)
}

/// Reports whether a browser may be sent to a URL: `https`, or `http` on this machine, without
/// parts that obscure where it leads.
pub(super) fn is_safe_for_browser(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_plain =
        url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    is_plain
        && url.has_host()
        && (url.scheme() == "https" || (url.scheme() == "http" && is_loopback))
}

fn redirect_url(uri: &str) -> Result<RedirectUrl, GrantError> {
    RedirectUrl::new(uri.to_owned()).map_err(|_| GrantError::Url("redirect URI"))
}
