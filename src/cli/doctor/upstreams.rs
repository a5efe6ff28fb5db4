//! Checks of upstreams: reachability, logins, validity of certificates, clocks.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, stream};
use http::Uri;
use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::listener::lasts_for;
use super::{CheckResult, Level, dates};
use crate::cli::auth::lasts;
use crate::cli::scan::{Client, RequestError, login_free};
use crate::config::{Config, HttpTransport, Transport, UpstreamConfig};
use crate::oauth::unix_now;
use crate::oauth::vault::Vault;
use crate::protocol::{CallError, UpstreamName};
use crate::trust;
use crate::upstream::{Health, Upstream};

/// Maximum number of servers that are checked concurrently, and the time limit of each step of a
/// check.
pub(super) const AT_ONCE: usize = 32;
const STEP: Duration = Duration::from_secs(2);
/// Maximum clock difference that does not affect tokens and certificates.
const SKEW: Duration = Duration::from_secs(30);
/// Maximum length of a response head that is read, in bytes.
const HEAD_BYTES: u64 = 16 << 10;

/// Checks the stored logins.
pub(super) async fn logins(config: Arc<Config>) -> CheckResult {
    let mut result = CheckResult::default();
    let by_http = |upstream: &UpstreamConfig| matches!(&upstream.transport, Transport::Http(http) | Transport::Sse(http) if http.login.is_some());
    if !config.upstreams.values().any(by_http) {
        result.pass("no upstream requires a login");
        return result;
    }
    let kept = match Vault::open(&config.oauth) {
        Ok(vault) => vault.list().await,
        Err(error) => Err(error),
    };
    match kept {
        Err(error) => result.find(
            Level::Error,
            format!("cannot use the login vault: {error}"),
            "lychgate auth status",
        ),
        Ok(kept) => {
            for fault in &kept.faults {
                result.find(Level::Error, fault.to_string(), "lychgate auth status");
            }
            for account in &kept.accounts {
                let upstream = &account.upstream;
                let whose = account.party.principal.to_string();
                let fix = format!("lychgate login {upstream}");
                match &account.granted {
                    None => result.find(
                        Level::Warning,
                        format!("`{upstream}` requires a login ({whose})"),
                        fix,
                    ),
                    Some(granted) => {
                        let over = granted.expires_unix.is_some_and(|end| end <= unix_now())
                            && granted.refresh.is_none();
                        let what =
                            format!("the token for `{upstream}` ({whose}) {}", lasts(granted));
                        if over {
                            result.find(Level::Warning, what, fix)
                        } else {
                            result.pass(what)
                        }
                    }
                }
                if let Some(error) = &account.last_error {
                    result.find(
                        Level::Warning,
                        format!("the last renewal for `{upstream}` failed: {error}"),
                        format!("lychgate login {upstream}"),
                    );
                }
            }
            if kept.accounts.is_empty() && kept.faults.is_empty() {
                result.pass("no stored logins");
            }
        }
    }
    result
}

/// Checks all servers, several at a time.
pub(super) async fn reach(config: Arc<Config>) -> CheckResult {
    let mut result = CheckResult::default();
    let logins = match login_free(&config) {
        Ok(logins) => logins,
        Err(faults) => {
            result.faults(&faults);
            return result;
        }
    };
    let config = &config;
    let logins = &logins;
    let asked = stream::iter(&config.upstreams).map(|(name, upstream)| async move {
        let mut result = CheckResult::default();
        match Upstream::new(
            UpstreamName(name.as_str().into()),
            upstream,
            &config.limits,
            Some(logins),
        ) {
            Err(fault) => result.faults(&[fault]),
            Ok(built) => match &upstream.transport {
                Transport::Stdio(_) => child(name, &built, config, &mut result).await,
                Transport::Http(http) | Transport::Sse(http) => {
                    let (said, shown) =
                        tokio::join!(answers(name, &built, config), connects(name, http));
                    result.add(said);
                    result.add(shown);
                }
            },
        }
        result
    });
    let all: Vec<CheckResult> = asked.buffered(AT_ONCE).collect().await;
    for more in all {
        result.add(more);
    }
    result
}

/// Checks that the program exists and responds as an MCP server.
async fn child(name: &str, upstream: &Upstream, config: &Config, result: &mut CheckResult) {
    if let Health::Down(why) = upstream.health().await {
        let fix = format!("install it, or set its full path in `[upstream.{name}]`");
        return result.find(Level::Error, format!("`{name}`: {why}"), fix);
    }
    let mut client = Client::new(upstream, name, None, &config.limits.read);
    let said = tokio::time::timeout(STEP * 2, client.greet(true)).await;
    let printed = upstream.output().filter(|output| !output.is_empty());
    // A program that does not exit in time is killed with this process.
    let _left = tokio::time::timeout(STEP / 2, client.close()).await;
    let _ended = tokio::time::timeout(STEP / 2, upstream.shutdown()).await;
    let fix = format!("lychgate scan {name} --timeout-seconds 60");
    match said {
        Ok(Ok(_)) => result.pass(format!("`{name}` answers")),
        Ok(Err(failed)) => result.find(Level::Error, format!("`{name}`: {failed}"), fix),
        Err(_) => {
            let printed = printed
                .map(|output| format!("; {output}"))
                .unwrap_or_default();
            let what = format!(
                "`{name}` did not respond within {} s; the first start may take longer{printed}",
                (STEP * 2).as_secs()
            );
            result.find(Level::Warning, what, fix);
        }
    }
}

/// Checks that the upstream responds as an MCP server, with the gate's own credentials.
async fn answers(name: &str, upstream: &Upstream, config: &Config) -> CheckResult {
    let mut result = CheckResult::default();
    let mut client = Client::new(upstream, name, None, &config.limits.read);
    let said = tokio::time::timeout(STEP * 2, client.greet(false)).await;
    // Closing the client also ends its session at the server.
    let _left = tokio::time::timeout(STEP, client.close()).await;
    match said {
        Ok(Ok(_)) => result.pass(format!("`{name}` answers")),
        Ok(Err(RequestError::Call(CallError::LoginOwed { .. }))) => {
            result.find(
                Level::Warning,
                format!("`{name}` requires a login, and none is stored"),
                format!("lychgate login {name}"),
            );
        }
        Ok(Err(RequestError::Call(CallError::AuthRequired))) => {
            let fix = format!(
                "`bearer` in `[upstream.{name}.http]` is missing or wrong; without it: lychgate login {name}"
            );
            result.find(
                Level::Error,
                format!("`{name}` responds with 401: the token is missing or invalid"),
                fix,
            );
        }
        Ok(Err(RequestError::Call(CallError::NoToken(why)))) => {
            result.find(
                Level::Error,
                format!("`{name}`: no token: {why}"),
                format!("lychgate login {name}"),
            );
        }
        Ok(Err(RequestError::Call(CallError::Connect(error)))) => {
            result.find(
                Level::Error,
                format!("cannot reach `{name}`: {error}"),
                format!("check `url` in `[upstream.{name}.http]`, and that the server is up"),
            );
        }
        Ok(Err(RequestError::Call(error @ CallError::NotStarted(_)))) => {
            let fix =
                format!("correct `command` in `[upstream.{name}.stdio]`, or install the program");
            result.find(Level::Error, format!("`{name}`: {error}"), fix);
        }
        Ok(Err(failed)) => {
            // The probe distinguishes a web page from a server that refuses.
            let health = upstream.health().await;
            let what = health
                .reason()
                .map_or_else(|| failed.to_string(), ToOwned::to_owned);
            result.find(
                Level::Error,
                format!("`{name}`: {what}"),
                format!("lychgate scan {name}"),
            );
        }
        Err(_) => result.find(
            Level::Error,
            format!("`{name}` did not respond within {} s", (STEP * 2).as_secs()),
            format!("lychgate scan {name} --timeout-seconds 60"),
        ),
    }
    result
}

/// Checks the certificate and the clock with a direct connection. Unreachable servers are reported
/// by `reach`.
async fn connects(name: &str, http: &HttpTransport) -> CheckResult {
    let mut result = CheckResult::default();
    let Ok(url) = http.url.parse::<Uri>() else {
        return result;
    };
    let Some(host) = url
        .host()
        .map(|host| host.trim_matches(['[', ']']).to_owned())
    else {
        return result;
    };
    let secure = url.scheme_str() == Some("https");
    let port = url.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let Ok(Ok(stream)) =
        tokio::time::timeout(STEP, TcpStream::connect((host.as_str(), port))).await
    else {
        return result;
    };
    let head = if secure {
        let Ok((connector, shown)) = connector(http.ca.as_deref()) else {
            return result;
        };
        let Ok(server) = ServerName::try_from(host.clone()) else {
            return result;
        };
        let stream = tokio::time::timeout(STEP, connector.connect(server, stream)).await;
        let span = shown.lock().as_deref().and_then(dates::validity);
        lasts_for(
            &format!("the certificate of `{name}`"),
            span,
            "its operator must renew it",
            &mut result,
        );
        match stream {
            Ok(Ok(stream)) => head(stream, &url, &host).await,
            _ => None,
        }
    } else {
        head(stream, &url, &host).await
    };
    let date = head.as_deref().and_then(|head| {
        let named = |line: &&str| {
            line.split_once(':')
                .is_some_and(|(name, _)| name.eq_ignore_ascii_case("date"))
        };
        httpdate::parse_http_date(head.lines().find(named)?.split_once(':')?.1.trim()).ok()
    });
    if let Some(theirs) = date {
        let now = SystemTime::now();
        let apart = now
            .duration_since(theirs)
            .or_else(|_| theirs.duration_since(now))
            .unwrap_or_default();
        if apart > SKEW {
            let what = format!(
                "the clocks of this machine and `{name}` differ by {} s: tokens and certificates may appear expired or not yet valid",
                apart.as_secs()
            );
            result.find(
                Level::Warning,
                what,
                "timedatectl set-ntp true (or `chronyc makestep`), then `date -u`",
            );
        } else {
            result.pass(format!("the clock of `{name}` matches this machine's"));
        }
    }
    result
}

async fn head<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    url: &Uri,
    host: &str,
) -> Option<String> {
    // The query is omitted because it may contain a key.
    let request = format!(
        "HEAD {} HTTP/1.1\r\nhost: {host}\r\nuser-agent: lychgate-doctor\r\nconnection: close\r\n\r\n",
        url.path()
    );
    let asked = async {
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut head = Vec::new();
        // Some servers close the connection without a TLS alert.
        let _broken = stream.take(HEAD_BYTES).read_to_end(&mut head).await;
        Some(String::from_utf8_lossy(&head).into_owned())
    };
    tokio::time::timeout(STEP, asked).await.ok().flatten()
}

type PeerCertificate = Arc<Mutex<Option<Vec<u8>>>>;

/// Returns a connector that records the server's certificate, even if it is not trusted.
fn connector(ca: Option<&Path>) -> Result<(TlsConnector, PeerCertificate), String> {
    let roots = match ca {
        Some(file) => Arc::new(trust::own_roots(file)?),
        None => trust::system_roots()?,
    };
    let provider = Arc::new(ring::default_provider());
    let inner = WebPkiServerVerifier::builder_with_provider(roots, provider)
        .build()
        .map_err(|error| error.to_string())?;
    let shown = PeerCertificate::default();
    let verifier = Arc::new(RecordingVerifier {
        inner,
        shown: shown.clone(),
    });
    let config = trust::client_tls()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok((TlsConnector::from(Arc::new(config)), shown))
}

/// Verifies certificates as usual, and records them.
#[derive(Debug)]
struct RecordingVerifier {
    inner: Arc<WebPkiServerVerifier>,
    shown: PeerCertificate,
}

impl ServerCertVerifier for RecordingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.shown.lock() = Some(end_entity.to_vec());
        self.inner
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
