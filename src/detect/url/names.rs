//! Host names that lead to internal destinations, whatever a public resolver returns.

use std::net::{IpAddr, Ipv4Addr};

use crate::reach::{self, Reach};
use crate::text::quick::WordSet;

/// Names of metadata services.
static METADATA: WordSet = WordSet::new(
    "metadata metadata.goog metadata.google.internal metadata.azure.internal \
     metadata.tencentyun.com metadata.packet.net metadata.platformequinix.com metadata.internal \
     instance-data instance-data.ec2.internal rancher-metadata",
);
/// Names of the machine itself, in addition to those under `.localhost` (RFC 6761).
static LOOPBACK: WordSet = WordSet::new(
    "localhost localhost.localdomain localhost4 localhost6 localhost4.localdomain4 \
     localhost6.localdomain6 ip6-localhost ip6-loopback loopback broadcasthost",
);
/// Domains that exist only in internal networks (RFC 6762, RFC 8375, ICANN's `.internal`, and those
/// that routers and clusters use).
static INTERNAL: WordSet = WordSet::new(
    "internal local localdomain localnet lan intranet intra corp home private home.arpa svc \
     cluster consul workgroup domain fritz.box kubernetes.default docker",
);
/// Public domains in which every name resolves to the machine itself.
static TO_LOOPBACK: WordSet = WordSet::new(
    "localtest.me lvh.me vcap.me lacolhost.com localho.st fuf.me fbi.com.localtest.me yoogle.com \
     42foo.com fidget.me feacluster.com.localtest.me loopback.to lndo.site traefik.me local.gd \
     localdev.me localhost.direct local.computer 127-0-0-1.org.uk spoofed.burpcollaborator.net \
     bugbounty.dod.network",
);
/// Public domains that return the address that the name contains, or different addresses over time.
static WILDCARD: WordSet = WordSet::new(
    "nip.io sslip.io xip.io xip.name ip.addr.tools backname.io plex.direct rbndr.us \
     rebind.network 1u.ms rebind.it cmpxchg8b.com dynamic-dns.rebind.network gel0.space \
     noip.rebind.me nrbind.net",
);

/// Returns where a name leads; the name is in lower case and without a trailing dot.
pub(super) fn reach(name: &str) -> Option<Reach> {
    let is_under = |domain: &&str| {
        name.strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if METADATA.contains(&name) {
        return Some(Reach::Metadata);
    }
    if LOOPBACK.contains(&name) || is_under(&"localhost") {
        return Some(Reach::Loopback);
    }
    let embedded = embedded_reach(name);
    if embedded.is_some_and(|inside| inside >= Reach::LinkLocal) {
        return embedded;
    }
    if TO_LOOPBACK.iter().any(is_under) || embedded.is_some() {
        return Some(Reach::WildcardDns);
    }
    // The domain of the service itself is its web page.
    if matches!(name, "nip.io" | "sslip.io" | "www.nip.io" | "www.sslip.io") {
        return None;
    }
    if WILDCARD.iter().any(is_under) {
        // With a public address inside, the name leads to that address.
        return (embedded_addresses(name).next().is_none()).then_some(Reach::WildcardDns);
    }
    INTERNAL.iter().any(is_under).then_some(Reach::InternalName)
}

/// Returns where the addresses inside a name lead: `app.10.0.0.1.nip.io`, `10-0-0-1.sslip.io`,
/// `7f000001.c0a80001.rbndr.us`.
fn embedded_reach(name: &str) -> Option<Reach> {
    if !name.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    let hex = name
        .split(['.', '-'])
        .filter(|label| label.len() == 8)
        .filter_map(|label| u32::from_str_radix(label, 16).ok());
    let hex = hex
        .filter(|_| WILDCARD.iter().any(|domain| name.ends_with(domain)))
        .map(Ipv4Addr::from);
    embedded_addresses(name)
        .chain(hex)
        .filter_map(|address| reach::reach(IpAddr::V4(address)))
        .filter(|reach| *reach > Reach::Reserved)
        .max()
}

/// Returns the addresses in a name: four numbers in a row, joined by dots or by hyphens throughout.
fn embedded_addresses(name: &str) -> impl Iterator<Item = Ipv4Addr> {
    ['.', '-'].into_iter().flat_map(move |joint| {
        let separator = if joint == '.' { '-' } else { '.' };
        name.split(separator).flat_map(move |run| {
            let parts: Vec<&str> = run.split(joint).collect();
            parts
                .windows(4)
                .filter_map(|four| match four {
                    [a, b, c, d] => Some(Ipv4Addr::new(
                        parse_octet(a)?,
                        parse_octet(b)?,
                        parse_octet(c)?,
                        parse_octet(d)?,
                    )),
                    _ => None,
                })
                .collect::<Vec<_>>()
        })
    })
}

fn parse_octet(text: &str) -> Option<u8> {
    (text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, expected) in [
            ("example.com", None),
            ("nip.io", None),
            ("x.nip.io", Some(Reach::WildcardDns)),
            ("8.8.8.8.nip.io", None),
            ("ec2-54-1-2-3.compute.amazonaws.com", None),
            ("release-1-2-3.example.com", None),
            ("mylocal.org", None),
            ("corporate.com", None),
            ("localhost", Some(Reach::Loopback)),
            ("a.b.localhost", Some(Reach::Loopback)),
            ("metadata.google.internal", Some(Reach::Metadata)),
            ("169.254.169.254.nip.io", Some(Reach::Metadata)),
            ("app.10.0.0.1.sslip.io", Some(Reach::WildcardDns)),
            ("www-10-0-0-1.sslip.io", Some(Reach::WildcardDns)),
            ("7f000001.c0a80001.rbndr.us", Some(Reach::WildcardDns)),
            ("a9fea9fe.08080808.rbndr.us", Some(Reach::Metadata)),
            ("127.0.0.1.evil.example", Some(Reach::WildcardDns)),
            ("x.lvh.me", Some(Reach::WildcardDns)),
            ("db.prod.internal", Some(Reach::InternalName)),
            ("printer.local", Some(Reach::InternalName)),
            ("api.default.svc.cluster.local", Some(Reach::InternalName)),
        ] {
            assert_eq!(reach(name), expected, "{name}");
        }
    }
}
