//! How the gate logs in to servers: `[oauth]` for all, `[upstream.NAME.http.oauth]` for one.

use std::path::PathBuf;
use std::time::Duration;

use super::Secret;

/// What counts for all upstreams: `[oauth]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthConfig {
    /// The folder of stored logins: `vault`. `None`: the default of the gate's user.
    pub vault: Option<PathBuf>,
    /// Where the key of the vault is: `vault_key`.
    pub vault_key: VaultKey,
    /// Previous keys, for logins that are not re-encrypted yet: `earlier_vault_keys`.
    pub earlier_vault_keys: Vec<VaultKey>,
    /// Where authorization servers send people back to: `callback`.
    pub callback: Callback,
    /// The port of the loopback callback, 0 for any that is free: `callback_port`.
    pub callback_port: u16,
    /// Whether the gate opens a browser, once for each required login: `open_browser`.
    pub open_browser: bool,
    /// How long a call waits for a login that it is the reason of: `login_wait_seconds`, 0 for not at all.
    pub login_wait: Duration,
    /// How long a person has for a login: `login_seconds`.
    pub login: Duration,
    /// How long before its end a token is renewed: `renew_before_seconds`.
    pub renew_before: Duration,
    /// How long one process may be the one that renews a token, before another may: `lease_seconds`.
    pub lease: Duration,
    /// Time for one request to an authorization server: `request_seconds`.
    pub request: Duration,
    /// Maximum number of pending logins: `pending_logins`.
    pub pending_logins: usize,
    /// Whether `http://` on loopback will do for authorization servers: `allow_loopback_http`.
    pub allow_loopback_http: bool,
    /// Hosts of authorization servers and metadata that may lie at private addresses: `private_hosts`.
    pub private_hosts: Vec<String>,
    /// Where the gate's metadata document lies, if not on its own listener: `client_document`.
    pub client_document: Option<String>,
    /// The name that authorization servers show to people: `client_name`.
    pub client_name: String,
}

impl Default for OAuthConfig {
    fn default() -> Self {
        Self {
            vault: None,
            vault_key: VaultKey::OfUser,
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

/// Where the key of the vault is: 32 bytes, in hex or base64, or as they are in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VaultKey {
    /// Default: a private file beside the vault's folder, created when first needed.
    OfUser,
    /// This file, made when first needed: `{ file = … }`.
    File(PathBuf),
    /// This value, read from the environment: `{ env = … }`.
    Value(Secret),
    /// The keyring of the system, under this name: `{ keyring = … }`.
    Keyring(String),
}

/// Where authorization servers send people back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callback {
    /// A listener on loopback for this one login (RFC 8252, section 7.3).
    Loopback,
    /// The gate's own listener, under this public `https` URL of it: `callback = "https://gate.example"`.
    Hosted(String),
}

/// How the gate logs in to one server. Settings that are missing are discovered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoginConfig {
    /// Whose the login is: `token_of`.
    pub token_of: TokenOf,
    /// How tokens are got: `grant`.
    pub grant: Grant,
    /// The authorization server; needed with `client_id`, which belongs to it alone: `issuer`.
    pub issuer: Option<String>,
    /// The resource identifier that the server's metadata names, where it is not the server's URL: `resource`.
    pub resource: Option<String>,
    /// The id that the gate was registered with: `client_id`.
    pub client_id: Option<String>,
    /// Its secret: `client_secret`.
    pub client_secret: Option<Secret>,
    /// PEM of the private key for `private_key_jwt`: `client_key`.
    pub client_key: Option<Secret>,
    /// The id of that key, for the header of what it signs: `client_key_id`.
    pub client_key_id: Option<String>,
    /// How the client proves who it is, where the server leaves a choice: `client_auth`.
    pub client_auth: Option<String>,
    /// Scopes to request instead of those that the server requires: `scopes`.
    pub scopes: Option<Vec<String>>,
}

/// Whose login at a server it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenOf {
    /// The gate's: all agents share it.
    #[default]
    Gate,
    /// Each agent's own.
    Agent,
    /// One per user, as identified by the agent's token.
    User,
}

impl TokenOf {
    /// Words of the config file.
    pub const WORDS: [(&'static str, Self); 3] = [
        ("gate", Self::Gate),
        ("agent", Self::Agent),
        ("user", Self::User),
    ];
}

/// How tokens are got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Grant {
    /// A person logs in (`authorization_code`), in a browser or with a device code.
    #[default]
    Person,
    /// The client by itself (`client_credentials`).
    Client,
    /// By the organisation's own login server: an ID token is exchanged there for an ID-JAG, and that for a token
    /// (extension `enterprise-managed-authorization`): `grant = { … }`.
    Enterprise(EnterpriseConfig),
}

/// The organisation's login server, for enterprise-managed authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnterpriseConfig {
    /// Its issuer identifier: `issuer`.
    pub issuer: String,
    /// Its token endpoint, where its metadata is not to be asked: `token_endpoint`.
    pub token_endpoint: Option<String>,
    /// The gate's id there: `client_id`.
    pub client_id: String,
    /// Its secret there, if any: `client_secret`.
    pub client_secret: Option<Secret>,
    /// The file that the ID token (or SAML assertion) is read from each time: `id_token_file`.
    pub subject_token_file: PathBuf,
    /// Whether that is a SAML assertion: `saml`.
    pub saml: bool,
}
