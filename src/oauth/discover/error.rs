//! What can be amiss with what servers say of their logins.

use crate::oauth::fetch::FetchError;

/// Longest part of somebody else's string that is shown.
const SHOWN: usize = 200;

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
    #[error("the metadata of the server is for `{}`, which the configured URL is not part of", shown(.said))]
    Resource {
        /// What it says to be for.
        said: String,
    },
    /// The resource names no authorization server.
    #[error("the metadata of the server names no authorization server")]
    NoServers,
    /// The issuer is no URL that can be one.
    #[error("`{}` is no issuer: it has to be an `https` URL without query and fragment", shown(.0))]
    Issuer(String),
    /// The metadata of the authorization server cannot be had.
    #[error("the metadata of the authorization server `{}` cannot be had: {error}", shown(.issuer))]
    Server {
        /// Its issuer.
        issuer: String,
        /// Why not.
        error: FetchError,
    },
    /// The metadata is another authorization server's.
    #[error("the metadata of the authorization server `{}` is that of `{}`", shown(.expected), shown(.said))]
    OtherIssuer {
        /// Who was asked.
        expected: String,
        /// Who answered.
        said: String,
    },
    /// An endpoint is missing, or is no `https` URL.
    #[error("the metadata of the authorization server `{}` has no `{endpoint}` that can be used", shown(.issuer))]
    Endpoint {
        /// Its issuer.
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

/// Somebody else's string, as far as it can be shown: visible ASCII, and not much of it.
pub(in crate::oauth) fn shown(text: &str) -> String {
    let visible = |c: char| if c.is_ascii_graphic() && c != '`' { c } else { '?' };
    let mut out: String = text.chars().take(SHOWN).map(visible).collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push('…');
    }
    out
}
