//! Identifies regexes and keywords in the table of prepared data.

/// The use of a text, which decides what is prepared for it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// A regex that texts are searched for.
    Search,
    /// The same, as the compiler takes it for a text in lower case.
    LowerCase,
    /// The shape of a secret that is found by the literals that it begins with.
    Shape,
    /// The shape of a secret that is found by words in the name before it.
    Value,
    /// The keywords of a rule, one on each line.
    Keywords,
}

/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the hash that identifies a text and its use. It consumes eight bytes at a time, since
/// the built-in rules contain more than a megabyte of regexes.
pub(crate) fn hash(usage: Use, source: &str) -> u64 {
    let add = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(SPREAD);
    let (eights, rest) = source.as_bytes().as_chunks::<8>();
    let begin = add(usage as u64, source.len() as u64);
    let hash = eights
        .iter()
        .fold(begin, |hash, eight| add(hash, u64::from_le_bytes(*eight)));
    add(
        hash,
        rest.iter().fold(0, |word, b| word << 8 | u64::from(*b)),
    )
}
