//! Types that the parts of the OAuth client share.

use std::collections::BTreeSet;
use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::record::unix_seconds;

/// A token, secret, code or verifier: erased from memory when dropped, and never shown. Serialized
/// only into the vault's sealed files.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes ownership of the secret.
    pub fn new(secret: String) -> Self {
        Self(Zeroizing::new(secret))
    }

    /// Returns the secret itself, for the wire and for the vault.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(…)")
    }
}

impl Serialize for SecretText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// Whose login at a server is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Principal {
    /// The gate's own login, shared by all agents.
    Gate,
    /// The login of one agent, by its name in the config.
    Agent(String),
    /// The login of one user, as named in the agent's own token.
    User(String),
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate => f.write_str("gate"),
            Self::Agent(name) => write!(f, "agent {name}"),
            Self::User(name) => write!(f, "user {name}"),
        }
    }
}

/// What every credential is bound to. A changed issuer is a different party, so it never receives
/// the credentials of the previous one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoginParty {
    /// The authorization server's issuer identifier, as received (RFC 8414, section 2).
    pub issuer: String,
    /// The resource that tokens are for, as in its metadata (RFC 9728, section 2; RFC 8707).
    pub resource: String,
    /// Whose login it is.
    pub principal: Principal,
}

/// The metadata of an authorization server, as far as a client needs it (RFC 8414, section 2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationServer {
    /// The issuer identifier, as received.
    pub issuer: String,
    /// The URL to which users are sent; absent if only grants without users are offered.
    pub authorization_endpoint: Option<String>,
    /// The URL at which tokens are issued.
    pub token_endpoint: String,
    /// The URL at which clients register (RFC 7591).
    pub registration_endpoint: Option<String>,
    /// The URL at which tokens are revoked (RFC 7009).
    pub revocation_endpoint: Option<String>,
    /// The URL at which logins on another device begin (RFC 8628).
    pub device_authorization_endpoint: Option<String>,
    /// Client authentication methods of the token endpoint; empty if not listed.
    pub token_endpoint_auth_methods: Vec<String>,
    /// Algorithms for `private_key_jwt`; empty if not listed.
    pub token_endpoint_auth_signing_algs: Vec<String>,
    /// Supported scopes; empty if not listed.
    pub scopes: Scopes,
    /// Supported grants; empty if not listed.
    pub grant_types: Vec<String>,
    /// Whether it accepts the URL of a client metadata document as a client id.
    pub client_id_metadata_document: bool,
    /// Whether its responses include `iss` (RFC 9207, section 3).
    pub iss_in_response: bool,
    /// Whether it supports S256 (RFC 7636); otherwise no user is sent there.
    pub s256: bool,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// No authentication: a public client only sends its id.
    None,
    /// `client_secret_basic`.
    Basic,
    /// `client_secret_post`.
    Post,
    /// `private_key_jwt` (RFC 7523), with the key of the config.
    PrivateKeyJwt,
}

/// How a client id was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// From the config.
    Preregistered,
    /// The URL of the gate's own client metadata document.
    Document,
    /// Assigned by the server on registration (RFC 7591).
    Registered,
}

/// The gate's client identity at an authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// The client id, as received.
    pub id: String,
    pub secret: Option<SecretText>,
    /// When the secret expires, in seconds since 1970; `None` for never.
    pub secret_expires_unix: Option<u64>,
    /// How the client authenticates.
    pub auth: ClientAuth,
    /// How the client id was obtained.
    pub origin: Origin,
    /// The redirect URIs that it was registered with, as sent; empty for a client from the config.
    pub redirect_uris: Vec<String>,
}

/// A set of scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(pub BTreeSet<String>);

impl Scopes {
    /// Parses a `scope` parameter: words separated by spaces (RFC 6749, section 3.3).
    pub fn parse(text: &str) -> Self {
        Self(text.split_ascii_whitespace().map(str::to_owned).collect())
    }

    /// Returns the `scope` parameter; `None` if there are no scopes, since the parameter must not
    /// be empty.
    pub fn parameter(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| {
            self.0
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(" ")
        })
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    /// Reports whether all of these are in `others`.
    pub fn is_subset_of(&self, others: &Self) -> bool {
        self.0.is_subset(&others.0)
    }
}

/// The tokens that a token endpoint issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenGrant {
    /// The access token for the server.
    pub access: SecretText,
    /// The refresh token, if one was issued.
    pub refresh: Option<SecretText>,
    /// When the access token expires, in seconds since 1970; `None` if the response did not state
    /// it.
    pub expires_unix: Option<u64>,
    /// When it was issued, in seconds since 1970.
    pub given_unix: u64,
    /// Its scopes: as granted, or as requested if the response did not state them (RFC 6749,
    /// section 5.1).
    pub scopes: Scopes,
}

/// Returns the seconds since 1970 by this machine's clock.
pub fn unix_now() -> u64 {
    unix_seconds(SystemTime::now())
}
