//! Whether a request was meant for this listener: `Host` and `Origin`, checked on every one.

use std::net::IpAddr;

use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, Request, StatusCode, Uri};

use crate::config::Listen;

/// Why a request is turned away before it is a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TurnedAway {
    pub(super) status: StatusCode,
    /// A short name, a metric label.
    pub(super) reason: &'static str,
    /// What to do about it.
    pub(super) hint: &'static str,
    /// The error code of the challenge (RFC 6750, section 3.1), where a credential was shown.
    pub(super) error: Option<&'static str>,
    /// The scopes that a token needs here.
    pub(super) scope: Option<String>,
}

pub(super) const fn turned(status: StatusCode, reason: &'static str, hint: &'static str) -> TurnedAway {
    TurnedAway { status, reason, hint, error: None, scope: None }
}

/// Checks that a request was meant for this listener and that no foreign web page sent it: names that resolve here
/// by a trick (DNS rebinding) and browsers on other sites are turned away (2025-11-25, `basic/transports`, Security Warning).
///
/// # Errors
/// 400 without a host, 403 for a foreign host or origin.
pub(super) fn place<B>(request: &Request<B>, listen: &Listen) -> Result<(), TurnedAway> {
    let headers = request.headers();
    let host = host(request.uri(), headers).ok_or(turned(StatusCode::BAD_REQUEST, "host", "send one `Host` header"))?;
    if !host_allowed(host, listen) {
        return Err(turned(StatusCode::FORBIDDEN, "host", "this name is not in `listen.hosts` of the gate's config"));
    }
    match one(headers, &ORIGIN) {
        Ok(None) => Ok(()),
        Ok(Some(origin)) if origin_allowed(origin, host, listen) => Ok(()),
        _ => Err(turned(StatusCode::FORBIDDEN, "origin", "this origin is not in `listen.origins` of the gate's config")),
    }
}

/// A header that may be there once: its text, or an error where it is there twice or is not text.
pub(super) fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ()> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        _ => Err(()),
    }
}

/// The host asked for: HTTP/2 has it in the URI, HTTP/1.1 in a header; where both are there they must agree.
pub(super) fn host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let header = one(headers, &HOST).ok()?;
    match (uri.authority().map(http::uri::Authority::as_str), header) {
        (Some(authority), Some(header)) if authority != header => None,
        (Some(authority), _) => Some(authority),
        (None, header) => header,
    }
}

/// `name:port` without its port.
pub(super) fn name(host: &str) -> &str {
    let end = match host.rfind(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    host.get(..end).unwrap_or(host)
}

pub(super) fn address(name: &str) -> Option<IpAddr> {
    name.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn host_allowed(host: &str, listen: &Listen) -> bool {
    let name = name(host);
    if listen.hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(name) || allowed.eq_ignore_ascii_case(host)) {
        return true;
    }
    match address(name) {
        // A numeric address cannot be rebound; on loopback only loopback's own are meant.
        Some(address) => address.is_loopback() || !listen.address.ip().is_loopback(),
        None => name.eq_ignore_ascii_case("localhost"),
    }
}

fn origin_allowed(origin: &str, host: &str, listen: &Listen) -> bool {
    let own = match origin.split_once("://") {
        Some(("http" | "https", site)) => site.eq_ignore_ascii_case(host),
        _ => false,
    };
    own || listed(origin, listen)
}

/// Whether the config lists an origin, so that its pages may read answers.
pub(super) fn listed(origin: &str, listen: &Listen) -> bool {
    listen.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
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
        place(&request(pairs), listen).map_or_else(|turned| turned.status.as_u16(), |()| 200)
    }

    #[test]
    fn foreign_hosts_and_origins_are_turned_away() {
        let listen =
            Listen { origins: vec!["https://app.example".into()], hosts: vec!["gate.example".into()], ..Listen::default() };
        for (pairs, expected) in [
            (&[("host", "localhost:8800")][..], 200),
            (&[("host", "127.0.0.1:8800")], 200),
            (&[("host", "[::1]:8800")], 200),
            (&[("host", "gate.example")], 200),
            (&[("host", "evil.example")], 403),
            (&[("host", "localhost.evil.example")], 403),
            (&[("host", "10.0.0.1")], 403),
            (&[], 400),
            (&[("host", "localhost"), ("host", "localhost")], 400),
            (&[("host", "localhost:8800"), ("origin", "http://localhost:8800")], 200),
            (&[("host", "localhost:8800"), ("origin", "http://localhost:3000")], 403),
            (&[("host", "localhost:8800"), ("origin", "https://app.example")], 200),
            (&[("host", "localhost:8800"), ("origin", "null")], 403),
            (&[("host", "evil.example"), ("origin", "http://evil.example")], 403),
        ] {
            assert_eq!(status(pairs, &listen), expected, "{pairs:?}");
        }
        let open = Listen { address: ([0, 0, 0, 0], 80).into(), ..Listen::default() };
        assert_eq!(status(&[("host", "10.0.0.1")], &open), 200, "off loopback by its number");
        assert_eq!(status(&[("host", "evil.example")], &open), 403);
    }
}
