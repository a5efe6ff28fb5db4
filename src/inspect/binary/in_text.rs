//! Packed data in base64 within a text: archives, compressed text, documents and images outside of
//! `data:` URLs.

use super::{Contents, SkipReason, open};
use crate::detect::work::Budget;
use crate::text::is_code;

/// Minimum length of a run of base64 that is examined, in bytes.
const RUN_BYTES: usize = 24;
/// Minimum length of a run, in bytes, that is listed as not inspected if it is neither text nor of
/// a known type: keys and digests are shorter.
const OPAQUE_BYTES: usize = 512;
/// Maximum length of a run that other readings decode as text.
const READ_BYTES: usize = crate::text::DECODED_BYTES;
/// Maximum number of blanks before a further line of a run.
const INDENT_BYTES: usize = 32;
/// Maximum number of runs that are opened, and maximum number of bytes of all of them.
const RUNS: usize = 16;
const ALL_BYTES: usize = 4 << 20;

/// Returns the contents of the base64 runs in a text, except for plain text, which other readings
/// cover.
pub(in crate::inspect) fn open_base64_runs(text: &str, budget: &Budget) -> Vec<Contents> {
    let bytes = text.as_bytes();
    let mut results = Vec::new();
    let mut room = ALL_BYTES;
    let mut at = RUN_BYTES - 1;
    let mut run_end = 0;
    while let Some(b) = bytes.get(at) {
        if !is_code(*b) {
            at += RUN_BYTES;
            continue;
        }
        let start = bytes
            .get(run_end..at)
            .unwrap_or_default()
            .iter()
            .rposition(|b| !is_code(*b))
            .map_or(run_end, |sign| run_end + sign + 1);
        let end = at
            + bytes
                .get(at..)
                .unwrap_or_default()
                .iter()
                .take_while(|b| is_code(**b))
                .count();
        if end - start < RUN_BYTES && !matches!(bytes.get(end), Some(b'\r' | b'\n')) {
            // A word of prose.
            (at, run_end) = (end + RUN_BYTES, end);
            continue;
        }
        run_end = start + run_bytes(bytes.get(start..).unwrap_or_default());
        at = run_end + RUN_BYTES;
        // A `data:` URL declares its own type.
        if run_end - start < RUN_BYTES
            || text
                .get(..start)
                .is_some_and(|before| before.ends_with(";base64,"))
        {
            continue;
        }
        let mut run = bytes.get(start..run_end).unwrap_or_default().to_vec();
        run.retain(|b| is_code(*b));
        if run.len() < RUN_BYTES || !is_packed(&run) && run.len() < OPAQUE_BYTES {
            continue;
        }
        if run.len() > room || results.len() >= RUNS {
            results.push(Contents::with_skip_reason("", SkipReason::TooMuchText));
            break;
        }
        room -= run.len();
        let Some(data) = super::decode_leniently(&run) else {
            continue;
        };
        let contents = open(&data, budget);
        let run_has = |of_kind: fn(&u8) -> bool| run.iter().any(of_kind);
        let mixed = run_has(u8::is_ascii_lowercase)
            && run_has(u8::is_ascii_uppercase)
            && run_has(u8::is_ascii_digit);
        match contents.kind {
            "text" if run.len() <= READ_BYTES => {}
            "" if !mixed => {}
            _ => results.push(contents),
        }
    }
    results
}

/// Returns the length of a run, which may continue on further lines, indented or not, if they are as
/// long as the first.
fn run_bytes(bytes: &[u8]) -> usize {
    let line = |at: usize| {
        bytes
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take_while(|b| is_code(**b))
            .count()
    };
    let first = line(0);
    let mut at = first;
    loop {
        let count = |from: usize, max: usize, of_kind: fn(&u8) -> bool| {
            let rest = bytes.get(from..).unwrap_or_default().iter();
            rest.take(max).take_while(|b| of_kind(b)).count()
        };
        let ends = count(at, 2, |b| matches!(b, b'\r' | b'\n'));
        let indent = count(at + ends, INDENT_BYTES, |b| matches!(b, b' ' | b'\t'));
        let next = line(at + ends + indent);
        if ends == 0 || next == 0 || next > first {
            return at;
        }
        at += ends + indent + next;
        if next < first {
            return at;
        }
    }
}

/// Returns whether base64 begins like data of a known type: gzip, zlib, ZIP, PDF, PNG, JPEG, GIF,
/// RIFF.
fn is_packed(run: &[u8]) -> bool {
    const HEADS: [&[u8]; 11] = [
        b"H4sI",
        b"eJ",
        b"eN",
        b"eAE",
        b"UEsD",
        b"JVBER",
        b"iVBORw0K",
        b"/9j/",
        b"R0lGOD",
        b"UklGR",
        b"_9j_",
    ];
    HEADS.iter().any(|head| run.starts_with(head))
}
