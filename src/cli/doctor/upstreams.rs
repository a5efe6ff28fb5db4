//! Checks of upstreams: reachability, logins, validity of certificates, clocks.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt, stream};
use http::Uri;
use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::ring;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::listener::report_validity;
use super::{CheckResult, dates};
use crate::cli::auth::describe_validity;
use crate::cli::certificate_verifier::CertificateVerifier;
use crate::cli::scan::{Client, RequestError, login_free};
use crate::config::{Config, HttpTransport, Transport, UpstreamConfig};
use crate::oauth::unix_now;
use crate::oauth::vault::Vault;
use crate::protocol::{CallError, UpstreamName};
use crate::trust;
use crate::upstream::{Health, Upstream};

/// Maximum number of servers that are checked concurrently, and the time limit of each step of a
/// check.
pub(super) const MAX_CONCURRENT: usize = 32;
const STEP_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum clock difference that does not affect tokens and certificates.
const MAX_SKEW: Duration = Duration::from_secs(30);
/// Maximum length of a response head that is read, in bytes.
const MAX_HEAD_BYTES: u64 = 16 << 10;

/// Checks the stored logins.
pub(super) async fn logins(config: Arc<Config>) -> CheckResult {
    let mut result = CheckResult::default();
    let requires_login = |upstream: &UpstreamConfig| matches!(&upstream.transport, Transport::Http(http) | Transport::Sse(http) if http.login.is_some());
    if !config.upstreams.values().any(requires_login) {
        result.pass("no upstream requires a login");
        return result;
    }
    let vault_listing = match Vault::open(&config.oauth) {
        Ok(vault) => vault.list().await,
        Err(error) => Err(error),
    };
    match vault_listing {
        Err(error) => result.add_error(
            format!("cannot use the login vault: {error}"),
            "lychgate auth status",
        ),
        Ok(listing) => {
            for fault in &listing.faults {
                result.add_error(fault.to_string(), "lychgate auth status");
            }
            for account in &listing.accounts {
                let upstream = &account.upstream;
                let principal = account.party.principal.to_string();
                let fix = format!("lychgate login {upstream}");
                match &account.granted {
                    None => result
                        .add_warning(format!("`{upstream}` requires a login ({principal})"), fix),
                    Some(granted) => {
                        let is_expired = granted.expires_unix.is_some_and(|end| end <= unix_now())
                            && granted.refresh.is_none();
                        let what = format!(
                            "the token for `{upstream}` ({principal}) {}",
                            describe_validity(granted)
                        );
                        if is_expired {
                            result.add_warning(what, fix)
                        } else {
                            result.pass(what)
                        }
                    }
                }
                if let Some(error) = &account.last_error {
                    result.add_warning(
                        format!("the last renewal for `{upstream}` failed: {error}"),
                        format!("lychgate login {upstream}"),
                    );
                }
            }
            if listing.accounts.is_empty() && listing.faults.is_empty() {
                result.pass("no stored logins");
            }
        }
    }
    result
}

/// Checks all servers, several at a time.
pub(super) async fn check_upstreams(config: Arc<Config>) -> CheckResult {
    let mut result = CheckResult::default();
    let logins = match login_free(&config) {
        Ok(logins) => logins,
        Err(faults) => {
            result.add_faults(&faults);
            return result;
        }
    };
    let config = &config;
    let logins = &logins;
    let checks = stream::iter(&config.upstreams).map(|(name, upstream)| async move {
        let mut result = CheckResult::default();
        match Upstream::new(
            UpstreamName(name.as_str().into()),
            upstream,
            &config.limits,
            Some(logins),
        ) {
            Err(fault) => result.add_faults(&[fault]),
            Ok(built) => match &upstream.transport {
                Transport::Stdio(_) => check_child(name, &built, config, &mut result).await,
                Transport::Http(http) | Transport::Sse(http) => {
                    let (answer, connection) = tokio::join!(
                        check_answer(name, &built, config),
                        check_connection(name, http)
                    );
                    result.merge(answer);
                    result.merge(connection);
                }
            },
        }
        result
    });
    let all: Vec<CheckResult> = checks.buffered(MAX_CONCURRENT).collect().await;
    for more in all {
        result.merge(more);
    }
    result
}

/// Checks that the program exists and responds as an MCP server.
async fn check_child(name: &str, upstream: &Upstream, config: &Config, result: &mut CheckResult) {
    if let Health::Down(reason) = upstream.health().await {
        let fix = format!("install it, or set its full path in `[upstream.{name}]`");
        return result.add_error(format!("`{name}`: {reason}"), fix);
    }
    let mut client = Client::new(upstream, name, None, &config.limits.read);
    let greeting = tokio::time::timeout(STEP_TIMEOUT * 2, client.greet(true)).await;
    let printed = upstream.output().filter(|output| !output.is_empty());
    // A program that does not exit in time is killed with this process.
    let _left = tokio::time::timeout(STEP_TIMEOUT / 2, client.close()).await;
    let _ended = tokio::time::timeout(STEP_TIMEOUT / 2, upstream.shutdown()).await;
    let fix = format!("lychgate scan {name} --timeout-seconds 60");
    match greeting {
        Ok(Ok(_)) => result.pass(format!("`{name}` answers")),
        Ok(Err(failed)) => result.add_error(format!("`{name}`: {failed}"), fix),
        Err(_) => {
            let printed = printed
                .map(|output| format!("; {output}"))
                .unwrap_or_default();
            let what = format!(
                "`{name}` did not respond within {} s; the first start may take longer{printed}",
                (STEP_TIMEOUT * 2).as_secs()
            );
            result.add_warning(what, fix);
        }
    }
}

/// Checks that the upstream responds as an MCP server, with the gate's own credentials.
async fn check_answer(name: &str, upstream: &Upstream, config: &Config) -> CheckResult {
    let mut result = CheckResult::default();
    let mut client = Client::new(upstream, name, None, &config.limits.read);
    let greeting = tokio::time::timeout(STEP_TIMEOUT * 2, client.greet(false)).await;
    // Closing the client also ends its session at the server.
    let _left = tokio::time::timeout(STEP_TIMEOUT, client.close()).await;
    match greeting {
        Ok(Ok(_)) => result.pass(format!("`{name}` answers")),
        Ok(Err(RequestError::Call(CallError::LoginRequired { .. }))) => {
            result.add_warning(
                format!("`{name}` requires a login, and none is stored"),
                format!("lychgate login {name}"),
            );
        }
        Ok(Err(RequestError::Call(CallError::AuthRequired))) => {
            let fix = format!(
                "`bearer` in `[upstream.{name}.http]` is missing or wrong; without it: lychgate login {name}"
            );
            result.add_error(
                format!("`{name}` responds with 401: the token is missing or invalid"),
                fix,
            );
        }
        Ok(Err(RequestError::Call(CallError::NoToken(why)))) => {
            result.add_error(
                format!("`{name}`: no token: {why}"),
                format!("lychgate login {name}"),
            );
        }
        Ok(Err(RequestError::Call(CallError::Connect(error)))) => {
            result.add_error(
                format!("cannot reach `{name}`: {error}"),
                format!("check `url` in `[upstream.{name}.http]`, and that the server is up"),
            );
        }
        Ok(Err(RequestError::Call(error @ CallError::NotStarted(_)))) => {
            let fix =
                format!("correct `command` in `[upstream.{name}.stdio]`, or install the program");
            result.add_error(format!("`{name}`: {error}"), fix);
        }
        Ok(Err(failed)) => {
            // The probe distinguishes a web page from a server that refuses.
            let health = upstream.health().await;
            let what = health
                .reason()
                .map_or_else(|| failed.to_string(), ToOwned::to_owned);
            result.add_error(format!("`{name}`: {what}"), format!("lychgate scan {name}"));
        }
        Err(_) => result.add_error(
            format!(
                "`{name}` did not respond within {} s",
                (STEP_TIMEOUT * 2).as_secs()
            ),
            format!("lychgate scan {name} --timeout-seconds 60"),
        ),
    }
    result
}

/// Checks the certificate and the clock with a direct connection. Unreachable servers are reported
/// by `reach`.
async fn check_connection(name: &str, http: &HttpTransport) -> CheckResult {
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
        tokio::time::timeout(STEP_TIMEOUT, TcpStream::connect((host.as_str(), port))).await
    else {
        return result;
    };
    let head = if secure {
        let Ok((connector, peer_certificate)) = connector(http.ca.as_deref()) else {
            return result;
        };
        let Ok(server) = ServerName::try_from(host.clone()) else {
            return result;
        };
        let stream = tokio::time::timeout(STEP_TIMEOUT, connector.connect(server, stream)).await;
        let span = peer_certificate.lock().as_deref().and_then(dates::validity);
        report_validity(
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
        let is_date = |line: &&str| {
            line.split_once(':')
                .is_some_and(|(name, _)| name.eq_ignore_ascii_case("date"))
        };
        httpdate::parse_http_date(head.lines().find(is_date)?.split_once(':')?.1.trim()).ok()
    });
    if let Some(server_time) = date {
        let now = SystemTime::now();
        let difference = now
            .duration_since(server_time)
            .or_else(|_| server_time.duration_since(now))
            .unwrap_or_default();
        if difference > MAX_SKEW {
            let what = format!(
                "the clocks of this machine and `{name}` differ by {} s: tokens and certificates may appear expired or not yet valid",
                difference.as_secs()
            );
            result.add_warning(
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
    let exchange = async {
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut head = Vec::new();
        // Some servers close the connection without a TLS alert.
        let _broken = stream.take(MAX_HEAD_BYTES).read_to_end(&mut head).await;
        Some(String::from_utf8_lossy(&head).into_owned())
    };
    tokio::time::timeout(STEP_TIMEOUT, exchange)
        .await
        .ok()
        .flatten()
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
    let certificate = PeerCertificate::default();
    let recorded = certificate.clone();
    let verifier = CertificateVerifier::new(Box::new(
        move |end_entity, intermediates, server_name, ocsp_response, now| {
            *recorded.lock() = Some(end_entity.to_vec());
            inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        },
    ));
    let config = trust::client_tls()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok((TlsConnector::from(Arc::new(config)), certificate))
}
