//! Selection of the scopes to request.

use crate::config::{Grant, LoginConfig};
use crate::oauth::Scopes;
use crate::oauth::challenge::Challenge;
use crate::oauth::discover::Discovery;

/// The scope that requests a refresh token at servers that support it (OpenID Connect Core, section
/// 11).
const OFFLINE: &str = "offline_access";

/// Returns the scopes for a first login: those of the config, otherwise those of the server's
/// challenge, otherwise those of its metadata, otherwise none (2025-11-25, Authorization, Scope
/// Selection Strategy).
pub(super) fn initial(login: &LoginConfig, challenge: &Challenge, discovery: &Discovery) -> Scopes {
    let scopes = match (&login.scopes, &challenge.scope) {
        (Some(configured), _) => Scopes(configured.iter().cloned().collect()),
        (None, Some(scope)) => scope.clone(),
        (None, None) => discovery.scopes.clone(),
    };
    with_offline_access(scopes, login, discovery)
}

/// Adds `offline_access` if the server offers it, except for clients that renew without a person
/// and need no refresh token.
pub(super) fn with_offline_access(
    mut scopes: Scopes,
    login: &LoginConfig,
    discovery: &Discovery,
) -> Scopes {
    if login.grant == Grant::Person && discovery.server.scopes.0.contains(OFFLINE) {
        scopes.0.insert(OFFLINE.to_owned());
    }
    scopes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::AuthorizationServer;

    fn discovery(resource: &str, server: &str) -> Discovery {
        let server = AuthorizationServer {
            scopes: Scopes::parse(server),
            ..AuthorizationServer::default()
        };
        Discovery {
            resource: "https://mcp.example/mcp".into(),
            server,
            scopes: Scopes::parse(resource),
            legacy: false,
        }
    }

    #[test]
    fn the_challenge_counts_more_than_metadata_and_the_config_most() {
        let challenge = |scope: Option<&str>| Challenge {
            scope: scope.map(Scopes::parse),
            ..Challenge::default()
        };
        let requested = |login: &LoginConfig, scope, server| {
            initial(login, &challenge(scope), &discovery("a b", server)).parameter()
        };
        let plain = LoginConfig::default();
        assert_eq!(requested(&plain, Some("c"), "").as_deref(), Some("c"));
        assert_eq!(requested(&plain, None, "").as_deref(), Some("a b"));
        assert_eq!(
            requested(&plain, None, "offline_access a").as_deref(),
            Some("a b offline_access")
        );
        let configured = LoginConfig {
            scopes: Some(vec!["z".into()]),
            ..LoginConfig::default()
        };
        assert_eq!(requested(&configured, Some("c"), "").as_deref(), Some("z"));
        let machine = LoginConfig {
            grant: Grant::Client,
            ..LoginConfig::default()
        };
        assert_eq!(
            requested(&machine, Some("c"), "offline_access").as_deref(),
            Some("c"),
            "needs no refresh token"
        );
        let nothing = initial(&plain, &Challenge::default(), &discovery("", ""));
        assert_eq!(nothing.parameter(), None, "the parameter is left out");
    }
}
