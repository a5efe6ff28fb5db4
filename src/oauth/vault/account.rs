//! What is kept of one login.

use serde::{Deserialize, Serialize};

use crate::oauth::{AuthorizationServer, Client, LoginParty, Scopes, TokenGrant};

/// One login: everything that is known of one principal at one upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The upstream, by its name in the config.
    pub upstream: String,
    /// Whom its credentials belong to. At another party they are worth nothing, and must not be shown.
    pub party: LoginParty,
    /// The authorization server, as it was found then.
    pub server: AuthorizationServer,
    /// Who the gate is there.
    pub client: Client,
    /// What was granted; `None` where a client is registered and nobody has logged in, or must do so again.
    pub granted: Option<TokenGrant>,
    /// Scopes that were asked for last.
    #[serde(default)]
    pub asked: Scopes,
    /// When a token was last renewed, in seconds since 1970.
    #[serde(default)]
    pub last_refresh_unix: Option<u64>,
    /// Why that did not work the last time it was tried, in words of ours.
    #[serde(default)]
    pub last_error: Option<String>,
}
