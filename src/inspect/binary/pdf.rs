//! Text in PDF (ISO 32000): the strings of its objects and of its pages, compressed by Flate or
//! uncompressed. Fonts with custom codes are not decoded, and streams with other filters are not
//! opened, so a PDF is never reported as read completely.

use memchr::memmem;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use super::{Budget, Contents, PART_BYTES, SkipReason, unpack};

/// Maximum number of streams that are opened; [`Budget`] limits how much is decompressed.
const STREAMS: usize = 512;
/// Number of bytes before a stream that are searched for its dictionary.
const DICTIONARY_BYTES: usize = 1024;

pub(super) fn open(bytes: &[u8], budget: &Budget) -> Contents {
    let mut contents = Contents::with_skip_reason("pdf", SkipReason::Binary);
    let mut at = 0;
    for _ in 0..STREAMS {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(start) = memmem::find(rest, b"stream") else {
            break;
        };
        let objects = rest.get(..start).unwrap_or_default();
        contents.add(&extract_strings(objects));
        let head = objects
            .get(objects.len().saturating_sub(DICTIONARY_BYTES)..)
            .unwrap_or_default();
        let body = rest.get(start + 6..).unwrap_or_default();
        let body = body
            .strip_prefix(b"\r\n")
            .or_else(|| body.strip_prefix(b"\n"))
            .unwrap_or(body);
        let length = memmem::find(body, b"endstream").unwrap_or(body.len());
        let data = body.get(..length).unwrap_or_default();
        let has = |word: &[u8]| memmem::find(head, word).is_some();
        if has(b"FlateDecode") || has(b"/Fl ") {
            let (text, incomplete) = unpack(budget, usize::MAX, |most| {
                decompress_to_vec_zlib_with_limit(data, most)
            });
            contents.add(&extract_strings(&text));
            contents.skip_reason = incomplete.or(contents.skip_reason);
        } else if !has(b"/Filter") {
            contents.add(&extract_strings(data));
        }
        at = bytes.len() - body.len() + length + 9;
    }
    contents.add(&extract_strings(
        bytes.get(at.min(bytes.len())..).unwrap_or_default(),
    ));
    if memmem::find(bytes, b"/Encrypt").is_some() {
        contents.skip_reason = Some(SkipReason::Encrypted);
    }
    contents
}

/// Returns the strings of a content stream or of objects: pieces of one line joined, lines
/// separated.
fn extract_strings(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while let Some(next) = bytes
        .get(at..)
        .and_then(|rest| memchr::memchr3(b'(', b'<', b'T', rest))
        .map(|next| at + next)
    {
        at = next + 1;
        if out.len() > PART_BYTES {
            break;
        }
        match bytes.get(next) {
            Some(b'(') => at = read_literal(bytes, at, &mut out),
            Some(b'<') if bytes.get(at) != Some(&b'<') => at = read_hex(bytes, at, &mut out),
            // `T*`, `Td`, `TD`, `Tm` move to another line.
            Some(b'T')
                if matches!(bytes.get(at), Some(b'*' | b'd' | b'D' | b'm'))
                    && !out.ends_with([' ', '\n']) =>
            {
                out.push('\n')
            }
            _ => at += usize::from(bytes.get(next) == Some(&b'<')),
        }
    }
    out
}

fn read_literal(bytes: &[u8], mut at: usize, out: &mut String) -> usize {
    let mut depth = 1;
    let mut text_bytes = Vec::new();
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => {
                let escaped = bytes.get(at).copied().unwrap_or(b' ');
                at += 1;
                match escaped {
                    b'n' | b'r' => text_bytes.push(b'\n'),
                    b't' | b'b' | b'f' => text_bytes.push(b' '),
                    b'\n' => {}
                    b'0'..=b'7' => {
                        let digits = bytes
                            .get(at - 1..)
                            .unwrap_or_default()
                            .iter()
                            .take(3)
                            .take_while(|byte| (b'0'..=b'7').contains(byte));
                        let (count, code) = digits.fold((0, 0u32), |(count, code), digit| {
                            (count + 1, code * 8 + u32::from(digit - b'0'))
                        });
                        text_bytes.push(u8::try_from(code & 0xFF).unwrap_or(b' '));
                        at += count - 1;
                    }
                    other => text_bytes.push(other),
                }
            }
            b'(' => {
                depth += 1;
                text_bytes.push(b'(');
            }
            b')' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
                text_bytes.push(b')');
            }
            other => text_bytes.push(*other),
        }
    }
    push_text(&text_bytes, out);
    at
}

fn read_hex(bytes: &[u8], mut at: usize, out: &mut String) -> usize {
    let mut digits = Vec::new();
    while let Some(byte) = bytes.get(at) {
        match char::from(*byte).to_digit(16) {
            Some(digit) => digits.push(u8::try_from(digit).unwrap_or(0)),
            None if byte.is_ascii_whitespace() => {}
            None => break,
        }
        at += 1;
    }
    let text_bytes: Vec<u8> = digits
        .chunks(2)
        .map(|pair| pair.first().unwrap_or(&0) << 4 | pair.get(1).unwrap_or(&0))
        .collect();
    push_text(&text_bytes, out);
    at
}

/// Appends the text of a string: UTF-16 if it has a byte order mark or zero bytes, else one byte
/// per character.
fn push_text(bytes: &[u8], out: &mut String) {
    let wide = bytes.starts_with(&[0xFE, 0xFF])
        || bytes.len() >= 4 && bytes.iter().step_by(2).all(|byte| *byte == 0);
    if wide {
        let units = bytes
            .chunks_exact(2)
            .map(|pair| pair.iter().fold(0u16, |n, byte| n << 8 | u16::from(*byte)));
        out.extend(
            char::decode_utf16(units)
                .filter_map(Result::ok)
                .filter(|c| *c != '\u{feff}'),
        );
    } else {
        out.extend(bytes.iter().map(|byte| char::from(*byte)));
    }
}
