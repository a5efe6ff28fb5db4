//! Whether a request was meant for this listener: checks `Host` and `Origin` of every request.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, Request, StatusCode, Uri};

use crate::config::{Admin, Listen};

/// Maximum length of a host name, in bytes (RFC 1035, section 2.3.4).
const NAME_BYTES: usize = 253;

/// The reason why a request is rejected before it becomes a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) status: StatusCode,
    /// A short name, used as a metric label.
    pub(super) reason: &'static str,
    /// What the client should change.
    pub(super) hint: Cow<'static, str>,
    /// The error code of the challenge (RFC 6750, section 3.1), if the request had a credential.
    pub(super) error: Option<&'static str>,
    /// The scopes that a token needs here.
    pub(super) scope: Option<String>,
}

pub(super) const fn reject(
    status: StatusCode,
    reason: &'static str,
    hint: &'static str,
) -> Rejection {
    Rejection {
        status,
        reason,
        hint: Cow::Borrowed(hint),
        error: None,
        scope: None,
    }
}

/// The names under which a port can be reached, and the pages that may send requests to it.
pub(super) struct AllowedOrigins<'c> {
    /// Whether it is bound to loopback.
    loopback: bool,
    /// The scheme of its URLs.
    scheme: &'static str,
    hosts: &'c [String],
    origins: &'c [String],
    /// The URL of a proxy in front of it.
    public_url: Option<&'c str>,
    unknown_host: &'static str,
    foreign_origin: &'static str,
}

impl<'c> AllowedOrigins<'c> {
    /// Returns those of the agents' listener.
    pub(super) fn for_agents(listen: &'c Listen) -> Self {
        Self {
            loopback: listen.address.ip().is_loopback(),
            scheme: if listen.tls.is_some() {
                "https"
            } else {
                "http"
            },
            hosts: &listen.hosts,
            origins: &listen.origins,
            public_url: listen.public_url.as_deref(),
            unknown_host: "this name is not in `listen.hosts` of the gate's config",
            foreign_origin: "this origin is not in `listen.origins` of the gate's config",
        }
    }

    /// Returns those of the admin port, except for the console, which has an origin of its own.
    pub(super) fn for_admin(admin: &'c Admin) -> Self {
        Self {
            loopback: admin
                .address
                .is_some_and(|address| address.ip().is_loopback()),
            scheme: "http",
            hosts: &admin.hosts,
            origins: &[],
            public_url: admin.console_url.as_deref(),
            unknown_host: "this name is not in `admin.hosts` of the gate's config",
            foreign_origin: "requests from other origins are not allowed",
        }
    }

    /// Checks that a request was meant for this port and that no foreign web page sent it. Names
    /// that were made to resolve to it (DNS rebinding), and browsers on other sites, are rejected
    /// (2025-11-25, `basic/transports`, Security Warning).
    ///
    /// # Errors
    /// 400 without a host, 403 for a foreign host or origin.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Rejection> {
        let headers = request.headers();
        let host = request_host(request.uri(), headers).ok_or(reject(
            StatusCode::BAD_REQUEST,
            "host",
            "send one valid `Host` header",
        ))?;
        if !self.is_reached_by(&host) {
            return Err(reject(StatusCode::FORBIDDEN, "host", self.unknown_host));
        }
        match single_header(headers, &ORIGIN) {
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.allows_origin(origin, &host) => Ok(()),
            _ => Err(reject(StatusCode::FORBIDDEN, "origin", self.foreign_origin)),
        }
    }

    fn is_reached_by(&self, host: &Host<'_>) -> bool {
        let is_allowed = |allowed: &String| {
            allowed.eq_ignore_ascii_case(host.name) || allowed.eq_ignore_ascii_case(host.text)
        };
        if self.hosts.iter().any(is_allowed) || self.public_scheme(host).is_some() {
            return true;
        }
        match host.address() {
            // A numeric address cannot be rebound; on loopback, only loopback addresses are valid.
            Some(address) => address.is_loopback() || !self.loopback,
            None => host.name.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Returns the scheme of the public URL, if the host is the one in that URL.
    fn public_scheme(&self, host: &Host<'_>) -> Option<&'c str> {
        let (scheme, authority) = self.public_url?.split_once("://")?;
        Host::parse(authority)?
            .is_same_origin(host, scheme)
            .then_some(scheme)
    }

    fn allows_origin(&self, origin: &str, host: &Host<'_>) -> bool {
        let own_scheme = self.public_scheme(host).unwrap_or(self.scheme);
        let is_own = origin.split_once("://").is_some_and(|(scheme, site)| {
            let is_same = |site: Host<'_>| {
                site.is_same_origin(host, own_scheme)
                    || site.is_loopback()
                        && host.is_loopback()
                        && site.has_same_port(host, own_scheme)
            };
            scheme.eq_ignore_ascii_case(own_scheme) && Host::parse(site).is_some_and(is_same)
        });
        is_own || is_listed(origin, self.origins)
    }
}

/// A host and an optional port, as in `Host` (RFC 9110, section 7.2). Anything else is invalid: a
/// user before `@`, a path, characters that do not occur in names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host<'h> {
    /// As received.
    pub(super) text: &'h str,
    /// Without the port; an IPv6 address keeps its brackets.
    pub(super) name: &'h str,
    pub(super) port: Option<u16>,
}

impl<'h> Host<'h> {
    pub(super) fn parse(text: &'h str) -> Option<Self> {
        let end = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, _) = rest.split_once(']')?;
                address.parse::<Ipv6Addr>().ok()?;
                address.len() + 2
            }
            None => text.find(':').unwrap_or(text.len()),
        };
        let (name, port) = text.split_at_checked(end)?;
        let is_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        if !name.starts_with('[')
            && (name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(is_letter))
        {
            return None;
        }
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            Some(digits) if digits.len() <= 5 && digits.bytes().all(|b| b.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            _ => return None,
        };
        Some(Self { text, name, port })
    }

    /// Returns the address, if the host is an address rather than a name.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse()
            .ok()
    }

    /// Reports whether it is the same host and port, given a scheme.
    fn is_same_origin(&self, other: &Self, scheme: &str) -> bool {
        self.name.eq_ignore_ascii_case(other.name) && self.has_same_port(other, scheme)
    }

    fn has_same_port(&self, other: &Self, scheme: &str) -> bool {
        let default = if scheme.eq_ignore_ascii_case("https") {
            443
        } else {
            80
        };
        self.port.unwrap_or(default) == other.port.unwrap_or(default)
    }

    /// Reports whether it is this machine: `localhost` and loopback addresses are equivalent, and
    /// browsers use either.
    fn is_loopback(&self) -> bool {
        self.address().map_or_else(
            || self.name.eq_ignore_ascii_case("localhost"),
            |address| address.is_loopback(),
        )
    }
}

/// Returns the text of a header that may occur at most once, or an error if it occurs twice or is
/// not text.
pub(super) fn single_header<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, ()> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        _ => Err(()),
    }
}

/// Returns the requested host: HTTP/2 has it in the URI, HTTP/1.1 in a header. If both are present,
/// they must be equal.
pub(super) fn request_host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<Host<'r>> {
    let header = single_header(headers, &HOST).ok()?;
    match (uri.authority().map(http::uri::Authority::as_str), header) {
        (Some(authority), Some(header)) if authority != header => None,
        (Some(authority), _) => Host::parse(authority),
        (None, header) => Host::parse(header?),
    }
}

/// Reports whether the config lists an origin, so that its pages may read responses.
pub(super) fn is_listed(origin: &str, origins: &[String]) -> bool {
    origins
        .iter()
        .any(|allowed| allowed.eq_ignore_ascii_case(origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(pairs: &[(&str, &str)]) -> Request<()> {
        let mut builder = Request::builder().uri("/mcp/x");
        for (name, value) in pairs {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap()
    }

    fn status(pairs: &[(&str, &str)], listen: &Listen) -> u16 {
        AllowedOrigins::for_agents(listen)
            .check(&request(pairs))
            .map_or_else(|turned| turned.status.as_u16(), |()| 200)
    }

    #[test]
    fn foreign_hosts_and_origins_are_turned_away() {
        let listen = Listen {
            origins: vec!["https://app.example".into()],
            hosts: vec!["gate.example".into()],
            ..Listen::default()
        };
        for (host, expected) in [
            ("localhost:8800", 200),
            ("127.0.0.1:8800", 200),
            ("[::1]:8800", 200),
            ("gate.example", 200),
            ("evil.example", 403),
            ("localhost.evil.example", 403),
            ("10.0.0.1", 403),
            ("127.0.0.1:1@evil", 400),
            ("127.0.0.1@evil.example", 400),
            ("127.0.0.1:80:90", 400),
            ("127.0.0.1:", 400),
            ("127.0.0.1:99999", 400),
            ("127.0.0.1:+80", 400),
            ("127.0.0.1/evil", 400),
            ("127.0.0.1%00.evil", 400),
            ("[::1]evil.example", 400),
            ("[::1%25eth0]:80", 400),
            ("[::1]:80@evil.example", 400),
            ("evil.example[::1]", 400),
            ("[127.0.0.1]", 400),
            ("", 400),
            ("127.0.0.1.", 403),
            ("0x7f.1", 403),
            ("[::ffff:127.0.0.1]", 403),
        ] {
            assert_eq!(status(&[("host", host)], &listen), expected, "{host}");
        }
        for (host, origin, expected) in [
            ("localhost:8800", "http://localhost:8800", 200),
            ("localhost:8800", "http://localhost:3000", 403),
            ("127.0.0.1:8800", "http://localhost:8800", 200),
            ("localhost:8800", "http://127.0.0.1:8800", 200),
            ("127.0.0.1:8800", "http://[::1]:8800", 200),
            ("127.0.0.1:8800", "http://localhost:3000", 403),
            ("127.0.0.1:8800", "https://localhost:8800", 403),
            ("127.0.0.1:8800", "http://localhost.evil.example:8800", 403),
            ("gate.example:8800", "http://localhost:8800", 403),
            ("localhost:8800", "https://app.example", 200),
            ("localhost:8800", "null", 403),
            ("localhost", "http://localhost:80", 200),
            ("localhost:8800", "https://localhost:8800", 403),
            ("localhost:8800", "ftp://localhost:8800", 403),
            ("localhost:8800", "http://localhost:8800@evil.example", 403),
            ("localhost:8800", "http://localhost:8800/", 403),
            ("evil.example", "http://evil.example", 403),
        ] {
            let pairs = [("host", host), ("origin", origin)];
            assert_eq!(status(&pairs, &listen), expected, "{host} {origin}");
        }
        assert_eq!(status(&[], &listen), 400, "no host");
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(status(&twice, &listen), 400);
        let authority = |uri: &str| {
            let request = Request::builder().uri(uri).body(()).unwrap();
            AllowedOrigins::for_agents(&listen)
                .check(&request)
                .map_err(|turned| turned.status.as_u16())
        };
        assert_eq!(authority("http://127.0.0.1:8800/mcp/x"), Ok(()));
        assert_eq!(authority("http://127.0.0.1:1@evil/mcp/x"), Err(400));
        let open = Listen {
            address: ([0, 0, 0, 0], 80).into(),
            ..Listen::default()
        };
        assert_eq!(
            status(&[("host", "10.0.0.1")], &open),
            200,
            "off loopback by its number"
        );
        assert_eq!(status(&[("host", "evil.example")], &open), 403);
    }

    #[test]
    fn behind_a_proxy_the_scheme_of_the_public_url_is_the_own_one() {
        let listen = Listen {
            public_url: Some("https://gate.example".into()),
            ..Listen::default()
        };
        for (host, origin, expected) in [
            ("gate.example", "https://gate.example", 200),
            ("gate.example:443", "https://gate.example", 200),
            ("gate.example", "http://gate.example", 403),
            ("localhost:8800", "http://localhost:8800", 200),
            ("localhost:8800", "https://localhost:8800", 403),
        ] {
            assert_eq!(
                status(&[("host", host), ("origin", origin)], &listen),
                expected,
                "{host} {origin}"
            );
        }
    }
}
