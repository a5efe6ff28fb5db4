//! How regexes are named in the table of those that are prepared.

/// What a regex is used for, which decides what is prepared of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    /// It is searched for in texts.
    Search,
    /// It is the shape of a secret that is searched for by what it begins with.
    Shape,
    /// It is the shape of a secret that is searched for by words before it.
    Value,
}

/// Names a regex and its use: FNV-1a, 64 bits.
pub(crate) fn hash(used: Use, source: &str) -> u64 {
    let bytes = [used as u8].into_iter().chain(source.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}
