//! Data that the build (`src/build.rs`) prepared from the regexes and keywords of the built-in
//! rules: which regexes are valid, and what to search for in their place.
//!
//! Parsing the regexes and extracting their literals would take nine tenths of the start-up time. A
//! regex that is not in the table, because an operator wrote it or because it has changed since the
//! build, is parsed as usual.
//!
//! The table begins with the number of entries. Then come the hashes of all entries in order, and
//! the offset of the record of each, which is 0 if only its validity is known. The records follow.

mod regexes;

pub(super) use crate::document::bytes::{Reader, Writer};
pub(super) use regexes::{Use, hash};

static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/prepared.bin"));
/// The vocabularies that the records refer to, each preceded by its length.
pub(super) static VOCABULARIES: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/prepared_words.bin"));

/// Reports whether the build found a regex valid for a use, both case-insensitively and as written.
pub(super) fn is_valid(usage: Use, source: &str) -> bool {
    locate_entry(usage, source).is_some()
}

/// Returns the record that the build prepared for a text, if there is one.
pub(super) fn record(usage: Use, source: &str) -> Option<Reader<'static>> {
    let (count, number) = locate_entry(usage, source)?;
    let place = Reader(TABLE.get(4 + 8 * count + 4 * number..)?).number()?;
    TABLE
        .get(place as usize..)
        .filter(|_| place > 0)
        .map(Reader)
}

/// Returns the number of entries and the index of this one.
fn locate_entry(usage: Use, source: &str) -> Option<(usize, usize)> {
    let count = Reader(TABLE).number()? as usize;
    let (hashes, _) = TABLE.get(4..4 + 8 * count)?.as_chunks::<8>();
    let number = hashes
        .binary_search_by_key(&hash(usage, source), |bytes| u64::from_le_bytes(*bytes))
        .ok()?;
    Some((count, number))
}
