//! Token requests without a person: renewal, client credentials, and revocation.

use oauth2::{RefreshToken, Scope};

use super::GrantError;
use super::wire::{TokenClient, check_available, read};
use crate::oauth::{SecretText, TokenGrant};

impl TokenClient<'_> {
    /// Obtains a new token with a refresh token (RFC 6749, section 6), for the scopes that were
    /// granted, since a renewal cannot extend them. The refresh token is kept if no new one is
    /// issued.
    ///
    /// # Errors
    /// Fails with `InvalidGrant` if the login has ended, otherwise with the error with which the
    /// server responds.
    pub async fn refresh(&self, refresh: &SecretText) -> Result<TokenGrant, GrantError> {
        let oauth = self.oauth()?;
        let token = RefreshToken::new(refresh.expose().to_owned());
        let mut request = oauth
            .exchange_refresh_token(&token)
            .add_scopes(self.scopes.0.iter().cloned().map(Scope::new))
            .add_extra_param("resource", self.resource);
        for (name, value) in self.assertion_parameters()? {
            request = request.add_extra_param(name, value.expose().to_owned());
        }
        let tokens = request.request_async(self).await?;
        tokens.into_grant(self.scopes, Some(refresh))
    }

    /// Obtains a token for the client itself (RFC 6749, section 4.4).
    ///
    /// # Errors
    /// Returns the error with which the server responds.
    pub async fn client_credentials(&self) -> Result<TokenGrant, GrantError> {
        let oauth = self.oauth()?;
        let mut request = oauth
            .exchange_client_credentials()
            .add_scopes(self.scopes.0.iter().cloned().map(Scope::new))
            .add_extra_param("resource", self.resource);
        for (name, value) in self.assertion_parameters()? {
            request = request.add_extra_param(name, value.expose().to_owned());
        }
        let tokens = request.request_async(self).await?;
        tokens.into_grant(self.scopes, None)
    }

    /// Revokes tokens (RFC 7009): the refresh token first, since its grant ends with it, then the
    /// access token. A token that the server does not know has already ended, which counts as
    /// success.
    ///
    /// # Errors
    /// Fails with `NotOffered` if there is no such endpoint, otherwise with the first error, after
    /// both were tried.
    pub async fn revoke(&self, granted: &TokenGrant) -> Result<(), GrantError> {
        let endpoint = self
            .server
            .revocation_endpoint
            .as_deref()
            .ok_or(GrantError::NotOffered("revocation"))?;
        let mut outcome = Ok(());
        if let Some(token) = &granted.refresh {
            outcome = self.revoke_one(endpoint, token, "refresh_token").await;
        }
        let access = self.revoke_one(endpoint, &granted.access, "access_token");
        outcome.and(access.await)
    }

    async fn revoke_one(
        &self,
        endpoint: &str,
        token: &SecretText,
        hint: &str,
    ) -> Result<(), GrantError> {
        let parameters = [("token", token.expose()), ("token_type_hint", hint)];
        let response = self.post(endpoint, &parameters).await?;
        check_available(&response)?;
        if response.status().is_success() {
            return Ok(());
        }
        match read(&response) {
            // Servers that cannot revoke access tokens respond with this (section 2.2.1); those
            // tokens expire on their own.
            Err(GrantError::Refused { error })
                if error == "unsupported_token_type" && hint == "access_token" =>
            {
                Ok(())
            }
            Err(error) => Err(error),
            Ok(_) => Err(GrantError::Unreadable),
        }
    }
}
