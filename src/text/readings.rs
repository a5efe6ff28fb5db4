//! Further readings of a string: what a model could read in text that is written in another way.
//!
//! Each reading is made from the lines that call for it, only where a cheap test finds it
//! worthwhile, and within bounds. Decoded text is read again for what it may hide in turn, up to
//! [`DEPTH`] levels.

use std::collections::BTreeSet;
use std::ops::Range;

use parking_lot::Mutex;

pub use fold::look_alike as looks_like;

use super::facts::Facts;
use super::html::Page;
use super::unicode::Plain;
use source_map::{MappedText, SourceMap};
use tokens::Tokens;

mod cipher;
mod columns;
mod encoded;
mod escaped;
mod fold;
mod gaps;
mod hex_dump;
mod marks;
mod numbers;
mod packed;
mod radix;
mod regions;
mod respelled;
mod scattered;
mod source_map;
mod spaced;
mod spelled;
mod steering_words;
mod substituted;
mod tokens;
mod unmarked;
mod vocabulary;
mod word_pieces;
mod word_tree;

/// A part of a string, read in another way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The decoded text.
    pub text: String,
    /// The range of the outer text that it was read from, in whole characters.
    pub span: Range<usize>,
    /// Other places in the outer text that have the same reading.
    pub repeats: Vec<Range<usize>>,
    /// The ways by which it was reached: `base64`, `base64 → percent`.
    pub path: &'static str,
    /// How suspicious this way of writing is by itself.
    pub suspicion: Suspicion,
    /// Number of common words in it that were written this way.
    pub words: usize,
    /// The origins of its parts in the plain text. Only for readings that leave marks out or join
    /// cells, and decode nothing.
    pub(super) map: Option<SourceMap>,
}

/// Names of the readings that only leave out characters between words.
pub const REJOINED: [&str; 2] = ["unmarked", "columns"];

/// How suspicious a way of writing is, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspicion {
    /// Programs write this way every day: base64, hex, `%20`, `\u0041`, accents.
    Usual,
    /// People do not write prose this way: leet, spaced-out or joined letters, ciphers, Morse.
    Odd,
    /// Prose is written this way only to get it past a filter: letters of several scripts within
    /// words, mathematical letters, `%41%42`, `&#65;`.
    Disguise,
}

/// Maximum number of bytes of a packed run that are decoded; the rest of a longer run is left out.
pub const DECODED_BYTES: usize = 1 << 20;
/// Maximum depth of nested encodings that are decoded.
const DEPTH: usize = 3;
/// Maximum number of readings of one string.
const READINGS: usize = 64;
/// Maximum number of repeats recorded for one string, over all its readings.
const REPEATS: usize = 256;
/// Minimum length of a text that is checked for spelled-out letters, ciphers and digits among
/// letters, in bytes.
const TOKENS_BYTES: usize = 11;
/// Maximum total length of all readings of a string: a number of bytes, plus a number for each byte
/// of the string.
const OUTPUT_BYTES: usize = 8 << 10;
const OUTPUT_PER_BYTE: usize = 3;

/// The readings of a text.
#[derive(Debug, Default)]
pub(super) struct Readings {
    pub(super) all: Vec<Reading>,
    /// Number of repeats of all readings.
    repeats: usize,
    /// Whether a bound caused readings to be left out.
    pub(super) is_incomplete: bool,
}

/// Reads `text`, which is already a plain reading.
pub(super) fn read(text: &str, facts: &Facts) -> Readings {
    // A single word that is too short to be encoded.
    if text.len() < encoded::PACKED_BYTES && text.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Readings::default();
    }
    let mut budget = text
        .len()
        .saturating_mul(OUTPUT_PER_BYTE)
        .saturating_add(OUTPUT_BYTES);
    let mut readings = Readings::default();
    let mut from = 0;
    add_readings(text, facts, None, &mut readings, &mut budget);
    for _ in 1..DEPTH {
        let fresh: Vec<Reading> = readings.all.get(from..).unwrap_or_default().to_vec();
        from = readings.all.len();
        for reading in fresh {
            add_readings(
                &reading.text,
                &Facts::new(&reading.text),
                Some(&reading),
                &mut readings,
                &mut budget,
            );
        }
    }
    readings
}

fn add_readings(
    text: &str,
    facts: &Facts,
    within: Option<&Reading>,
    readings: &mut Readings,
    budget: &mut usize,
) {
    let mut decoded_parts: Vec<DecodedPart> = Vec::new();
    escaped::find(text, facts, &mut decoded_parts);
    encoded::find(text, facts, &mut decoded_parts);
    packed::find(text, facts, &mut decoded_parts);
    fold::find(text, facts, &mut decoded_parts);
    word_pieces::find(text, facts, &mut decoded_parts);
    substituted::find(text, facts, &mut decoded_parts);
    if text.len() >= TOKENS_BYTES {
        let tells_cipher = cipher::telling_matcher();
        let tells_respelling = respelled::telling_matcher();
        let is_telling = |letters: &[u8]| tells_cipher(letters) || tells_respelling(letters);
        let tokens = Tokens::new(text, cipher::TELLING_LETTERS, spelled::JOINED, is_telling);
        spelled::find(text, &tokens, &mut decoded_parts);
        cipher::find(text, &tokens, &mut decoded_parts);
        respelled::find(text, facts, &tokens, &mut decoded_parts);
    }
    for part in decoded_parts {
        if readings.all.len() >= READINGS || part.text.len() > *budget {
            readings.is_incomplete = true;
            return;
        }
        let all = &mut readings.all;
        *budget -= part.text.len();
        let (span, path, suspicion) = match within {
            None => (part.span, part.name, part.suspicion),
            Some(outer) => (
                outer.cover(&part.span),
                intern(&format!("{} → {}", outer.path, part.name)),
                part.suspicion.max(outer.suspicion),
            ),
        };
        let text = Plain::from_raw(&part.text).map_or(part.text, |plain| plain.text);
        if let Some(existing) = all.iter_mut().find(|known| known.text == text) {
            readings.repeats +=
                usize::from(readings.repeats < REPEATS && existing.add_repeat(span));
            continue;
        }
        if let Some(page) = Page::parse(&text, &Facts::new(&text)) {
            let path = intern(&format!("{path} → html"));
            for text in [page.visible, page.hidden] {
                all.push(Reading {
                    text,
                    span: span.clone(),
                    repeats: Vec::new(),
                    path,
                    suspicion,
                    words: part.words,
                    map: None,
                });
            }
        }
        all.push(Reading {
            text,
            span,
            repeats: Vec::new(),
            path,
            suspicion,
            words: part.words,
            map: None,
        });
    }
    if within.is_none_or(|outer| outer.map.is_none()) {
        let rejoined = [unmarked::read(text), columns::read(text, facts)];
        for (name, rejoined_text) in REJOINED.into_iter().zip(rejoined) {
            if let Some(mapped) = rejoined_text {
                add_rejoined(mapped, within, name, readings, budget);
            }
        }
    }
}

/// Adds a reading that leaves out characters between words.
fn add_rejoined(
    mapped: MappedText,
    within: Option<&Reading>,
    name: &'static str,
    readings: &mut Readings,
    budget: &mut usize,
) {
    let MappedText { text, map } = mapped;
    if readings.all.len() >= READINGS || text.len() > *budget {
        readings.is_incomplete = true;
        return;
    }
    *budget -= text.len();
    let reading = match within {
        None => Reading {
            span: map.cover(&(0..text.len())).unwrap_or(0..0),
            text,
            repeats: Vec::new(),
            path: name,
            suspicion: Suspicion::Usual,
            words: 0,
            map: Some(map),
        },
        Some(outer) => {
            let path = intern(&format!("{} → {name}", outer.path));
            Reading {
                text,
                span: outer.span.clone(),
                repeats: Vec::new(),
                path,
                suspicion: outer.suspicion,
                words: 0,
                map: None,
            }
        }
    };
    readings.all.push(reading);
}

impl Reading {
    /// Adds another place that has the same reading. Returns false if it overlaps a known place.
    fn add_repeat(&mut self, span: Range<usize>) -> bool {
        let overlaps = |place: &Range<usize>| span.start < place.end && place.start < span.end;
        let is_new =
            self.map.is_none() && !overlaps(&self.span) && !self.repeats.iter().any(overlaps);
        if is_new {
            self.repeats.push(span);
        }
        is_new
    }

    /// Returns the range of the plain text that a part of the reading comes from.
    fn cover(&self, part: &Range<usize>) -> Range<usize> {
        self.map
            .as_ref()
            .and_then(|map| map.cover(part))
            .unwrap_or_else(|| self.span.clone())
    }
}

/// Reports whether a text addresses its reader across marks between words, or down its columns.
pub(super) fn is_rejoined(text: &str) -> bool {
    unmarked::read(text).is_some() || columns::read(text, &Facts::new(text)).is_some()
}

/// A part of a text, decoded in one way.
struct DecodedPart {
    name: &'static str,
    suspicion: Suspicion,
    span: Range<usize>,
    text: String,
    words: usize,
}

/// Interns a path. There are few of them: combinations of at most [`DEPTH`] of some fifteen names.
fn intern(path: &str) -> &'static str {
    static PATHS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut paths = PATHS.lock();
    if let Some(existing) = paths.get(path) {
        return existing;
    }
    let leaked: &'static str = Box::leak(path.to_owned().into_boxed_str());
    paths.insert(leaked);
    leaked
}

#[cfg(test)]
mod tests;
