//! The stored data of one login.

use serde::{Deserialize, Serialize};

use crate::oauth::{AuthorizationServer, Client, LoginParty, Scopes, TokenGrant};

/// One login: everything that is stored for one principal at one upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The upstream, by its name in the config.
    pub upstream: String,
    /// The party that its credentials belong to. At another party they are invalid, and must not be
    /// sent there.
    pub party: LoginParty,
    /// The authorization server, as it was discovered at the time of the login.
    pub server: AuthorizationServer,
    /// The gate's client identity there.
    pub client: Client,
    /// What was granted; `None` if a client is registered but nobody has logged in, or a new login
    /// is required.
    pub granted: Option<TokenGrant>,
    /// The scopes that were last requested.
    #[serde(default)]
    pub asked: Scopes,
    /// When a token was last renewed, in seconds since 1970.
    #[serde(default)]
    pub last_refresh_unix: Option<u64>,
    /// The error of the last attempt if it failed, in the gate's own words.
    #[serde(default)]
    pub last_error: Option<String>,
}
