//! Text in images and audio: comments and descriptions. What is drawn or spoken is not read.

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use super::{Budget, Contents, PART_BYTES, RUN, SkipReason, decode_text, unpack};

/// Reads a PNG image (ISO/IEC 15948): `tEXt`, `zTXt`, `iTXt`, `eXIf`, and the data after its end.
pub(super) fn png(bytes: &[u8], budget: &Budget) -> Contents {
    let mut contents = Contents::with_skip_reason("png", SkipReason::Binary);
    let mut at = 8;
    while let Some(head) = bytes.get(at..at + 8) {
        let length = head
            .iter()
            .take(4)
            .fold(0usize, |n, byte| n << 8 | usize::from(*byte));
        let kind = head.get(4..).unwrap_or_default();
        let Some(data) = bytes.get(at + 8..at.saturating_add(8).saturating_add(length)) else {
            // The chunk is shorter than declared: the rest is not a part of the image.
            add_runs(&mut contents, bytes.get(at..).unwrap_or_default());
            return contents;
        };
        match kind {
            b"tEXt" => add_latin(&mut contents, data),
            b"zTXt" => match data.iter().position(|byte| *byte == 0) {
                Some(zero) => add_packed(
                    &mut contents,
                    data.get(zero + 2..).unwrap_or_default(),
                    budget,
                ),
                None => add_latin(&mut contents, data),
            },
            b"iTXt" => add_international(&mut contents, data, budget),
            b"IDAT" | b"IHDR" | b"PLTE" => {}
            _ => add_runs(&mut contents, data),
        }
        at += length + 12;
        if kind == b"IEND" {
            break;
        }
    }
    add_runs(&mut contents, bytes.get(at..).unwrap_or_default());
    contents
}

fn add_international(contents: &mut Contents, data: &[u8], budget: &Budget) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let keyword = parts.next().unwrap_or_default();
    let rest = parts.next().unwrap_or_default();
    add_latin(contents, keyword);
    let packed = rest.first() == Some(&1);
    let mut parts = rest
        .get(2..)
        .unwrap_or_default()
        .splitn(3, |byte| *byte == 0);
    let _language = parts.next();
    let title = parts.next().unwrap_or_default();
    let text = parts.next().unwrap_or_default();
    add_latin(contents, title);
    if packed {
        add_packed(contents, text, budget);
    } else {
        add_latin(contents, text);
    }
}

fn add_packed(contents: &mut Contents, data: &[u8], budget: &Budget) {
    let (text, incomplete) = unpack(budget, PART_BYTES, |most| {
        decompress_to_vec_zlib_with_limit(data, most)
    });
    add_latin(contents, &text);
    contents.skip_reason = incomplete.or(contents.skip_reason);
}

/// Reads a JPEG image (ITU-T T.81): comments, Exif and XMP, and the data after its end.
pub(super) fn jpeg(bytes: &[u8]) -> Contents {
    let mut contents = Contents::with_skip_reason("jpeg", SkipReason::Binary);
    let mut at = 2;
    while let Some([0xFF, kind, high, low]) = bytes.get(at..at + 4) {
        let length = usize::from(*high) << 8 | usize::from(*low);
        let data = bytes
            .get(at + 4..at + 2 + length.max(2))
            .unwrap_or_default();
        match kind {
            0xFE => add_latin(&mut contents, data),
            0xE0..=0xEF => add_runs(&mut contents, data),
            0xDA => break,
            _ => {}
        }
        at += 2 + length.max(2);
    }
    let end = bytes.windows(2).rposition(|pair| pair == [0xFF, 0xD9]);
    add_runs(
        &mut contents,
        end.and_then(|end| bytes.get(end + 2..)).unwrap_or_default(),
    );
    contents
}

/// Reads any text in data of another type.
pub(super) fn read_runs(kind: &'static str, bytes: &[u8]) -> Contents {
    let mut contents = Contents::with_skip_reason(kind, SkipReason::Binary);
    add_runs(&mut contents, bytes);
    contents
}

fn add_latin(contents: &mut Contents, data: &[u8]) {
    let text =
        decode_text(data).unwrap_or_else(|| data.iter().map(|byte| char::from(*byte)).collect());
    contents.add(&text.replace('\0', " "));
}

/// Adds runs of readable characters that are words: letters and spaces, not coincidence.
pub(super) fn add_runs(contents: &mut Contents, data: &[u8]) {
    let mut words = String::new();
    // Exif of some cameras is UTF-16: every other byte is zero.
    let zeros = memchr::memchr_iter(0, data).count();
    let narrow: Option<Vec<u8>> =
        (zeros * 4 >= data.len()).then(|| data.iter().copied().filter(|byte| *byte != 0).collect());
    for narrow in std::iter::once(data).chain(narrow.as_deref()) {
        let runs =
            narrow.split(|byte| !matches!(byte, 0x20..=0x7E | b'\t' | b'\n' | b'\r' | 0x80..));
        for run in runs.filter(|run| run.len() >= RUN) {
            // Random bytes beyond ASCII can precede words; reading continues after them.
            for text in String::from_utf8_lossy(run).split('\u{fffd}') {
                let letters = text
                    .chars()
                    .filter(|c| c.is_alphabetic() || *c == ' ')
                    .count();
                if text.len() >= RUN
                    && text.trim().contains(' ')
                    && letters * 10 >= text.chars().count() * 6
                {
                    words.push_str(text);
                    words.push('\n');
                }
            }
        }
    }
    contents.add(&words);
}
