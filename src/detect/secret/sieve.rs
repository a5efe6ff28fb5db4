//! Finds the places of a text that are worth a detailed check: literals that shapes begin with,
//! words of names, and runs of code characters.
//!
//! Literals are searched for in the text in lower case, without the characters that may join the
//! pieces of a secret. Each literal is found by its rarest run of four bytes, with one bit: the
//! hash of three bytes selects a word of the table, and the fourth byte a bit of the word. The
//! table takes 32 kB and stays in the nearest cache; an automaton over the same words took 6 MB.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use super::class::Class;

/// Number of bytes by which a literal is found. The shortest literals have one byte less and match
/// any following byte.
const GRAM_BYTES: usize = 4;
/// Maximum length of a literal in bytes.
pub(super) const LONGEST: usize = 64;
/// Number of bits of a hash.
const HASH_BITS: u32 = 12;
/// 2^32 divided by the golden ratio.
const SPREAD: u32 = 0x9e37_79b9;
/// Bytes of a text that are squeezed at once, and the size of the blocks in which they are counted.
const STRETCH: usize = 2 << 10;
const BLOCK: usize = 64;

/// The meaning of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    /// A match of this shape may begin with the literal.
    Shape(u32),
    /// The same for a match that is written backwards.
    Reversed(u32),
    /// The literal may be part of a name that suggests a secret.
    Name,
    /// The literal is part of a name near which this shape is searched for.
    Near(u32),
    /// The whole text may be written backwards.
    Mirrored,
}

/// The literals and their meanings.
pub(super) struct Sieve {
    /// For each hash, a bit for each byte that may follow the hashed bytes.
    bits: Box<[u64; 1 << HASH_BITS]>,
    /// Sorted by their hashes.
    owners: Box<[Owner]>,
    /// Where the owners of each hash begin in `owners`, and where the last ones end.
    starts: Box<[u32]>,
    literals: Box<[Literal]>,
    /// The bytes and the meanings of all literals.
    bytes: Box<[u8]>,
    meanings: Box<[Meaning]>,
}

/// A literal that is found by some of its bytes.
#[derive(Clone, Copy)]
struct Owner {
    gram: u32,
    /// The bits of `gram` that count.
    mask: u32,
    literal: u16,
    /// Length of the literal, and position of the bytes of `gram` in it.
    length: u8,
    at: u8,
    /// The last byte of the literal. Comparing it rules out most candidates.
    last: u8,
}

/// Ends of the bytes and meanings of a literal; they begin at the ends of the previous literal.
#[derive(Clone, Copy, Default)]
struct Literal {
    bytes: u32,
    meanings: u32,
}

/// An item found by the scan.
pub(super) enum ScanItem<'s> {
    /// A literal whose last byte is at `last`.
    Literal {
        last: usize,
        length: usize,
        meanings: &'s [Meaning],
    },
    /// A run of characters that encodings consist of.
    Run { start: usize, end: usize },
}

/// A literal in a squeezed stretch.
struct Hit {
    last: usize,
    length: usize,
    literal: usize,
}

impl std::fmt::Debug for Sieve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sieve({})", self.literals.len())
    }
}

impl Owner {
    /// Creates the owner for a literal of at least three bytes that ends with `last`.
    fn new(word: &[u8], literal: u16, last: u8) -> Self {
        let score = |gram: &[u8]| gram.iter().map(|b| rarity(*b)).sum::<u32>();
        let rarest = word
            .windows(GRAM_BYTES)
            .enumerate()
            .max_by_key(|(_, gram)| score(gram));
        let (at, gram, mask) = match (rarest, word) {
            (Some((at, gram)), _) => (
                at,
                gram.first_chunk().copied().unwrap_or_default(),
                u32::MAX,
            ),
            (None, [a, b, c]) => (0, [*a, *b, *c, 0], u32::MAX >> 8),
            (None, _) => (0, [0; GRAM_BYTES], 0),
        };
        Self {
            gram: u32::from_le_bytes(gram),
            mask,
            literal,
            length: word.len() as u8,
            at: at as u8,
            last,
        }
    }
}

impl Sieve {
    /// Prepares literals, which must be in lower case, at least three bytes long, and without
    /// [`Class::is_joint`] characters.
    ///
    /// # Errors
    /// Returns which literal is too long, or that there are too many literals.
    pub(super) fn new(literals: impl Iterator<Item = (String, Meaning)>) -> Result<Self, String> {
        let mut words: BTreeMap<String, Vec<Meaning>> = BTreeMap::new();
        for (literal, meaning) in literals {
            if literal.len() > LONGEST {
                return Err(format!("`{literal}` is longer than {LONGEST} bytes"));
            }
            let meanings = words.entry(literal).or_default();
            if !meanings.contains(&meaning) {
                meanings.push(meaning);
            }
        }
        let mut bytes = Vec::new();
        let mut meanings = Vec::new();
        let mut owners = Vec::new();
        let mut literals = vec![Literal::default()];
        for (word, word_meanings) in words {
            let literal =
                u16::try_from(literals.len()).map_err(|_| "too many literals".to_owned())?;
            let word: Vec<u8> = word.bytes().map(fold).collect();
            // A literal with a joint never occurs in a squeezed text.
            if let (Some(&last), false) = (word.last(), word.contains(&JOINT)) {
                owners.push(Owner::new(&word, literal, last));
            }
            bytes.extend(word);
            meanings.extend(word_meanings);
            literals.push(Literal {
                bytes: bytes.len() as u32,
                meanings: meanings.len() as u32,
            });
        }
        owners.sort_by_key(|owner| hash(owner.gram));
        let mut bits = Box::new([0_u64; 1 << HASH_BITS]);
        for owner in &owners {
            let next_bits = if owner.mask == u32::MAX {
                1 << bit(owner.gram)
            } else {
                u64::MAX
            };
            bits.get_mut(hash(owner.gram))
                .into_iter()
                .for_each(|bits| *bits |= next_bits);
        }
        let start =
            |min_hash: usize| owners.partition_point(|owner| hash(owner.gram) < min_hash) as u32;
        let starts = (0..=1 << HASH_BITS).map(start).collect();
        let literals = literals.into();
        let bytes = bytes.into();
        let meanings = meanings.into();
        Ok(Self {
            bits,
            owners: owners.into(),
            starts,
            literals,
            bytes,
            meanings,
        })
    }

    /// Calls `emit` with the items of `text` in order, until `emit` returns `false`. `runs` are the
    /// runs of code characters in the text.
    pub(super) fn scan<'s>(
        &'s self,
        text: &str,
        runs: &[Range<usize>],
        mut emit: impl FnMut(ScanItem<'s>) -> bool,
    ) {
        let mut runs = runs.iter().peekable();
        let mut stretch = CompactStretch::default();
        let mut hits = Vec::new();
        for (nth, part) in text.as_bytes().chunks(STRETCH).enumerate() {
            stretch.fill(part);
            self.find(&stretch, &mut hits);
            // Found nearly in this order.
            hits.sort_by_key(|hit: &Hit| (hit.last, Reverse(hit.length)));
            let mut places = stretch.places(part);
            for Hit {
                last,
                length,
                literal,
            } in hits.drain(..)
            {
                let last = nth * STRETCH + places.locate(last);
                while let Some(run) = runs.next_if(|run| run.end <= last) {
                    if !emit(ScanItem::Run {
                        start: run.start,
                        end: run.end,
                    }) {
                        return;
                    }
                }
                let meanings = self.literal(literal, |literal| literal.meanings);
                if !emit(ScanItem::Literal {
                    last,
                    length,
                    meanings: self.meanings.get(meanings).unwrap_or_default(),
                }) {
                    return;
                }
            }
        }
        for run in runs {
            if !emit(ScanItem::Run {
                start: run.start,
                end: run.end,
            }) {
                return;
            }
        }
    }

    /// Finds every literal that ends in the new part of a stretch. In a function of its own, so
    /// that the compiler keeps the variables of the loop in registers.
    #[inline(never)]
    fn find(&self, stretch: &CompactStretch, hits: &mut Vec<Hit>) {
        let bits = &*self.bits;
        for (at, gram) in stretch.padded().windows(GRAM_BYTES).enumerate() {
            let gram = u32::from_le_bytes(gram.first_chunk().copied().unwrap_or_default());
            if bits
                .get(hash(gram))
                .is_some_and(|bits| bits >> bit(gram) & 1 == 1)
            {
                self.confirm(stretch, at, gram, hits);
            }
        }
    }

    #[inline(never)]
    fn confirm(&self, stretch: &CompactStretch, at: usize, gram: u32, hits: &mut Vec<Hit>) {
        let owners = self
            .starts
            .get(hash(gram))
            .zip(self.starts.get(hash(gram) + 1));
        let owners = owners
            .and_then(|(start, end)| self.owners.get(*start as usize..*end as usize))
            .unwrap_or_default();
        let bytes = stretch.bytes();
        for owner in owners
            .iter()
            .filter(|owner| owner.gram == gram & owner.mask)
        {
            let Some(start) = at.checked_sub(owner.at.into()) else {
                continue;
            };
            let length = usize::from(owner.length);
            let last = start + length - 1;
            if last < stretch.carried || bytes.get(last) != Some(&owner.last) {
                continue;
            }
            let range = self.literal(owner.literal.into(), |literal| literal.bytes);
            if bytes.get(start..=last) == self.bytes.get(range) {
                hits.push(Hit {
                    last,
                    length,
                    literal: owner.literal.into(),
                });
            }
        }
    }

    fn literal(&self, literal: usize, end: fn(&Literal) -> u32) -> Range<usize> {
        let end = |at: usize| {
            self.literals
                .get(at)
                .map_or(0, |literal| end(literal) as usize)
        };
        end(literal.saturating_sub(1))..end(literal)
    }
}

/// The replacement for a character that joins pieces.
const JOINT: u8 = 0;

/// Returns the form of a byte in the scan: lower case, or [`JOINT`] for a character that the scan
/// skips. NUL becomes a byte that no UTF-8 text contains.
const fn fold(byte: u8) -> u8 {
    match byte {
        0 => 0xff,
        byte if Class::from_byte(byte).is_joint() => JOINT,
        byte => byte.to_ascii_lowercase(),
    }
}

const FOLDED: [u8; 256] = byte_table!(fold);

/// Returns how rare a byte is in ordinary text.
fn rarity(byte: u8) -> u32 {
    const COMMON: &[u8] = b"etaoinsrlhdcumpfgybwvkxjqz";
    COMMON
        .iter()
        .position(|common| *common == byte)
        .map_or(20, |at| at as u32)
}

/// Returns a hash of the first three of four bytes.
#[inline]
fn hash(gram: u32) -> usize {
    ((gram << 8).wrapping_mul(SPREAD) >> (32 - HASH_BITS)) as usize
}

/// Returns the bit of a word of [`Sieve::bits`] that represents the fourth byte.
#[inline]
fn bit(gram: u32) -> u32 {
    gram >> 24 & 63
}

/// A stretch of a text in its squeezed form, after the end of the previous stretch.
#[derive(Default)]
struct CompactStretch {
    /// Has room for a block after the end. The first byte there is not part of any gram.
    bytes: Vec<u8>,
    length: usize,
    /// Number of bytes kept from the previous stretch.
    carried: usize,
    /// For each [`BLOCK`] of the stretch, the number of squeezed bytes before it.
    blocks: [u16; STRETCH / BLOCK],
}

impl CompactStretch {
    fn fill(&mut self, part: &[u8]) {
        self.carried = self.length.min(LONGEST);
        self.bytes
            .copy_within(self.length - self.carried..self.length, 0);
        let mut length = self.carried;
        self.bytes
            .resize(self.bytes.len().max(length + part.len() + BLOCK), JOINT);
        for (block, before) in part.chunks(BLOCK).zip(&mut self.blocks) {
            *before = length as u16;
            let rest = self.bytes.get_mut(length..).unwrap_or_default();
            let Some(squeezed) = rest.first_chunk_mut::<BLOCK>() else {
                break;
            };
            let mut count = 0;
            for byte in block {
                let folded = FOLDED.get(usize::from(*byte)).copied().unwrap_or(*byte);
                if let Some(slot) = squeezed.get_mut(count % BLOCK) {
                    *slot = folded;
                }
                // Without a branch, because the ends of words cannot be predicted.
                count += usize::from(folded != JOINT);
            }
            length += count;
        }
        self.length = length;
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Returns the squeezed bytes with one extra byte, which is not part of any gram.
    fn padded(&self) -> &[u8] {
        self.bytes.get(..=self.length).unwrap_or_default()
    }

    /// Returns the places of the squeezed bytes in `part`.
    fn places<'p>(&'p self, part: &'p [u8]) -> Places<'p> {
        Places {
            part,
            blocks: self
                .blocks
                .get(..part.len().div_ceil(BLOCK))
                .unwrap_or_default(),
            next: 0,
            squeezed: self.carried,
        }
    }
}

/// The places of squeezed bytes in a part of a text, which are asked for in ascending order.
struct Places<'p> {
    part: &'p [u8],
    /// For each [`BLOCK`], the number of squeezed bytes before it.
    blocks: &'p [u16],
    /// A position in the part, and the number of squeezed bytes before it.
    next: usize,
    squeezed: usize,
}

impl Places<'_> {
    /// Returns the position in the part of the squeezed byte at `at`.
    fn locate(&mut self, at: usize) -> usize {
        let block = self.next / BLOCK;
        let later = self.blocks.get(block + 1..).unwrap_or_default();
        let skipped = later.partition_point(|before| usize::from(*before) <= at);
        if let Some(before) = skipped.checked_sub(1).and_then(|last| later.get(last)) {
            (self.next, self.squeezed) = ((block + skipped) * BLOCK, usize::from(*before));
        }
        let rest = self.part.get(self.next..).unwrap_or_default();
        for (place, byte) in (self.next..).zip(rest) {
            if fold(*byte) == JOINT {
                continue;
            }
            if self.squeezed >= at {
                self.next = place;
                return place;
            }
            self.squeezed += 1;
        }
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns each literal found, with the position of its last byte.
    fn find_all(literals: &[&str], text: &str) -> Vec<(usize, String)> {
        let sieve = Sieve::new(
            literals
                .iter()
                .map(|literal| ((*literal).to_owned(), Meaning::Name)),
        )
        .unwrap();
        let mut found = Vec::new();
        sieve.scan(text, &[], |item| {
            let ScanItem::Literal { last, length, .. } = item else {
                return true;
            };
            let literal = text
                .get(..=last)
                .unwrap()
                .bytes()
                .rev()
                .filter(|b| !Class::from_byte(*b).is_joint())
                .take(length);
            let literal: Vec<u8> = literal.collect::<Vec<_>>().into_iter().rev().collect();
            found.push((last, String::from_utf8(literal).unwrap()));
            true
        });
        found
    }

    #[test]
    fn literals_are_found_in_any_case_and_in_pieces() {
        let found = |text: &str| find_all(&["akia", "key", "пароль", "__k"], text);
        assert_eq!(found("AKIA"), [(3, "AKIA".into())]);
        assert_eq!(found("a K\n+i,a"), [(7, "aKia".into())]);
        assert_eq!(found("my__KEY"), [(4, "__K".into()), (6, "KEY".into())]);
        assert_eq!(
            found("пароль: \0key"),
            [(11, "пароль".into()), (17, "key".into())]
        );
        assert_eq!(found("ak ke "), []);
    }

    #[test]
    fn what_ends_together_is_told_the_longest_first() {
        let ends: Vec<String> = find_all(&["token", "ken", "authtoken"], "auth token")
            .into_iter()
            .map(|(_, word)| word)
            .collect();
        assert_eq!(ends, ["authtoken", "token", "ken"]);
    }

    #[test]
    fn every_place_in_a_long_text_once() {
        let longest = "q".repeat(LONGEST);
        for gap in [
            STRETCH - 70,
            STRETCH - 5,
            STRETCH - 1,
            STRETCH,
            3 * STRETCH + 7,
        ] {
            for filler in ["x", " ", "\u{e9}"] {
                let text = format!(
                    "{}key{}{longest}",
                    filler.repeat(gap),
                    "pass word ".repeat(700)
                );
                let found = find_all(&["key", "pass", "swo", &longest], &text);
                assert_eq!(found.len(), 1402, "{gap} {filler}");
                assert_eq!(
                    found.first().map(|(at, _)| *at),
                    Some(gap * filler.len() + 2)
                );
                assert_eq!(found.last().map(|(at, _)| *at), Some(text.len() - 1));
                assert!(found.is_sorted());
            }
        }
    }

    #[test]
    fn runs_come_between_literals_in_the_order_of_the_text() {
        let sieve = Sieve::new(
            [
                ("key".to_owned(), Meaning::Name),
                (":/x".to_owned(), Meaning::Name),
            ]
            .into_iter(),
        )
        .unwrap();
        let mut items = Vec::new();
        sieve.scan("key abcd:/x key", &[4..8, 12..15], |found| {
            items.push(match found {
                ScanItem::Literal { last, .. } => last,
                ScanItem::Run { start, .. } => 100 + start,
            });
            true
        });
        assert_eq!(items, [2, 104, 10, 14, 112]);
        assert!(Sieve::new(std::iter::once(("x".repeat(LONGEST + 1), Meaning::Name))).is_err());
    }
}
