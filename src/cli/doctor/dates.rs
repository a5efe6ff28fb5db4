//! Dates: of certificates, and of the head of an answer.

use std::time::{Duration, SystemTime};

/// From when until when a certificate (DER, RFC 5280, section 4.1) is valid; `None` where it cannot be read.
pub(super) fn validity(certificate: &[u8]) -> Option<(SystemTime, SystemTime)> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    // Version (if it is there), serial number, signature algorithm and issuer come before.
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

/// A time of a certificate (RFC 5280, section 4.1.2.5).
fn time(tag: u8, text: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        // UTCTime: years up to 49 are of this century.
        0x17 => text
            .split_at_checked(2)
            .and_then(|(year, rest)| Some((year.parse::<i64>().ok()?, rest)))
            .map(|(year, rest)| (if year < 50 { 2000 + year } else { 1900 + year }, rest))?,
        0x18 => text.split_at_checked(4).and_then(|(year, rest)| Some((year.parse::<i64>().ok()?, rest)))?,
        _ => return None,
    };
    let two = |at: usize| rest.get(at..at + 2)?.parse::<i64>().ok();
    at(year, two(0)?, two(2)?, (two(4)?, two(6)?, two(8)?))
}

/// A tag, what it holds, and what follows (X.690, section 8.1).
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short if *short < 0x80 => (usize::from(*short), rest),
        long => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7F)).filter(|(bytes, _)| bytes.len() <= 4)?;
            (bytes.iter().fold(0usize, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
    };
    let (inside, after) = rest.split_at_checked(length)?;
    Some((*tag, inside, after))
}

/// The time that a `Date` header names: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7).
pub(super) fn of_header(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split(' ');
    let day = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
    let year = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<i64>);
    at(year, month, day, (clock.next()?.ok()?, clock.next()?.ok()?, clock.next()?.ok()?))
}

/// A moment of the Gregorian calendar, in UTC; days are counted from 0000-03-01, when leap days come last.
fn at(year: i64, month: i64, day: i64, (hour, minute, second): (i64, i64, i64)) -> Option<SystemTime> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = u64::try_from(days * 86_400 + hour * 3600 + minute * 60 + second).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix(time: Option<SystemTime>) -> u64 {
        time.unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
    }

    #[test]
    fn dates_of_heads_are_read() {
        assert_eq!(unix(of_header("Sun, 06 Nov 1994 08:49:37 GMT")), 784_111_777);
        assert_eq!(unix(of_header("Thu, 29 Feb 2024 23:59:59 GMT")), 1_709_251_199);
        for bad in ["", "yesterday", "Sun, 06 Nov", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT"] {
            assert!(of_header(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn spans_of_certificates_are_read_and_garbage_is_none() {
        let mut params = rcgen::CertificateParams::new(vec!["gate.example".to_owned()]).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        for year in [2031, 2061] {
            params.not_after = rcgen::date_time_ymd(year, 2, 3);
            let der = params.self_signed(&key).unwrap().der().to_vec();
            let expected = at(i64::from(year), 2, 3, (0, 0, 0));
            let (from, until) = validity(&der).unwrap();
            assert_eq!((unix(Some(from)), unix(Some(until))), (unix(at(1975, 1, 1, (0, 0, 0))), unix(expected)), "{year}");
            (0..der.len().min(200)).for_each(|length| assert!(validity(&der[..length]).is_none()));
        }
    }
}
