//! The gate's client identity at an authorization server: from the config; by the URL of its client
//! metadata document; from an earlier registration; or from a new registration (MCP 2026-07-28,
//! `basic/authorization`, Client Registration).

mod register;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::discover::shown;
use super::fetch::{FetchError, Fetcher};
use super::{AuthorizationServer, Client, ClientAuth, Origin, SecretText, unix_now};
use crate::config::{Grant, LoginConfig};

/// Remaining lifetime, in seconds, below which a client secret is no longer used.
const ENDS_SOON_SECONDS: u64 = 60;

/// Why the gate has no client identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The server does not offer PKCE with S256, so that codes could be injected or intercepted.
    #[error("the authorization server `{}` does not offer PKCE with S256 (`code_challenge_methods_supported`)", shown(.0))]
    NoS256(String),
    /// The configured client belongs to another authorization server.
    #[error(
        "`client_id` belongs to the issuer `{configured}`, and the server now names another one, at `{}`; if that is right, \
         register the gate there and set `client_id` and `issuer` anew",
        shown(.found)
    )]
    OtherIssuer {
        /// The `issuer` in the config.
        configured: String,
        /// The issuer that the server names.
        found: String,
    },
    /// The configured client cannot authenticate as the server requires.
    #[error("the authorization server names {} as what it takes, for which {missing}", offer(.offered))]
    Auth {
        /// The methods that the server accepts.
        offered: Vec<String>,
        /// What is missing in the config.
        missing: &'static str,
    },
    /// Registration failed.
    #[error("the gate could not be registered at the authorization server `{}`: {error}", shown(.issuer))]
    Registration {
        issuer: String,
        /// The error; if registration was refused, with the code of RFC 7591, section 3.2.2.
        error: FetchError,
    },
    /// The result of the registration is unusable.
    #[error("the authorization server `{}` registered the gate with {what}", shown(.issuer))]
    Registered {
        issuer: String,
        /// What is unusable.
        what: &'static str,
    },
    /// The server does not support registration by clients.
    #[error(
        "the authorization server `{}` registers no clients by itself: register the gate there, and set `issuer` (as its \
         metadata has it), `client_id` and, if there is one, `client_secret` in the upstream's `oauth` table; redirect URI: {}; \
         where the server takes a fixed token, set `bearer` instead",
        shown(.issuer), listed(.redirect_uris.iter().map(String::as_str))
    )]
    NeedsOperator {
        issuer: String,
        /// The redirect URIs to register.
        redirect_uris: Vec<String>,
    },
}

impl IdentityError {
    fn needs_operator(server: &AuthorizationServer, redirect_uris: &[String]) -> Self {
        Self::NeedsOperator {
            issuer: server.issuer.clone(),
            redirect_uris: redirect_uris.to_vec(),
        }
    }

    /// Reports whether a retry may succeed soon.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Registration { error, .. } if error.is_transient())
    }
}

/// Determines the gate's client identity at `server`, or registers the gate there. `document_url`
/// is the URL at which the gate's client metadata document can be fetched, if there is one;
/// `known_client` is the client in the vault for the same issuer, resource and principal.
///
/// # Errors
/// Returns why the gate has no client identity there.
pub async fn identify(
    fetcher: &Fetcher,
    server: &AuthorizationServer,
    config: &LoginConfig,
    document_url: Option<&str>,
    redirect_uris: &[String],
    known_client: Option<&Client>,
    client_name: &str,
) -> Result<Client, IdentityError> {
    // Checked before anything is sent there: without PKCE, a code that comes back may belong to
    // another login.
    if config.grant == Grant::Person && !server.s256 {
        return Err(IdentityError::NoS256(server.issuer.clone()));
    }
    if let Some(id) = &config.client_id {
        return preregistered_client(server, config, id);
    }
    let document =
        document_url.filter(|url| server.client_id_metadata_document && is_document(fetcher, url));
    if let Some(url) = document {
        return Ok(document_client(url, redirect_uris));
    }
    if let Some(client) = known_client.filter(|client| is_usable(client, redirect_uris)) {
        return Ok(client.clone());
    }
    match &server.registration_endpoint {
        Some(endpoint) => {
            register::register(
                fetcher,
                server,
                endpoint,
                config,
                redirect_uris,
                client_name,
            )
            .await
        }
        None => Err(IdentityError::needs_operator(server, redirect_uris)),
    }
}

/// Returns the gate's client metadata document, which its listener serves as JSON at the URL that
/// is its client id.
pub fn document(client_id_url: &str, redirect_uris: &[String], client_name: &str) -> String {
    /// As in the draft on client id metadata documents, section 4.
    #[derive(Serialize)]
    struct Document<'a> {
        client_id: &'a str,
        client_name: &'a str,
        redirect_uris: &'a [String],
        grant_types: [&'a str; 2],
        response_types: [&'a str; 1],
        token_endpoint_auth_method: &'a str,
        application_type: &'a str,
    }
    let document = Document {
        client_id: client_id_url,
        client_name,
        redirect_uris,
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: method_of(ClientAuth::None),
        application_type: register::application_type(redirect_uris),
    };
    // Only strings and lists of strings: serialization cannot fail.
    serde_json::to_string(&document).unwrap_or_default()
}

/// Returns the client in the config, which is valid only for the issuer in the config.
fn preregistered_client(
    server: &AuthorizationServer,
    config: &LoginConfig,
    id: &str,
) -> Result<Client, IdentityError> {
    if config.issuer.as_deref() != Some(server.issuer.as_str()) {
        let configured = config.issuer.clone().unwrap_or_default();
        return Err(IdentityError::OtherIssuer {
            configured,
            found: server.issuer.clone(),
        });
    }
    let secret = config
        .client_secret
        .as_ref()
        .map(|secret| SecretText::new(secret.0.clone()));
    let auth = configured_auth(server, config)?;
    Ok(Client {
        id: id.to_owned(),
        secret: secret.filter(|_| matches!(auth, ClientAuth::Basic | ClientAuth::Post)),
        secret_expires_unix: None,
        auth,
        origin: Origin::Preregistered,
        redirect_uris: vec![],
    })
}

/// Returns the configured authentication method, or the best one that the config has credentials
/// for and the server accepts. A server that lists no methods accepts `client_secret_basic` (RFC
/// 8414, section 2).
fn configured_auth(
    server: &AuthorizationServer,
    config: &LoginConfig,
) -> Result<ClientAuth, IdentityError> {
    let offered = &server.token_endpoint_auth_methods;
    let fault = |missing| IdentityError::Auth {
        offered: offered.clone(),
        missing,
    };
    let has_key = config.client_key.is_some();
    let has_secret = config.client_secret.is_some();
    let accepts = |auth: ClientAuth| offered.iter().any(|method| method == method_of(auth));
    if let Some(name) = &config.client_auth {
        let auth = auth_of(name).ok_or_else(|| fault("`client_auth` is none of the gate's"))?;
        return match auth {
            ClientAuth::PrivateKeyJwt if !has_key => Err(fault("`client_key` is missing")),
            ClientAuth::Basic | ClientAuth::Post if !has_secret => {
                Err(fault("`client_secret` is missing"))
            }
            auth => Ok(auth),
        };
    }
    match (has_key, has_secret) {
        (true, _) if offered.is_empty() || accepts(ClientAuth::PrivateKeyJwt) => {
            Ok(ClientAuth::PrivateKeyJwt)
        }
        (true, false) => Err(fault(
            "`client_key` is of no use (a `client_secret` may be)",
        )),
        (_, true) if offered.is_empty() || accepts(ClientAuth::Basic) => Ok(ClientAuth::Basic),
        (_, true) if accepts(ClientAuth::Post) => Ok(ClientAuth::Post),
        (_, true) => Err(fault(
            "`client_secret` is of no use (a `client_key` may be)",
        )),
        // Many servers support public clients without listing them.
        (false, false) => Ok(ClientAuth::None),
    }
}

/// Returns the method with this name (RFC 7591, section 2; OpenID Connect Core, section 9).
fn auth_of(name: &str) -> Option<ClientAuth> {
    [
        ClientAuth::None,
        ClientAuth::Basic,
        ClientAuth::Post,
        ClientAuth::PrivateKeyJwt,
    ]
    .into_iter()
    .find(|auth| method_of(*auth) == name)
}

fn method_of(auth: ClientAuth) -> &'static str {
    match auth {
        ClientAuth::None => "none",
        ClientAuth::Basic => "client_secret_basic",
        ClientAuth::Post => "client_secret_post",
        ClientAuth::PrivateKeyJwt => "private_key_jwt",
    }
}

/// Reports whether a URL can be that of a client metadata document: `https` with a path, since a
/// host name alone is not a client id.
fn is_document(fetcher: &Fetcher, url: &str) -> bool {
    let has_path = url
        .parse::<http::Uri>()
        .is_ok_and(|url| url.scheme_str() == Some("https") && url.path().len() > 1);
    has_path && fetcher.may_name(url)
}

fn document_client(url: &str, redirect_uris: &[String]) -> Client {
    Client {
        id: url.to_owned(),
        secret: None,
        secret_expires_unix: None,
        auth: ClientAuth::None,
        origin: Origin::Document,
        redirect_uris: redirect_uris.to_vec(),
    }
}

fn is_usable(client: &Client, redirect_uris: &[String]) -> bool {
    let is_valid = client
        .secret_expires_unix
        .is_none_or(|end| end > unix_now().saturating_add(ENDS_SOON_SECONDS));
    client.origin == Origin::Registered
        && is_valid
        && redirect_uris
            .iter()
            .all(|uri| client.redirect_uris.contains(uri))
}

fn listed<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words
        .take(5)
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Lists the known methods among those that a server names; others are not repeated.
fn offer(methods: &[String]) -> String {
    const KNOWN: [&str; 7] = [
        "none",
        "client_secret_basic",
        "client_secret_post",
        "client_secret_jwt",
        "private_key_jwt",
        "tls_client_auth",
        "self_signed_tls_client_auth",
    ];
    let known_methods = KNOWN
        .into_iter()
        .filter(|name| methods.iter().any(|method| method == name));
    let list = listed(known_methods);
    if list.is_empty() {
        "no known method".to_owned()
    } else {
        list
    }
}
