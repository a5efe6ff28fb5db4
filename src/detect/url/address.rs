//! Addresses, in every spelling that some client understands, and the networks they belong to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where an address or a name leads, if not to the public Internet. Later is graver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// Multicast, broadcast and ranges that nobody may use.
    Reserved,
    /// A name that only an internal resolver knows.
    InternalName,
    /// A name of a public domain that gives any address one asks for.
    WildcardDns,
    /// Private and shared ranges.
    Private,
    /// The machine itself.
    Loopback,
    /// Addresses of the local link.
    LinkLocal,
    /// The metadata service of a cloud.
    Metadata,
}

impl Reach {
    /// Words of rule files.
    pub(super) const WORDS: [(&'static str, Self); 7] = [
        ("metadata", Self::Metadata),
        ("link-local", Self::LinkLocal),
        ("loopback", Self::Loopback),
        ("private", Self::Private),
        ("internal-name", Self::InternalName),
        ("wildcard-dns", Self::WildcardDns),
        ("reserved", Self::Reserved),
    ];
}

impl Reach {
    /// The reading by which a name is found that resolves to such an address.
    pub(super) fn resolved(self) -> &'static str {
        match self {
            Self::Reserved => "resolved-reserved",
            Self::InternalName | Self::WildcardDns => "resolved",
            Self::Private => "resolved-private",
            Self::Loopback => "resolved-loopback",
            Self::LinkLocal => "resolved-link-local",
            Self::Metadata => "resolved-metadata",
        }
    }
}

/// Addresses of metadata services beside those of the local link: Azure, Alibaba, Oracle, Amazon and Google by IPv6.
const METADATA: [&str; 5] = ["168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"];

/// Where an address leads; `None` for the public Internet and for what documentation uses (RFC 6890, RFC 8190).
pub(super) fn reach(address: IpAddr) -> Option<Reach> {
    if METADATA.iter().any(|known| known.parse() == Ok(address)) {
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
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18 | 19, ..] | [192, 0, 0, _] => {
            Some(Reach::Private)
        }
        [224..=255, ..] => Some(Reach::Reserved),
        _ => None,
    }
}

fn v6_reach(address: Ipv6Addr) -> Option<Reach> {
    let inner = embedded(address).into_iter().flatten().filter_map(v4_reach).max();
    let own = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Some(Reach::Loopback),
        [0xfe80..=0xfebf, ..] => Some(Reach::LinkLocal),
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some(Reach::Private),
        [0xff00..=0xffff, ..] | [0x100, 0, 0, 0, ..] => Some(Reach::Reserved),
        _ => None,
    };
    // What is below 2^16 is the unspecified address and its neighbours, not an embedded one.
    if own == Some(Reach::Loopback) { own } else { inner.max(own) }
}

/// IPv4 addresses that an IPv6 address stands for: mapped, compatible, translated (RFC 4291, RFC 2765), NAT64 (RFC 6052,
/// RFC 8215), 6to4 (RFC 3056), Teredo's server and client (RFC 4380), ISATAP (RFC 5214).
pub(super) fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0 | 0xffff, 0, high, low] | [0, 0, 0, 0, 0, 0xffff, high, low] => [v4(high, low), None],
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, _, _, _, high, low] => [v4(high, low), None],
        [0x2002, high, low, ..] => [v4(high, low), None],
        [0x2001, 0, high, low, _, _, x, y] => [v4(high, low), v4(!x, !y)],
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => [v4(high, low), None],
        _ => [None, None],
    }
}

/// An address that a host may be read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spelt {
    pub(super) address: IpAddr,
    /// Not as one writes it: by other radix, shortened, overflowing, an IPv4 address inside an IPv6 one.
    pub(super) odd: bool,
}

/// Every address that some client reads a host as (without brackets): strict forms, those of `inet_aton`, and such that
/// overflow. Empty for names.
pub(super) fn spelt(host: &str) -> Vec<Spelt> {
    if host.contains(':') {
        let host = host.split('%').next().unwrap_or(host);
        let Ok(address) = host.parse::<Ipv6Addr>() else { return Vec::new() };
        let odd = embedded(address).iter().flatten().any(|v4| v4.octets() != [0, 0, 0, 0] && v4.octets() != [0, 0, 0, 1]);
        return vec![Spelt { address: IpAddr::V6(address), odd }];
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return vec![Spelt { address: IpAddr::V4(address), odd: false }];
    }
    let parts: Vec<&str> = host.split('.').collect();
    if host.is_empty() || parts.len() > 4 || !parts.iter().all(|part| is_number(part)) {
        return Vec::new();
    }
    let mut out = Vec::new();
    // A leading zero is octal to some clients and nothing to others.
    for octal in [true, false] {
        let numbers: Vec<u128> = parts.iter().map_while(|part| number(part, octal)).collect();
        let Some((last, front)) = numbers.split_last().filter(|_| numbers.len() == parts.len()) else { continue };
        let rest = 8 * (4 - front.len() as u32);
        let high = front.iter().fold(0u128, |sum, part| (sum << 8) | (part & 0xff));
        // What overflows is cut off by some clients and refused by others.
        let value = (high << rest) | (last & ((1u128 << rest) - 1));
        let address = IpAddr::V4(Ipv4Addr::from((value & u128::from(u32::MAX)) as u32));
        if !out.iter().any(|seen: &Spelt| seen.address == address) {
            out.push(Spelt { address, odd: true });
        }
    }
    out
}

fn is_number(part: &str) -> bool {
    let digits = part.strip_prefix("0x").unwrap_or(part);
    let hex = digits.len() != part.len();
    part.len() <= 40 && !part.is_empty() && digits.bytes().all(|b| if hex { b.is_ascii_hexdigit() } else { b.is_ascii_digit() })
}

fn number(part: &str, octal: bool) -> Option<u128> {
    match part.strip_prefix("0x") {
        Some("") => Some(0),
        Some(hex) => u128::from_str_radix(hex.trim_start_matches('0'), 16).or_else(|_| zero(hex)).ok(),
        None if octal && part.starts_with('0') && part.len() > 1 => u128::from_str_radix(part, 8).ok(),
        None => part.parse().ok(),
    }
}

fn zero(digits: &str) -> Result<u128, ()> {
    if digits.bytes().all(|b| b == b'0') { Ok(0) } else { Err(()) }
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
            ("2002:7f00:1::", Some(Reach::Loopback)),
            ("2001:0:4136:e378:8000:63bf:80ff:fffe", Some(Reach::Loopback)),
            ("fe80::5efe:c0a8:101", Some(Reach::LinkLocal)),
            ("2a00::5efe:c0a8:101", Some(Reach::Private)),
        ] {
            assert_eq!(reach(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn every_spelling_of_an_address_is_read() {
        for (host, expected) in [
            ("2130706433", "127.0.0.1"),
            ("0x7f000001", "127.0.0.1"),
            ("017700000001", "127.0.0.1"),
            ("127.1", "127.0.0.1"),
            ("127.0.1", "127.0.0.1"),
            ("0x7f.1", "127.0.0.1"),
            ("0177.0.0.0x1", "127.0.0.1"),
            ("0000127.0.0.1", "127.0.0.1"),
            ("00000177.0.0.1", "127.0.0.1"),
            ("425.510.425.510", "169.254.169.254"),
            ("6425673729", "127.0.0.1"),
            ("0x1000000007f000001", "127.0.0.1"),
            ("010.0.0.1", "10.0.0.1"),
            ("012.0.0.1", "10.0.0.1"),
            ("0", "0.0.0.0"),
            ("0x0", "0.0.0.0"),
        ] {
            assert!(spelt(host).iter().any(|found| found.address.to_string() == expected), "{host}: {:?}", spelt(host));
        }
        for name in ["", "localhost", "1.2.3.4.5", "a.1", "0x", "1..2", "v1.2", "deadbeef"] {
            assert!(name == "0x" || spelt(name).is_empty(), "{name}");
        }
        assert!(!spelt("127.0.0.1")[0].odd && spelt("::ffff:127.0.0.1")[0].odd && !spelt("::1")[0].odd);
    }
}
