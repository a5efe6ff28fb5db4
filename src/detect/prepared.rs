//! What the build prepared of the regexes and keywords of the built-in rules (`src/build.rs`): which regexes are valid, and what
//! is searched for in their place.
//!
//! To parse them and to extract literals takes nine tenths of a start. A regex that is not in the table, an operator's or one
//! that has changed since, is read as usual.
//!
//! The table begins with the number of entries. It goes on with the hashes of all, in order, and with the place of the record
//! of each, 0 if only its validity is known. The records follow.

mod regexes;

pub(super) use crate::document::bytes::{Reader, Writer};
pub(super) use regexes::{Use, hash};

static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/prepared.bin"));
/// The tables of the words that stand in the records, each after its length.
pub(super) static VOCABULARIES: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/prepared_words.bin"));

/// Whether the build found a regex valid for a use, with letters in either case and as they are written.
pub(super) fn is_valid(used: Use, source: &str) -> bool {
    number_of(used, source).is_some()
}

/// What the build prepared of a text, if it did.
pub(super) fn record(used: Use, source: &str) -> Option<Reader<'static>> {
    let (count, number) = number_of(used, source)?;
    let place = Reader(TABLE.get(4 + 8 * count + 4 * number..)?).number()?;
    TABLE
        .get(place as usize..)
        .filter(|_| place > 0)
        .map(Reader)
}

/// The number of entries, and which of them this one is.
fn number_of(used: Use, source: &str) -> Option<(usize, usize)> {
    let count = Reader(TABLE).number()? as usize;
    let (hashes, _) = TABLE.get(4..4 + 8 * count)?.as_chunks::<8>();
    let number = hashes
        .binary_search_by_key(&hash(used, source), |bytes| u64::from_le_bytes(*bytes))
        .ok()?;
    Some((count, number))
}
