//! How the gate logs in to upstream servers: `[oauth]` for all, `[upstream.NAME.http.oauth]` for
//! one.

use std::path::PathBuf;
use std::time::Duration;

use super::Secret;

/// Settings for all upstreams: `[oauth]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthConfig {
    /// The folder of stored logins: `vault`. If `None`, the default folder of the gate's user.
    pub vault: Option<PathBuf>,
    /// The source of the vault's key: `vault_key`.
    pub vault_key: VaultKey,
    /// Previous keys, for logins that are not yet re-encrypted: `earlier_vault_keys`.
    pub earlier_vault_keys: Vec<VaultKey>,
    /// Where authorization servers redirect users after a login: `callback`.
    pub callback: Callback,
    /// The port of the loopback callback, 0 for any free port: `callback_port`.
    pub callback_port: u16,
    /// Whether the gate opens a browser, once for each required login: `open_browser`.
    pub open_browser: bool,
    /// How long a call waits for the login that it requires: `login_wait_seconds`, 0 for not at
    /// all.
    pub login_wait: Duration,
    /// Maximum time for a user to complete a login: `login_seconds`.
    pub login: Duration,
    /// How long before its expiry a token is renewed: `renew_before_seconds`.
    pub renew_before: Duration,
    /// How long one process may hold the exclusive right to renew a token: `lease_seconds`.
    pub lease: Duration,
    /// Maximum time for one request to an authorization server: `request_seconds`.
    pub request: Duration,
    /// Maximum number of pending logins: `pending_logins`.
    pub pending_logins: usize,
    /// Whether authorization servers may use `http://` on loopback: `allow_loopback_http`.
    pub allow_loopback_http: bool,
    /// Hosts of authorization servers and metadata that may have private addresses:
    /// `private_hosts`.
    pub private_hosts: Vec<String>,
    /// The URL of the gate's client metadata document, if not on its own listener:
    /// `client_document`.
    pub client_document: Option<String>,
    /// The client name that authorization servers show to users: `client_name`.
    pub client_name: String,
}

impl Default for OAuthConfig {
    fn default() -> Self {
        Self {
            vault: None,
            vault_key: VaultKey::UserDefault,
            earlier_vault_keys: vec![],
            callback: Callback::Loopback,
            callback_port: 0,
            open_browser: false,
            login_wait: Duration::ZERO,
            login: Duration::from_secs(600),
            renew_before: Duration::from_secs(60),
            lease: Duration::from_secs(30),
            request: Duration::from_secs(10),
            pending_logins: 100,
            allow_loopback_http: false,
            private_hosts: vec![],
            client_document: None,
            client_name: "lychgate".to_owned(),
        }
    }
}

/// The source of the vault's key: 32 bytes, in hex or base64, or as raw bytes in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultKey {
    /// Default: a private file beside the vault's folder, created when first needed.
    UserDefault,
    /// This file, created when first needed: `{ file = … }`.
    File(PathBuf),
    /// This value, from an environment variable: `{ env = … }`.
    Value(Secret),
    /// The entry of this name in the system's keyring: `{ keyring = … }`.
    Keyring(String),
}

/// Where authorization servers redirect users after a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callback {
    /// A loopback listener for this one login (RFC 8252, section 7.3).
    Loopback,
    /// The gate's own listener, at this public `https` URL: `callback = "https://gate.example"`.
    Hosted(String),
}

/// How the gate logs in to one server. Settings that are missing are discovered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginConfig {
    /// Whether the login belongs to the gate, the agent or the user: `token_of`.
    pub token_of: TokenOf,
    /// The grant by which tokens are obtained: `grant`.
    pub grant: Grant,
    /// The authorization server; required with `client_id`, which is valid only there: `issuer`.
    pub issuer: Option<String>,
    /// The resource identifier in the server's metadata, if it is not the server's URL: `resource`.
    pub resource: Option<String>,
    /// The client id that the gate was registered with: `client_id`.
    pub client_id: Option<String>,
    /// The client secret: `client_secret`.
    pub client_secret: Option<Secret>,
    /// PEM of the private key for `private_key_jwt`: `client_key`.
    pub client_key: Option<Secret>,
    /// The id of that key, for the header of the JWTs it signs: `client_key_id`.
    pub client_key_id: Option<String>,
    /// The client authentication method, if the server supports several: `client_auth`.
    pub client_auth: Option<String>,
    /// Scopes to request instead of those that the server requires: `scopes`.
    pub scopes: Option<Vec<String>>,
}

enum_with_names! {
    /// Whose login at a server is used. Named as in the config file.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum TokenOf {
        /// The gate's login, which all agents share.
        #[default]
        Gate = "gate",
        /// One login per agent.
        Agent = "agent",
        /// One login per user, as identified by the agent's token.
        User = "user",
    }
}

/// The grant by which tokens are obtained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// A user logs in (`authorization_code`), in a browser or with a device code.
    #[default]
    Person,
    /// The client authenticates as itself (`client_credentials`).
    Client,
    /// Through the organisation's own login server: an ID token is exchanged there for an ID-JAG,
    /// which is then exchanged for a token (extension `enterprise-managed-authorization`): `grant =
    /// { … }`.
    Enterprise(EnterpriseConfig),
}

/// The organisation's login server, for enterprise-managed authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnterpriseConfig {
    /// Its issuer identifier: `issuer`.
    pub issuer: String,
    /// Its token endpoint, if its metadata is not to be fetched: `token_endpoint`.
    pub token_endpoint: Option<String>,
    /// The gate's client id there: `client_id`.
    pub client_id: String,
    /// The gate's client secret there, if any: `client_secret`.
    pub client_secret: Option<Secret>,
    /// The file that the ID token (or SAML assertion) is read from for each exchange:
    /// `id_token_file`.
    pub subject_token_file: PathBuf,
    /// Whether the file contains a SAML assertion: `saml`.
    pub saml: bool,
}
