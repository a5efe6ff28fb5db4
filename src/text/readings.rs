//! Further readings of a string: what a model could read in letters that are written otherwise.
//!
//! Each is made of the lines that call for it, only where a cheap look says that it pays, and within bounds: what is
//! decoded is read again for what it may hide in turn, to [`DEPTH`] levels.

use std::collections::BTreeSet;
use std::ops::Range;

use parking_lot::Mutex;

pub use fold::alike as looks_like;

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
mod marks;
mod packed;
mod radix;
mod regions;
mod respelled;
mod source_map;
mod spelled;
mod steering_words;
mod substituted;
mod tokens;
mod unmarked;
mod vocabulary;
mod word_tree;

/// A part of a string, read in another way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// What it says.
    pub text: String,
    /// Where in the outer text it stands, whole characters.
    pub span: Range<usize>,
    /// Other places in the outer text that have the same reading.
    pub repeats: Vec<Range<usize>>,
    /// By which ways it was reached: `base64`, `base64 → percent`.
    pub path: &'static str,
    /// How much being written so says by itself.
    pub way: Suspicion,
    /// Common words in it that were written so.
    pub words: usize,
    /// Where its parts stand in the plain text. Only of readings that leave marks out or join cells, and encode nothing.
    pub(super) map: Option<SourceMap>,
}

/// Names of the readings that only leave out what stands between words.
pub const REJOINED: [&str; 2] = ["unmarked", "columns"];

/// How honest a way of writing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspicion {
    /// Programs write so every day: base64, hex, `%20`, `\u0041`, accents.
    Usual,
    /// People do not write prose so: leet, spaced-out or joined letters, ciphers, Morse.
    Odd,
    /// Nobody writes prose so but to get it past a filter: letters of several scripts within words, mathematical letters,
    /// `%41%42`, `&#65;`.
    Disguise,
}

/// A longer run of packed text is decoded to here.
pub const DECODED_BYTES: usize = 1 << 20;
/// How often what was decoded is decoded again.
const DEPTH: usize = 3;
/// Maximum number of readings of one string.
const READINGS: usize = 64;
/// Maximum number of such places of one string, over all its readings.
const REPEATS: usize = 256;
/// Minimum length of a text whose letters may be spelled out, be a cipher or have digits among them, in bytes.
const TOKENS_BYTES: usize = 11;
/// Text that all readings of a string may come to: so many bytes, and so many for each byte of it.
const OUTPUT_BYTES: usize = 8 << 10;
const OUTPUT_PER_BYTE: usize = 3;

/// The readings of a text.
#[derive(Debug, Default)]
pub(super) struct Readings {
    pub(super) all: Vec<Reading>,
    /// Number of repeats of all readings.
    repeats: usize,
    /// Whether a bound left some out.
    pub(super) left_out: bool,
}

/// Reads `text`, which is a plain reading already.
pub(super) fn read(text: &str, facts: &Facts) -> Readings {
    // One word too short to be encoded.
    if text.len() < encoded::PACKED_BYTES && text.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Readings::default();
    }
    let mut left = text
        .len()
        .saturating_mul(OUTPUT_PER_BYTE)
        .saturating_add(OUTPUT_BYTES);
    let mut made = Readings::default();
    let mut from = 0;
    add(text, facts, None, &mut made, &mut left);
    for _ in 1..DEPTH {
        let fresh: Vec<Reading> = made.all.get(from..).unwrap_or_default().to_vec();
        from = made.all.len();
        for reading in fresh {
            add(
                &reading.text,
                &Facts::of(&reading.text),
                Some(&reading),
                &mut made,
                &mut left,
            );
        }
    }
    made
}

fn add(text: &str, facts: &Facts, within: Option<&Reading>, made: &mut Readings, left: &mut usize) {
    let mut found: Vec<DecodedPart> = Vec::new();
    escaped::find(text, facts, &mut found);
    encoded::find(text, facts, &mut found);
    packed::find(text, facts, &mut found);
    fold::find(text, facts, &mut found);
    substituted::find(text, facts, &mut found);
    if text.len() >= TOKENS_BYTES {
        let ciphers = cipher::teller();
        let tells = |letters: &[u8]| ciphers(letters) || respelled::tells(letters);
        let tokens = Tokens::of(text, cipher::TELLING_LETTERS, spelled::JOINED, tells);
        spelled::find(text, &tokens, &mut found);
        cipher::find(text, &tokens, &mut found);
        respelled::find(text, facts, &tokens, &mut found);
    }
    for found in found {
        if made.all.len() >= READINGS || found.text.len() > *left {
            made.left_out = true;
            return;
        }
        let all = &mut made.all;
        *left -= found.text.len();
        let (span, path, way) = match within {
            None => (found.span, found.name, found.way),
            Some(outer) => (
                outer.cover(&found.span),
                interned(&format!("{} → {}", outer.path, found.name)),
                found.way.max(outer.way),
            ),
        };
        let text = Plain::of(&found.text).map_or(found.text, |plain| plain.text);
        if let Some(known) = all.iter_mut().find(|known| known.text == text) {
            made.repeats += usize::from(made.repeats < REPEATS && known.repeat(span));
            continue;
        }
        if let Some(page) = Page::of(&text, &Facts::of(&text)) {
            let path = interned(&format!("{path} → html"));
            for text in [page.visible, page.hidden] {
                all.push(Reading {
                    text,
                    span: span.clone(),
                    repeats: Vec::new(),
                    path,
                    way,
                    words: found.words,
                    map: None,
                });
            }
        }
        all.push(Reading {
            text,
            span,
            repeats: Vec::new(),
            path,
            way,
            words: found.words,
            map: None,
        });
    }
    if within.is_none_or(|outer| outer.map.is_none()) {
        let rejoined = [unmarked::read(text), columns::read(text, facts)];
        for (name, copied) in REJOINED.into_iter().zip(rejoined) {
            if let Some(copied) = copied {
                rejoin(copied, within, name, made, left);
            }
        }
    }
}

/// Adds a reading that leaves out what stands between words.
fn rejoin(
    copied: MappedText,
    within: Option<&Reading>,
    name: &'static str,
    made: &mut Readings,
    left: &mut usize,
) {
    let MappedText { text, map } = copied;
    if made.all.len() >= READINGS || text.len() > *left {
        made.left_out = true;
        return;
    }
    *left -= text.len();
    let reading = match within {
        None => Reading {
            span: map.cover(&(0..text.len())).unwrap_or(0..0),
            text,
            repeats: Vec::new(),
            path: name,
            way: Suspicion::Usual,
            words: 0,
            map: Some(map),
        },
        Some(outer) => {
            let path = interned(&format!("{} → {name}", outer.path));
            Reading {
                text,
                span: outer.span.clone(),
                repeats: Vec::new(),
                path,
                way: outer.way,
                words: 0,
                map: None,
            }
        }
    };
    made.all.push(reading);
}

impl Reading {
    /// Adds another place that has the same reading. Returns false if it overlaps a known place.
    fn repeat(&mut self, span: Range<usize>) -> bool {
        let overlaps = |known: &Range<usize>| span.start < known.end && known.start < span.end;
        let is_new =
            self.map.is_none() && !overlaps(&self.span) && !self.repeats.iter().any(overlaps);
        if is_new {
            self.repeats.push(span);
        }
        is_new
    }

    /// Where in the plain text a part of it stands.
    fn cover(&self, part: &Range<usize>) -> Range<usize> {
        self.map
            .as_ref()
            .and_then(|map| map.cover(part))
            .unwrap_or_else(|| self.span.clone())
    }
}

/// Whether a text says something to its reader across marks between words, or down its columns.
pub(super) fn is_rejoined(text: &str) -> bool {
    unmarked::read(text).is_some() || columns::read(text, &Facts::of(text)).is_some()
}

/// A part of a text as one way of writing gives it.
struct DecodedPart {
    name: &'static str,
    way: Suspicion,
    span: Range<usize>,
    text: String,
    words: usize,
}

/// Paths are few: combinations of some fifteen names, at most [`DEPTH`] of them.
fn interned(path: &str) -> &'static str {
    static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut known = KNOWN.lock();
    if let Some(there) = known.get(path) {
        return there;
    }
    let kept: &'static str = Box::leak(path.to_owned().into_boxed_str());
    known.insert(kept);
    kept
}

#[cfg(test)]
mod tests;
