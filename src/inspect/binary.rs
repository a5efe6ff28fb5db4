//! Contents of binary blocks: their type, determined by their first bytes, and the text in them
//! that a program would display. Limited in bytes and members; what is not read is reported.

mod archive;
mod in_text;
mod media;
mod pdf;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use miniz_oxide::inflate::{DecompressError, TINFLStatus};

pub(super) use in_text::open_base64_runs;

use super::SkipReason;
use crate::detect::work::Budget;
use crate::message::{Path, Step, Value};

/// Maximum amount of text taken from one block, in bytes; [`Budget`] limits the sum over a message.
const TEXT_BYTES: usize = 4 << 20;
/// Maximum size of one compressed part of a block when decompressed, in bytes. Markup is stored
/// twice: as written, and as text.
const PART_BYTES: usize = TEXT_BYTES / 2;
/// Maximum number of texts of one block.
const TEXTS: usize = 256;
/// Maximum amount of data in `data:` URLs that is read in one text, in bytes, and maximum number of
/// such URLs.
const DATA_BYTES: usize = 4 << 20;
const DATA_ADDRESSES: usize = 16;
/// Minimum length of a run of characters in data that counts as text.
const RUN: usize = 6;

/// The contents of a block.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// The type, determined by the first bytes: `png`, `zip` and so on, `text`, or empty if it is
    /// not known.
    pub(super) kind: &'static str,
    /// The texts in the block.
    pub(super) texts: Vec<String>,
    /// Why some of it was not read; `None` if all of it is text.
    pub(super) skip_reason: Option<SkipReason>,
    bytes: usize,
}

impl Contents {
    fn with_skip_reason(kind: &'static str, unread: SkipReason) -> Self {
        Self {
            kind,
            skip_reason: Some(unread),
            ..Self::default()
        }
    }

    /// Adds a text. Returns `false` if there is no room left.
    fn add(&mut self, text: &str) -> bool {
        if text.trim().is_empty() {
            return true;
        }
        self.bytes += text.len();
        let fits = self.bytes <= TEXT_BYTES && self.texts.len() < TEXTS;
        if fits {
            self.texts.push(text.to_owned());
        } else {
            self.skip_reason = Some(SkipReason::TooMuchText);
        }
        fits
    }

    /// Returns whether the declared type differs from the actual one.
    pub(super) fn belies(&self, declared: &str) -> bool {
        let declared = declared
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let Some((class, sub)) = declared.split_once('/') else {
            return false;
        };
        match self.kind {
            "" => false,
            "text" => {
                matches!(class, "image" | "audio" | "video" | "font") && !sub.contains("svg")
                    || sub == "pdf"
                    || sub == "zip"
            }
            "svg" => !sub.contains("svg") && !sub.contains("xml") && class != "text",
            "zip" => {
                !sub.contains("zip")
                    && !sub.contains("officedocument")
                    && !sub.contains("opendocument")
                    && sub != "octet-stream"
                    && !sub.contains("epub")
                    && !sub.contains("java-archive")
                    && !sub.contains("android")
            }
            "gzip" => {
                !sub.contains("gzip")
                    && sub != "octet-stream"
                    && !sub.contains("tar")
                    && sub != "x-tgz"
            }
            "pdf" => sub != "pdf" && sub != "octet-stream" && sub != "x-pdf",
            "jpeg" => sub != "octet-stream" && sub != "jpeg" && sub != "jpg" && sub != "pjpeg",
            "program" => class != "application" || sub == "pdf" || sub.contains("zip"),
            kind => sub != "octet-stream" && !sub.contains(kind),
        }
    }
}

/// Returns the declared type of the binary block whose data is at `path`, if it is one: `data` of
/// images and audio, `blob` of resources.
pub(super) fn declared_type(path: &Path<'_>, holder: Value<'_>) -> Option<String> {
    let Some(Step::Key(key)) = path.last() else {
        return None;
    };
    let is_binary = match &**key {
        "blob" => true,
        "data" => matches!(holder.get_str("type").as_deref(), Some("image" | "audio")),
        _ => false,
    };
    is_binary.then(|| holder.get_str("mimeType").unwrap_or_default().into_owned())
}

/// Minimum length of a base64 line that is continued on the next, in characters (RFC 2045 uses 76,
/// RFC 7468 uses 64).
const LINE: usize = 60;

/// Decodes a base64 text; `None` if it is not base64. Words on separate lines are not taken for
/// base64.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let engine = GeneralPurpose::new(&STANDARD, config);
    let text = text.trim_end_matches(['\r', '\n']);
    let Some((first, rest)) = text.split_once('\n') else {
        return engine.decode(text).ok();
    };
    let last = rest.rsplit('\n').next().unwrap_or_default();
    let full_lines = text.get(..text.len() - last.len()).unwrap_or_default();
    if first.len() < LINE
        || full_lines
            .lines()
            .any(|line| line.len() != first.trim_end().len())
    {
        return None;
    }
    engine
        .decode(
            text.bytes()
                .filter(|byte| !matches!(byte, b'\r' | b'\n'))
                .collect::<Vec<u8>>(),
        )
        .ok()
}

/// Decompresses data: at most `max_bytes` bytes, and no more than the budget has left. Returns the
/// decompressed bytes, and the reason if they are incomplete.
fn unpack(
    budget: &Budget,
    max_bytes: usize,
    inflate: impl FnOnce(usize) -> Result<Vec<u8>, DecompressError>,
) -> (Vec<u8>, Option<SkipReason>) {
    let room = budget.unpacked_left().min(max_bytes);
    let (bytes, incomplete) = match inflate(room) {
        Ok(bytes) => (bytes, None),
        Err(error) if error.status == TINFLStatus::HasMoreOutput && room < max_bytes => {
            budget.refuse_unpacking();
            (error.output, Some(SkipReason::OverBudget))
        }
        Err(error) if error.status == TINFLStatus::HasMoreOutput => {
            (error.output, Some(SkipReason::TooLong))
        }
        Err(error) => (error.output, Some(SkipReason::Undecodable)),
    };
    budget.spend_unpacked(bytes.len());
    (bytes, incomplete)
}

/// Decodes base64 as a decoder does that skips characters outside the alphabet, as many do.
pub(super) fn decode_leniently(text: &[u8]) -> Option<Vec<u8>> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let standard = text.iter().filter_map(|b| match b {
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        b'+' | b'/' => Some(*b),
        b => b.is_ascii_alphanumeric().then_some(*b),
    });
    let mut letters: Vec<u8> = standard.collect();
    if letters.len() % 4 == 1 {
        letters.pop();
    }
    let bytes = GeneralPurpose::new(&STANDARD, config).decode(letters).ok();
    bytes.filter(|bytes| !bytes.is_empty())
}

/// Opens data, within the budget of its message.
pub(super) fn open(bytes: &[u8], budget: &Budget) -> Contents {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => media::png(bytes, budget),
        [0xFF, 0xD8, 0xFF, ..] => media::jpeg(bytes),
        [b'G', b'I', b'F', b'8', ..] => media::read_runs("gif", bytes),
        [b'R', b'I', b'F', b'F', _, _, _, _, kind @ ..] if kind.starts_with(b"WEBP") => {
            media::read_runs("webp", bytes)
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, kind @ ..] if kind.starts_with(b"WAVE") => {
            media::read_runs("wav", bytes)
        }
        [b'I', b'D', b'3', ..] => media::read_runs("mpeg", bytes),
        [b'O', b'g', b'g', b'S', ..] => media::read_runs("ogg", bytes),
        [b'B', b'M', _, _, _, _, 0, 0, 0, 0, ..] => media::read_runs("bmp", bytes),
        [b'%', b'P', b'D', b'F', ..] => pdf::open(bytes, budget),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => archive::zip(bytes, budget),
        [0x1F, 0x8B, 8, ..] => archive::gzip(bytes, budget),
        [0x78, 0x01 | 0x9C | 0xDA, ..] => archive::zlib(bytes, budget),
        [0x7F, b'E', b'L', b'F', ..] | [b'M', b'Z', ..] => {
            Contents::with_skip_reason("program", SkipReason::Binary)
        }
        _ => open_text(bytes),
    }
}

/// Returns the contents of a text, or of data of unknown type.
fn open_text(bytes: &[u8]) -> Contents {
    let Some(text) = decode_text(bytes) else {
        return media::read_runs("", bytes);
    };
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let head: String = start
        .chars()
        .take(400)
        .collect::<String>()
        .to_ascii_lowercase();
    let kind = if head.contains("<svg") { "svg" } else { "text" };
    let mut contents = Contents {
        kind,
        ..Contents::default()
    };
    contents.add(&text);
    if kind == "svg" {
        contents.add(&without_tags(&text));
    }
    contents
}

/// Returns the text between the tags: the words of a picture continue across the elements that
/// position them.
fn without_tags(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (n, part) in text.split('<').enumerate() {
        let words = if n == 0 {
            part
        } else {
            part.split_once('>').map_or(part, |(_, words)| words)
        };
        out.push_str(words);
    }
    out
}

/// Decodes bytes that are text: UTF-8, or UTF-16 with a byte order mark.
fn decode_text(bytes: &[u8]) -> Option<String> {
    let decode_wide = |unit: fn([u8; 2]) -> u16| {
        let units = bytes.get(2..)?.chunks_exact(2).map(|pair| {
            unit([
                pair.first().copied().unwrap_or(0),
                pair.get(1).copied().unwrap_or(0),
            ])
        });
        char::decode_utf16(units)
            .collect::<Result<String, _>>()
            .ok()
    };
    match bytes {
        [0xFF, 0xFE, ..] => decode_wide(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => decode_wide(u16::from_be_bytes),
        _ => {
            let text = std::str::from_utf8(bytes).ok()?;
            let controls = text
                .bytes()
                .filter(|byte| *byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b))
                .count();
            (controls * 50 <= text.len()).then(|| text.to_owned())
        }
    }
}

/// Returns the contents of the base64 `data:` URLs of a text; URLs with plain text are covered by
/// other readings of it.
pub(super) fn open_data_urls(text: &str, budget: &Budget) -> Vec<(String, Contents)> {
    let mut results = Vec::new();
    let mut at = 0;
    let mut room = DATA_BYTES;
    while let Some(next) = text
        .get(at..)
        .and_then(|rest| memchr::memmem::find(rest.as_bytes(), b";base64,"))
    {
        let mark = at + next;
        let start = at + next + ";base64,".len();
        let data = text.get(start..).unwrap_or_default();
        let length = data
            .bytes()
            .take_while(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
            })
            .count();
        at = start + length;
        let low = (mark.saturating_sub(100)..=mark)
            .find(|low| text.is_char_boundary(*low))
            .unwrap_or(mark);
        let before = text.get(low..mark).unwrap_or_default();
        let before = before.to_ascii_lowercase();
        let declared = before
            .rsplit_once("data:")
            .map(|(_, declared)| declared.to_owned());
        let Some(declared) = declared.filter(|declared| !declared.contains(char::is_whitespace))
        else {
            continue;
        };
        if length > room || results.len() >= DATA_ADDRESSES {
            results.push((
                declared,
                Contents::with_skip_reason("", SkipReason::DataAddress),
            ));
            break;
        }
        room -= length;
        let contents = data.get(..length).and_then(decode_base64).map_or_else(
            || Contents::with_skip_reason("", SkipReason::DataAddress),
            |bytes| open(&bytes, budget),
        );
        results.push((declared, contents));
    }
    results
}

#[cfg(test)]
pub(super) mod tests;
