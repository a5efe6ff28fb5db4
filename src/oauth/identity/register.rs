//! Dynamic client registration (RFC 7591).

use serde::{Deserialize, Serialize};

use super::{IdentityError, auth_of, method_of};
use crate::config::{Grant, LoginConfig};
use crate::oauth::fetch::{FetchError, Fetcher, is_this_machine};
use crate::oauth::{AuthorizationServer, Client, ClientAuth, Origin, Scopes, SecretText, bounds};

const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Maximum length of a client id and of a secret, in bytes.
const ID_BYTES: usize = 8 << 10;

/// RFC 7591, section 2.
#[derive(Serialize)]
struct RegistrationRequest<'a> {
    client_name: &'a str,
    redirect_uris: &'a [String],
    grant_types: Vec<&'a str>,
    response_types: &'a [&'a str],
    token_endpoint_auth_method: &'a str,
    application_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
}

/// RFC 7591, section 3.2.1, as far as it is used.
#[derive(Deserialize)]
struct RegistrationResponse {
    client_id: String,
    client_secret: Option<SecretText>,
    client_secret_expires_at: Option<f64>,
    token_endpoint_auth_method: Option<String>,
}

pub(super) async fn register(
    fetcher: &Fetcher,
    server: &AuthorizationServer,
    endpoint: &str,
    config: &LoginConfig,
    redirect_uris: &[String],
    client_name: &str,
) -> Result<Client, IdentityError> {
    let mut request = RegistrationRequest {
        client_name,
        redirect_uris,
        grant_types: grant_types(server, config),
        response_types: if config.grant == Grant::Person {
            &["code"]
        } else {
            &[]
        },
        token_endpoint_auth_method: method_of(preferred_auth(server, redirect_uris)),
        application_type: application_type(redirect_uris),
        scope: scope(server, config),
    };
    let mut result = fetcher.post_json(endpoint, &request).await;
    // Some servers accept no list of scopes, or not all of the scopes that they list themselves;
    // without a list they choose.
    if request.scope.is_some() && result.as_ref().is_err_and(is_about_metadata) {
        request.scope = None;
        result = fetcher.post_json(endpoint, &request).await;
    }
    let response = result.map_err(|error| match error {
        // Registration is not supported there, or requires a token from the operator.
        FetchError::Status(401 | 403 | 404 | 405) => {
            IdentityError::needs_operator(server, redirect_uris)
        }
        error => IdentityError::Registration {
            issuer: server.issuer.clone(),
            error,
        },
    })?;
    client_from_response(server, &request, response)
}

fn is_about_metadata(error: &FetchError) -> bool {
    matches!(error, FetchError::Refused { error, .. } if error == "invalid_client_metadata" || error == "invalid_scope")
}

/// Converts the response to a registration. What it states takes precedence over what was
/// requested.
fn client_from_response(
    server: &AuthorizationServer,
    request: &RegistrationRequest<'_>,
    response: RegistrationResponse,
) -> Result<Client, IdentityError> {
    let unusable = |what| IdentityError::Registered {
        issuer: server.issuer.clone(),
        what,
    };
    let fits = |text: &str| {
        !text.is_empty()
            && text.len() <= ID_BYTES
            && text.bytes().all(|b| (0x20..0x7f).contains(&b))
    };
    if !fits(&response.client_id) {
        return Err(unusable("a `client_id` that cannot be used"));
    }
    let secret = response
        .client_secret
        .filter(|secret| !secret.expose().is_empty());
    if secret.as_ref().is_some_and(|secret| !fits(secret.expose())) {
        return Err(unusable("a `client_secret` that cannot be used"));
    }
    let auth = match response.token_endpoint_auth_method.as_deref() {
        Some(method) => auth_of(method)
            .ok_or_else(|| unusable("a method of authentication that was not asked for"))?,
        // A secret that was not requested is meant to be used (RFC 7591, section 2: the default is
        // `client_secret_basic`).
        None => match (auth_of(request.token_endpoint_auth_method), &secret) {
            (Some(ClientAuth::None) | None, Some(_)) => ClientAuth::Basic,
            (Some(ClientAuth::Basic | ClientAuth::Post), None) => ClientAuth::None,
            (requested, _) => requested.unwrap_or(ClientAuth::None),
        },
    };
    match auth {
        ClientAuth::PrivateKeyJwt => {
            return Err(unusable(
                "`private_key_jwt`, which needs a key that it has never seen",
            ));
        }
        ClientAuth::Basic | ClientAuth::Post if secret.is_none() => {
            return Err(unusable("no secret for its method"));
        }
        _ => {}
    }
    // 0 means that it does not expire (RFC 7591, section 3.2.1).
    let expires = response
        .client_secret_expires_at
        .filter(|end| *end > 0.0 && secret.is_some())
        .map(|end| end as u64);
    Ok(Client {
        id: response.client_id,
        secret: secret.filter(|_| auth != ClientAuth::None),
        secret_expires_unix: expires.filter(|_| auth != ClientAuth::None),
        auth,
        origin: Origin::Registered,
        redirect_uris: request.redirect_uris.to_vec(),
    })
}

fn grant_types(server: &AuthorizationServer, config: &LoginConfig) -> Vec<&'static str> {
    if config.grant != Grant::Person {
        return vec!["client_credentials"];
    }
    let supports_device = server.device_authorization_endpoint.is_some()
        && server.grant_types.iter().any(|grant| grant == DEVICE);
    let mut grants = vec!["authorization_code", "refresh_token"];
    grants.extend(supports_device.then_some(DEVICE));
    grants
}

/// Returns the best method that the server lists. A native client cannot keep a secret; a gate that
/// other machines reach uses one if it can. A server without a list accepts `client_secret_basic`
/// (RFC 8414, section 2).
fn preferred_auth(server: &AuthorizationServer, redirect_uris: &[String]) -> ClientAuth {
    let offered = &server.token_endpoint_auth_methods;
    let order = match application_type(redirect_uris) {
        "native" => [ClientAuth::None, ClientAuth::Basic, ClientAuth::Post],
        _ => [ClientAuth::Basic, ClientAuth::Post, ClientAuth::None],
    };
    let best_listed = order
        .into_iter()
        .find(|auth| offered.iter().any(|method| method == method_of(*auth)));
    best_listed.unwrap_or(if offered.is_empty() {
        ClientAuth::Basic
    } else {
        ClientAuth::None
    })
}

/// Returns `native` if people are redirected to this machine, otherwise `web` (OpenID Connect
/// Registration, section 2).
pub(super) fn application_type(redirect_uris: &[String]) -> &'static str {
    let native = |uri: &String| {
        let uri = uri.parse::<http::Uri>();
        uri.is_ok_and(|uri| {
            uri.scheme_str() == Some("http") && uri.host().is_some_and(is_this_machine)
        })
    };
    if redirect_uris.iter().all(native) {
        "native"
    } else {
        "web"
    }
}

/// Returns all scopes that may be requested later; each login requests its own. Some servers let a
/// client request no others.
fn scope(server: &AuthorizationServer, config: &LoginConfig) -> Option<String> {
    let configured = bounds::valid_scopes(config.scopes.iter().flatten().map(String::as_str));
    let scopes = if configured.0.is_empty() {
        Scopes::clone(&server.scopes)
    } else {
        configured
    };
    scopes.parameter()
}
