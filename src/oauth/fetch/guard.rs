//! Where requests may be sent: checks of the scheme, the host name, and each address that the name
//! resolves to.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use http::Uri;

use super::{FetchError, Inner};
use crate::reach::{self, Reach};

/// Maximum length of a DNS name.
const HOST_BYTES: usize = 253;

/// Targets that are allowed in addition to `https` at public addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// Whether `http` is allowed for hosts whose name denotes this machine: `localhost`, 127.0.0.1,
    /// `[::1]`.
    pub allow_loopback_http: bool,
    /// Hosts that may be in a private network or on this machine. Link-local addresses are never
    /// allowed, since clouds have their metadata services there.
    pub private_hosts: Vec<String>,
}

/// Resolves host names to addresses.
pub(super) type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Returns a lookup that uses the system's resolver.
pub(super) fn system_lookup() -> Lookup {
    Arc::new(|host| {
        async move {
            Ok(tokio::net::lookup_host((host.as_str(), 0))
                .await?
                .map(|address| address.ip())
                .collect())
        }
        .boxed()
    })
}

/// The target of one request.
pub(super) struct Target {
    /// The host as in the URL, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: bool,
}

impl Target {
    /// # Errors
    /// Fails with `Url` or `Plain`.
    pub(super) fn read(url: &Uri, guard: &Guard) -> Result<Self, FetchError> {
        let authority = url
            .authority()
            .filter(|authority| !authority.as_str().contains('@'))
            .ok_or(FetchError::Url)?;
        let host = strip_brackets(authority.host()).to_owned();
        // Anything after the host that is not a port (`:`, `:99999`) is parsed differently by
        // others.
        let has_empty_port =
            authority.port_u16().is_none() && authority.as_str().len() != authority.host().len();
        if host.is_empty() || host.len() > HOST_BYTES || has_empty_port {
            return Err(FetchError::Url);
        }
        let tls = url.scheme_str() == Some("https");
        match url.scheme_str() {
            Some("https") => {}
            Some("http") if guard.allow_loopback_http && is_this_machine(&host) => {}
            Some("http") => return Err(FetchError::Plain(host)),
            _ => return Err(FetchError::Url),
        }
        let port = match (authority.port(), tls) {
            (Some(port), _) => port.as_u16(),
            (None, true) => 443,
            (None, false) => 80,
        };
        Ok(Self { host, port, tls })
    }
}

/// Returns the addresses of a host, all of which are allowed. Connections use these addresses
/// without another lookup, which could return different ones.
///
/// # Errors
/// Fails with `Forbidden` if even one address is forbidden: no legitimate server has a name that
/// resolves to internal and external addresses.
pub(super) async fn resolve_addresses(
    inner: &Inner,
    host: &str,
) -> Result<Vec<IpAddr>, FetchError> {
    let resolved = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => (inner.lookup)(host.to_owned())
            .await
            .map_err(|e| unreachable(host, &e.to_string()))?,
    };
    if resolved.is_empty() {
        return Err(unreachable(host, "the name has no address"));
    }
    match resolved
        .iter()
        .filter_map(|address| inner.guard.forbidden_reach(host, *address))
        .max()
    {
        Some(reach) => Err(FetchError::Forbidden {
            host: host.to_owned(),
            reach,
        }),
        None => Ok(resolved),
    }
}

pub(super) fn unreachable(host: &str, why: &str) -> FetchError {
    FetchError::Unreachable {
        host: host.to_owned(),
        why: why.to_owned(),
    }
}

impl Guard {
    /// Returns where an address leads if requests to that host may not be sent there.
    fn forbidden_reach(&self, host: &str, address: IpAddr) -> Option<Reach> {
        let reach = reach::reach(address)?;
        let is_listed = self
            .private_hosts
            .iter()
            .any(|listed_host| same_host(listed_host, host));
        let is_allowed = match reach {
            Reach::Private => is_listed,
            Reach::Loopback => {
                !address.is_unspecified()
                    && (is_listed || (self.allow_loopback_http && is_this_machine(host)))
            }
            _ => false,
        };
        (!is_allowed).then_some(reach)
    }
}

/// Reports whether a host is this machine by its name alone, whatever a resolver returns (RFC 6761,
/// section 6.3).
pub(in crate::oauth) fn is_this_machine(host: &str) -> bool {
    let host = strip_brackets(host);
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => {
            let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

fn same_host(listed: &str, host: &str) -> bool {
    let normalize = |host: &str| {
        strip_brackets(host)
            .trim_end_matches('.')
            .to_ascii_lowercase()
    };
    normalize(listed) == normalize(host)
}

fn strip_brackets(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(host)
}
