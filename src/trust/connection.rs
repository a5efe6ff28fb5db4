//! Error messages for operators about failed connections to servers: which peer, what failed, since
//! when, and what to change.
//!
//! Names in a peer's certificate are not repeated: the peer chose them, and logs show these
//! messages without inspecting them.

use std::error::Error;
use std::fmt::Write;
use std::io;
use std::time::{Duration, SystemTime};

use http::Uri;
use rustls::{AlertDescription, CertificateError};
use rustls_pki_types::UnixTime;

use super::error_text;

const DAY: u64 = 86_400;

/// The other end of a connection, and the config keys that determine how it is reached.
#[derive(Clone, Debug)]
pub struct Peer {
    host: String,
    port: u16,
    tls: bool,
    keys: Keys,
}

/// The config keys with which a user changes how a peer is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// `url`, `ca` and `client_cert` of an upstream or a service.
    OfTransport {
        /// Whether `ca` is set.
        ca: bool,
    },
    /// None: the URL was supplied by another server.
    None,
}

impl Peer {
    /// Returns the peer of a URL.
    pub fn from_url(url: &Uri, keys: Keys) -> Self {
        let tls = url.scheme_str() == Some("https");
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        Self::new(
            host,
            url.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            tls,
            keys,
        )
    }

    /// Returns the peer with this host name or address, without brackets.
    pub fn new(host: &str, port: u16, tls: bool, keys: Keys) -> Self {
        Self {
            host: host.to_owned(),
            port,
            tls,
            keys,
        }
    }

    /// Describes why a request to this peer got no response, and what to do about it.
    pub fn fault(&self, error: &(dyn Error + 'static)) -> String {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(text) = self.specific_message(error) {
                return text;
            }
            next = match error
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref)
            {
                Some(inner) => Some(inner),
                None => error.source(),
            };
        }
        format!("{self}: {}", error_text(error))
    }

    /// Returns the message for one error of a chain, if there is one that says more than the error
    /// itself.
    fn specific_message(&self, error: &(dyn Error + 'static)) -> Option<String> {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return self.tls_message(error);
        }
        if let Some(error) = error.downcast_ref::<hyper::Error>() {
            let behavior = if error.is_parse() && !error.is_parse_too_large() {
                "does not answer in HTTP"
            } else if error.is_incomplete_message() {
                "closed the connection without an answer"
            } else {
                return None;
            };
            return Some(self.other_protocol(behavior));
        }
        if error.to_string() == "dns error" {
            let detail = error
                .source()
                .map(|source| source.to_string())
                .unwrap_or_default();
            // The resolver's own error is in the system's words and does not contain the name.
            let detail = detail.trim_start_matches("failed to lookup address information: ");
            let fix = self.advice(
                "correct the host in `url`, or check this machine's DNS",
                "check this machine's DNS",
            );
            return Some(format!(
                "the host name `{}` does not resolve ({detail}){fix}",
                self.host
            ));
        }
        self.io_message(error.downcast_ref::<io::Error>()?)
    }

    fn io_message(&self, error: &io::Error) -> Option<String> {
        // A wrapper repeats the message of its inner error, which has the more precise kind.
        let wraps_error = error
            .get_ref()
            .is_some_and(|inner| inner.is::<rustls::Error>() || inner.source().is_some());
        match error.kind() {
            _ if wraps_error => None,
            io::ErrorKind::ConnectionRefused => {
                let fix = self.advice(
                    "start the server, or correct `url`",
                    "the server may be down",
                );
                Some(format!(
                    "nothing listens on {self} (connection refused){fix}"
                ))
            }
            io::ErrorKind::TimedOut => {
                let fix = self.advice(
                    "check `url`, the server and firewalls on the way",
                    "the server may be down",
                );
                Some(format!(
                    "{self} does not accept connections (timed out){fix}"
                ))
            }
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                let fix = self.advice(
                    "check `url` and this machine's network",
                    "check this machine's network",
                );
                Some(format!("there is no route to {self}{fix}"))
            }
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                Some(self.other_protocol("closed the connection without an answer"))
            }
            _ => None,
        }
    }

    /// Describes a peer that does not use the protocol that the URL implies, or that stopped using
    /// it.
    fn other_protocol(&self, behavior: &str) -> String {
        let fix = match (self.keys, self.tls) {
            (Keys::None, _) => "",
            (_, true) => "; if it does not use TLS on this port, write `http://` in `url`",
            (_, false) => "; if it expects TLS, write `https://` in `url`",
        };
        format!("{self} {behavior}{fix}")
    }

    fn tls_message(&self, error: &rustls::Error) -> Option<String> {
        let text = match error {
            rustls::Error::InvalidCertificate(error) => self.certificate_message(error)?,
            rustls::Error::InvalidMessage(_) => {
                let fix = self.advice(
                    "write `http://` in `url`, or use the server's TLS port",
                    "its operator must turn TLS on",
                );
                format!("{self} does not use TLS{fix}")
            }
            rustls::Error::AlertReceived(alert) => self.alert_message(*alert)?,
            rustls::Error::PeerIncompatible(_) => {
                format!(
                    "{self} supports neither TLS 1.2 nor 1.3 with a common cipher; its operator must update its TLS settings"
                )
            }
            _ => return None,
        };
        Some(text)
    }

    fn alert_message(&self, alert: AlertDescription) -> Option<String> {
        use AlertDescription as Alert;
        let (what, fix) = match alert {
            Alert::CertificateRequired => (
                "requires a client certificate",
                "set `client_cert = { cert = \"…\", key = \"…\" }`",
            ),
            Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied => (
                "rejects the client certificate",
                "set `client_cert` to one that the server accepts",
            ),
            Alert::HandshakeFailure => (
                "refuses the TLS handshake",
                "if it requires a client certificate, set `client_cert`",
            ),
            Alert::UnrecognisedName => {
                ("does not serve this host name", "correct the host in `url`")
            }
            _ => return None,
        };
        Some(format!(
            "{self} {what} (TLS alert {alert:?}){}",
            self.advice(fix, "its operator must change that")
        ))
    }

    fn certificate_message(&self, error: &CertificateError) -> Option<String> {
        let certificate = format!("the certificate of {self}");
        let renew = "its operator must renew it";
        let text = match error {
            CertificateError::ExpiredContext { time, not_after } => {
                format!(
                    "{certificate} expired on {} ({} ago); {renew}",
                    date(*not_after),
                    span(*not_after, *time)
                )
            }
            CertificateError::Expired => format!("{certificate} has expired; {renew}"),
            CertificateError::NotValidYetContext { not_before, .. } => {
                format!(
                    "{certificate} is not valid before {}; check this machine's clock (`date -u`)",
                    date(*not_before)
                )
            }
            CertificateError::NotValidYet => {
                format!("{certificate} is not valid yet; check this machine's clock (`date -u`)")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                let fix = "write the name that it was issued for in `url`, or have its operator issue one for this name";
                let fix = self.advice(fix, "its operator must issue one for this name");
                format!(
                    "{certificate} is not valid for the name `{}`{fix}",
                    self.host
                )
            }
            // With `BadSignature`, the authority has the expected name but a different key.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                let signed = "is not signed by an authority that";
                match self.keys {
                    Keys::OfTransport { ca: false } => format!(
                        "{certificate} {signed} this system trusts: it is self-signed or from a private authority; \
                         name the authority's PEM file with `ca`"
                    ),
                    Keys::OfTransport { ca: true } => format!(
                        "{certificate} {signed} is in the file of `ca`; name the PEM file of the authority that signed it"
                    ),
                    Keys::None => format!(
                        "{certificate} {signed} this system trusts; add the authority to the system's (`update-ca-certificates`)"
                    ),
                }
            }
            CertificateError::Revoked => format!("{certificate} is revoked; {renew}"),
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                format!(
                    "{certificate} is not meant for servers (extended key usage `serverAuth`); its operator must reissue it"
                )
            }
            CertificateError::Other(_) if format!("{error:?}").contains("CaUsedAsEndEntity") => {
                let fix = "make one with `basicConstraints=CA:FALSE`, for example `openssl req -x509 … -addext \
                           basicConstraints=critical,CA:FALSE`";
                let fix = self.advice(&format!("{fix}, and name it with `ca`"), fix);
                format!(
                    "{certificate} is self-signed as an authority (CA:TRUE), which a server may not show{fix}"
                )
            }
            CertificateError::Other(_)
                if format!("{error:?}").contains("UnsupportedCertVersion") =>
            {
                format!(
                    "{certificate} is of X.509 version 1; its operator must reissue it as version 3"
                )
            }
            _ => return None,
        };
        Some(text)
    }

    /// Returns the advice to append: `with_keys` where the config has keys for the peer, otherwise
    /// `without`.
    fn advice(&self, with_keys: &str, without: &str) -> String {
        format!(
            "; {}",
            if self.keys == Keys::None {
                without
            } else {
                with_keys
            }
        )
    }
}

/// `host:port`, as in a URL.
impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Formats a date as `2026-11-23`.
fn date(time: UnixTime) -> String {
    let mut text = String::new();
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(time.as_secs()));
    // Fails only for dates after the year 9999.
    let is_written =
        at.is_some_and(|at| write!(text, "{}", humantime::format_rfc3339_seconds(at)).is_ok());
    match text.split_once('T') {
        Some((day, _)) if is_written => day.to_owned(),
        _ => "a day past the year 9999".to_owned(),
    }
}

fn span(from: UnixTime, to: UnixTime) -> String {
    let seconds = to.as_secs().saturating_sub(from.as_secs());
    match (seconds / DAY, seconds / 3600, seconds / 60) {
        (0, 0, 1) => "1 minute".to_owned(),
        (0, 0, minutes) => format!("{minutes} minutes"),
        (0, 1, _) => "1 hour".to_owned(),
        (0, hours, _) => format!("{hours} hours"),
        (1, ..) => "1 day".to_owned(),
        (days, ..) => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests;
