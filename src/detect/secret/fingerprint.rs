//! Keyed fingerprints. They are sufficient to recognize a value in any text that contains it, but
//! do not reveal it.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

/// Minimum length of a value that can be recognized, in bytes.
pub(super) const VALUE_BYTES: usize = 8;
/// Maximum number of bytes of a value that are fingerprinted; the rest of a longer value is
/// ignored.
const LONGEST_BYTES: usize = 1024;
/// Maximum number of values with the same beginning.
const SAME_START: usize = 16;
/// Maximum number of candidates that are checked in one text: a base number, and one more per
/// number of bytes.
const CANDIDATES: usize = 256;
const BYTES_PER_CANDIDATE: usize = 64;
/// Number of words of the filter, which rules out most positions of a text.
const FILTER_WORDS: usize = 512;

/// Returns half of a keyed SHA-256. The key is drawn at random when the process first needs it and
/// never leaves the process, so that a short value cannot be guessed from its fingerprint.
pub fn fingerprint(value: &[u8]) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update(key().salt);
    hash.update(value);
    let mut digest = [0; 16];
    digest
        .iter_mut()
        .zip(hash.finalize())
        .for_each(|(to, from)| *to = from);
    digest
}

struct Key {
    salt: [u8; 32],
    base: u64,
    /// `base` to the power of the window's length.
    leaving_factor: u64,
}

fn key() -> &'static Key {
    static KEY: OnceLock<Key> = OnceLock::new();
    KEY.get_or_init(|| {
        let mut salt = Sha256::new();
        (0..3).for_each(|_| salt.update(uuid::Uuid::new_v4().as_bytes()));
        let base = uuid::Uuid::new_v4().as_u64_pair().0
            ^ uuid::Uuid::new_v4().as_u64_pair().1.rotate_left(17)
            | 1;
        let leaving_factor = (0..VALUE_BYTES).fold(1_u64, |power, _| power.wrapping_mul(base));
        Key {
            salt: salt.finalize().into(),
            base,
            leaving_factor,
        }
    })
}

/// Fingerprints of values, each with the number of its owner.
#[derive(Clone, Default)]
pub struct Fingerprints {
    /// The fingerprints by the rolling hash of the first bytes of their values.
    by_start: HashMap<u64, Vec<Fingerprint>>,
    /// One bit for each rolling hash, so that most positions of a text need only one lookup.
    filter: Vec<u64>,
    count: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Fingerprint {
    length: usize,
    digest: [u8; 16],
    owner: usize,
}

impl fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prints({})", self.count)
    }
}

impl Fingerprints {
    /// Adds a value of at least `VALUE_BYTES` for `owner`. Returns `false`, and adds nothing, if it
    /// is shorter or begins like too many others.
    pub fn add(&mut self, value: &[u8], owner: usize) -> bool {
        let value = value.get(..LONGEST_BYTES).unwrap_or(value);
        let Some(start) = value.get(..VALUE_BYTES) else {
            return false;
        };
        let hash = start.iter().fold(0_u64, |hash, byte| roll(hash, *byte));
        let same_start = self.by_start.entry(hash).or_default();
        let print = Fingerprint {
            length: value.len(),
            digest: fingerprint(value),
            owner,
        };
        if same_start.len() >= SAME_START {
            return false;
        }
        if !same_start.contains(&print) {
            same_start.push(print);
            self.count += 1;
        }
        self.filter.resize(FILTER_WORDS, 0);
        let (word, bit) = filter_bit(hash);
        if let Some(word) = self.filter.get_mut(word) {
            *word |= bit;
        }
        true
    }

    /// Removes all fingerprints of one owner.
    pub fn remove_owner(&mut self, owner: usize) {
        self.retain_owners(|other| other != owner);
    }

    /// Removes all fingerprints except those of the owners for which `is_kept` returns `true`.
    pub fn retain_owners(&mut self, is_kept: impl Fn(usize) -> bool) {
        self.by_start.retain(|_, prints| {
            prints.retain(|print| is_kept(print.owner));
            !prints.is_empty()
        });
        self.count = self.by_start.values().map(Vec::len).sum();
        self.filter.fill(0);
        for hash in self.by_start.keys() {
            let (word, bit) = filter_bit(*hash);
            self.filter
                .get_mut(word)
                .into_iter()
                .for_each(|word| *word |= bit);
        }
    }

    /// Reports whether there are no fingerprints.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of fingerprints.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Calls `report` with each owner of exactly this value.
    pub fn owners(&self, value: &[u8], mut report: impl FnMut(usize)) {
        let value = value.get(..LONGEST_BYTES).unwrap_or(value);
        let Some(start) = value.get(..VALUE_BYTES).filter(|_| self.count > 0) else {
            return;
        };
        let hash = start.iter().fold(0_u64, |hash, byte| roll(hash, *byte));
        let same_start = self
            .by_start
            .get(&hash)
            .into_iter()
            .flatten()
            .filter(|print| print.length == value.len());
        for print in same_start {
            if fingerprint(value) == print.digest {
                report(print.owner);
            }
        }
    }

    /// Calls `report` with each place in `text` that contains a fingerprinted value, and with its
    /// owner. Takes linear time: if too many places look like the beginning of a value, it reports
    /// the whole text, with the owner of the candidate at which the limit was reached.
    pub fn find(&self, text: &[u8], mut report: impl FnMut(Range<usize>, usize)) {
        if self.count == 0 || text.len() < VALUE_BYTES {
            return;
        }
        let leaving_factor = key().leaving_factor;
        let mut candidates_left = CANDIDATES + text.len() / BYTES_PER_CANDIDATE;
        let mut hash = 0_u64;
        let leaving_bytes = std::iter::repeat_n(None, VALUE_BYTES).chain(text.iter().map(Some));
        for ((at, byte), leaving_byte) in text.iter().enumerate().zip(leaving_bytes) {
            hash = roll(hash, *byte);
            if let Some(leaving_byte) = leaving_byte {
                hash = hash.wrapping_sub(leaving_factor.wrapping_mul(spread(*leaving_byte)));
            }
            let (word, bit) = filter_bit(hash);
            if self.filter.get(word).is_none_or(|word| word & bit == 0) || at + 1 < VALUE_BYTES {
                continue;
            }
            let start = at + 1 - VALUE_BYTES;
            for print in self.by_start.get(&hash).into_iter().flatten() {
                let span = start..start.saturating_add(print.length);
                let Some(value) = text.get(span.clone()) else {
                    continue;
                };
                let Some(remaining) = candidates_left.checked_sub(1) else {
                    return report(0..text.len(), print.owner);
                };
                candidates_left = remaining;
                if fingerprint(value) == print.digest {
                    report(span, print.owner);
                }
            }
        }
    }
}

/// Returns the rolling hash with one more byte.
fn roll(hash: u64, byte: u8) -> u64 {
    hash.wrapping_mul(key().base).wrapping_add(spread(byte))
}

fn spread(byte: u8) -> u64 {
    (u64::from(byte) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns the bit of the filter that represents a hash.
fn filter_bit(hash: u64) -> (usize, u64) {
    let mixed = (hash ^ (hash >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = usize::try_from(mixed >> 55).unwrap_or(0) % FILTER_WORDS;
    (word, 1 << ((mixed >> 40) & 63))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_all(prints: &Fingerprints, text: &str) -> Vec<(String, usize)> {
        let mut found = Vec::new();
        prints.find(text.as_bytes(), |span, owner| {
            found.push((text.get(span).unwrap().to_owned(), owner))
        });
        found
    }

    #[test]
    fn values_are_found_wherever_they_stand() {
        let mut prints = Fingerprints::default();
        assert!(prints.is_empty() && find_all(&prints, "whatever stands here").is_empty());
        assert!(
            prints.add(b"correct horse", 1)
                && prints.add(b"correct horse battery", 2)
                && prints.add(b"12345678", 3)
        );
        assert!(!prints.add(b"1234567", 4), "too short");
        assert_eq!(
            find_all(&prints, "xcorrect horsex"),
            [("correct horse".to_owned(), 1)]
        );
        assert_eq!(find_all(&prints, "correct horse battery").len(), 2);
        assert_eq!(
            find_all(&prints, "x 123456789"),
            [("12345678".to_owned(), 3)]
        );
        assert!(find_all(&prints, "correct hors, 1234567").is_empty());
        let owners = |value: &str| {
            let mut owners = Vec::new();
            prints.owners(value.as_bytes(), |owner| owners.push(owner));
            owners
        };
        assert_eq!(
            (owners("correct horse"), owners("correct horse ")),
            (vec![1], vec![])
        );
        prints.remove_owner(1);
        assert_eq!(
            (prints.len(), find_all(&prints, "correct horse").len()),
            (2, 0)
        );
    }

    #[test]
    fn nothing_of_a_value_is_shown_and_few_may_begin_alike() {
        let mut prints = Fingerprints::default();
        let added = (0..40)
            .filter(|n| prints.add(format!("same-start-{n}").as_bytes(), 0))
            .count();
        assert_eq!(added, SAME_START);
        assert_eq!(format!("{prints:?}"), "Prints(16)");
    }

    #[test]
    fn a_text_full_of_starts_is_told_whole() {
        let mut prints = Fingerprints::default();
        prints.add(b"aaaaaaaaaaaaaaab", 0);
        let text = "a".repeat(20_000);
        assert_eq!(find_all(&prints, &text), [(text.clone(), 0)]);
    }
}
