//! Errors in the discovery of authorization servers.

use http::Uri;

use crate::oauth::bounds;
use crate::oauth::fetch::FetchError;

/// Maximum length of a host that is shown, in bytes.
const HOST_BYTES: usize = 80;

/// Why no authorization server was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoverError {
    /// The server's URL in the config is not a valid URL.
    #[error("the URL of the server is none that metadata can be asked for")]
    Url,
    /// The metadata of the resource cannot be fetched.
    #[error("the metadata of the server, `{}`, cannot be had: {error}", shown(.url))]
    Metadata {
        /// The URL from which it was requested.
        url: String,
        /// Why the request failed.
        error: FetchError,
    },
    /// The metadata is for another resource: tokens for it would be valid elsewhere.
    #[error(
        "the metadata of the server is for another resource, at `{}`; if that is right, spell the upstream's `url` as its \
         metadata does, or set `resource` in its `oauth` table",
        shown(.said)
    )]
    Resource {
        /// The resource that the metadata names.
        said: String,
    },
    /// The resource names no authorization server.
    #[error("the metadata of the server names no authorization server")]
    NoServers,
    /// The issuer is not a valid issuer URL.
    #[error("the issuer that the server names, `{}`, is not an `https` URL without query and fragment", shown(.0))]
    Issuer(String),
    /// The metadata of the authorization server cannot be fetched.
    #[error("the metadata of the authorization server `{}` cannot be had: {error}", shown(.issuer))]
    Server {
        issuer: String,
        /// Why the request failed.
        error: FetchError,
    },
    /// The metadata belongs to another authorization server.
    #[error("the metadata of the authorization server `{}` is that of another one, at `{}`", shown(.expected), shown(.said))]
    OtherIssuer {
        /// The issuer whose metadata was requested.
        expected: String,
        /// The issuer in the metadata.
        said: String,
    },
    /// An endpoint is missing, or is not an `https` URL.
    #[error("the metadata of the authorization server `{}` has no `{endpoint}` that can be used", shown(.issuer))]
    Endpoint {
        issuer: String,
        /// The name of the endpoint.
        endpoint: &'static str,
    },
}

impl DiscoverError {
    /// Reports whether a retry may succeed soon.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Metadata { error, .. } | Self::Server { error, .. } => error.is_transient(),
            _ => false,
        }
    }

    /// Reports whether the server simply does not name an authorization server.
    pub fn names_no_server(&self) -> bool {
        matches!(self, Self::NoServers)
    }
}

/// Returns the scheme and host of a URL that a server names. The rest of it could be a sentence,
/// which agents would read as the gate's own words.
pub(in crate::oauth) fn shown(url: &str) -> String {
    let uri = bounds::is_url(url)
        .then(|| url.parse::<Uri>().ok())
        .flatten();
    let Some(uri) = uri else {
        return "an invalid URL".to_owned();
    };
    match (uri.scheme_str(), uri.host(), uri.port_u16()) {
        (Some(scheme @ ("http" | "https")), Some(host), None) => {
            format!("{scheme}://{}", shown_host(host))
        }
        (Some(scheme @ ("http" | "https")), Some(host), Some(port)) => {
            format!("{scheme}://{}:{port}", shown_host(host))
        }
        _ => "an invalid URL".to_owned(),
    }
}

/// Returns a host that a server names, if it consists only of characters that hosts may have. Of a
/// long name, only the end is shown, which identifies its owner.
pub(in crate::oauth) fn shown_host(host: &str) -> String {
    let is_host_char =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    if host.is_empty() || !host.bytes().all(is_host_char) {
        return "an invalid host".to_owned();
    }
    let host = host.to_ascii_lowercase();
    match host
        .len()
        .checked_sub(HOST_BYTES)
        .and_then(|start| host.get(start..))
    {
        Some(end) if end.len() < host.len() => format!("…{end}"),
        _ => host,
    }
}
