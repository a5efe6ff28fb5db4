//! Stretches of base64 letters with a few other characters between them.

use std::ops::Range;

use crate::text::blocks::{self, BLOCK};

/// Minimum number of base64 letters that are decoded although other characters are among them.
const SCATTERED: usize = 40;
/// Maximum number of consecutive other characters between its letters.
const BETWEEN: usize = 3;
/// Maximum number of consecutive letters without a digit or a capital after a small letter; more
/// are words, not base64.
const WORD_LETTERS: usize = 24;

/// Returns stretches of base64 letters with a few other characters between them.
pub(super) fn find(bytes: &[u8], part: Range<usize>) -> Vec<Range<usize>> {
    let mut stretches = Stretches::new(part.start);
    let part_bytes = bytes
        .get(part.start..part.end.min(bytes.len()))
        .unwrap_or_default();
    // Whether the last letter was a small one.
    let mut follows_small = false;
    for (nth, block) in blocks::all(part_bytes).enumerate() {
        let at = |bit: u32| part.start + nth * BLOCK + bit as usize;
        let capitals = blocks::mask(&block, |byte| byte.is_ascii_uppercase());
        let small = blocks::mask(&block, |byte| byte.is_ascii_lowercase());
        let digits = blocks::mask(&block, |byte| byte.is_ascii_digit());
        let mut letters = capitals | small | digits;
        let is_sign = |byte| (byte == b'+') | (byte == b'/');
        if blocks::any(&block, is_sign) {
            letters |= blocks::mask(&block, is_sign);
        }
        let humps = digits | capitals & small << 1;
        let mut left = letters;
        while left != 0 {
            let first = left.trailing_zeros();
            let end = first + (left >> first).trailing_ones();
            let is_set = |mask: u64, bit: u32| mask >> bit & 1 == 1;
            let is_hump = is_set(humps, first) || follows_small && is_set(capitals, first);
            stretches.add_first(at(first), is_hump);
            let mut next = first + 1;
            for hump in blocks::bits(humps & blocks::below(end) & !blocks::below(next)) {
                stretches.add_plain((hump - next) as usize);
                stretches.add_hump();
                next = hump + 1;
            }
            stretches.add_plain((end - next) as usize);
            follows_small = is_set(small, end - 1);
            left &= !blocks::below(end);
        }
    }
    stretches.finish()
}

/// Stretches of base64 letters, collected letter by letter. A hump is a digit, or a capital after a
/// small letter; other letters are plain.
struct Stretches {
    complete: Vec<Range<usize>>,
    current: Range<usize>,
    letters: usize,
    gaps: usize,
    /// Number of letters after the last hump.
    plain: usize,
}

impl Stretches {
    fn new(start: usize) -> Self {
        Self {
            complete: Vec::new(),
            current: start..start,
            letters: 0,
            gaps: 0,
            plain: 0,
        }
    }

    /// Adds the first letter of a run.
    fn add_first(&mut self, at: usize, is_hump: bool) {
        self.plain = if is_hump { 0 } else { self.plain + 1 };
        if at - self.current.end > BETWEEN || self.plain > WORD_LETTERS {
            self.begin(at);
        }
        if self.letters == 0 {
            self.current.start = at;
        }
        self.gaps += usize::from(at > self.current.end && self.letters > 0);
        self.letters += 1;
        self.current.end = at + 1;
    }

    /// Adds a hump that directly follows the last letter.
    fn add_hump(&mut self) {
        self.plain = 0;
        self.letters += 1;
        self.current.end += 1;
    }

    /// Adds plain letters that directly follow the last letter.
    fn add_plain(&mut self, mut count: usize) {
        loop {
            let added = count.min(WORD_LETTERS.saturating_sub(self.plain));
            self.plain += added;
            self.letters += added;
            self.current.end += added;
            count -= added;
            if count == 0 {
                return;
            }
            self.begin(self.current.end);
            self.letters = 1;
            self.current.end += 1;
            count -= 1;
        }
    }

    /// Ends the current stretch and begins another one.
    fn begin(&mut self, at: usize) {
        if self.letters >= SCATTERED && self.gaps > 0 {
            self.complete.push(self.current.clone());
        }
        (self.letters, self.gaps, self.plain) = (0, 0, 0);
        self.current = at..self.current.end;
    }

    fn finish(mut self) -> Vec<Range<usize>> {
        self.begin(self.current.end);
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::super::packed::is_base64;
    use super::*;

    /// Returns what [`find`] does, byte by byte.
    fn scattered_by_bytes(text: &str) -> Vec<Range<usize>> {
        let mut stretches = Stretches::new(0);
        let mut last = b' ';
        for (at, byte) in text
            .bytes()
            .enumerate()
            .filter(|(_, byte)| is_base64(*byte))
        {
            let follows_small = last.is_ascii_lowercase();
            let is_hump = byte.is_ascii_digit() || byte.is_ascii_uppercase() && follows_small;
            stretches.add_first(at, is_hump);
            last = byte;
        }
        stretches.finish()
    }

    #[test]
    fn stretches_are_found_by_blocks_as_by_bytes() {
        let pieces = [
            "SWdub3JlIGFs",
            "words",
            " ",
            ".",
            "...",
            "    ",
            "CAPS",
            "x9/+",
            "é",
            "aB",
            "longerwordsinarow",
        ];
        let mut state = 7_usize;
        let mut found = 0;
        for _ in 0..400 {
            let mut text = String::new();
            for _ in 0..60 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                text.push_str(pieces[(state >> 33) % pieces.len()]);
            }
            let stretches = find(text.as_bytes(), 0..text.len() + BLOCK);
            assert_eq!(stretches, scattered_by_bytes(&text), "{text}");
            found += stretches.len();
        }
        assert!(found > 300, "{found}");
    }
}
