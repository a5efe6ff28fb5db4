//! Validity periods of certificates.

use std::time::SystemTime;

/// Returns the start and the end of the validity of a certificate (DER, RFC 5280, section 4.1);
/// `None` if it cannot be parsed.
pub(super) fn validity(certificate: &[u8]) -> Option<(SystemTime, SystemTime)> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    // It is preceded by the version (if present), serial number, signature algorithm and issuer.
    if fields.first() == Some(&0xA0) {
        (_, _, fields) = element(fields)?;
    }
    for _ in 0..3 {
        (_, _, fields) = element(fields)?;
    }
    let (_, validity, _) = element(fields)?;
    let (tag, from, rest) = element(validity)?;
    let (until_tag, until, _) = element(rest)?;
    Some((time(tag, from)?, time(until_tag, until)?))
}

/// Parses a time in a certificate (RFC 5280, section 4.1.2.5).
fn time(tag: u8, text: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(text).ok()?;
    let (year, rest) = match tag {
        // UTCTime: years up to 49 are in this century.
        0x17 => {
            let (year, rest) = text.split_at_checked(2)?;
            (
                format!("{}{year}", if year < "50" { "20" } else { "19" }),
                rest,
            )
        }
        0x18 => text
            .split_at_checked(4)
            .map(|(year, rest)| (year.to_owned(), rest))?,
        _ => return None,
    };
    let digits = |at: usize| rest.get(at..at + 2);
    let rfc3339 = format!(
        "{year}-{}-{}T{}:{}:{}{}",
        digits(0)?,
        digits(2)?,
        digits(4)?,
        digits(6)?,
        digits(8)?,
        rest.get(10..)?
    );
    humantime::parse_rfc3339(&rfc3339).ok()
}

/// Returns a tag, its contents, and the bytes that follow (X.690, section 8.1).
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short if *short < 0x80 => (usize::from(*short), rest),
        long => {
            let (bytes, rest) = rest
                .split_at_checked(usize::from(long & 0x7F))
                .filter(|(bytes, _)| bytes.len() <= 4)?;
            (
                bytes
                    .iter()
                    .fold(0usize, |length, byte| length << 8 | usize::from(*byte)),
                rest,
            )
        }
    };
    let (contents, after) = rest.split_at_checked(length)?;
    Some((*tag, contents, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_certificates_are_read_and_garbage_is_none() {
        let mut params = rcgen::CertificateParams::new(vec!["gate.example".to_owned()]).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        for year in [2031, 2061] {
            params.not_after = rcgen::date_time_ymd(year, 2, 3);
            let der = params.self_signed(&key).unwrap().der().to_vec();
            let at = |text: &str| humantime::parse_rfc3339(text).unwrap();
            let expected = (
                at("1975-01-01T00:00:00Z"),
                at(&format!("{year}-02-03T00:00:00Z")),
            );
            assert_eq!(validity(&der).unwrap(), expected, "{year}");
            (0..der.len().min(200)).for_each(|length| assert!(validity(&der[..length]).is_none()));
        }
    }
}
