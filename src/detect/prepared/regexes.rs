//! How regexes and keywords are named in the table of what is prepared.

/// What a text is used for, which decides what is prepared of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// A regex that is searched for in texts.
    Search,
    /// The shape of a secret that is searched for by what it begins with.
    Shape,
    /// The shape of a secret that is searched for by words before it.
    Value,
    /// The keywords of a rule, one on each line.
    Keywords,
}

/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Names a text and its use. The shipped rules have more than a megabyte of regexes: eight bytes are taken at a time.
pub(crate) fn hash(used: Use, source: &str) -> u64 {
    let add = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(SPREAD);
    let (eights, rest) = source.as_bytes().as_chunks::<8>();
    let begin = add(used as u64, source.len() as u64);
    let hash = eights
        .iter()
        .fold(begin, |hash, eight| add(hash, u64::from_le_bytes(*eight)));
    add(
        hash,
        rest.iter().fold(0, |word, b| word << 8 | u64::from(*b)),
    )
}
