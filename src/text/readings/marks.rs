//! Finds the blocks of a text in which marks are close together: a cheap test before words are
//! read.

use std::cell::OnceCell;
use std::ops::Range;

use crate::text::blocks::{self, BLOCK, Block};

/// Minimum number of marks in a block and the block before it together.
const MARKS: u8 = 2;

/// Returns the blocks of a text that contain several marks, with those around them. Costs little
/// more than a look at each byte.
pub(super) fn find_marked(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut marked: Vec<Range<usize>> = Vec::new();
    let mut before = MarkedBlock::new(blocks::first(&[]));
    for (nth, block) in blocks::all(bytes).enumerate() {
        let block = MarkedBlock::new(block);
        if block.marks + before.marks >= MARKS && !is_prose(&before, &block) {
            let end = (nth + 2) * BLOCK;
            match marked.last_mut() {
                Some(last) if last.end + BLOCK >= nth * BLOCK => last.end = end,
                _ => marked.push(nth.saturating_sub(2) * BLOCK..end),
            }
        }
        before = block;
    }
    marked
}

/// Reports whether the only marks in two consecutive blocks are ends of clauses, no three of which
/// are as close together as the ends of clauses of one word.
fn is_prose(first: &MarkedBlock, second: &MarkedBlock) -> bool {
    let Some(ends) = first
        .clause_ends()
        .zip(second.clause_ends())
        .map(|(first, second)| first | second << BLOCK)
    else {
        return false;
    };
    // Keep the ends that have another one at most 32 bytes before them.
    let keep_close = |ends: u128| {
        ends & [1, 2, 4, 8, 16]
            .into_iter()
            .fold(ends << 1, |behind, by| behind | behind << by)
    };
    keep_close(keep_close(ends)) == 0
}

/// A block, with its number of marks and of capitals after small letters.
struct MarkedBlock {
    block: Block,
    marks: u8,
    /// What [`MarkedBlock::clause_ends`] has found.
    clause_ends: OnceCell<Option<u128>>,
}

impl MarkedBlock {
    fn new(block: Block) -> Self {
        let follows = blocks::followers(&block);
        let humps: u8 = block.iter().zip(&follows).fold(0, |sum, (a, b)| {
            sum + u8::from(a.is_ascii_lowercase() & b.is_ascii_uppercase())
        });
        Self {
            block,
            marks: blocks::count(&block, is_mark) + humps,
            clause_ends: OnceCell::new(),
        }
    }

    /// Returns where clauses end with a mark followed by white space, or `None` if there are other
    /// marks. A block is asked twice: with the one before it and with the one after it.
    fn clause_ends(&self) -> Option<u128> {
        *self.clause_ends.get_or_init(|| self.find_clause_ends())
    }

    fn find_clause_ends(&self) -> Option<u128> {
        if self.marks == 0 && !blocks::any(&self.block, is_rare) {
            return Some(0);
        }
        let mut ends = 0_u64;
        for bit in blocks::bits(blocks::mask(&self.block, |byte| {
            is_mark(byte) | is_rare(byte)
        })) {
            let byte = |at: usize| self.block.get(at).copied().unwrap_or(b'*');
            let at = bit as usize;
            let before = byte(at.wrapping_sub(1));
            let after = byte(at + 1);
            match byte(at) {
                b'.' | b',' | b';' | b':' | b'!' | b'?' if after.is_ascii_whitespace() => {
                    ends |= 1 << bit
                }
                b'\'' if before.is_ascii_alphabetic() && after.is_ascii_alphabetic() => {}
                _ => return None,
            }
        }
        (u32::from(self.marks) == ends.count_ones()).then_some(u128::from(ends))
    }
}

/// Reports whether a byte may be a mark although it does not count as one.
fn is_rare(b: u8) -> bool {
    (b == b'\'') | (b == b')') | !b.is_ascii()
}

/// Reports whether a byte is rare in sentences: any sign other than an apostrophe or a closing
/// bracket. Dashes, quotation marks and bullets beyond ASCII all begin with the same byte.
fn is_mark(b: u8) -> bool {
    let is_printable = b.wrapping_sub(b'!') < 94;
    is_printable & !b.is_ascii_alphanumeric() & (b != b'\'') & (b != b')') | (b == 0xe2)
}

#[cfg(test)]
#[allow(clippy::string_slice, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn prose_with_commas_is_not_marked() {
        let prose = "A kettle that isn't full heats faster, as one would expect of it. Rinse the filter every second week with vinegar. ";
        // For a mark at the end of a block, the block does not contain what follows.
        let bytes: usize = find_marked(prose.repeat(40).as_bytes())
            .iter()
            .map(Range::len)
            .sum();
        assert!(bytes < prose.len() * 20, "{bytes}");
        for marks in [
            "Stop. Read. This. ",
            "now, (here), ",
            "'now', 'here' ",
            "a * b * ",
            "“now”, “here” ",
            "readThis, nowHere, ",
            "a), b), ",
        ] {
            let text = format!("{}{marks}{prose}", prose.repeat(4));
            assert!(!find_marked(text.as_bytes()).is_empty(), "{marks}");
        }
    }

    #[test]
    fn blocks_are_marked_by_their_signs() {
        let signs = |block: &[u8]| {
            let sign =
                |b: &&u8| b.is_ascii_punctuation() && !matches!(b, b'\'' | b')') || **b == 0xe2;
            let hump = |pair: &&[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
            (block.iter().filter(sign).count() + block.windows(2).filter(hump).count()) as u8
        };
        for step in [3, 17, 31, 32, 40, 63, 64, 65, 90, 127, 130, 200] {
            for sign in ["*", "aB", "“", "'", ")", "é", "\u{7f}"] {
                let text = format!("{}{sign}", "x".repeat(step)).repeat(12);
                let blocks: Vec<u8> = text.as_bytes().chunks(BLOCK).map(signs).collect();
                let many = |nth: usize| {
                    blocks[nth] + nth.checked_sub(1).map_or(0, |before| blocks[before]) >= MARKS
                };
                let expected = (0..blocks.len())
                    .filter(|nth| many(*nth))
                    .flat_map(|nth| nth.saturating_sub(2)..nth + 2);
                let found = find_marked(text.as_bytes())
                    .into_iter()
                    .flat_map(|part| part.start / BLOCK..part.end / BLOCK);
                let expected: std::collections::BTreeSet<usize> = expected.collect();
                assert!(expected.is_subset(&found.collect()), "{step} {sign}");
                assert_eq!(
                    expected.is_empty(),
                    find_marked(text.as_bytes()).is_empty(),
                    "{step} {sign}"
                );
            }
        }
    }
}
