//! Requests to authorization servers and for metadata. Their targets are chosen by other parties,
//! namely servers and their documents, so every request passes the guard: it is sent only to a
//! public address or to one that the config allows.

mod converse;
mod guard;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use oauth2::{AsyncHttpClient, HttpRequest, HttpResponse};
use rustls::RootCertStore;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

pub use guard::Guard;
pub(super) use guard::is_this_machine;

use self::guard::{Lookup, Target};
use super::discover::shown_host;
use super::{bounds, strict};
use crate::config::OAuthConfig;
use crate::protocol::JSON;
use crate::reach::Reach;
use crate::trust;

/// Maximum depth of nested values in a document.
const JSON_DEPTH: usize = 127;

/// Why a request failed. Contains nothing of the response except a status and an error code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The URL is invalid, contains credentials or a fragment, or is too long.
    #[error("its URL cannot be used")]
    Url,
    /// The URL is not `https`, nor `http` on loopback where that is allowed.
    #[error("`{}` is not asked without TLS (for `http` on loopback, set `allow_loopback_http` in `[oauth]`)", shown_host(.0))]
    Plain(String),
    /// The host leads to a network to which requests are not allowed.
    #[error("`{}` leads to {}, where nothing is asked{}", shown_host(.host), network(*.reach), advice(*.reach))]
    Forbidden {
        /// The host as in the URL.
        host: String,
        /// Where the host leads.
        reach: Reach,
    },
    /// The name has no address, nothing listens there, or TLS failed.
    #[error("cannot reach `{}`: {why}", shown_host(.host))]
    Unreachable {
        /// The host as in the URL.
        host: String,
        /// The error reported by the system or by TLS.
        why: String,
    },
    /// No complete response arrived in time.
    #[error("no answer came within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// The response exceeds the maximum length.
    #[error("the answer is longer than {} bytes", converse::BODY_BYTES)]
    TooLong,
    /// The response has an unexpected status.
    #[error("the answer has the status {0}")]
    Status(u16),
    /// The request was refused with an error code.
    #[error("refused: `{error}` (status {status})")]
    Refused {
        status: u16,
        /// The error code (RFC 6749, section 5.2; RFC 7591, section 3.2.2).
        error: String,
    },
    /// The response is not the expected JSON.
    #[error("the answer is not the JSON that is asked for")]
    Unreadable,
}

fn network(reach: Reach) -> &'static str {
    match reach {
        Reach::Reserved => "a reserved network",
        Reach::InternalName | Reach::WildcardDns | Reach::Private => "a private network",
        Reach::Loopback => "this machine",
        Reach::LinkLocal => "the local link",
        Reach::Metadata => "a cloud's metadata service",
    }
}

fn advice(reach: Reach) -> &'static str {
    match reach {
        Reach::Private | Reach::Loopback => {
            " (name it in `private_hosts` of `[oauth]` if it is yours)"
        }
        _ => "",
    }
}

impl FetchError {
    /// Reports whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout(_) => true,
            Self::Status(status) | Self::Refused { status, .. } => *status >= 500 || *status == 429,
            Self::Url
            | Self::Plain(_)
            | Self::Forbidden { .. }
            | Self::TooLong
            | Self::Unreadable => false,
        }
    }
}

/// A client for requests whose target is chosen by other parties. Clones share all state.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    guard: Guard,
    request_timeout: Duration,
    lookup: Lookup,
    own_roots: RootCertStore,
    tls: OnceCell<tokio_rustls::TlsConnector>,
}

impl Fetcher {
    /// Creates a client. `request_timeout` is the maximum time for one request, from name
    /// resolution to the last byte; `ca` is a PEM file of CA certificates that are trusted in
    /// addition to the system's.
    ///
    /// # Errors
    /// Returns what is wrong with `ca`, as a message for its user.
    pub fn new(guard: Guard, request_timeout: Duration, ca: Option<&Path>) -> Result<Self, String> {
        Self::with_lookup(guard, request_timeout, ca, guard::system_lookup())
    }

    /// Creates a client with the limits of a config.
    ///
    /// # Errors
    /// Returns what is wrong with `ca`, as a message for its user.
    pub fn for_config(config: &OAuthConfig, ca: Option<&Path>) -> Result<Self, String> {
        let guard = Guard {
            allow_loopback_http: config.allow_loopback_http,
            private_hosts: config.private_hosts.clone(),
        };
        Self::new(guard, config.request, ca)
    }

    fn with_lookup(
        guard: Guard,
        request_timeout: Duration,
        ca: Option<&Path>,
        lookup: Lookup,
    ) -> Result<Self, String> {
        let own_roots = ca.map_or_else(|| Ok(RootCertStore::empty()), trust::own_roots)?;
        Ok(Self(Arc::new(Inner {
            guard,
            request_timeout,
            lookup,
            own_roots,
            tls: OnceCell::new(),
        })))
    }

    /// Reports whether a URL may be fetched, or a person sent to it, as far as can be determined
    /// without resolving its host name.
    pub fn may_name(&self, url: &str) -> bool {
        bounds::is_url(url)
            && !url.contains('#')
            && url
                .parse()
                .is_ok_and(|url| Target::read(&url, &self.0.guard).is_ok())
    }

    /// Fetches a document with GET. A document with a duplicate key is rejected.
    ///
    /// # Errors
    /// Fails with `Status` for any status but 200.
    pub async fn get_json<T: DeserializeOwned>(&self, url: &str) -> Result<T, FetchError> {
        let response = self
            .exchange(request(Method::GET, url, Vec::new())?)
            .await?;
        match response.status() {
            StatusCode::OK => read(response.body()).ok_or(FetchError::Unreadable),
            status => Err(FetchError::Status(status.as_u16())),
        }
    }

    /// Sends a document with POST and returns the response.
    ///
    /// # Errors
    /// Fails with `Refused` if the response contains an error code, otherwise with `Status` for any
    /// status but 2xx.
    pub async fn post_json<T: DeserializeOwned>(
        &self,
        url: &str,
        body: &impl Serialize,
    ) -> Result<T, FetchError> {
        let body = serde_json::to_vec(body).map_err(|_| FetchError::Unreadable)?;
        let mut request = request(Method::POST, url, body)?;
        request
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        let response = self.exchange(request).await?;
        let status = response.status();
        if status.is_success() {
            return read(response.body()).ok_or(FetchError::Unreadable);
        }
        let status = status.as_u16();
        Err(
            error_code(response.body()).map_or(FetchError::Status(status), |error| {
                FetchError::Refused { status, error }
            }),
        )
    }

    /// Sends one request to an address that the guard permits, and returns the response, whatever
    /// its status. Redirects are returned, not followed.
    ///
    /// # Errors
    /// All errors except `Status`, `Refused` and `Unreadable`.
    pub async fn exchange(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, FetchError> {
        let limit = self.0.request_timeout;
        let response = tokio::time::timeout(limit, converse::send_request(&self.0, request)).await;
        response.map_err(|_| FetchError::Timeout(limit))?
    }
}

impl<'c> AsyncHttpClient<'c> for Fetcher {
    type Error = FetchError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, FetchError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.exchange(request))
    }
}

fn request(method: Method, url: &str, body: Vec<u8>) -> Result<Request<Vec<u8>>, FetchError> {
    // `Uri` silently drops a fragment.
    if !bounds::is_url(url) || url.contains('#') {
        return Err(FetchError::Url);
    }
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = url.parse::<Uri>().map_err(|_| FetchError::Url)?;
    request
        .headers_mut()
        .insert(header::ACCEPT, HeaderValue::from_static(JSON));
    Ok(request)
}

/// Parses a document strictly; `None` if it does not have the expected shape.
fn read<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    let json = strict::parse(body, converse::BODY_BYTES, converse::BODY_BYTES, JSON_DEPTH)?;
    if !strict::has_finite_numbers(&json) {
        return None;
    }
    serde_json::from_slice(json.bytes()).ok()
}

/// Returns the error code of a response, if it has one.
fn error_code(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct ErrorBody {
        error: String,
    }
    read::<ErrorBody>(body).and_then(|parsed| bounds::known_error_code(parsed.error))
}
