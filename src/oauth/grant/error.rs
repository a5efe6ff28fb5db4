//! Why there is no token.

use crate::oauth::assertion::SignError;
use crate::oauth::bounds;
use crate::oauth::fetch::FetchError;

/// Why there is no token. Holds nothing that a server wrote but the code of an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// The code or refresh token is used up, revoked or over (`invalid_grant`): a new login is needed.
    #[error("the authorization server no longer accepts the login (`invalid_grant`): log in again")]
    InvalidGrant,
    /// The server does not know this client, or not so (`invalid_client`): a registration may be gone.
    #[error("the authorization server does not know this client (`invalid_client`)")]
    InvalidClient,
    /// Refused for another reason.
    #[error("the authorization server returned `{error}`")]
    Refused {
        /// The code of RFC 6749 and its kin, or `unnamed` where it is none.
        error: String,
    },
    /// No answer, or one of trouble at the server (status 5xx, 408, 429).
    #[error("cannot reach the authorization server: {0}")]
    Unreachable(String),
    /// The guard does not let the request pass.
    #[error("the authorization server is not contacted: {0}")]
    Guarded(FetchError),
    /// An answer that is not what the standard has: no JSON, no token, something twice.
    #[error("invalid answer from the authorization server")]
    Unreadable,
    /// A token that is used in another way than `Bearer`.
    #[error("the authorization server's token is not of type `Bearer`")]
    NotBearer,
    /// The server lacks what is needed.
    #[error("the authorization server does not offer {0}")]
    NotOffered(&'static str),
    /// A URL that nobody is sent to.
    #[error(
        "the {0} cannot be used: neither `https` nor `http` on loopback, or with parts that have no place in it"
    )]
    Url(&'static str),
    /// The answer is to no question of ours.
    #[error("the answer has another `state` than the request, or the same parameter twice")]
    State,
    /// The answer comes from another server than was asked (RFC 9207).
    #[error(
        "the answer names another authorization server (`iss`) than was asked, or none where one is due"
    )]
    Issuer,
    /// The key of `private_key_jwt` is missing or does not fit.
    #[error("the client cannot prove who it is: {0}")]
    Key(&'static str),
    /// The organisation's token, which others are had for, cannot be read.
    #[error("`id_token_file` cannot be read, or holds no token")]
    Subject,
}

impl GrantError {
    /// Whether the same request may fare better later. What a refresh token is for is not used up by such a failure:
    /// nobody who is to be believed said so.
    pub fn transient(&self) -> bool {
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
            Self::Guarded(error) => error.transient(),
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

    /// Whether the server itself has said no, for good: only then is a refresh token worth nothing and a login owed.
    /// What else does not pass by itself is put right in the config, and the login goes on.
    pub fn ends_login(&self) -> bool {
        matches!(
            self,
            Self::InvalidGrant | Self::InvalidClient | Self::Refused { .. }
        ) && !self.transient()
    }

    /// By the code of an error, where it looks like one.
    pub(super) fn of_code(code: &str) -> Self {
        match code {
            "invalid_grant" => Self::InvalidGrant,
            "invalid_client" => Self::InvalidClient,
            code => Self::Refused {
                error: bounds::code(code.to_owned()).unwrap_or_else(|| "unnamed".to_owned()),
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
            FetchError::Unreachable { .. } | FetchError::Late(_) | FetchError::Status(_) => {
                Self::Unreachable(error.to_string())
            }
            FetchError::Long | FetchError::Refused { .. } | FetchError::Unreadable => {
                Self::Unreadable
            }
        }
    }
}

impl From<SignError> for GrantError {
    fn from(error: SignError) -> Self {
        match error {
            SignError::NotTaken => Self::NotOffered("an algorithm that `client_key` can sign with"),
            _ => Self::Key("`client_key` cannot be used"),
        }
    }
}
