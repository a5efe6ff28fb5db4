//! The HTTP client for a gate.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::ProveError;
use crate::cli::certificate_verifier::CertificateVerifier;
use crate::cli::response::read_body;
use crate::config::ListenTls;
use crate::protocol::JSON_OR_EVENTS;
use crate::trust;

/// Time limit of one response, from connecting to the last byte.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a response, in bytes: the rules of a policy take a few tens of kilobytes.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// A client for a gate, with the token that it sends.
pub(super) struct GateClient {
    base: String,
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    token: String,
}

/// A response of the gate.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The sender's identity in a request.
#[derive(Clone, Copy)]
pub(super) enum Auth<'s> {
    /// The gate's own token.
    Token,
    /// No credentials.
    Nothing,
    /// A `Host` other than the gate's.
    Host(&'s str),
    /// The `Origin` of a page.
    Origin(&'s str),
}

type ClientFiles<'f> = Option<(&'f Path, &'f Path)>;

impl GateClient {
    /// Creates a client for the gate of a config, by its address. Over TLS the gate must present
    /// the exact certificate of its config, since few certificates contain its address.
    pub(super) fn for_address(
        address: SocketAddr,
        tls: Option<&ListenTls>,
        client: ClientFiles<'_>,
        token: String,
    ) -> Result<Self, ProveError> {
        let pinned = match tls {
            Some(tls) => trust::certificates(&tls.cert)
                .map_err(ProveError)?
                .into_iter()
                .next(),
            None => None,
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        Self::new(
            format!("{scheme}://{address}"),
            pinning_verifier(pinned),
            client,
            token,
        )
    }

    /// Creates a client for the gate at this URL.
    pub(super) fn for_url(
        url: &str,
        ca: Option<&Path>,
        client: ClientFiles<'_>,
        token: String,
    ) -> Result<Self, ProveError> {
        let roots = trust::roots_for(url, ca).map_err(ProveError)?;
        let verifier: Arc<dyn ServerCertVerifier> = if roots.is_empty() {
            pinning_verifier(None)
        } else {
            let result = WebPkiServerVerifier::builder_with_provider(
                roots,
                Arc::new(ring::default_provider()),
            )
            .build();
            result.map_err(|error| ProveError(format!("TLS cannot be set up: {error}")))?
        };
        Self::new(
            url.trim_end_matches('/').to_owned(),
            verifier,
            client,
            token,
        )
    }

    fn new(
        base: String,
        verifier: Arc<dyn ServerCertVerifier>,
        client: ClientFiles<'_>,
        token: String,
    ) -> Result<Self, ProveError> {
        let no_tls = |error: rustls::Error| ProveError(format!("TLS cannot be set up: {error}"));
        let builder = trust::client_tls()
            .map_err(ProveError)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let tls = match client {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let key = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                    ProveError(format!(
                        "`{}` cannot be read as a private key: {error}",
                        key.display()
                    ))
                })?;
                builder
                    .with_client_auth_cert(trust::certificates(cert).map_err(ProveError)?, key)
                    .map_err(no_tls)?
            }
        };
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(trust::tcp_connector(RESPONSE_TIMEOUT));
        Ok(Self {
            base,
            http: Client::builder(TokioExecutor::new()).build(connector),
            token,
        })
    }

    /// Returns the gate's URL, without a path.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Fetches the gate's state.
    pub(super) async fn get(&self, path: &str) -> Result<Answer, ProveError> {
        self.send(Method::GET, path, &[], Auth::Token, String::new())
            .await
    }

    /// Sends a message.
    pub(super) async fn post(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
        auth: Auth<'_>,
        body: String,
    ) -> Result<Answer, ProveError> {
        self.send(Method::POST, path, headers, auth, body).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        auth: Auth<'_>,
        body: String,
    ) -> Result<Answer, ProveError> {
        let request = self.request(method, path, headers, auth, body);
        let request = request.map_err(|error| {
            ProveError(format!("`{}` is not a valid gate URL: {error}", self.base))
        })?;
        let exchange = tokio::time::timeout(RESPONSE_TIMEOUT, async {
            let response = self
                .http
                .request(request)
                .await
                .map_err(|error| trust::error_text(&error))?;
            let (head, body) = response.into_parts();
            let body = read_body(body, MAX_RESPONSE_BYTES, "its answer is too long")
                .await
                .map_err(|error| error.to_string())?;
            Ok(Answer {
                status: head.status,
                headers: head.headers,
                body,
            })
        });
        let result: Result<Answer, String> = exchange
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {} s", RESPONSE_TIMEOUT.as_secs())));
        result.map_err(|why| {
            let hint = hint(&why, self.base.starts_with("http:"));
            ProveError(format!(
                "{} does not answer: {why}\n  hint: {hint}",
                self.base
            ))
        })
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        auth: Auth<'_>,
        body: String,
    ) -> Result<Request<Full<Bytes>>, http::Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .body(Full::new(body.into()))?;
        let header_map = request.headers_mut();
        header_map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        header_map.insert(ACCEPT, HeaderValue::from_static(JSON_OR_EVENTS));
        for (name, value) in headers {
            header_map.insert(HeaderName::from_static(name), HeaderValue::from_str(value)?);
        }
        let (name, value) = match auth {
            Auth::Token => (AUTHORIZATION, format!("Bearer {}", self.token)),
            Auth::Nothing => return Ok(request),
            Auth::Host(host) => (HOST, host.to_owned()),
            Auth::Origin(origin) => (ORIGIN, origin.to_owned()),
        };
        let mut value = HeaderValue::from_str(&value)?;
        value.set_sensitive(name == AUTHORIZATION);
        header_map.insert(name, value);
        Ok(request)
    }
}

/// Returns a hint for a gate that does not respond; `why` is the error of the connection.
fn hint(why: &str, plain: bool) -> &'static str {
    let hints = [
        (
            "CertificateRequired",
            "it requires a client certificate: `--client-cert FILE --client-key FILE`",
        ),
        (
            "UnknownIssuer",
            "`--ca FILE` sets the authority that signed its certificate",
        ),
        (
            "CaUsedAsEndEntity",
            "its certificate is a CA certificate, which clients reject for a server: create one with \
             `-addext basicConstraints=critical,CA:FALSE`",
        ),
        (
            "UnsupportedCertVersion",
            "a certificate has version 1: those of `--client-cert` and `--ca` must have version 3",
        ),
        (
            "not valid for",
            "the host of the URL must match the certificate",
        ),
        (
            "Expired",
            "its certificate has expired: run `lychgate doctor`",
        ),
    ];
    if let Some((_, hint)) = hints.iter().find(|(word, _)| why.contains(word)) {
        return hint;
    }
    if plain
        && (why.contains("invalid HTTP version")
            || why.contains("message completed")
            || why.contains("connection closed"))
    {
        return "if it uses TLS, its URL begins with `https:`";
    }
    "check that it is running at the configured address; `--offline` starts it here"
}

/// Returns a verifier that trusts exactly one certificate, independent of its name and issuer;
/// without a certificate, it trusts none.
fn pinning_verifier(certificate: Option<CertificateDer<'static>>) -> Arc<dyn ServerCertVerifier> {
    CertificateVerifier::new(Box::new(move |end_entity, _, _, _, _| {
        if certificate.as_ref() == Some(end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::Error::General(
            "its certificate differs from that of the config".to_owned(),
        ))
    }))
}
