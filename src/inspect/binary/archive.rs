//! Text in archives: names of members, and the content of those that are text. Office files are
//! such archives.

use miniz_oxide::inflate::{decompress_to_vec_with_limit, decompress_to_vec_zlib_with_limit};

use super::{Budget, Contents, PART_BYTES, SkipReason, decode_text, unpack};

/// Maximum number of members that are opened.
const MEMBERS: usize = 256;

/// Reads a ZIP archive (APPNOTE 6.3) by its central directory, as programs do.
pub(super) fn zip(bytes: &[u8], budget: &Budget) -> Contents {
    let mut contents = Contents {
        kind: "zip",
        ..Contents::default()
    };
    let low = bytes.len().saturating_sub((64 << 10) + 22);
    let tail = bytes.get(low..).unwrap_or_default();
    let Some(end) = tail
        .windows(4)
        .rposition(|mark| mark == b"PK\x05\x06")
        .and_then(|at| tail.get(at..))
    else {
        contents.skip_reason = Some(SkipReason::Undecodable);
        return contents;
    };
    let count = number(end, 10, 2);
    let mut at = number(end, 16, 4);
    contents.add(&String::from_utf8_lossy(end.get(22..).unwrap_or_default()));
    for _ in 0..count.min(MEMBERS) {
        let Some(entry) = bytes
            .get(at..)
            .filter(|entry| entry.starts_with(b"PK\x01\x02"))
        else {
            contents.skip_reason = Some(SkipReason::Undecodable);
            break;
        };
        let name = number(entry, 28, 2);
        let extra = number(entry, 30, 2);
        let comment = number(entry, 32, 2);
        let member_name =
            String::from_utf8_lossy(entry.get(46..46 + name).unwrap_or_default()).into_owned();
        let comment_bytes = entry
            .get(46 + name + extra..46 + name + extra + comment)
            .unwrap_or_default();
        at += 46 + name + extra + comment;
        if !contents.add(&format!(
            "{member_name}\n{}",
            String::from_utf8_lossy(comment_bytes)
        )) {
            return contents;
        }
        match member(bytes, entry, budget) {
            Ok((text, incomplete)) => {
                let fits = contents.add(&text);
                if !fits || is_markup(&text) && !contents.add(&paragraphs(&text)) {
                    return contents;
                }
                contents.skip_reason = incomplete.or(contents.skip_reason);
            }
            Err(reason) => contents.skip_reason = Some(reason),
        }
    }
    if count > MEMBERS || count == 0xFFFF {
        contents.skip_reason = Some(SkipReason::TooManyMembers);
    }
    contents
}

/// Returns the text of a member, empty for folders, and the reason if it is incomplete.
fn member(
    bytes: &[u8],
    entry: &[u8],
    budget: &Budget,
) -> Result<(String, Option<SkipReason>), SkipReason> {
    let flags = number(entry, 8, 2);
    let method = number(entry, 10, 2);
    let packed = number(entry, 20, 4);
    let size = number(entry, 24, 4);
    let at = number(entry, 42, 4);
    if size == 0 {
        return Ok((String::new(), None));
    }
    if flags & 1 == 1 {
        return Err(SkipReason::Encrypted);
    }
    if size > PART_BYTES {
        return Err(SkipReason::TooLong);
    }
    let local = bytes
        .get(at..)
        .filter(|local| local.starts_with(b"PK\x03\x04"))
        .ok_or(SkipReason::Undecodable)?;
    let start = 30 + number(local, 26, 2) + number(local, 28, 2);
    let data = local
        .get(start..start.saturating_add(packed))
        .ok_or(SkipReason::Undecodable)?;
    let (data, incomplete) = match method {
        0 => (data.to_vec(), None),
        8 => unpack(budget, PART_BYTES, |most| {
            decompress_to_vec_with_limit(data, most)
        }),
        _ => return Err(SkipReason::Undecodable),
    };
    match decompressed_text(&data, incomplete) {
        Some(text) => Ok((text, incomplete)),
        None => Err(incomplete.unwrap_or_else(|| skip_reason(&data))),
    }
}

/// Returns decompressed data as text; if the data is `incomplete`, its last character may be, too.
fn decompressed_text(data: &[u8], incomplete: Option<SkipReason>) -> Option<String> {
    let complete = match std::str::from_utf8(data) {
        Err(error) if incomplete.is_some() && error.error_len().is_none() => {
            data.get(..error.valid_up_to())?
        }
        _ => data,
    };
    decode_text(complete)
}

fn skip_reason(data: &[u8]) -> SkipReason {
    if data.starts_with(b"PK\x03\x04")
        || data.starts_with(&[0x1F, 0x8B])
        || data.starts_with(b"%PDF")
    {
        SkipReason::Nested
    } else {
        SkipReason::Binary
    }
}

/// Reads gzip data (RFC 1952): one text, or content that is not opened further.
pub(super) fn gzip(bytes: &[u8], budget: &Budget) -> Contents {
    let flags = bytes.get(3).copied().unwrap_or_default();
    let mut at = 10;
    if flags & 4 != 0 {
        at += 2 + number(bytes, at, 2);
    }
    let mut contents = Contents {
        kind: "gzip",
        ..Contents::default()
    };
    for flag in [8, 16] {
        if flags & flag != 0 {
            let rest = bytes.get(at..).unwrap_or_default();
            let end = rest
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(rest.len());
            contents.add(&String::from_utf8_lossy(
                rest.get(..end).unwrap_or_default(),
            ));
            at += end + 1;
        }
    }
    at += if flags & 2 == 0 { 0 } else { 2 };
    let packed = bytes.get(at..).unwrap_or_default();
    let (data, incomplete) = unpack(budget, PART_BYTES, |most| {
        decompress_to_vec_with_limit(packed, most)
    });
    add_unpacked(&mut contents, &data, incomplete);
    contents
}

/// Adds decompressed data as text, or records why it was not read.
fn add_unpacked(contents: &mut Contents, data: &[u8], incomplete: Option<SkipReason>) {
    match decompressed_text(data, incomplete) {
        Some(text) => {
            contents.add(&text);
            contents.skip_reason = incomplete.or(contents.skip_reason);
        }
        None if is_archive(data) => contents.skip_reason = Some(SkipReason::Nested),
        None => contents.skip_reason = Some(incomplete.unwrap_or_else(|| skip_reason(data))),
    }
}

/// Reads zlib data (RFC 1950): one text, or content that is not opened further.
pub(super) fn zlib(bytes: &[u8], budget: &Budget) -> Contents {
    let (data, incomplete) = unpack(budget, PART_BYTES, |most| {
        decompress_to_vec_zlib_with_limit(bytes, most)
    });
    let mut contents = Contents {
        kind: "zlib",
        ..Contents::default()
    };
    add_unpacked(&mut contents, &data, incomplete);
    contents
}

fn is_markup(text: &str) -> bool {
    text.trim_start_matches('\u{feff}')
        .trim_start()
        .starts_with('<')
        && text.contains("</")
}

/// Returns the text of an XML document, with each paragraph, cell or row on its own line: a word
/// may continue across elements (ECMA-376, 17.3.2).
fn paragraphs(xml: &str) -> String {
    let mut out = String::new();
    for (nth, part) in xml.split('<').enumerate() {
        let (tag, words) = if nth == 0 {
            ("", part)
        } else {
            part.split_once('>').unwrap_or((part, ""))
        };
        let name = tag
            .trim_start_matches('/')
            .split([' ', '/'])
            .next()
            .unwrap_or_default();
        let local = name.rsplit(':').next().unwrap_or_default();
        if matches!(
            local,
            "p" | "h" | "br" | "cr" | "tab" | "tr" | "row" | "si" | "c" | "li" | "table-cell"
        ) && !out.ends_with('\n')
        {
            out.push('\n');
        }
        out.push_str(words);
    }
    out
}

/// Returns whether data is an archive. The members of a tar file are not extracted, but text in it
/// is still read as text.
fn is_archive(data: &[u8]) -> bool {
    data.get(257..262) == Some(b"ustar") || skip_reason(data) == SkipReason::Nested
}

fn number(bytes: &[u8], at: usize, length: usize) -> usize {
    let bytes = bytes.get(at..at.saturating_add(length)).unwrap_or_default();
    bytes
        .iter()
        .rev()
        .fold(0, |n, byte| n << 8 | usize::from(*byte))
}
