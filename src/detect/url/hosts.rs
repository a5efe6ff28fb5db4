//! Lists of hosts that calls may or may not reach.

use std::net::IpAddr;

use crate::text::glob_matches;

/// A policy's host lists: by tool, then for all tools. The first list that names a host decides.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    tools: Vec<(String, HostList)>,
    common: HostList,
}

/// An allow list and a deny list of hosts.
#[derive(Clone, Debug, Default)]
pub struct HostList {
    /// Hosts that may be reached, internal or not.
    pub allow: Vec<HostPattern>,
    /// Hosts that may not be reached, unless `allow` names them. `*` is all hosts.
    pub deny: Vec<HostPattern>,
}

/// A pattern for hosts: `example.org`, `*.example.org` (and the domain itself), `*`, an address or
/// a range in CIDR notation (RFC 4632); each followed by a port if only that port matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    matcher: HostMatcher,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostMatcher {
    Any,
    Name(String),
    Under(String),
    Net(IpAddr, u8),
}

/// The result of looking a host up in the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostDecision {
    /// It may be reached.
    Allowed,
    /// It may not be reached.
    Denied,
    /// No list names it.
    Unlisted,
}

impl Hosts {
    /// Creates the lists: those of tools, by name (`*` matches any part of it), and the list for
    /// all.
    pub fn new(tools: Vec<(String, HostList)>, common: HostList) -> Self {
        Self { tools, common }
    }

    /// Looks up `host`, a name or an address, at `port`, for a call of `tool`.
    pub fn decide(&self, tool: Option<&str>, host: &str, port: Option<u16>) -> HostDecision {
        let address = host.parse::<IpAddr>().ok();
        let any_fits = |patterns: &[HostPattern]| {
            patterns
                .iter()
                .any(|pattern| pattern.fits(host, address, port))
        };
        let of_tool = self
            .tools
            .iter()
            .filter(|(glob, _)| tool.is_some_and(|tool| glob_matches(glob, tool)));
        for list in of_tool.map(|(_, list)| list).chain([&self.common]) {
            if any_fits(&list.allow) {
                return HostDecision::Allowed;
            }
            if any_fits(&list.deny) {
                return HostDecision::Denied;
            }
        }
        HostDecision::Unlisted
    }
}

impl HostPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// A description of the valid forms, if it is not a valid pattern.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        const HINT: &str = "a host is a name, `*.` and a domain, an address or a range such as `10.0.0.0/8`; a port may follow";
        let text = text.trim().to_ascii_lowercase();
        if text.is_empty() || text.contains("://") || text.contains(['@', ' ', '?', '#']) {
            return Err(HINT);
        }
        if let Some(net) = parse_net(&text)? {
            return Ok(net);
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| HINT)?)),
            None => (text.as_str(), None),
        };
        let host = host.trim_end_matches('.');
        let matcher = match host.strip_prefix("*.") {
            _ if host == "*" => HostMatcher::Any,
            Some(domain) if is_name(domain) => HostMatcher::Under(domain.to_owned()),
            None if is_name(host) => HostMatcher::Name(host.to_owned()),
            _ => return Err(HINT),
        };
        Ok(Self { matcher, port })
    }

    pub(super) fn fits(&self, host: &str, address: Option<IpAddr>, port: Option<u16>) -> bool {
        let same = match (&self.matcher, address) {
            (HostMatcher::Any, _) => true,
            (HostMatcher::Name(name), _) => name == host,
            (HostMatcher::Under(domain), _) => host
                .strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
            (HostMatcher::Net(net, bits), Some(address)) => net_contains(*net, *bits, address),
            (HostMatcher::Net(..), None) => false,
        };
        same && self.port.is_none_or(|required| port == Some(required))
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '-' | '.' | '_'))
}

/// Parses an address or a range, if it is one: `10.0.0.0/8`, `127.0.0.1:8080`, `[::1]:80`,
/// `fd00::/8`.
fn parse_net(text: &str) -> Result<Option<HostPattern>, &'static str> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (
            address,
            Some(
                bits.parse::<u8>()
                    .map_err(|_| "a range is an address, `/` and a number of bits")?,
            ),
        ),
        None => (text, None),
    };
    let (address, port) = match (
        address.parse::<IpAddr>(),
        address.parse::<std::net::SocketAddr>(),
    ) {
        (Ok(address), _) => (address, None),
        (_, Ok(socket)) => (socket.ip(), Some(socket.port())),
        _ => match address
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .and_then(|rest| rest.parse().ok())
        {
            Some(address) => (IpAddr::V6(address), None),
            None if bits.is_some() => {
                return Err("a range is an address, `/` and a number of bits");
            }
            None => return Ok(None),
        },
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(most);
    if bits > most {
        return Err("a range has 0 to 32 bits, for IPv6 to 128");
    }
    Ok(Some(HostPattern {
        matcher: HostMatcher::Net(address, bits),
        port,
    }))
}

fn net_contains(net: IpAddr, bits: u8, address: IpAddr) -> bool {
    match (net, address.to_canonical()) {
        (IpAddr::V4(net), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            u32::from(net) & mask == u32::from(address) & mask
        }
        (IpAddr::V6(net), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            u128::from(net) & mask == u128::from(address) & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(allow: &[&str], deny: &[&str]) -> HostList {
        let patterns = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| HostPattern::read(text).unwrap())
                .collect()
        };
        HostList {
            allow: patterns(allow),
            deny: patterns(deny),
        }
    }

    #[test]
    fn patterns_fit_names_addresses_and_ports() {
        for (pattern, host, port, fits) in [
            ("example.org", "example.org", None, true),
            ("example.org", "www.example.org", None, false),
            ("*.example.org", "www.example.org", None, true),
            ("*.example.org", "example.org", None, true),
            ("*.example.org", "badexample.org", None, false),
            ("*", "anything", None, true),
            ("10.0.0.0/8", "10.9.8.7", None, true),
            ("10.0.0.0/8", "11.0.0.1", None, false),
            ("0.0.0.0/0", "8.8.8.8", None, true),
            ("::1", "::1", None, true),
            ("fd00::/8", "fd12::1", None, true),
            ("10.0.0.0/8", "::ffff:10.0.0.1", None, true),
            ("127.0.0.1:3000", "127.0.0.1", Some(3000), true),
            ("localhost:3000", "localhost", Some(3001), false),
            ("localhost", "localhost", Some(3001), true),
            ("[::1]:80", "::1", Some(80), true),
        ] {
            let pattern = HostPattern::read(pattern).unwrap();
            assert_eq!(
                pattern.fits(host, host.parse().ok(), port),
                fits,
                "{pattern:?} {host} {port:?}"
            );
        }
        for bad in [
            "",
            "https://example.org",
            "a b",
            "10.0.0.0/33",
            "x/8",
            "user@host",
            "host:port",
            "*.*.x",
            "a.*",
        ] {
            assert!(HostPattern::read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_first_list_that_names_a_host_decides() {
        let hosts = Hosts::new(
            vec![("fetch*".into(), list(&["localhost"], &["*.example.org"]))],
            list(&["www.example.org", "10.0.0.0/8"], &["*"]),
        );
        for (tool, host, expected) in [
            ("fetch_page", "localhost", HostDecision::Allowed),
            ("fetch_page", "www.example.org", HostDecision::Denied),
            ("other", "www.example.org", HostDecision::Allowed),
            ("other", "localhost", HostDecision::Denied),
            ("fetch_page", "10.1.1.1", HostDecision::Allowed),
        ] {
            assert_eq!(
                hosts.decide(Some(tool), host, None),
                expected,
                "{tool} {host}"
            );
        }
        assert_eq!(
            Hosts::default().decide(None, "localhost", None),
            HostDecision::Unlisted
        );
    }
}
