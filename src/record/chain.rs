//! The hash chain of the audit log: each line contains its number and the digest of the line before
//! it.

pub(super) mod checkpoint;
pub(super) mod files;
pub(super) mod key;
pub(super) mod tail;
mod trim;

use sha2::{Digest, Sha256};

use super::digits::{Decimal, Hex};
use super::entry::{Member, member};
use crate::message::unhex;
pub use key::PublicKey;

/// A SHA-256 digest.
pub(super) type Sha = [u8; 32];

/// The beginnings of the two members at the end of a line: a comma, the name and a colon.
const SEQ: &str = <member::seq as Member>::KEY;
const PREV: &str = <member::prev as Member>::KEY;

/// Maximum length of a line that is read, in bytes; lines that the gate writes are far shorter.
pub(super) const MAX_LINE_BYTES: usize = 8 << 20;

/// The end of a chain: the number and the digest of its last line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Number of the last line; zero if there is none.
    pub(super) seq: u64,
    /// Digest of its bytes, without the line feed; zeros if there is none.
    pub(super) sha: Sha,
}

/// The link at the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Number of the line.
    pub(super) seq: u64,
    /// Digest of the line before it.
    pub(super) prev: Sha,
}

impl Head {
    /// Appends a line to `out`: the JSON object, given without line feed, with number, digest and
    /// line feed.
    pub(super) fn append(&mut self, object: &str, out: &mut Vec<u8>) {
        let start = out.len();
        let body = object.strip_suffix('}').unwrap_or(object);
        let key = if body.ends_with('{') {
            SEQ.trim_start_matches(',')
        } else {
            SEQ
        };
        let seq = self.seq.saturating_add(1);
        let seq_digits = Decimal::new(seq);
        let prev_digits = Hex::new(&self.sha);
        for part in [
            body,
            key,
            seq_digits.as_str(),
            PREV,
            "\"",
            prev_digits.as_str(),
            "\"}",
        ] {
            out.extend_from_slice(part.as_bytes());
        }
        *self = Self {
            seq,
            sha: sha(out.get(start..).unwrap_or_default()),
        };
        out.push(b'\n');
    }

    /// Reports whether a line with this link directly follows this end.
    pub(super) fn leads_to(&self, link: &Link) -> bool {
        link.prev == self.sha && Some(link.seq) == self.seq.checked_add(1)
    }
}

impl Link {
    /// Returns the link of a line, given without its line feed; `None` if it has none.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let rest = line.strip_suffix(b"\"}")?;
        let (rest, digest) = rest.split_at_checked(rest.len().checked_sub(64)?)?;
        let rest = rest.strip_suffix(b"\"")?.strip_suffix(PREV.as_bytes())?;
        let digits = rest
            .iter()
            .rev()
            .take(21)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (rest, digits) = rest.split_at_checked(rest.len().checked_sub(digits)?)?;
        let is_first = rest
            .strip_prefix(b"{")
            .is_some_and(|rest| rest == SEQ.trim_start_matches(',').as_bytes());
        if !rest.ends_with(SEQ.as_bytes()) && !is_first || digits.starts_with(b"0") {
            return None;
        }
        Some(Self {
            seq: std::str::from_utf8(digits).ok()?.parse().ok()?,
            prev: unhex(std::str::from_utf8(digest).ok()?)?,
        })
    }
}

/// Reports whether a line outside of the chain may have been written incompletely: an unfinished
/// object, or zeros that a failed machine may leave. A complete line was written by another
/// program.
pub(super) fn is_torn(line: &[u8]) -> bool {
    let is_partial = line.first() == Some(&b'{')
        && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err();
    is_partial || line.iter().all(|byte| *byte == 0)
}

pub(super) fn sha(bytes: &[u8]) -> Sha {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_carry_number_and_digest_and_are_read_back() {
        let mut head = Head::default();
        let mut out = Vec::new();
        head.append(r#"{"a":1}"#, &mut out);
        head.append("{}", &mut out);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            format!(r#"{{"a":1,"seq":1,"prev":"{}"}}"#, "0".repeat(64))
        );
        assert_eq!(
            lines[1],
            format!(
                r#"{{"seq":2,"prev":"{}"}}"#,
                crate::message::hex(&sha(lines[0].as_bytes()))
            )
        );
        let first = Head {
            seq: 1,
            sha: sha(lines[0].as_bytes()),
        };
        assert!(first.leads_to(&Link::parse(lines[1].as_bytes()).unwrap()));
        assert!(Head::default().leads_to(&Link::parse(lines[0].as_bytes()).unwrap()));
        assert_eq!(
            head,
            Head {
                seq: 2,
                sha: sha(lines[1].as_bytes())
            }
        );
    }

    #[test]
    fn what_is_no_link_is_none() {
        let digest = "a".repeat(64);
        let upper = "A".repeat(64);
        for line in [
            String::new(),
            "{}".to_owned(),
            digest.clone(),
            format!(r#"{{"a":1,"seq":01,"prev":"{digest}"}}"#),
            format!(r#"{{"a":1,"seq":,"prev":"{digest}"}}"#),
            format!(r#"{{"a":1,"seq":99999999999999999999,"prev":"{digest}"}}"#),
            format!(r#"{{"a":1,"seq":1,"prev":"{upper}"}}"#),
            format!(r#"{{"a":1,"seq":1,"prev":"{digest}"}} "#),
            format!(r#"{{"a":1,"seq":1,"prev":"{}"}}"#, digest.get(1..).unwrap()),
        ] {
            assert_eq!(Link::parse(line.as_bytes()), None, "{line}");
        }
    }
}
