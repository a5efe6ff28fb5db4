//! Errors for calls without a token.

use super::discover::DiscoverError;
use super::grant::GrantError;
use super::identity::IdentityError;
use super::vault::VaultError;

/// Why there is no token for a call. `Display` is the beginning of a sentence for the reader of the
/// response; it contains no text written by other parties.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// A person has to log in.
    #[error("authentication required")]
    Owed {
        /// The URL of the login page; `None` if the gate has no page to show.
        link: Option<Box<str>>,
    },
    /// The server requires a login but does not name an authorization server as OAuth prescribes.
    #[error("the server requires authentication and names no authorization server")]
    NotOAuth,
    /// The authorization server cannot be reached or responds incorrectly; a retry may succeed.
    #[error("cannot query the authorization server: {0}")]
    Unreachable(String),
    /// The operator has to fix something first.
    #[error("{0}")]
    Operator(String),
    /// The server repeatedly requires more than the login grants.
    #[error("the server rejects the call even with all requested scopes")]
    Denied,
    /// The upstream requires a login for each user, and the agent's token names no user.
    #[error("this server requires a per-user login, but the agent's token names no user")]
    NoUser,
    /// The logins cannot be stored.
    #[error("cannot use the login vault: {0}")]
    Vault(String),
    /// A limit in the config was reached.
    #[error("the limit `{0}` was reached")]
    Limit(&'static str),
}

impl LoginError {
    fn at_server(is_transient: bool, message: String) -> Self {
        if is_transient {
            Self::Unreachable(message)
        } else {
            Self::Operator(message)
        }
    }
}

impl From<GrantError> for LoginError {
    fn from(error: GrantError) -> Self {
        Self::at_server(error.is_transient(), error.to_string())
    }
}

impl From<IdentityError> for LoginError {
    fn from(error: IdentityError) -> Self {
        Self::at_server(error.is_transient(), error.to_string())
    }
}

impl From<DiscoverError> for LoginError {
    fn from(error: DiscoverError) -> Self {
        if error.names_no_server() {
            return Self::NotOAuth;
        }
        Self::at_server(error.is_transient(), error.to_string())
    }
}

impl From<VaultError> for LoginError {
    fn from(error: VaultError) -> Self {
        Self::Vault(error.to_string())
    }
}
