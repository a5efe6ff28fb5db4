//! Strict parsing of JSON from other parties. Of a duplicate key, some parsers use the first value
//! and some the last, so a document that contains one is rejected.

use bytes::Bytes;

use crate::message::{Json, ReadLimits, ValueKind};

/// Parses JSON of at most this many bytes, strings and nested values; `None` if it is anything else
/// or contains a duplicate key at any depth.
pub(super) fn parse(bytes: &[u8], most: usize, strings: usize, depth: usize) -> Option<Json> {
    let limits = ReadLimits {
        message_bytes: most,
        strings_per_message: strings,
        depth,
        batch_items: 0,
        ..ReadLimits::default()
    };
    Json::parse(Bytes::copy_from_slice(bytes), &limits).ok()
}

/// Reports whether all numbers fit an IEEE 754 double: one beyond its range is infinite to one
/// parser and an error to another (RFC 8259, section 6).
pub(super) fn has_finite_numbers(json: &Json) -> bool {
    let mut fits = true;
    json.root().walk(|_, value, _| {
        fits &= value.kind() != ValueKind::Number || value.raw().parse().is_ok_and(f64::is_finite);
    });
    fits
}
