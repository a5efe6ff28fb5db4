//! Whether a character is a letter. The standard library searches a list, which takes hundreds of
//! instructions for letters of many scripts. Here, the answers for a block of characters are
//! computed on first use and kept.

use std::sync::OnceLock;

/// Number of characters in a block, and number of blocks in the Basic Multilingual Plane.
const BLOCK: usize = 256;
const BLOCKS: usize = 0x1_0000 / BLOCK;

/// One bit for each character of a block.
type Bits = [u64; BLOCK / 64];

static BLOCK_BITS: [OnceLock<Bits>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];

/// Reports whether a character is alphabetic: the same as [`char::is_alphabetic`].
#[inline]
pub(super) fn is_alphabetic(c: char) -> bool {
    let code = c as usize;
    if c.is_ascii() {
        return c.is_ascii_alphabetic();
    }
    let Some(block) = BLOCK_BITS.get(code / BLOCK) else {
        return c.is_alphabetic();
    };
    let bits = block.get_or_init(|| compute_bits(code / BLOCK));
    bits.get(code % BLOCK / 64)
        .is_some_and(|bits| bits >> (code % 64) & 1 == 1)
}

fn compute_bits(block: usize) -> Bits {
    let is_letter = |code: usize| {
        u32::try_from(code)
            .ok()
            .and_then(char::from_u32)
            .is_some_and(char::is_alphabetic)
    };
    std::array::from_fn(|word| {
        let first = block * BLOCK + word * 64;
        (0..64)
            .filter(|bit| is_letter(first + bit))
            .fold(0, |bits, bit| bits | 1 << bit)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_character_is_what_the_standard_library_says() {
        for c in '\0'..=char::MAX {
            assert_eq!(super::is_alphabetic(c), c.is_alphabetic(), "{c:?}");
        }
    }
}
