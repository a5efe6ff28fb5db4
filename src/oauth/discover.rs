//! Discovery of the authorization server for the URL of a server (MCP 2026-07-28 and 2025-11-25,
//! `basic/authorization`; RFC 9728; RFC 8414). Everything here is what servers claim about
//! themselves, until it is checked.

mod error;
mod place;
mod server;
#[cfg(test)]
mod tests;

use serde::Deserialize;

pub use error::DiscoverError;
pub(super) use error::{shown, shown_host};
pub use server::server_metadata;

use self::place::UrlParts;
use super::challenge::Challenge;
use super::fetch::{FetchError, Fetcher};
use super::{AuthorizationServer, LoginParty, Principal, Scopes, bounds};

/// Maximum number of authorization servers that are tried for one resource.
const MAX_SERVERS: usize = 3;
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The authorization server that issues tokens for a server, and the resource that the tokens are
/// for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The resource that tokens are for: as in the resource's metadata, or the server's URL without
    /// its query.
    pub resource: String,
    /// The authorization server that issues them.
    pub server: AuthorizationServer,
    /// Scopes in the resource's metadata.
    pub scopes: Scopes,
    /// Whether the resource has no metadata, so that the server is of 2025-03-26 or older, and its
    /// own authorization server.
    pub legacy: bool,
}

impl Discovery {
    /// Returns the party of a principal's login at this server.
    pub(super) fn login_party(&self, principal: &Principal) -> LoginParty {
        LoginParty {
            issuer: self.server.issuer.clone(),
            resource: self.resource.clone(),
            principal: principal.clone(),
        }
    }
}

/// The metadata of a resource (RFC 9728, section 2), as far as a client needs it.
#[derive(Deserialize)]
struct ResourceMetadata {
    resource: String,
    authorization_servers: Option<Vec<String>>,
    scopes_supported: Option<Vec<String>>,
}

/// What is known before discovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiscoveryHints<'c> {
    /// The issuer for which there are credentials, which is preferred if the resource names it.
    pub issuer: Option<&'c str>,
    /// The resource identifier that the operator has set.
    pub resource: Option<&'c str>,
}

/// Discovers the authorization server. `challenge` is that of the 401 response.
///
/// # Errors
/// Returns what is wrong, and at which party. Nothing is sent to an authorization server before the
/// resource was checked.
pub async fn discover(
    fetcher: &Fetcher,
    mcp_url: &str,
    challenge: &Challenge,
    hints: DiscoveryHints<'_>,
) -> Result<Discovery, DiscoverError> {
    let mcp = UrlParts::read(mcp_url).ok_or(DiscoverError::Url)?;
    match resource_metadata(fetcher, &mcp, challenge).await? {
        Some((url, metadata)) => {
            let named_resource = &metadata.resource;
            let is_expected = match hints.resource {
                Some(resource) => named_resource == resource,
                None => {
                    bounds::is_url(named_resource)
                        && UrlParts::read(named_resource)
                            .is_some_and(|parts| parts.is_resource_of(&mcp, &url))
                }
            };
            if !is_expected {
                return Err(DiscoverError::Resource {
                    said: metadata.resource,
                });
            }
            discover_from_metadata(fetcher, metadata, hints.issuer).await
        }
        None => {
            let server = discover_without_metadata(fetcher, &mcp, hints.issuer).await?;
            Ok(Discovery {
                resource: mcp.without_query(),
                server,
                scopes: Scopes::default(),
                legacy: true,
            })
        }
    }
}

/// Fetches the metadata of a resource and returns it with its URL. If the challenge names a URL,
/// only that is used; otherwise the well-known URLs (RFC 9728, section 3).
async fn resource_metadata(
    fetcher: &Fetcher,
    mcp: &UrlParts<'_>,
    challenge: &Challenge,
) -> Result<Option<(String, ResourceMetadata)>, DiscoverError> {
    let metadata_error = |url: &str, error| DiscoverError::Metadata {
        url: url.to_owned(),
        error,
    };
    if let Some(url) = &challenge.resource_metadata {
        let document = fetcher
            .get_json(url)
            .await
            .map_err(|error| metadata_error(url, error))?;
        return Ok(Some((url.clone(), document)));
    }
    let root = format!("{}{WELL_KNOWN}", mcp.origin);
    let path = mcp.metadata_url();
    // If there is a document for the path, the one at the root is for other resources.
    for url in [Some(&path), (path != root).then_some(&root)]
        .into_iter()
        .flatten()
    {
        match fetcher.get_json(url).await {
            Ok(metadata) => return Ok(Some((url.clone(), metadata))),
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(metadata_error(url, error)),
        }
    }
    Ok(None)
}

/// Reports whether a response means that there is no such document. That includes responses that
/// are not JSON, since some sites serve their front page at every URL.
fn is_absent(error: &FetchError) -> bool {
    match error {
        FetchError::Status(status) => (300..500).contains(status) && *status != 429,
        FetchError::Unreadable => true,
        _ => false,
    }
}

async fn discover_from_metadata(
    fetcher: &Fetcher,
    metadata: ResourceMetadata,
    preferred: Option<&str>,
) -> Result<Discovery, DiscoverError> {
    let ResourceMetadata {
        resource,
        authorization_servers,
        scopes_supported,
    } = metadata;
    let scopes = bounds::valid_scopes(
        scopes_supported
            .unwrap_or_default()
            .iter()
            .map(String::as_str),
    );
    let issuers = authorization_servers.unwrap_or_default();
    let preferred_issuer = issuers
        .iter()
        .find(|issuer| Some(issuer.as_str()) == preferred);
    let others = issuers
        .iter()
        .filter(|issuer| Some(issuer.as_str()) != preferred);
    let mut first_error = None;
    for issuer in preferred_issuer.into_iter().chain(others).take(MAX_SERVERS) {
        match server_metadata(fetcher, issuer).await {
            Ok(server) => {
                return Ok(Discovery {
                    resource,
                    server,
                    scopes,
                    legacy: false,
                });
            }
            // The next server would be another party with another login, so a temporary failure of
            // this one is not a reason to use it.
            Err(error) if error.is_transient() => return Err(first_error.unwrap_or(error)),
            Err(error) => _ = first_error.get_or_insert(error),
        }
    }
    Err(first_error.unwrap_or(DiscoverError::NoServers))
}

/// Servers of 2025-03-26 are their own authorization servers, with metadata at the root of their
/// origin, or at least with endpoints at the default paths (MCP 2025-03-26, `basic/authorization`,
/// 2.3.2 and 2.3.3).
async fn discover_without_metadata(
    fetcher: &Fetcher,
    mcp: &UrlParts<'_>,
    preferred: Option<&str>,
) -> Result<AuthorizationServer, DiscoverError> {
    let origin = mcp.origin;
    match preferred {
        // The metadata of another issuer is fetched from that issuer, never taken from this server.
        Some(issuer) if issuer.strip_suffix('/').unwrap_or(issuer) != origin => {
            server_metadata(fetcher, issuer).await
        }
        _ => server::origin_server(fetcher, origin).await,
    }
}
