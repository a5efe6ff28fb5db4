//! Text in archives: names of members, and what is in those that are text. Office files are such archives.

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::{Contents, TEXT_BYTES, Unread, as_text, open};

/// Most members that are opened.
const MEMBERS: usize = 256;
/// Longest member that is opened, in bytes as unpacked.
const MEMBER_BYTES: usize = 512 << 10;

/// ZIP (APPNOTE 6.3), by its central directory, as programs read it.
pub(super) fn zip(bytes: &[u8]) -> Contents {
    let mut contents = Contents { kind: "zip", ..Contents::default() };
    let low = bytes.len().saturating_sub((64 << 10) + 22);
    let tail = bytes.get(low..).unwrap_or_default();
    let Some(end) = tail.windows(4).rposition(|mark| mark == b"PK\x05\x06").and_then(|at| tail.get(at..)) else {
        contents.unread = Some(Unread::Undecodable);
        return contents;
    };
    let (count, mut at) = (number(end, 10, 2), number(end, 16, 4));
    contents.add(&String::from_utf8_lossy(end.get(22..).unwrap_or_default()));
    for _ in 0..count.min(MEMBERS) {
        let Some(entry) = bytes.get(at..).filter(|entry| entry.starts_with(b"PK\x01\x02")) else {
            contents.unread = Some(Unread::Undecodable);
            break;
        };
        let (name, extra, comment) = (number(entry, 28, 2), number(entry, 30, 2), number(entry, 32, 2));
        let named = String::from_utf8_lossy(entry.get(46..46 + name).unwrap_or_default()).into_owned();
        let noted = entry.get(46 + name + extra..46 + name + extra + comment).unwrap_or_default();
        at += 46 + name + extra + comment;
        if !contents.add(&format!("{named}\n{}", String::from_utf8_lossy(noted))) {
            return contents;
        }
        match member(bytes, entry) {
            Ok(Some(text)) => {
                if !contents.add(&text) {
                    return contents;
                }
            }
            Ok(None) => {}
            Err(why) => contents.unread = Some(why),
        }
    }
    if count > MEMBERS || count == 0xFFFF {
        contents.unread = Some(Unread::TooManyMembers);
    }
    contents
}

/// The text of a member; nothing for folders.
fn member(bytes: &[u8], entry: &[u8]) -> Result<Option<String>, Unread> {
    let (flags, method) = (number(entry, 8, 2), number(entry, 10, 2));
    let (packed, size, at) = (number(entry, 20, 4), number(entry, 24, 4), number(entry, 42, 4));
    if size == 0 {
        return Ok(None);
    }
    if flags & 1 == 1 {
        return Err(Unread::Encrypted);
    }
    if size > MEMBER_BYTES {
        return Err(Unread::TooLong);
    }
    let local = bytes.get(at..).filter(|local| local.starts_with(b"PK\x03\x04")).ok_or(Unread::Undecodable)?;
    let start = 30 + number(local, 26, 2) + number(local, 28, 2);
    let data = local.get(start..start.saturating_add(packed)).ok_or(Unread::Undecodable)?;
    let data = match method {
        0 => data.to_vec(),
        8 => decompress_to_vec_with_limit(data, MEMBER_BYTES).map_err(|_| Unread::Undecodable)?,
        _ => return Err(Unread::Undecodable),
    };
    as_text(&data).map(Some).ok_or_else(|| unread(&data))
}

fn unread(data: &[u8]) -> Unread {
    if data.starts_with(b"PK\x03\x04") || data.starts_with(&[0x1F, 0x8B]) || data.starts_with(b"%PDF") {
        Unread::Nested
    } else {
        Unread::Binary
    }
}

/// gzip (RFC 1952): one text, or what is not opened again.
pub(super) fn gzip(bytes: &[u8]) -> Contents {
    let flags = bytes.get(3).copied().unwrap_or_default();
    let mut at = 10;
    if flags & 4 != 0 {
        at += 2 + number(bytes, at, 2);
    }
    let mut contents = Contents { kind: "gzip", ..Contents::default() };
    for flag in [8, 16] {
        if flags & flag != 0 {
            let rest = bytes.get(at..).unwrap_or_default();
            let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            contents.add(&String::from_utf8_lossy(rest.get(..end).unwrap_or_default()));
            at += end + 1;
        }
    }
    at += if flags & 2 == 0 { 0 } else { 2 };
    match decompress_to_vec_with_limit(bytes.get(at..).unwrap_or_default(), TEXT_BYTES) {
        Ok(data) => match as_text(&data) {
            Some(text) => {
                contents.add(&text);
            }
            None => contents.unread = Some(if open_is_archive(&data) { Unread::Nested } else { unread(&data) }),
        },
        Err(_) => contents.unread = Some(Unread::Undecodable),
    }
    contents
}

/// A tar file: its members are not taken apart, but what of them is text is text.
fn open_is_archive(data: &[u8]) -> bool {
    data.get(257..262) == Some(b"ustar") || matches!(open_kind(data), "zip" | "gzip" | "pdf")
}

fn open_kind(data: &[u8]) -> &'static str {
    if data.starts_with(&[0x1F, 0x8B]) { "gzip" } else { open(data.get(..4).unwrap_or_default()).kind }
}

fn number(bytes: &[u8], at: usize, length: usize) -> usize {
    let bytes = bytes.get(at..at.saturating_add(length)).unwrap_or_default();
    bytes.iter().rev().fold(0, |n, byte| n << 8 | usize::from(*byte))
}
