//! Token requests without a person: renewal, client credentials, and revocation.

use oauth2::{RefreshToken, Scope};

use super::GrantError;
use super::wire::{TokenClient, check_available, read};
use crate::oauth::assertion::SigningKey;
use crate::oauth::fetch::Fetcher;
use crate::oauth::{AuthorizationServer, Client, Scopes, SecretText, TokenGrant};

/// Obtains a new token with a refresh token (RFC 6749, section 6), for the scopes that were
/// granted, since a renewal cannot extend them. The refresh token is kept if no new one is issued.
///
/// # Errors
/// Fails with `InvalidGrant` if the login has ended, otherwise with the error with which the server
/// responds.
pub async fn refresh(
    fetcher: &Fetcher,
    server: &AuthorizationServer,
    client: &Client,
    key: Option<&SigningKey>,
    refresh: &SecretText,
    resource: &str,
    scopes: &Scopes,
) -> Result<TokenGrant, GrantError> {
    let token_client = TokenClient::new(fetcher, server, client, key);
    let oauth = token_client.oauth(&server.token_endpoint)?;
    let token = RefreshToken::new(refresh.expose().to_owned());
    let mut request = oauth
        .exchange_refresh_token(&token)
        .add_scopes(scopes.0.iter().cloned().map(Scope::new))
        .add_extra_param("resource", resource);
    for (name, value) in token_client.assertion_parameters()? {
        request = request.add_extra_param(name, value.expose().to_owned());
    }
    request
        .request_async(&token_client)
        .await?
        .into_grant(scopes, Some(refresh))
}

/// Obtains a token for the client itself (RFC 6749, section 4.4).
///
/// # Errors
/// Returns the error with which the server responds.
pub async fn client_credentials(
    fetcher: &Fetcher,
    server: &AuthorizationServer,
    client: &Client,
    key: Option<&SigningKey>,
    resource: &str,
    scopes: &Scopes,
) -> Result<TokenGrant, GrantError> {
    let token_client = TokenClient::new(fetcher, server, client, key);
    let oauth = token_client.oauth(&server.token_endpoint)?;
    let mut request = oauth
        .exchange_client_credentials()
        .add_scopes(scopes.0.iter().cloned().map(Scope::new))
        .add_extra_param("resource", resource);
    for (name, value) in token_client.assertion_parameters()? {
        request = request.add_extra_param(name, value.expose().to_owned());
    }
    request
        .request_async(&token_client)
        .await?
        .into_grant(scopes, None)
}

/// Revokes tokens (RFC 7009): the refresh token first, since its grant ends with it, then the
/// access token. A token that the server does not know has already ended, which counts as success.
///
/// # Errors
/// Fails with `NotOffered` if there is no such endpoint, otherwise with the first error, after both
/// were tried.
pub async fn revoke(
    fetcher: &Fetcher,
    server: &AuthorizationServer,
    client: &Client,
    key: Option<&SigningKey>,
    granted: &TokenGrant,
) -> Result<(), GrantError> {
    let endpoint = server
        .revocation_endpoint
        .as_deref()
        .ok_or(GrantError::NotOffered("revocation"))?;
    let token_client = TokenClient::new(fetcher, server, client, key);
    let tokens = [
        (granted.refresh.as_ref(), "refresh_token"),
        (Some(&granted.access), "access_token"),
    ];
    let mut outcome = Ok(());
    for (token, hint) in tokens {
        let Some(token) = token else { continue };
        let result = revoke_one(&token_client, endpoint, token, hint).await;
        outcome = outcome.and(result);
    }
    outcome
}

async fn revoke_one(
    token_client: &TokenClient<'_>,
    endpoint: &str,
    token: &SecretText,
    hint: &str,
) -> Result<(), GrantError> {
    let response = token_client
        .post(
            endpoint,
            &[("token", token.expose()), ("token_type_hint", hint)],
        )
        .await?;
    check_available(&response)?;
    if response.status().is_success() {
        return Ok(());
    }
    match read(&response) {
        // Servers that cannot revoke access tokens respond with this (section 2.2.1); those tokens
        // expire on their own.
        Err(GrantError::Refused { error })
            if error == "unsupported_token_type" && hint == "access_token" =>
        {
            Ok(())
        }
        Err(error) => Err(error),
        Ok(_) => Err(GrantError::Unreadable),
    }
}
