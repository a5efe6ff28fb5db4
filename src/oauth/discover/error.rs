//! What can be amiss with what servers say of their logins.

use http::Uri;

use crate::oauth::bounds;
use crate::oauth::fetch::FetchError;

/// Longest host that is shown, in bytes.
const HOST_BYTES: usize = 80;

/// Why there is no authorization server to go to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoverError {
    /// The config's URL of the server is none to begin with.
    #[error("the URL of the server is none that metadata can be asked for")]
    Url,
    /// The metadata of the resource cannot be had.
    #[error("the metadata of the server, `{}`, cannot be had: {error}", shown(.url))]
    Metadata {
        /// Where it was asked for.
        url: String,
        /// Why not.
        error: FetchError,
    },
    /// The metadata is for another resource: tokens for it would be good elsewhere.
    #[error(
        "the metadata of the server is for another resource, at `{}`; if that is right, spell the upstream's `url` as its \
         metadata does, or set `resource` in its `oauth` table",
        shown(.said)
    )]
    Resource {
        /// What it says to be for.
        said: String,
    },
    /// The resource names no authorization server.
    #[error("the metadata of the server names no authorization server")]
    NoServers,
    /// The issuer is no URL that can be one.
    #[error("the issuer that the server names, `{}`, is not an `https` URL without query and fragment", shown(.0))]
    Issuer(String),
    /// The metadata of the authorization server cannot be had.
    #[error("the metadata of the authorization server `{}` cannot be had: {error}", shown(.issuer))]
    Server {
        issuer: String,
        /// Why not.
        error: FetchError,
    },
    /// The metadata is another authorization server's.
    #[error("the metadata of the authorization server `{}` is that of another one, at `{}`", shown(.expected), shown(.said))]
    OtherIssuer {
        /// Who was asked.
        expected: String,
        /// Who answered.
        said: String,
    },
    /// An endpoint is missing, or is no `https` URL.
    #[error("the metadata of the authorization server `{}` has no `{endpoint}` that can be used", shown(.issuer))]
    Endpoint {
        issuer: String,
        /// The name of the endpoint.
        endpoint: &'static str,
    },
}

impl DiscoverError {
    /// Whether it may be otherwise soon.
    pub fn transient(&self) -> bool {
        match self {
            Self::Metadata { error, .. } | Self::Server { error, .. } => error.transient(),
            _ => false,
        }
    }

    /// Whether the server simply does not say where tokens for it come from.
    pub fn nothing(&self) -> bool {
        matches!(self, Self::NoServers)
    }
}

/// The scheme and host of a URL that a server names. The rest of it could be a sentence, which agents would read in the
/// gate's own words.
pub(in crate::oauth) fn shown(url: &str) -> String {
    let place = bounds::url(url).then(|| url.parse::<Uri>().ok()).flatten();
    let Some(place) = place else {
        return "an invalid URL".to_owned();
    };
    match (place.scheme_str(), place.host(), place.port_u16()) {
        (Some(scheme @ ("http" | "https")), Some(host), None) => {
            format!("{scheme}://{}", shown_host(host))
        }
        (Some(scheme @ ("http" | "https")), Some(host), Some(port)) => {
            format!("{scheme}://{}:{port}", shown_host(host))
        }
        _ => "an invalid URL".to_owned(),
    }
}

/// A host that a server names: only the letters of hosts, and of a long name the end, which says whose it is.
pub(in crate::oauth) fn shown_host(host: &str) -> String {
    let letter =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    if host.is_empty() || !host.bytes().all(letter) {
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
