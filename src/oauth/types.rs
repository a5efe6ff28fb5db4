//! What the parts of the login pass among each other.

use std::collections::BTreeSet;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// A token, secret, code or verifier: wiped when dropped, never shown. Serialised only into the vault's sealed files.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(Zeroizing<String>);

impl Hidden {
    /// Takes the secret over.
    pub fn new(secret: String) -> Self {
        Self(Zeroizing::new(secret))
    }

    /// The secret itself, for the wire and for the vault.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(…)")
    }
}

impl Serialize for Hidden {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// Whose login at a server it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Principal {
    /// The gate's own, shared by all agents.
    Gate,
    /// One agent's, by its name in the config.
    Agent(String),
    /// One user's, by what the agent's own token says of it.
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

/// What every credential belongs to. A changed issuer is another party, so that it never sees what the old one gave.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoginParty {
    /// The authorization server's issuer identifier, as it came (RFC 8414, section 2).
    pub issuer: String,
    /// The resource that tokens are for, as its metadata spells it (RFC 9728, section 2; RFC 8707).
    pub resource: String,
    /// Whose they are.
    pub principal: Principal,
}

/// What an authorization server says of itself, as far as a client needs it (RFC 8414, section 2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthorizationServer {
    /// Its identifier, as it came.
    pub issuer: String,
    /// Where people are sent to; absent where only grants without people are offered.
    pub authorization_endpoint: Option<String>,
    /// Where tokens come from.
    pub token_endpoint: String,
    /// Where clients register (RFC 7591).
    pub registration_endpoint: Option<String>,
    /// Where tokens are given back (RFC 7009).
    pub revocation_endpoint: Option<String>,
    /// Where logins on another device begin (RFC 8628).
    pub device_authorization_endpoint: Option<String>,
    /// How clients may prove who they are at the token endpoint; empty where it does not say.
    pub token_endpoint_auth_methods: Vec<String>,
    /// Algorithms for `private_key_jwt`; empty where it does not say.
    pub token_endpoint_auth_signing_algs: Vec<String>,
    /// Scopes that it offers; empty where it does not say.
    pub scopes: Scopes,
    /// Grants that it offers; empty where it does not say.
    pub grant_types: Vec<String>,
    /// Whether it takes the URL of a metadata document as a client id.
    pub client_id_metadata_document: bool,
    /// Whether its answers carry `iss` (RFC 9207, section 3).
    pub iss_in_response: bool,
    /// Whether it has S256 (RFC 7636); without it nobody is sent there.
    pub s256: bool,
}

/// How a client proves who it is at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuth {
    /// It does not: a public client names itself.
    None,
    /// `client_secret_basic`.
    Basic,
    /// `client_secret_post`.
    Post,
    /// `private_key_jwt` (RFC 7523), with the key of the config.
    PrivateKeyJwt,
}

/// Where a client's id comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The config names it.
    Preregistered,
    /// It is the URL of the gate's own metadata document.
    Document,
    /// The server gave it (RFC 7591).
    Registered,
}

/// Who the gate is at an authorization server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// Its id, as it came.
    pub id: String,
    pub secret: Option<Hidden>,
    /// When the secret is over, in seconds since 1970; `None` for never.
    pub secret_expires_unix: Option<u64>,
    /// How it proves who it is.
    pub auth: ClientAuth,
    /// Where the id comes from.
    pub origin: Origin,
    /// The redirect URIs that it was registered with, as sent; empty for what the config names.
    pub redirect_uris: Vec<String>,
}

/// Scopes, sorted, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(pub BTreeSet<String>);

impl Scopes {
    /// Reads a `scope` parameter: words with spaces between (RFC 6749, section 3.3).
    pub fn parse(text: &str) -> Self {
        Self(text.split_ascii_whitespace().map(str::to_owned).collect())
    }

    /// As a `scope` parameter; `None` where there are none, since an empty parameter is none.
    pub fn parameter(&self) -> Option<String> {
        (!self.0.is_empty()).then(|| {
            self.0
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(" ")
        })
    }

    /// These and those.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).cloned().collect())
    }

    /// Whether all of these are among `others`.
    pub fn within(&self, others: &Self) -> bool {
        self.0.is_subset(&others.0)
    }
}

/// What a token endpoint gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenGrant {
    /// The token for the server.
    pub access: Hidden,
    /// The token for the next one, if it came.
    pub refresh: Option<Hidden>,
    /// When the access token is over, in seconds since 1970; `None` where nothing was said.
    pub expires_unix: Option<u64>,
    /// When it was given, in seconds since 1970.
    pub given_unix: u64,
    /// What it may do: as granted, or as asked where nothing was said (RFC 6749, section 5.1).
    pub scopes: Scopes,
}

/// Seconds since 1970, by this machine's clock.
pub fn unix_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
