//! The metadata of an authorization server (RFC 8414; OpenID Connect Discovery 1.0).

use serde::Deserialize;

use super::place::UrlParts;
use super::{DiscoverError, is_absent};
use crate::oauth::fetch::{FetchError, Fetcher};
use crate::oauth::{AuthorizationServer, bounds};

const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Parameters of the metadata that a client needs (RFC 8414, section 2; RFC 9207, section 3; the
/// draft on client id metadata documents).
#[derive(Deserialize)]
struct ServerMetadata {
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    revocation_endpoint: Option<String>,
    device_authorization_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
    grant_types_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    client_id_metadata_document_supported: Option<bool>,
    authorization_response_iss_parameter_supported: Option<bool>,
}

/// Fetches the metadata of an issuer, from URLs that belong to it alone: for an issuer with a path,
/// the root belongs to another.
///
/// # Errors
/// Fails if none of the URLs has it, if it belongs to another issuer, or if an endpoint does not
/// use TLS.
pub async fn server_metadata(
    fetcher: &Fetcher,
    issuer: &str,
) -> Result<AuthorizationServer, DiscoverError> {
    let unusable = || DiscoverError::Issuer(issuer.to_owned());
    let parts = UrlParts::read(issuer)
        .filter(|parts| bounds::is_url(issuer) && parts.query.is_none())
        .ok_or_else(unusable)?;
    let origin = parts.origin;
    let path = parts.path_without_slash();
    let urls = match path {
        "" => vec![format!("{origin}{OAUTH}"), format!("{origin}{OPENID}")],
        path => vec![
            format!("{origin}{OAUTH}{path}"),
            format!("{origin}{OPENID}{path}"),
            format!("{origin}{path}{OPENID}"),
        ],
    };
    fetch_first(fetcher, issuer, &[issuer], &urls).await
}

/// Fetches the metadata of a server that is its own issuer; uses the default endpoints if it has
/// none.
pub(super) async fn origin_server(
    fetcher: &Fetcher,
    origin: &str,
) -> Result<AuthorizationServer, DiscoverError> {
    // The issuer is not named anywhere, and both forms have their metadata here.
    let issuers = [origin, &format!("{origin}/")];
    match fetch_first(
        fetcher,
        origin,
        &issuers,
        &[format!("{origin}{OAUTH}"), format!("{origin}{OPENID}")],
    )
    .await
    {
        Err(DiscoverError::Server { error, .. }) if is_absent(&error) => {
            default_server(fetcher, origin)
        }
        outcome => outcome,
    }
}

/// Returns the first document that belongs to one of `issuers`.
async fn fetch_first(
    fetcher: &Fetcher,
    requested_issuer: &str,
    issuers: &[&str],
    urls: &[String],
) -> Result<AuthorizationServer, DiscoverError> {
    let mut other_issuer = None;
    let mut absent = FetchError::Status(404);
    for url in urls {
        match fetcher.get_json::<ServerMetadata>(url).await {
            Ok(metadata) if issuers.contains(&metadata.issuer.as_str()) => {
                return check_metadata(fetcher, metadata);
            }
            Ok(metadata) => other_issuer = other_issuer.or(Some(metadata.issuer)),
            Err(error) if is_absent(&error) => absent = error,
            Err(error) => {
                return Err(DiscoverError::Server {
                    issuer: requested_issuer.to_owned(),
                    error,
                });
            }
        }
    }
    let expected = requested_issuer.to_owned();
    Err(match other_issuer {
        Some(said) => DiscoverError::OtherIssuer { expected, said },
        None => DiscoverError::Server {
            issuer: expected,
            error: absent,
        },
    })
}

fn check_metadata(
    fetcher: &Fetcher,
    metadata: ServerMetadata,
) -> Result<AuthorizationServer, DiscoverError> {
    let issuer = metadata.issuer;
    let endpoint = |name: &'static str, url: Option<String>| match url {
        Some(url) if !fetcher.may_name(&url) => Err(DiscoverError::Endpoint {
            issuer: issuer.clone(),
            endpoint: name,
        }),
        url => Ok(url),
    };
    let authorization_endpoint =
        endpoint("authorization_endpoint", metadata.authorization_endpoint)?;
    let token_endpoint = endpoint("token_endpoint", metadata.token_endpoint)?.ok_or_else(|| {
        DiscoverError::Endpoint {
            issuer: issuer.clone(),
            endpoint: "token_endpoint",
        }
    })?;
    let registration_endpoint = endpoint("registration_endpoint", metadata.registration_endpoint)?;
    let revocation_endpoint = endpoint("revocation_endpoint", metadata.revocation_endpoint)?;
    let device = endpoint(
        "device_authorization_endpoint",
        metadata.device_authorization_endpoint,
    )?;
    let list = |values: Option<Vec<String>>| bounds::limit_words(values.unwrap_or_default());
    let s256 = list(metadata.code_challenge_methods_supported)
        .iter()
        .any(|method| method == "S256");
    Ok(AuthorizationServer {
        issuer,
        authorization_endpoint,
        token_endpoint,
        registration_endpoint,
        revocation_endpoint,
        device_authorization_endpoint: device,
        token_endpoint_auth_methods: list(metadata.token_endpoint_auth_methods_supported),
        token_endpoint_auth_signing_algs: list(
            metadata.token_endpoint_auth_signing_alg_values_supported,
        ),
        scopes: bounds::valid_scopes(
            metadata
                .scopes_supported
                .unwrap_or_default()
                .iter()
                .map(String::as_str),
        ),
        grant_types: list(metadata.grant_types_supported),
        client_id_metadata_document: metadata.client_id_metadata_document_supported == Some(true),
        iss_in_response: metadata.authorization_response_iss_parameter_supported == Some(true),
        s256,
    })
}

/// Returns the default endpoints of a server of 2025-03-26 without metadata (2.3.3). That revision
/// requires PKCE of every client and server.
fn default_server(fetcher: &Fetcher, origin: &str) -> Result<AuthorizationServer, DiscoverError> {
    let url = |path: &str| format!("{origin}{path}");
    if !fetcher.may_name(&url("/token")) {
        return Err(DiscoverError::Endpoint {
            issuer: origin.to_owned(),
            endpoint: "token_endpoint",
        });
    }
    Ok(AuthorizationServer {
        issuer: origin.to_owned(),
        authorization_endpoint: Some(url("/authorize")),
        token_endpoint: url("/token"),
        registration_endpoint: Some(url("/register")),
        s256: true,
        ..AuthorizationServer::default()
    })
}
