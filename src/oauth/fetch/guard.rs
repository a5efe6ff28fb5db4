//! Where requests may go: the scheme, the name, and each address that the name has.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use http::Uri;

use super::{FetchError, Inner};
use crate::reach::{self, Reach};

/// Longest name that DNS has.
const HOST_BYTES: usize = 253;

/// What is allowed beside `https` to public addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// Whether `http` will do for hosts that are this machine by their name: `localhost`, 127.0.0.1, `[::1]`.
    pub allow_loopback_http: bool,
    /// Hosts that may lie in a private network or on this machine. Never on the local link, where clouds have their
    /// metadata services.
    pub private_hosts: Vec<String>,
}

/// How names become addresses.
pub(super) type Lookup =
    Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// By the system's resolver.
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

/// Where one request goes.
pub(super) struct Target {
    /// The host as the URL has it, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: bool,
}

impl Target {
    /// # Errors
    /// `Url` and `Plain`.
    pub(super) fn read(url: &Uri, guard: &Guard) -> Result<Self, FetchError> {
        let authority = url
            .authority()
            .filter(|authority| !authority.as_str().contains('@'))
            .ok_or(FetchError::Url)?;
        let host = bare(authority.host()).to_owned();
        // What stands behind the host and is no port (`:`, `:99999`) is read by others in their own way.
        let odd =
            authority.port_u16().is_none() && authority.as_str().len() != authority.host().len();
        if host.is_empty() || host.len() > HOST_BYTES || odd {
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

/// The addresses of a host, each of them allowed. Whoever connects uses these and does not ask again: a second answer
/// could be another one.
///
/// # Errors
/// `Forbidden` where a single address is: a name that leads inside as well as outside is not one that a server would have.
pub(super) async fn addresses(inner: &Inner, host: &str) -> Result<Vec<IpAddr>, FetchError> {
    let found = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => (inner.lookup)(host.to_owned())
            .await
            .map_err(|e| unreachable(host, &e.to_string()))?,
    };
    if found.is_empty() {
        return Err(unreachable(host, "the name has no address"));
    }
    match found
        .iter()
        .filter_map(|address| inner.guard.forbids(host, *address))
        .max()
    {
        Some(reach) => Err(FetchError::Forbidden {
            host: host.to_owned(),
            reach,
        }),
        None => Ok(found),
    }
}

pub(super) fn unreachable(host: &str, why: &str) -> FetchError {
    FetchError::Unreachable {
        host: host.to_owned(),
        why: why.to_owned(),
    }
}

impl Guard {
    /// Where an address leads, if a request to that host may not go there.
    fn forbids(&self, host: &str, address: IpAddr) -> Option<Reach> {
        let reach = reach::of(address)?;
        let listed = self
            .private_hosts
            .iter()
            .any(|known| same_host(known, host));
        let allowed = match reach {
            Reach::Private => listed,
            Reach::Loopback => {
                !address.is_unspecified()
                    && (listed || (self.allow_loopback_http && is_this_machine(host)))
            }
            _ => false,
        };
        (!allowed).then_some(reach)
    }
}

/// Whether a host is this machine by its name alone, whatever a resolver says (RFC 6761, section 6.3).
pub(in crate::oauth) fn is_this_machine(host: &str) -> bool {
    let host = bare(host);
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => {
            let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

fn same_host(known: &str, host: &str) -> bool {
    let plain = |host: &str| bare(host).trim_end_matches('.').to_ascii_lowercase();
    plain(known) == plain(host)
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(host)
}
