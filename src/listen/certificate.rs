//! The names in a client certificate, which TLS has already verified.

use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

/// Maximum number of names of one certificate that are examined.
const NAMES: usize = 64;
/// The object identifier of a common name (RFC 5280, appendix A.1): 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT: u8 = 0x06;

/// The names, each with its kind: `dns:`, `uri:`, or `cn:` if there is neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CertificateNames {
    /// Whether the client has presented a certificate.
    pub(super) presented: bool,
    names: Vec<String>,
}

impl CertificateNames {
    /// Returns the names in the first certificate of a chain.
    pub(super) fn from_chain(chain: Option<&[CertificateDer<'_>]>) -> Self {
        let Some(first) = chain.and_then(<[_]>::first) else {
            return Self::default();
        };
        let Ok(certificate) = EndEntityCert::try_from(first) else {
            return Self {
                presented: true,
                names: vec![],
            };
        };
        let dns = certificate
            .valid_dns_names()
            .map(|name| format!("dns:{}", name.to_ascii_lowercase()));
        let uri = certificate
            .valid_uri_names()
            .map(|name| format!("uri:{name}"));
        let mut names: Vec<String> = dns.chain(uri).take(NAMES).collect();
        if names.is_empty() {
            names.extend(common_name(certificate.subject()).map(|name| format!("cn:{name}")));
        }
        Self {
            presented: true,
            names,
        }
    }

    /// Returns a certificate with these names.
    #[cfg(test)]
    pub(super) fn testing(names: &[&str]) -> Self {
        Self {
            presented: true,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }
}

/// Returns the common name of a subject. If there are several, none counts.
fn common_name(subject: &[u8]) -> Option<&str> {
    let mut found = None;
    let mut rest = subject;
    while let Some((SET, set, after)) = read_element(rest) {
        rest = after;
        let mut parts = set;
        while let Some((SEQUENCE, part, after)) = read_element(parts) {
            parts = after;
            if let Some((OBJECT, kind, value)) = read_element(part)
                && kind == COMMON_NAME
            {
                // UTF8String and PrintableString only; in other types, bytes have a different
                // meaning.
                let (0x0C | 0x13, text, _) = read_element(value)? else {
                    return None;
                };
                let name = std::str::from_utf8(text)
                    .ok()
                    .filter(|name| !name.is_empty())?;
                if found.replace(name).is_some() {
                    return None;
                }
            }
        }
    }
    found
}

/// Returns the first element of DER data: its tag, its content, and the data after it (X.690, 8.1).
fn read_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7F => (usize::from(length), rest),
        0x81 => {
            let (&length, rest) = rest.split_first()?;
            (usize::from(length), rest)
        }
        0x82 => {
            let (bytes, rest) = rest.split_at_checked(2)?;
            (
                bytes
                    .iter()
                    .fold(0, |length, byte| length << 8 | usize::from(*byte)),
                rest,
            )
        }
        _ => return None,
    };
    let (inside, after) = rest.split_at_checked(length)?;
    Some((tag, inside, after))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    use super::*;

    fn names(sans: &[SanType], common: &[&str]) -> Vec<String> {
        let mut params = CertificateParams::default();
        params.subject_alt_names = sans.to_vec();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "An organisation");
        common
            .iter()
            .for_each(|name| params.distinguished_name.push(DnType::CommonName, *name));
        let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let names = CertificateNames::from_chain(Some(&[made.der().clone()]));
        assert!(names.presented);
        names.names
    }

    #[test]
    fn names_have_their_kind_and_the_common_name_is_the_last_resort() {
        let dns = SanType::DnsName("CI.Example.org".try_into().unwrap());
        let uri = SanType::URI("spiffe://example.org/ci".try_into().unwrap());
        assert_eq!(
            names(&[dns.clone(), uri], &["root"]),
            ["dns:ci.example.org", "uri:spiffe://example.org/ci"]
        );
        assert_eq!(names(&[], &["ann"]), ["cn:ann"]);
        assert_eq!(names(&[], &[]), [""; 0]);
        assert_eq!(
            CertificateNames::from_chain(None),
            CertificateNames::default()
        );
        assert!(!CertificateNames::from_chain(None).contains("cn:ann"));
        let broken = CertificateDer::from(vec![1, 2, 3]);
        assert_eq!(
            CertificateNames::from_chain(Some(&[broken])),
            CertificateNames {
                presented: true,
                names: vec![]
            }
        );
    }

    #[test]
    fn broken_subjects_name_nobody() {
        let part = |kind: &[u8], text: &[u8]| {
            let inside = [
                &[OBJECT, kind.len() as u8],
                kind,
                &[0x0C, text.len() as u8],
                text,
            ]
            .concat();
            let part = [&[SEQUENCE, inside.len() as u8], &inside[..]].concat();
            [&[SET, part.len() as u8], &part[..]].concat()
        };
        let one = part(&COMMON_NAME, b"ann");
        assert_eq!(common_name(&one), Some("ann"));
        assert_eq!(
            common_name(&[one.clone(), part(&COMMON_NAME, b"bob")].concat()),
            None,
            "two"
        );
        assert_eq!(common_name(&one[..one.len() - 1]), None, "cut off");
        assert_eq!(common_name(&part(&COMMON_NAME, &[0xFF])), None, "no text");
        assert_eq!(
            common_name(&part(&[0x55, 0x04, 0x0A], b"ann")),
            None,
            "an organisation"
        );
    }
}
