//! Requests to authorization servers and for metadata. Whom they go to is chosen by others, servers and their documents,
//! so every one of them passes the guard: it goes to a public address, or to one that the config allows.

mod converse;
mod guard;
mod strict;
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
use super::bounds;
use super::discover::shown_host;
use crate::reach::Reach;
use crate::trust;

/// Why there is no answer. Holds nothing of what was answered but a status and the code of an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The URL is none, holds a login or a fragment, or is too long.
    #[error("its URL cannot be used")]
    Url,
    /// The URL is not `https`, and not `http` on loopback where that is allowed.
    #[error("`{}` is not asked without TLS (for `http` on loopback, set `allow_loopback_http` in `[oauth]`)", shown_host(.0))]
    Plain(String),
    /// The host leads where nothing is to be asked.
    #[error("`{}` leads to {}, where nothing is asked{}", shown_host(.host), network(*.reach), advice(*.reach))]
    Forbidden {
        /// The host as the URL has it.
        host: String,
        /// Where it leads.
        reach: Reach,
    },
    /// The name has no address, nothing listens there, or TLS failed.
    #[error("cannot reach `{}`: {why}", shown_host(.host))]
    Unreachable {
        /// The host as the URL has it.
        host: String,
        /// What the system or TLS says.
        why: String,
    },
    /// No whole answer came in time.
    #[error("no answer came within {} s", .0.as_secs_f32())]
    Late(Duration),
    /// The answer is longer than is read.
    #[error("the answer is longer than {} bytes", converse::BODY_BYTES)]
    Long,
    /// The answer has another status than it should.
    #[error("the answer has the status {0}")]
    Status(u16),
    /// The request was refused, with the code of an error.
    #[error("refused: `{error}` (status {status})")]
    Refused {
        status: u16,
        /// The code (RFC 6749, section 5.2; RFC 7591, section 3.2.2).
        error: String,
    },
    /// The answer is not the JSON that it should be.
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
    /// Whether the same request may fare better later.
    pub fn transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Late(_) => true,
            Self::Status(status) | Self::Refused { status, .. } => *status >= 500 || *status == 429,
            Self::Url | Self::Plain(_) | Self::Forbidden { .. } | Self::Long | Self::Unreadable => {
                false
            }
        }
    }
}

/// A client for requests that others choose the target of. A clone shares everything.
#[derive(Clone)]
pub struct Fetcher(Arc<Inner>);

struct Inner {
    guard: Guard,
    request: Duration,
    lookup: Lookup,
    own_roots: RootCertStore,
    tls: OnceCell<tokio_rustls::TlsConnector>,
}

impl Fetcher {
    /// `request` is the time for one request from the look-up of the name to the last byte; `ca` a PEM file of
    /// authorities that are trusted beside the system's.
    ///
    /// # Errors
    /// What is wrong with `ca`, in words for its user.
    pub fn new(guard: Guard, request: Duration, ca: Option<&Path>) -> Result<Self, String> {
        Self::looking_up(guard, request, ca, guard::system_lookup())
    }

    fn looking_up(
        guard: Guard,
        request: Duration,
        ca: Option<&Path>,
        lookup: Lookup,
    ) -> Result<Self, String> {
        let own_roots = ca.map_or_else(|| Ok(RootCertStore::empty()), trust::own_roots)?;
        Ok(Self(Arc::new(Inner {
            guard,
            request,
            lookup,
            own_roots,
            tls: OnceCell::new(),
        })))
    }

    /// Whether a URL may be asked, or a person sent to it, as far as can be seen without looking its name up.
    pub fn may_name(&self, url: &str) -> bool {
        bounds::url(url)
            && !url.contains('#')
            && url
                .parse()
                .is_ok_and(|url| Target::read(&url, &self.0.guard).is_ok())
    }

    /// A document, by GET. One that names something twice is not read.
    ///
    /// # Errors
    /// `Status` for anything but 200.
    pub async fn get_json<T: DeserializeOwned>(&self, url: &str) -> Result<T, FetchError> {
        let response = self
            .exchange(request(Method::GET, url, Vec::new())?)
            .await?;
        match response.status() {
            StatusCode::OK => strict::read(response.body()).ok_or(FetchError::Unreadable),
            status => Err(FetchError::Status(status.as_u16())),
        }
    }

    /// The answer to a document, by POST.
    ///
    /// # Errors
    /// `Refused` where the answer holds the code of an error, else `Status` for anything but 2xx.
    pub async fn post_json<T: DeserializeOwned>(
        &self,
        url: &str,
        body: &impl Serialize,
    ) -> Result<T, FetchError> {
        let body = serde_json::to_vec(body).map_err(|_| FetchError::Unreadable)?;
        let mut request = request(Method::POST, url, body)?;
        request.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        let response = self.exchange(request).await?;
        let status = response.status();
        if status.is_success() {
            return strict::read(response.body()).ok_or(FetchError::Unreadable);
        }
        let status = status.as_u16();
        Err(
            error_code(response.body()).map_or(FetchError::Status(status), |error| {
                FetchError::Refused { status, error }
            }),
        )
    }

    /// Sends one request, to an address that the guard has let pass, and gives the answer whatever its status.
    /// Redirects are answers like others.
    ///
    /// # Errors
    /// All but `Status`, `Refused` and `Unreadable`.
    pub async fn exchange(
        &self,
        request: Request<Vec<u8>>,
    ) -> Result<Response<Vec<u8>>, FetchError> {
        let limit = self.0.request;
        let answer = tokio::time::timeout(limit, converse::converse(&self.0, request)).await;
        answer.map_err(|_| FetchError::Late(limit))?
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
    // `Uri` drops a fragment without a word.
    if !bounds::url(url) || url.contains('#') {
        return Err(FetchError::Url);
    }
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = url.parse::<Uri>().map_err(|_| FetchError::Url)?;
    request
        .headers_mut()
        .insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    Ok(request)
}

/// The code of an error, if the answer has one.
fn error_code(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct ErrorBody {
        error: String,
    }
    strict::read::<ErrorBody>(body).and_then(|told| bounds::code(told.error))
}
