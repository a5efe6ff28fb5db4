//! Who the gate is at an authorization server: as the config says; by the URL of a document about itself; as it was
//! registered before; or registered anew (MCP 2026-07-28, `basic/authorization`, Client Registration).

mod register;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::discover::shown;
use super::fetch::{FetchError, Fetcher};
use super::{AuthorizationServer, Client, ClientAuth, Hidden, Origin, unix_now};
use crate::config::{Grant, LoginConfig};

/// A secret that ends so soon is not begun with.
const ENDS_SOON_SECONDS: u64 = 60;

/// Why the gate is nobody there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The server could be anybody's, or sends codes to whoever catches them.
    #[error("the authorization server `{}` does not offer PKCE with S256 (`code_challenge_methods_supported`)", shown(.0))]
    NoS256(String),
    /// The configured client is another authorization server's.
    #[error(
        "`client_id` belongs to the issuer `{configured}`, and the server now names another one, at `{}`; if that is right, \
         register the gate there and set `client_id` and `issuer` anew",
        shown(.found)
    )]
    OtherIssuer {
        /// The config's `issuer`.
        configured: String,
        /// Whom the server names.
        found: String,
    },
    /// The configured client cannot prove who it is as the server wants it.
    #[error("the authorization server names {} as what it takes, for which {missing}", offer(.offered))]
    Auth {
        /// What it takes.
        offered: Vec<String>,
        /// What the config lacks.
        missing: &'static str,
    },
    /// Registration did not work.
    #[error("the gate could not be registered at the authorization server `{}`: {error}", shown(.issuer))]
    Registration {
        issuer: String,
        /// Why not; where it was refused, with the code of RFC 7591, section 3.2.2.
        error: FetchError,
    },
    /// What registration gave cannot be used.
    #[error("the authorization server `{}` registered the gate with {what}", shown(.issuer))]
    Registered {
        issuer: String,
        /// What cannot be used.
        what: &'static str,
    },
    /// The server registers nobody by itself.
    #[error(
        "the authorization server `{}` registers no clients by itself: register the gate there, and set `issuer` (as its \
         metadata has it), `client_id` and, if there is one, `client_secret` in the upstream's `oauth` table; redirect URI: {}; \
         where the server takes a fixed token, set `bearer` instead",
        shown(.issuer), listed(.redirect_uris.iter().map(String::as_str))
    )]
    NeedsOperator {
        issuer: String,
        /// Where it has to send people back to.
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

    /// Whether it may be otherwise soon.
    pub fn transient(&self) -> bool {
        matches!(self, Self::Registration { error, .. } if error.transient())
    }
}

/// Finds out who the gate is at `server`, or becomes somebody there. `document_url` is where the gate's own document can
/// be had, if it can; `known` what the vault has for the very same issuer, resource and principal.
///
/// # Errors
/// The gate is nobody there, and why.
pub async fn identify(
    fetcher: &Fetcher,
    server: &AuthorizationServer,
    config: &LoginConfig,
    document_url: Option<&str>,
    redirect_uris: &[String],
    known: Option<&Client>,
    client_name: &str,
) -> Result<Client, IdentityError> {
    // Before anything is sent there: a code that comes back without PKCE can be anybody's.
    if config.grant == Grant::Person && !server.s256 {
        return Err(IdentityError::NoS256(server.issuer.clone()));
    }
    if let Some(id) = &config.client_id {
        return preregistered(server, config, id);
    }
    let document =
        document_url.filter(|url| server.client_id_metadata_document && is_document(fetcher, url));
    if let Some(url) = document {
        return Ok(by_document(url, redirect_uris));
    }
    if let Some(client) = known.filter(|client| still_good(client, redirect_uris)) {
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

/// The document about the gate that its listener serves as JSON, under the URL that is its client id.
pub fn document(client_id_url: &str, redirect_uris: &[String], client_name: &str) -> String {
    /// The draft on client id metadata documents, section 4.
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
    // Strings and lists of them: there is nothing that could not be written.
    serde_json::to_string(&document).unwrap_or_default()
}

/// What the config names is for the issuer that it names, and for no other.
fn preregistered(
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
        .map(|secret| Hidden::new(secret.0.clone()));
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

/// As the config says, or else the best of what it has means for and the server takes. A server that does not say takes
/// `client_secret_basic` (RFC 8414, section 2).
fn configured_auth(
    server: &AuthorizationServer,
    config: &LoginConfig,
) -> Result<ClientAuth, IdentityError> {
    let offered = &server.token_endpoint_auth_methods;
    let fault = |missing| IdentityError::Auth {
        offered: offered.clone(),
        missing,
    };
    let key = config.client_key.is_some();
    let secret = config.client_secret.is_some();
    let takes = |auth: ClientAuth| offered.iter().any(|method| method == method_of(auth));
    if let Some(name) = &config.client_auth {
        let auth = auth_of(name).ok_or_else(|| fault("`client_auth` is none of the gate's"))?;
        return match auth {
            ClientAuth::PrivateKeyJwt if !key => Err(fault("`client_key` is missing")),
            ClientAuth::Basic | ClientAuth::Post if !secret => {
                Err(fault("`client_secret` is missing"))
            }
            auth => Ok(auth),
        };
    }
    match (key, secret) {
        (true, _) if offered.is_empty() || takes(ClientAuth::PrivateKeyJwt) => {
            Ok(ClientAuth::PrivateKeyJwt)
        }
        (true, false) => Err(fault(
            "`client_key` is of no use (a `client_secret` may be)",
        )),
        (_, true) if offered.is_empty() || takes(ClientAuth::Basic) => Ok(ClientAuth::Basic),
        (_, true) if takes(ClientAuth::Post) => Ok(ClientAuth::Post),
        (_, true) => Err(fault(
            "`client_secret` is of no use (a `client_key` may be)",
        )),
        // Many servers have public clients and do not list it.
        (false, false) => Ok(ClientAuth::None),
    }
}

/// Names of the methods (RFC 7591, section 2; OpenID Connect Core, section 9).
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

/// An `https` URL with a path: a server's name alone is no client.
fn is_document(fetcher: &Fetcher, url: &str) -> bool {
    let path = url
        .parse::<http::Uri>()
        .is_ok_and(|url| url.scheme_str() == Some("https") && url.path().len() > 1);
    path && fetcher.may_name(url)
}

fn by_document(url: &str, redirect_uris: &[String]) -> Client {
    Client {
        id: url.to_owned(),
        secret: None,
        secret_expires_unix: None,
        auth: ClientAuth::None,
        origin: Origin::Document,
        redirect_uris: redirect_uris.to_vec(),
    }
}

fn still_good(client: &Client, redirect_uris: &[String]) -> bool {
    let lasts = client
        .secret_expires_unix
        .is_none_or(|end| end > unix_now().saturating_add(ENDS_SOON_SECONDS));
    client.origin == Origin::Registered
        && lasts
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

/// The known ones among the methods that a server names; what else it names is not repeated.
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
    let known = KNOWN
        .into_iter()
        .filter(|known| methods.iter().any(|method| method == known));
    let known = listed(known);
    if known.is_empty() {
        "no known method".to_owned()
    } else {
        known
    }
}
