//! Letters moved: shifted in the alphabet (Caesar, rot13), mirrored in it (Atbash), or written backwards.
//!
//! All shifts at once: the differences between a word's letters stay what they are. A few long words that orders are made
//! of give the shift away.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::{Found, Way, regions, vocabulary};

/// Words that give a cipher away: long enough that nothing else has their differences.
const TELLING: [&str; 58] = [
    "ignore",
    "ignoring",
    "disregard",
    "forget",
    "previous",
    "prior",
    "earlier",
    "instructions",
    "instruction",
    "system",
    "prompt",
    "reveal",
    "override",
    "assistant",
    "remember",
    "permanently",
    "administrator",
    "password",
    "credentials",
    "secret",
    "following",
    "important",
    "immediately",
    "execute",
    "transfer",
    "forward",
    "message",
    "without",
    "customer",
    "attacker",
    "database",
    "approve",
    "approval",
    "bypass",
    "request",
    "response",
    "conversation",
    "confidential",
    "document",
    "question",
    "answer",
    "attention",
    "required",
    "critical",
    "urgent",
    "directive",
    "additional",
    "everything",
    "before",
    "should",
    "please",
    "summarize",
    "contents",
    "account",
    "command",
    "developer",
    "include",
    "records",
];
/// Telling words of one cipher in a region.
const TOLD: usize = 2;
/// Common words in what comes out.
const WORDS: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Forward,
    Mirrored,
    Backward,
}

static TABLE: LazyLock<HashMap<u64, (Order, u8)>> = LazyLock::new(|| {
    let mut table = HashMap::new();
    for word in TELLING {
        let letters: Vec<u8> = word.bytes().map(|b| b - b'a').collect();
        let mirrored: Vec<u8> = letters.iter().map(|l| 25 - l).collect();
        let backward: Vec<u8> = letters.iter().rev().copied().collect();
        for (order, letters) in [(Order::Forward, letters), (Order::Mirrored, mirrored), (Order::Backward, backward)] {
            table.insert(differences(letters.iter().copied()), (order, letters.first().copied().unwrap_or(0)));
        }
    }
    table
});

/// A number for the differences between letters (FNV-1a).
fn differences(letters: impl Iterator<Item = u8>) -> u64 {
    let mut hash = Differences::default();
    letters.for_each(|letter| hash.add(letter));
    hash.hash
}

struct Differences {
    hash: u64,
    last: Option<u8>,
    length: usize,
    first: u8,
}

impl Default for Differences {
    fn default() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, last: None, length: 0, first: 0 }
    }
}

impl Differences {
    #[inline]
    fn add(&mut self, letter: u8) {
        match self.last {
            Some(last) => self.hash = (self.hash ^ u64::from((letter + 26 - last) % 26)).wrapping_mul(0x100_0000_01b3),
            None => self.first = letter,
        }
        self.last = Some(letter);
        self.length += 1;
    }
}

pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    let told = told(text.as_bytes());
    if told.len() < TOLD {
        return;
    }
    let mut ciphers: Vec<(Order, u8)> = told.iter().map(|(cipher, _)| *cipher).collect();
    ciphers.sort_by_key(|(order, shift)| (*order as u8, *shift));
    ciphers.dedup();
    for cipher in ciphers {
        let places: Vec<Range<usize>> =
            told.iter().filter(|(other, _)| *other == cipher).map(|(_, place)| place.clone()).collect();
        if places.len() < TOLD {
            continue;
        }
        for span in regions::around(text, places) {
            let Some(region) = text.get(span.clone()) else { continue };
            for (name, text) in undone(region, cipher) {
                let words = vocabulary::words_in(&text);
                if words >= WORDS {
                    found.push(Found { name, way: Way::Odd, span: span.clone(), text, words });
                }
            }
        }
    }
}

/// Telling words, each with the cipher that it is written in.
fn told(bytes: &[u8]) -> Vec<((Order, u8), Range<usize>)> {
    let mut told = Vec::new();
    let mut word = Differences::default();
    let table = &*TABLE;
    for (at, b) in bytes.iter().chain(std::iter::once(&b' ')).enumerate() {
        let letter = (b | 0x20).wrapping_sub(b'a');
        if letter < 26 {
            word.add(letter);
            continue;
        }
        if word.length >= 5
            && let Some((order, first)) = table.get(&word.hash)
        {
            let shift = (word.first + 26 - first) % 26;
            if (*order, shift) != (Order::Forward, 0) {
                told.push(((*order, shift), at - word.length..at));
            }
        }
        if word.length > 0 {
            word = Differences::default();
        }
    }
    told
}

fn undone(text: &str, (order, shift): (Order, u8)) -> Vec<(&'static str, String)> {
    let moved = |c: char| {
        let base = match c {
            'a'..='z' => b'a',
            'A'..='Z' => b'A',
            _ => return c,
        };
        let letter = (u8::try_from(c).unwrap_or(base) - base + 26 - shift) % 26;
        char::from(base + if order == Order::Mirrored { 25 - letter } else { letter })
    };
    match order {
        Order::Forward if shift == 13 => vec![("rot13", text.chars().map(moved).collect())],
        Order::Forward => vec![("caesar", text.chars().map(moved).collect())],
        Order::Mirrored => vec![("atbash", text.chars().map(moved).collect())],
        // Of the whole, or of each word.
        Order::Backward => vec![
            ("reversed", text.chars().rev().map(moved).collect()),
            (
                "reversed",
                text.split(' ').map(|word| word.chars().rev().map(moved).collect::<String>()).collect::<Vec<_>>().join(" "),
            ),
        ],
    }
}
