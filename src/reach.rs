//! Classification of IP addresses by the network that they belong to, for detectors that inspect
//! URLs and for the gate's own requests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

enum_with_names! {
    /// Where an address or a name leads, if not to the public Internet. Variants are in ascending
    /// order of severity, and named as in rule files.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Reach {
        /// Multicast, broadcast and ranges that must not be used.
        Reserved = "reserved",
        /// A name that only an internal resolver can resolve.
        InternalName = "internal-name",
        /// A name under a public domain that resolves to any address requested in the name.
        WildcardDns = "wildcard-dns",
        /// Private and shared address ranges.
        Private = "private",
        /// The machine itself.
        Loopback = "loopback",
        /// Link-local addresses.
        LinkLocal = "link-local",
        /// The metadata service of a cloud provider.
        Metadata = "metadata",
    }
}

/// Addresses of metadata services other than the link-local ones: Azure, Alibaba, Oracle, and
/// Amazon and Google over IPv6.
const METADATA: [&str; 5] = [
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
];

/// Returns where an address leads; `None` for the public Internet and for the ranges reserved for
/// documentation (RFC 6890, RFC 8190).
pub fn reach(address: IpAddr) -> Option<Reach> {
    if METADATA.iter().any(|listed| listed.parse() == Ok(address)) {
        return Some(Reach::Metadata);
    }
    match address {
        IpAddr::V4(address) => v4_reach(address),
        IpAddr::V6(address) => v6_reach(address),
    }
}

fn v4_reach(address: Ipv4Addr) -> Option<Reach> {
    match address.octets() {
        [169, 254, 169 | 170, _] => Some(Reach::Metadata),
        [169, 254, ..] => Some(Reach::LinkLocal),
        [0 | 127, ..] => Some(Reach::Loopback),
        [10, ..]
        | [172, 16..=31, ..]
        | [192, 168, ..]
        | [100, 64..=127, ..]
        | [198, 18 | 19, ..]
        | [192, 0, 0, _] => Some(Reach::Private),
        [224..=255, ..] => Some(Reach::Reserved),
        _ => None,
    }
}

fn v6_reach(address: Ipv6Addr) -> Option<Reach> {
    let inner = embedded(address)
        .into_iter()
        .flatten()
        .filter_map(v4_reach)
        .max();
    let outer = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Some(Reach::Loopback),
        [0xfe80..=0xfebf, ..] => Some(Reach::LinkLocal),
        // The NAT64 prefix 64:ff9b:1::/48 is for local use, and the position of the IPv4 address in
        // it is not fixed.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] | [0x64, 0xff9b, 1, ..] => {
            Some(Reach::Private)
        }
        [0xff00..=0xffff, ..] | [0x100, 0, 0, 0, ..] => Some(Reach::Reserved),
        _ => None,
    };
    // Addresses below 2^16 are the unspecified address and its neighbours, not embedded IPv4
    // addresses.
    if outer == Some(Reach::Loopback) {
        outer
    } else {
        inner.max(outer)
    }
}

/// Returns the IPv4 addresses that an IPv6 address embeds: mapped, compatible, translated (RFC
/// 4291, RFC 2765), NAT64 (RFC 6052, RFC 8215), 6to4 (RFC 3056), Teredo's server and client (RFC
/// 4380), ISATAP (RFC 5214).
pub fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0 | 0xffff, 0, high, low] | [0, 0, 0, 0, 0, 0xffff, high, low] => {
            [v4(high, low), None]
        }
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, _, _, _, high, low] => {
            [v4(high, low), None]
        }
        [0x2002, high, low, ..] => [v4(high, low), None],
        [0x2001, 0, high, low, _, _, x, y] => [v4(high, low), v4(!x, !y)],
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => [v4(high, low), None],
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks() {
        for (address, expected) in [
            ("8.8.8.8", None),
            ("93.184.216.34", None),
            ("192.0.2.1", None),
            ("172.32.0.1", None),
            ("100.128.0.1", None),
            ("2606:4700::1111", None),
            ("2001:db8::1", None),
            ("64:ff9b::808:808", None),
            ("127.8.9.1", Some(Reach::Loopback)),
            ("0.0.0.0", Some(Reach::Loopback)),
            ("10.0.0.1", Some(Reach::Private)),
            ("172.31.255.255", Some(Reach::Private)),
            ("100.64.0.1", Some(Reach::Private)),
            ("198.19.0.1", Some(Reach::Private)),
            ("169.254.1.1", Some(Reach::LinkLocal)),
            ("169.254.169.254", Some(Reach::Metadata)),
            ("169.254.170.2", Some(Reach::Metadata)),
            ("168.63.129.16", Some(Reach::Metadata)),
            ("100.100.100.200", Some(Reach::Metadata)),
            ("224.0.0.1", Some(Reach::Reserved)),
            ("255.255.255.255", Some(Reach::Reserved)),
            ("::", Some(Reach::Loopback)),
            ("::1", Some(Reach::Loopback)),
            ("fe80::1", Some(Reach::LinkLocal)),
            ("fd12::1", Some(Reach::Private)),
            ("fd00:ec2::254", Some(Reach::Metadata)),
            ("ff02::1", Some(Reach::Reserved)),
            ("::ffff:169.254.169.254", Some(Reach::Metadata)),
            ("::127.0.0.1", Some(Reach::Loopback)),
            ("::ffff:0:10.0.0.1", Some(Reach::Private)),
            ("64:ff9b::a9fe:a9fe", Some(Reach::Metadata)),
            ("64:ff9b:1::7f00:1", Some(Reach::Loopback)),
            ("64:ff9b:1:a00:1::808:808", Some(Reach::Private)),
            ("2002:7f00:1::", Some(Reach::Loopback)),
            (
                "2001:0:4136:e378:8000:63bf:80ff:fffe",
                Some(Reach::Loopback),
            ),
            ("fe80::5efe:c0a8:101", Some(Reach::LinkLocal)),
            ("2a00::5efe:c0a8:101", Some(Reach::Private)),
        ] {
            assert_eq!(reach(address.parse().unwrap()), expected, "{address}");
        }
    }
}
