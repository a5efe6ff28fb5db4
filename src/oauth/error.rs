//! Why there is no token for a call.

/// Why there is no token for a call. `Display` is a sentence's beginning for whoever reads the answer; nothing of what
/// other parties wrote stands in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// A person has to log in.
    #[error("authentication required")]
    Owed {
        /// Where to; `None` where the gate has no page to show.
        link: Option<Box<str>>,
    },
    /// The server wants a login and does not say where, as OAuth has it.
    #[error("the server requires authentication and names no authorization server")]
    NotOAuth,
    /// The authorization server cannot be reached, or does not answer as it should: worth another try.
    #[error("cannot query the authorization server: {0}")]
    Unreachable(String),
    /// Something has to be put right by the operator first.
    #[error("{0}")]
    Operator(String),
    /// The server asks for more than the login gives, again and again.
    #[error("the server rejects the call even with all requested scopes")]
    Denied,
    /// The upstream wants each user's own login, and the agent's token names no user.
    #[error("this server requires a per-user login, but the agent's token names no user")]
    NoUser,
    /// The logins cannot be kept.
    #[error("cannot use the login vault: {0}")]
    Vault(String),
    /// A limit of the config was hit.
    #[error("the limit `{0}` was reached")]
    Limit(&'static str),
}
