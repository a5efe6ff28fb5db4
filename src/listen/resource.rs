//! The gate as an OAuth protected resource: its own URLs, its metadata (RFC 9728), its challenges
//! (RFC 6750, section 3).

use std::net::{IpAddr, SocketAddr};

use http::header::HeaderValue;
use http::{HeaderMap, Method, Response, StatusCode, Uri};

use super::admit::{self, Rejection};
use super::authentication::Authenticator;
use super::{Body, respond_json};
use crate::config::{Listen, is_name};
use crate::message::quote;
use crate::protocol::UpstreamName;

/// Prefix of metadata paths; the path of the resource follows.
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The first segments of the gate's own paths. An upstream with such a name has no alias.
const OWN_FOLDERS: [&str; 4] = ["mcp", "sse", "oauth", "prove"];

/// Returns the URL of the listener, without a path: the one in the config, or the one of the
/// request if its host name certainly belongs to the listener. Another port of the same name may be
/// a different resource, and tokens for that one must not be valid here.
pub(super) fn base_url(
    uri: &Uri,
    headers: &HeaderMap,
    listen: &Listen,
    bound_address: SocketAddr,
) -> Option<String> {
    if let Some(url) = &listen.public_url {
        return Some(url.clone());
    }
    let host = admit::request_host(uri, headers)?;
    let own_port = host.port == Some(bound_address.port());
    let is_listed =
        |own: &String| own.eq_ignore_ascii_case(host.name) || own.eq_ignore_ascii_case(host.text);
    let is_own_host = match host.address() {
        Some(address) => own_port && is_own_address(address, bound_address.ip()),
        None if listen.hosts.iter().any(is_listed) => own_port || host.port.is_none(),
        None => {
            own_port
                && bound_address.ip().is_loopback()
                && host.name.eq_ignore_ascii_case("localhost")
        }
    };
    let scheme = if listen.tls.is_some() {
        "https"
    } else {
        "http"
    };
    is_own_host.then(|| format!("{scheme}://{}", host.text.to_ascii_lowercase()))
}

fn is_own_address(requested: IpAddr, bound: IpAddr) -> bool {
    requested == bound || requested.is_loopback() && bound.is_loopback()
}

/// Returns the valid audiences of tokens that are presented at a path: the path, or the gate as a
/// whole.
pub(super) fn audiences(site: Option<&str>, path: &str) -> Vec<String> {
    let Some(site) = site else { return Vec::new() };
    let mut all = vec![site.to_owned(), format!("{site}/")];
    if let Some(resource) = resource_of(path) {
        all.push(format!("{site}{resource}"));
        // Both URLs of an upstream are the same resource.
        let other = match (alias_of(resource), resource.strip_prefix("/mcp/")) {
            (Some(name), _) => Some(format!("{site}/mcp/{name}")),
            (None, Some(name)) => Some(format!("/{name}/mcp"))
                .filter(|path| alias_of(path).is_some())
                .map(|path| site.to_owned() + &path),
            (None, None) => None,
        };
        all.extend(other);
    }
    all
}

/// Returns the upstream that `/NAME/mcp` refers to, which is an alias of `/mcp/NAME` for tools that
/// append `/mcp` to a URL.
pub(super) fn alias_of(path: &str) -> Option<&str> {
    let (name, rest) = path.strip_prefix('/')?.split_once('/')?;
    let is_alias = matches!(rest, "mcp" | "mcp/") && is_name(name) && !OWN_FOLDERS.contains(&name);
    is_alias.then_some(name)
}

/// Returns the resource that a path belongs to: `/mcp/NAME` or its alias, or `/sse/NAME` with
/// everything below it.
fn resource_of(path: &str) -> Option<&str> {
    if alias_of(path).is_some() {
        return Some(path.strip_suffix('/').unwrap_or(path));
    }
    let rest = path
        .strip_prefix("/mcp/")
        .or_else(|| path.strip_prefix("/sse/"))?;
    let name = rest.split('/').next().filter(|name| is_name(name))?;
    path.get(..path.len() - rest.len() + name.len())
}

/// Returns the metadata of a resource, if there are external issuers: `None` if it is not
/// requested, or there is none.
///
/// Every name gets metadata, whether or not such an upstream exists, so that callers that are not
/// admitted learn nothing about upstreams.
pub(super) fn metadata(
    method: &Method,
    path: &str,
    site: Option<&str>,
    authenticator: &Authenticator,
    only: impl FnOnce() -> Option<UpstreamName>,
) -> Option<Response<Body>> {
    let requested = path.strip_prefix(WELL_KNOWN)?;
    let site = site.filter(|_| {
        authenticator.issuers().len() > 0 && matches!(*method, Method::GET | Method::HEAD)
    })?;
    let resource = match matches!(requested, "" | "/").then(only).flatten() {
        Some(only) => format!("/mcp/{only}"),
        None => resource_of(requested)
            .filter(|resource| *resource == requested.trim_end_matches('/'))?
            .to_owned(),
    };
    let list = |words: Vec<&str>| words.into_iter().map(quote).collect::<Vec<_>>().join(",");
    let servers = list(
        authenticator
            .issuers()
            .map(|issuer| issuer.issuer.as_str())
            .collect(),
    );
    let scopes = list(authenticator.scopes());
    let scopes = if scopes.is_empty() {
        scopes
    } else {
        format!(r#","scopes_supported":[{scopes}]"#)
    };
    let text = format!(
        r#"{{"resource":{},"authorization_servers":[{servers}]{scopes},"bearer_methods_supported":["header"]}}"#,
        quote(&format!("{site}{resource}"))
    );
    Some(respond_json(StatusCode::OK, text))
}

/// Returns the challenge that accompanies a refusal.
pub(super) fn challenge(
    rejection: &Rejection,
    path: &str,
    site: Option<&str>,
    authenticator: &Authenticator,
) -> Option<HeaderValue> {
    if !matches!(
        rejection.status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
    ) && rejection.error.is_none()
    {
        return None;
    }
    if rejection.status == StatusCode::FORBIDDEN && rejection.error.is_none() {
        return None;
    }
    let metadata = site
        .filter(|_| authenticator.issuers().len() > 0)
        .zip(resource_of(path));
    let parts = [
        rejection.error.map(|error| format!(r#"error="{error}""#)),
        metadata
            .map(|(site, resource)| format!(r#"resource_metadata="{site}{WELL_KNOWN}{resource}""#)),
        rejection
            .scope
            .as_ref()
            .map(|scope| format!(r#"scope="{scope}""#)),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let text = if parts.is_empty() {
        "Bearer".to_owned()
    } else {
        format!("Bearer {}", parts.join(", "))
    };
    HeaderValue::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gates_own_url_is_told_from_its_neighbours() {
        let site_of = |host: &str, listen: &Listen, bound: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("host", host.parse().unwrap());
            base_url(
                &Uri::from_static("/mcp/x"),
                &headers,
                listen,
                bound.parse().unwrap(),
            )
        };
        let plain = Listen::default();
        let local = "127.0.0.1:8800";
        for (host, url) in [
            ("LocalHost:8800", "http://localhost:8800"),
            ("127.0.0.1:8800", "http://127.0.0.1:8800"),
        ] {
            assert_eq!(site_of(host, &plain, local).unwrap(), url);
        }
        for neighbour in [
            "localhost:9000",
            "127.0.0.1:9000",
            "127.0.0.1",
            "10.0.0.1:8800",
        ] {
            assert_eq!(site_of(neighbour, &plain, local), None, "{neighbour}");
        }
        let named = Listen {
            hosts: vec!["gate.example".into()],
            ..Listen::default()
        };
        let open = "0.0.0.0:8800";
        for host in ["gate.example", "gate.example:8800"] {
            assert_eq!(
                site_of(host, &named, open).unwrap(),
                format!("http://{host}")
            );
        }
        for neighbour in ["gate.example:9000", "10.0.0.1:8800", "localhost:8800"] {
            assert_eq!(site_of(neighbour, &named, open), None, "{neighbour}");
        }
        let public = Listen {
            public_url: Some("https://gate.example".into()),
            ..Listen::default()
        };
        assert_eq!(
            site_of("localhost:9000", &public, local).unwrap(),
            "https://gate.example"
        );
    }

    #[test]
    fn tokens_are_for_a_path_or_for_the_whole() {
        for (path, of_the_path) in [
            ("/mcp/a", &["https://g/mcp/a", "https://g/a/mcp"][..]),
            ("/a/mcp/", &["https://g/a/mcp", "https://g/mcp/a"]),
            // `/sse/mcp` is HTTP+SSE of `mcp`.
            ("/mcp/sse", &["https://g/mcp/sse"]),
            ("/sse/mcp", &["https://g/sse/mcp"]),
            ("/a%2Fb/mcp", &[]),
            ("/sse/a/1234", &["https://g/sse/a"]),
            ("/mcp/a%2F..%2Fb", &[]),
        ] {
            let expected = [&["https://g", "https://g/"], of_the_path].concat();
            assert_eq!(audiences(Some("https://g"), path), expected, "{path}");
        }
        assert_eq!(audiences(None, "/mcp/a"), [""; 0]);
    }
}
