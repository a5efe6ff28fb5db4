//! Errors of token requests.

use crate::oauth::assertion::SignError;
use crate::oauth::bounds;
use crate::oauth::fetch::FetchError;

/// Why no token was obtained. Contains nothing that a server wrote except an error code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// The code or refresh token was used, revoked or has expired (`invalid_grant`): a new login is
    /// required.
    #[error("the authorization server no longer accepts the login (`invalid_grant`): log in again")]
    InvalidGrant,
    /// The server does not accept this client or its credentials (`invalid_client`): a registration
    /// may have been removed.
    #[error("the authorization server does not know this client (`invalid_client`)")]
    InvalidClient,
    /// Refused for another reason.
    #[error("the authorization server returned `{error}`")]
    Refused {
        /// The error code of RFC 6749 or a related standard, or `unnamed` if it is not a known one.
        error: String,
    },
    /// No response, or a server failure (status 5xx, 408, 429).
    #[error("cannot reach the authorization server: {0}")]
    Unreachable(String),
    /// The guard forbids the request.
    #[error("the authorization server is not contacted: {0}")]
    Guarded(FetchError),
    /// A response that does not conform to the standard: not JSON, no token, or a duplicate key.
    #[error("invalid answer from the authorization server")]
    Unreadable,
    /// A token of a type other than `Bearer`.
    #[error("the authorization server's token is not of type `Bearer`")]
    NotBearer,
    /// The server does not support something that is required.
    #[error("the authorization server does not offer {0}")]
    NotOffered(&'static str),
    /// A URL that must not be visited.
    #[error(
        "the {0} cannot be used: neither `https` nor `http` on loopback, or with parts that have no place in it"
    )]
    Url(&'static str),
    /// The answer does not belong to a request of this gate.
    #[error("the answer has another `state` than the request, or the same parameter twice")]
    State,
    /// The answer comes from a server other than the one that was asked (RFC 9207).
    #[error(
        "the answer names another authorization server (`iss`) than was asked, or none where one is due"
    )]
    Issuer,
    /// The key for `private_key_jwt` is missing or unsuitable.
    #[error("the client cannot prove who it is: {0}")]
    Key(&'static str),
    /// The organisation's token, which is exchanged for others, cannot be read.
    #[error("`id_token_file` cannot be read, or holds no token")]
    Subject,
}

impl GrantError {
    /// Reports whether the same request may succeed later. Such a failure does not invalidate a
    /// refresh token, since no trusted party has declared it invalid.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Unreadable | Self::Subject => true,
            Self::Refused { error } => {
                matches!(
                    error.as_str(),
                    "temporarily_unavailable"
                        | "server_error"
                        | "slow_down"
                        | "authorization_pending"
                )
            }
            Self::Guarded(error) => error.is_transient(),
            Self::InvalidGrant
            | Self::InvalidClient
            | Self::NotBearer
            | Self::NotOffered(_)
            | Self::Url(_)
            | Self::State
            | Self::Issuer
            | Self::Key(_) => false,
        }
    }

    /// Reports whether the server itself has refused permanently: only then is a refresh token
    /// worthless and a new login required. Other permanent errors are fixed in the config, after
    /// which the login remains valid.
    pub fn ends_login(&self) -> bool {
        matches!(
            self,
            Self::InvalidGrant | Self::InvalidClient | Self::Refused { .. }
        ) && !self.is_transient()
    }

    /// Returns the error for an error code, if it is a known one.
    pub(super) fn of_code(code: &str) -> Self {
        match code {
            "invalid_grant" => Self::InvalidGrant,
            "invalid_client" => Self::InvalidClient,
            code => Self::Refused {
                error: bounds::known_error_code(code.to_owned())
                    .unwrap_or_else(|| "unnamed".to_owned()),
            },
        }
    }
}

impl From<FetchError> for GrantError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Url | FetchError::Plain(_) | FetchError::Forbidden { .. } => {
                Self::Guarded(error)
            }
            FetchError::Unreachable { .. } | FetchError::Timeout(_) | FetchError::Status(_) => {
                Self::Unreachable(error.to_string())
            }
            FetchError::TooLong | FetchError::Refused { .. } | FetchError::Unreadable => {
                Self::Unreadable
            }
        }
    }
}

impl From<SignError> for GrantError {
    fn from(error: SignError) -> Self {
        match error {
            SignError::NoCommonAlgorithm => {
                Self::NotOffered("an algorithm that `client_key` can sign with")
            }
            _ => Self::Key("`client_key` cannot be used"),
        }
    }
}
