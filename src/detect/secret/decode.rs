//! Decodes content hidden in a text: escapes, base64, hex, and compressed data within them. Each
//! result is a further text to scan. Its length is bounded, and it is only produced if the first
//! few characters already decode to text.

use base64::Engine;
use miniz_oxide::inflate::{decompress_to_vec_with_limit, decompress_to_vec_zlib_with_limit};

use super::class::Class;
use crate::text::{CODE_RUN, Facts, Text};

/// Minimum length of a run that is treated as an encoding, in characters.
pub(super) const RUN: usize = CODE_RUN;
/// The same for hexadecimal, where two characters encode a byte.
const HEX_RUN: usize = 24;
/// The same for base32, where eight characters encode five bytes.
const BASE32_RUN: usize = 24;
/// Number of characters that are decoded first, as a trial.
const TRIAL_CHARS: usize = 16;
/// Maximum number of positions within a run, besides its start, at which an encoding may begin
/// (after `/`, `-` and the like).
const STARTS: usize = 6;
/// Minimum length of a decoded text that is scanned, in bytes.
const TEXT_BYTES: usize = 8;

/// The decoded content of a run.
pub(super) struct DecodedText {
    pub(super) text: String,
    /// End of the encoded data in the original text.
    pub(super) end: usize,
    /// The name of the reading.
    pub(super) reading: &'static str,
    /// Number of bytes that decompression produced.
    pub(super) unpacked_bytes: usize,
    /// Whether there was more compressed data than the limit allows.
    pub(super) truncated: bool,
}

/// Decodes the run of code characters from `start` to `end` of `text`, if it encodes text. At most
/// `limit` bytes of compressed data are unpacked.
pub(super) fn decode(text: &str, start: usize, end: usize, limit: usize) -> Option<DecodedText> {
    let run = text.as_bytes().get(start..end)?;
    let hex = run.len() >= HEX_RUN && run.iter().all(|byte| Class::from_byte(*byte).is_hex());
    if hex {
        let skipped = usize::from(run.len() % 2 == 1);
        let bytes = |take: usize| {
            run.get(skipped..)?
                .chunks_exact(2)
                .take(take)
                .map(hex_byte)
                .collect::<Option<Vec<u8>>>()
        };
        if may_be_text(&bytes(TRIAL_CHARS)?) {
            return read_text(bytes(usize::MAX)?, end, "hex", limit);
        }
    }
    // A preceding `https://` is not part of the encoded data.
    let parts = run.split(|byte| !byte.is_ascii_alphanumeric()).take(STARTS);
    if let Some(bytes) = parts
        .filter_map(base32)
        .find(|bytes| may_be_text(bytes.get(..TRIAL_CHARS).unwrap_or(bytes)))
    {
        return read_text(bytes, end, "base32", limit);
    }
    let starts = run
        .iter()
        .enumerate()
        .filter(|(_, byte)| !byte.is_ascii_alphanumeric())
        .map(|(at, _)| at + 1);
    for from in std::iter::once(0).chain(starts.take(STARTS)) {
        let Some(candidate) = run.get(from..).filter(|rest| rest.len() >= RUN) else {
            break;
        };
        let mut sextets = candidate.iter().take(TRIAL_CHARS).map(|byte| sextet(*byte));
        let mut first = [0_u8; TRIAL_CHARS / 4 * 3];
        for three in first.chunks_exact_mut(3) {
            let bits = (0..4).fold(0_u32, |bits, _| {
                bits << 6 | u32::from(sextets.next().flatten().unwrap_or(0))
            });
            let [_, a, b, c] = bits.to_be_bytes();
            three.copy_from_slice(&[a, b, c]);
        }
        if may_be_text(&first) {
            let (bytes, data_end) = base64(text, start + from);
            let decoded_length = bytes.len();
            if let Some(mut result) = read_text(bytes, end, "base64", limit) {
                if result.text.len() == decoded_length {
                    result.end = end.max(data_end);
                }
                // The characters after a blank or an `&` may be words that only look like more
                // base64.
                if data_end > end && result.unpacked_bytes == 0 {
                    let (prefix, _) = base64(text.get(..end)?, start + from);
                    if let Some(prefix) = read_text(prefix, end, "base64", 0) {
                        result.text.insert(0, '\n');
                        result.text.insert_str(0, &prefix.text);
                    }
                }
                return Some(result);
            }
        }
    }
    None
}

/// Returns the decoded text with look-alike letters replaced and invisible characters removed;
/// `None` if that changes nothing.
pub(super) fn fold_lookalikes(text: &str, facts: &Facts) -> Option<String> {
    if facts.is_ascii() {
        return None;
    }
    let view = Text::new(text);
    (view.plain() != text).then(|| view.plain().to_owned())
}

/// Decodes base32 (RFC 4648) in upper case, or in lower case as in host names.
fn base32(run: &[u8]) -> Option<Vec<u8>> {
    let is_lower_case = run.iter().any(u8::is_ascii_lowercase);
    let value = |byte: &u8| match byte {
        b'A'..=b'Z' if !is_lower_case => Some(byte - b'A'),
        b'a'..=b'z' if is_lower_case => Some(byte - b'a'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    };
    // Words have no digits, but nearly all encoded data has some.
    if run.len() < BASE32_RUN
        || !run.iter().any(u8::is_ascii_digit)
        || !run.iter().all(|byte| value(byte).is_some())
    {
        return None;
    }
    let mut bytes = Vec::with_capacity(run.len() * 5 / 8);
    let mut bits = 0_u32;
    let mut count = 0;
    for five in run.iter().filter_map(value) {
        bits = (bits << 5 | u32::from(five)) & 0xfff;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

/// Decodes base64 of either alphabet from `start`, skipping joints between its pieces, up to the
/// first character that is neither.
fn base64(text: &str, start: usize) -> (Vec<u8>, usize) {
    let rest = text.as_bytes().get(start..).unwrap_or_default();
    let mut bytes = Vec::new();
    let mut bits = 0_u32;
    let mut count = 0;
    let mut end = start;
    for (at, byte) in rest.iter().enumerate() {
        // A plus after a quote or a space is a concatenation sign; any other is a base64 digit.
        let concatenates = *byte == b'+'
            && at
                .checked_sub(1)
                .and_then(|before| rest.get(before))
                .is_some_and(|before| matches!(before, b'"' | b'\'' | b' '));
        let Some(six) = sextet(*byte).filter(|_| !concatenates) else {
            if concatenates || Class::from_byte(*byte).is_joint() {
                continue;
            }
            break;
        };
        bits = bits << 6 | u32::from(six);
        count += 1;
        if count == 4 {
            let [_, a, b, c] = bits.to_be_bytes();
            bytes.extend([a, b, c]);
            (bits, count) = (0, 0);
            // Stop if the decoded bytes are not text: these characters are no longer part of the
            // data but, for example, words of a command.
            if bytes.len() % 192 == 0 && !is_compressed(&bytes) && !is_mostly_text(&bytes) {
                break;
            }
        }
        end = start + at + 1;
    }
    match count {
        2 => bytes.push((bits >> 4) as u8),
        3 => bytes.extend([(bits >> 10) as u8, (bits >> 2) as u8]),
        _ => {}
    }
    (bytes, end)
}

fn is_mostly_text(bytes: &[u8]) -> bool {
    let tail = bytes
        .get(bytes.len().saturating_sub(192)..)
        .unwrap_or_default();
    tail.iter()
        .filter(|byte| is_text(**byte) || **byte >= 0x80 || **byte == 0)
        .count()
        * 10
        >= tail.len() * 9
}

fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b]) || is_zlib(bytes)
}

fn is_zlib(bytes: &[u8]) -> bool {
    matches!(bytes, [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..])
}

/// Returns the number of bytes up to the first that is not UTF-8.
fn valid_length(bytes: &[u8]) -> usize {
    std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len)
}

/// Reports whether bytes may be the beginning of a text or of compressed data.
fn may_be_text(bytes: &[u8]) -> bool {
    is_compressed(bytes) || is_utf16(bytes) || {
        let valid = valid_length(bytes);
        valid + 3 >= bytes.len()
            && bytes
                .iter()
                .take(valid)
                .all(|byte| is_text(*byte) || *byte >= 0x80)
    }
}

/// Reports whether every other byte at the beginning is zero, as in ASCII encoded as UTF-16
/// little-endian.
fn is_utf16(bytes: &[u8]) -> bool {
    bytes.len() >= 8
        && bytes
            .chunks_exact(2)
            .all(|pair| matches!(pair, [low, 0] if is_text(*low)))
}

pub(super) fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e)
}

/// Returns the text that bytes contain, after decompression if necessary, up to the first byte that
/// is not text.
fn read_text(
    mut bytes: Vec<u8>,
    end: usize,
    reading: &'static str,
    limit: usize,
) -> Option<DecodedText> {
    let mut unpacked_bytes = 0;
    let mut truncated = false;
    let mut reading = reading;
    if is_compressed(&bytes) {
        (bytes, truncated) = unpack(&bytes, limit)?;
        unpacked_bytes = bytes.len();
        reading = "gzip";
    }
    if is_utf16(bytes.get(..8).unwrap_or_default()) {
        let units: Vec<u16> = bytes
            .as_chunks()
            .0
            .iter()
            .map(|pair| u16::from_le_bytes(*pair))
            .collect();
        bytes = String::from_utf16_lossy(&units).into_bytes();
    }
    let valid = valid_length(&bytes);
    // A tar archive also counts as text, apart from its zero bytes.
    let text = if unpacked_bytes > 0 {
        String::from_utf8_lossy(&bytes).into_owned()
    } else {
        String::from_utf8(bytes.get(..valid)?.to_vec()).ok()?
    };
    let stop = text
        .bytes()
        .position(|byte| !is_text(byte) && byte < 0x80)
        .filter(|_| unpacked_bytes == 0)
        .unwrap_or(text.len());
    let text = text.get(..stop)?.to_owned();
    (truncated || text.len() >= TEXT_BYTES).then_some(DecodedText {
        text,
        end,
        reading,
        unpacked_bytes,
        truncated,
    })
}

/// Unpacks gzip (RFC 1952) or zlib (RFC 1950). Returns the unpacked bytes and whether there was
/// more.
fn unpack(bytes: &[u8], limit: usize) -> Option<(Vec<u8>, bool)> {
    let unpacked = if is_zlib(bytes) {
        decompress_to_vec_zlib_with_limit(bytes, limit)
    } else {
        let mut at = 10;
        let flags = *bytes.get(3)?;
        if flags & 4 != 0 {
            at += 2 + usize::from(*bytes.get(at)?) + (usize::from(*bytes.get(at + 1)?) << 8);
        }
        for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
            at += bytes.get(at..)?.iter().position(|byte| *byte == 0)? + 1;
        }
        at += usize::from(flags & 2);
        decompress_to_vec_with_limit(bytes.get(at..)?, limit)
    };
    match unpacked {
        Ok(bytes) => Some((bytes, false)),
        Err(error) => {
            let has_more = error.status == miniz_oxide::inflate::TINFLStatus::HasMoreOutput;
            (has_more || !error.output.is_empty()).then_some((error.output, has_more))
        }
    }
}

/// Returns the value of a base64 digit of either alphabet (RFC 4648).
fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

/// Returns the byte that two hexadecimal digits encode.
pub(super) fn hex_byte(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| {
        digits
            .get(at)
            .and_then(|byte| char::from(*byte).to_digit(16))
    };
    u8::try_from(digit(0)? << 4 | digit(1)?).ok()
}

/// Returns the text in a short base64 value of either alphabet, with or without padding.
pub(super) fn base64_text(run: &str) -> Option<String> {
    let digits: String = run
        .trim_end_matches('=')
        .chars()
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            c => c,
        })
        .collect();
    let bytes = base64::engine::general_purpose::STANDARD_NO_PAD
        .decode(digits)
        .ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::is_code;
    use base64::engine::general_purpose::STANDARD;

    fn decode_text(text: &str) -> Option<(String, &'static str)> {
        decode(
            text,
            0,
            text.bytes()
                .position(|byte| !is_code(byte))
                .unwrap_or(text.len()),
            1 << 16,
        )
        .map(|opened| (opened.text, opened.reading))
    }

    #[test]
    fn runs_are_opened_if_they_are_text() {
        let text = "the quick brown fox jumps";
        assert_eq!(
            decode_text(&STANDARD.encode(text)),
            Some((text.to_owned(), "base64"))
        );
        let hex: String = text.bytes().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(decode_text(&hex), Some((text.to_owned(), "hex")));
        let wide: Vec<u8> = text.bytes().flat_map(|byte| [byte, 0]).collect();
        assert_eq!(
            decode_text(&STANDARD.encode(wide)),
            Some((text.to_owned(), "base64"))
        );
        assert_eq!(decode_text("iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"), None);
        assert_eq!(decode_text("d61ba2e3341672ae1d54eb182013ac31"), None);
        assert_eq!(decode_text("usr/local/share/applications/desktop"), None);
    }

    #[test]
    fn lines_and_quotes_within_base64_do_not_matter() {
        let code = STANDARD.encode("a secret text of two lines");
        let (first, second) = code.split_at(20);
        for joined in [
            format!("{first}\n{second}"),
            format!("{first}\" + \"{second}"),
            format!("{first}\\\n  {second}"),
        ] {
            let decoded = decode_text(&joined).unwrap().0;
            assert_eq!(
                decoded.lines().last(),
                Some("a secret text of two lines"),
                "{joined}"
            );
        }
    }

    #[test]
    fn what_is_compressed_is_unpacked_within_bounds() {
        let text = "key and lock, ".repeat(100);
        let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        gzip.extend(miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 6));
        assert_eq!(
            decode_text(&STANDARD.encode(&gzip)),
            Some((text.clone(), "gzip"))
        );
        let zlib = miniz_oxide::deflate::compress_to_vec_zlib(text.as_bytes(), 6);
        assert_eq!(
            decode_text(&STANDARD.encode(zlib)),
            Some((text.clone(), "gzip"))
        );
        let code = STANDARD.encode(&gzip);
        let decoded = decode(&code, 0, code.len(), 100).unwrap();
        assert!(
            decoded.truncated && decoded.unpacked_bytes <= 100,
            "{}",
            decoded.unpacked_bytes
        );
    }
}
