//! A small linear model of wording: hashed runs of words, each with a weight, added up over windows of whole sentences. What
//! it says is one more signal ([`super::signal`]); it decides nothing by itself.

mod file;
mod words;

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

pub use file::FILE_BYTES;
use words::{Piece, Reader, Told};

/// A window is at most so long, unless one sentence is.
const WINDOW_BYTES: usize = 300;
/// Most runs of words named to explain a score.
const NAMED: usize = 5;
/// Binary digits behind the point of a weight in points.
const FRACTION: u32 = 16;

/// The weights that come with the binary. The script that trains them is `tests/bench/detection/model/train.py`.
static BUILTIN: LazyLock<Result<Arc<Model>, String>> = LazyLock::new(|| Model::read(include_bytes!("weights.bin")).map(Arc::new));

/// A sentence, or a part of a long one, and what its runs of words weigh.
struct Weighed {
    piece: Piece,
    sum: i64,
    most: i8,
    strongest: Range<usize>,
}

/// Weights of runs of words.
pub struct Model {
    name: String,
    /// Points of a window in which nothing weighs, times 2^[`FRACTION`]: less than nothing.
    bias: i64,
    /// Points of a weight of 1, times 2^[`FRACTION`].
    scale: i64,
    /// Hashes of runs of words, each where its own hash says or behind it; 0 is an empty place.
    keys: Vec<u32>,
    weights: Vec<i8>,
}

impl Model {
    /// The one that comes with the binary.
    ///
    /// # Errors
    /// It is broken, which tests rule out.
    pub fn builtin() -> Result<Arc<Self>, String> {
        BUILTIN.clone()
    }

    /// Its name and the beginning of its digest: which weights they are.
    pub fn version(&self) -> &str {
        &self.name
    }

    /// Tells of the windows of a text that come to something to how many points, and where the run of words stands that weighs
    /// most in it: windows that have it in common are told as one. Linear in the text.
    pub(super) fn windows(&self, text: &str, mut tell: impl FnMut(Range<usize>, i32)) {
        let pieces = self.weighed(text);
        let mut best: Option<(Range<usize>, i32)> = None;
        let (mut end, mut total) = (0, 0_i64);
        for (at, first) in pieces.iter().enumerate() {
            if end <= at {
                (end, total) = (at + 1, first.sum);
            }
            while let Some(next) = pieces.get(end).filter(|next| next.piece.end - first.piece.start <= WINDOW_BYTES) {
                total += next.sum;
                end += 1;
            }
            let points = self.points(total);
            total -= first.sum;
            let most = pieces
                .get(at..end)
                .unwrap_or_default()
                .iter()
                .max_by_key(|weighed| weighed.most)
                .filter(|weighed| weighed.most > 0);
            let Some(span) = most.filter(|_| points > 0).map(|weighed| weighed.strongest.clone()) else { continue };
            match &mut best {
                Some((last, most)) if *last == span => *most = points.max(*most),
                _ => {
                    if let Some((span, points)) = best.replace((span, points)) {
                        tell(span, points);
                    }
                }
            }
        }
        if let Some((span, points)) = best {
            tell(span, points);
        }
    }

    fn weighed(&self, text: &str) -> Vec<Weighed> {
        let mut pieces = Vec::new();
        let (mut sum, mut most, mut strongest) = (0, 0, 0..0);
        Reader::new(text.as_bytes()).read(|told| match told {
            Told::Run(hash, span) => {
                let weight = self.weight(hash);
                sum += i64::from(weight);
                // A word alone says little, and where it stands less.
                if weight > most
                    && text
                        .get(span.clone())
                        .is_some_and(|run| run.contains(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()))
                {
                    (most, strongest) = (weight, span);
                }
            }
            Told::Piece(piece) => {
                pieces.push(Weighed { piece, sum, most, strongest: whole_characters(text, std::mem::take(&mut strongest)) });
                (sum, most) = (0, 0);
            }
        });
        pieces
    }

    /// The runs of words that weigh most in a text, with their points: why its score is what it is. They are words that stand
    /// in texts that are public, since nothing else has a weight; digits are told as `0`.
    pub fn strongest(&self, text: &str) -> Vec<(String, i32)> {
        let mut found: Vec<(i8, Range<usize>)> = Vec::new();
        Reader::new(text.as_bytes()).read(|told| {
            if let Told::Run(hash, span) = told {
                let weight = self.weight(hash);
                if weight > 0 {
                    found.push((weight, span));
                }
            }
        });
        found.sort_by_key(|(weight, span)| (std::cmp::Reverse(*weight), span.start));
        let mut named: Vec<(String, i32)> = Vec::new();
        for (weight, span) in found {
            let Some(words) = text.get(span) else { continue };
            let words: Vec<String> = words.split(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric()).map(told).collect();
            let words = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
            if named.len() < NAMED && named.iter().all(|(other, _)| *other != words) {
                named.push((words, points(i64::from(weight) * self.scale)));
            }
        }
        named
    }

    fn points(&self, sum: i64) -> i32 {
        points(sum.saturating_mul(self.scale).saturating_add(self.bias))
    }

    fn weight(&self, hash: u32) -> i8 {
        let mask = self.keys.len().wrapping_sub(1);
        let mut at = place(hash) & mask;
        // A quarter of the places at the least is empty.
        while let Some(key) = self.keys.get(at).filter(|key| **key != 0) {
            if *key == hash {
                return self.weights.get(at).copied().unwrap_or(0);
            }
            at = (at + 1) & mask;
        }
        0
    }
}

/// Whole points.
fn points(fixed: i64) -> i32 {
    i32::try_from(fixed >> FRACTION).unwrap_or(if fixed > 0 { i32::MAX } else { i32::MIN })
}

/// Where a hash is looked for first.
fn place(hash: u32) -> usize {
    (hash ^ (hash >> 16)) as usize
}

fn told(word: &str) -> String {
    let mut told = String::new();
    for c in word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c.to_ascii_lowercase() }) {
        if c != '0' || !told.ends_with('0') {
            told.push(c);
        }
    }
    told
}

fn whole_characters(text: &str, range: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)
}

/// Which weights they are: it is part of a rule set's digest.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Model").field(&self.name).finish()
    }
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests;
