//! Addresses in every spelling that some client understands, and the names that rules use for where
//! they lead.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::reach::{Reach, embedded};

impl Reach {
    /// Returns the reading of a finding for a name that resolves to such an address.
    pub(super) fn resolved_reading(self) -> &'static str {
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

/// An address as which a host may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenAddress {
    pub(super) address: IpAddr,
    /// An unusual spelling: another radix, shortened, overflowing, or an IPv4 address inside an
    /// IPv6 one.
    pub(super) odd: bool,
}

/// Returns every address as which some client reads a host (without brackets): strict forms, those
/// of `inet_aton`, and overflowing ones. Empty for names.
pub(super) fn written_addresses(host: &str) -> Vec<WrittenAddress> {
    if host.contains(':') {
        let host = host.split('%').next().unwrap_or(host);
        let Ok(address) = host.parse::<Ipv6Addr>() else {
            return Vec::new();
        };
        let odd = embedded(address)
            .iter()
            .flatten()
            .any(|v4| v4.octets() != [0, 0, 0, 0] && v4.octets() != [0, 0, 0, 1]);
        return vec![WrittenAddress {
            address: IpAddr::V6(address),
            odd,
        }];
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return vec![WrittenAddress {
            address: IpAddr::V4(address),
            odd: false,
        }];
    }
    let parts: Vec<&str> = host.split('.').collect();
    if host.is_empty() || parts.len() > 4 || !parts.iter().all(|part| is_number(part)) {
        return Vec::new();
    }
    let mut out = Vec::new();
    // Some clients read a leading zero as octal, others ignore it.
    for octal in [true, false] {
        let numbers: Vec<u128> = parts
            .iter()
            .map_while(|part| parse_number(part, octal))
            .collect();
        let Some((last, front)) = numbers
            .split_last()
            .filter(|_| numbers.len() == parts.len())
        else {
            continue;
        };
        let last_bits = 8 * (4 - front.len() as u32);
        let high = front
            .iter()
            .fold(0u128, |sum, part| (sum << 8) | (part & 0xff));
        // Some clients truncate an overflowing number, others refuse it.
        let value = (high << last_bits) | (last & ((1u128 << last_bits) - 1));
        let address = IpAddr::V4(Ipv4Addr::from((value & u128::from(u32::MAX)) as u32));
        if !out
            .iter()
            .any(|other: &WrittenAddress| other.address == address)
        {
            out.push(WrittenAddress { address, odd: true });
        }
    }
    out
}

fn is_number(part: &str) -> bool {
    let digits = part.strip_prefix("0x").unwrap_or(part);
    let hex = digits.len() != part.len();
    part.len() <= 40
        && !part.is_empty()
        && digits.bytes().all(|b| {
            if hex {
                b.is_ascii_hexdigit()
            } else {
                b.is_ascii_digit()
            }
        })
}

fn parse_number(part: &str, octal: bool) -> Option<u128> {
    match part.strip_prefix("0x") {
        Some("") => Some(0),
        Some(hex) => u128::from_str_radix(hex.trim_start_matches('0'), 16)
            .or_else(|_| parse_zero(hex))
            .ok(),
        None if octal && part.starts_with('0') && part.len() > 1 => {
            u128::from_str_radix(part, 8).ok()
        }
        None => part.parse().ok(),
    }
}

fn parse_zero(digits: &str) -> Result<u128, ()> {
    if digits.bytes().all(|b| b == b'0') {
        Ok(0)
    } else {
        Err(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert!(
                written_addresses(host)
                    .iter()
                    .any(|written| written.address.to_string() == expected),
                "{host}: {:?}",
                written_addresses(host)
            );
        }
        for name in [
            "",
            "localhost",
            "1.2.3.4.5",
            "a.1",
            "0x",
            "1..2",
            "v1.2",
            "deadbeef",
        ] {
            assert!(name == "0x" || written_addresses(name).is_empty(), "{name}");
        }
        assert!(
            !written_addresses("127.0.0.1")[0].odd
                && written_addresses("::ffff:127.0.0.1")[0].odd
                && !written_addresses("::1")[0].odd
        );
    }
}
