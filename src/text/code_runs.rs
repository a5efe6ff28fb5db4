//! Runs of code characters: the characters that make up base64 and hexadecimal numbers.

use std::ops::Range;

use super::blocks;

/// Minimum length of a run that [`code_runs`] finds, in bytes. A run of this length always contains
/// a whole aligned block.
pub const CODE_RUN: usize = 2 * BLOCK;
const BLOCK: usize = 8;

/// Returns the runs of at least `least` code characters; [`CODE_RUN`] is the lower limit of
/// `least`. Takes about one instruction per byte of prose.
pub fn code_runs(bytes: &[u8], least: usize) -> impl Iterator<Item = Range<usize>> {
    let least = least.max(CODE_RUN);
    let mut chunk = 0;
    let mut block_bits = 0_u8;
    let mut end = 0;
    std::iter::from_fn(move || {
        loop {
            while block_bits == 0 {
                let rest = bytes.get(chunk..).filter(|rest| !rest.is_empty())?;
                block_bits = whole_blocks(rest);
                chunk += blocks::BLOCK;
            }
            let block = chunk - blocks::BLOCK + block_bits.trailing_zeros() as usize * BLOCK;
            block_bits &= block_bits - 1;
            if block < end {
                continue;
            }
            let before = bytes
                .get(end..block)
                .unwrap_or_default()
                .iter()
                .rev()
                .take_while(|byte| is_code(**byte))
                .count();
            let after = bytes
                .get(block..)
                .unwrap_or_default()
                .iter()
                .take_while(|byte| is_code(**byte))
                .count();
            end = block + after;
            if before + after >= least {
                return Some(block - before..end);
            }
        }
    })
}

/// Returns a bit for each of the first eight blocks, set if it contains only code characters.
fn whole_blocks(bytes: &[u8]) -> u8 {
    let codes = blocks::mask(&blocks::first(bytes), |byte| {
        let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        let digit = byte.wrapping_sub(b'0') < 10;
        letter | digit | (byte == b'+') | (byte == b'/') | (byte == b'-') | (byte == b'_')
    });
    codes
        .to_le_bytes()
        .iter()
        .enumerate()
        .fold(0, |all, (at, block)| {
            all | u8::from(*block == u8::MAX) << at
        })
}

/// Reports whether a byte is a code character.
#[allow(clippy::indexing_slicing, reason = "there is an entry for each byte")]
pub const fn is_code(byte: u8) -> bool {
    CODES[byte as usize]
}

const CODES: [bool; 256] = byte_table!(is_alphanumeric_or_sign);

const fn is_alphanumeric_or_sign(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_whole_and_have_the_minimum_length() {
        for byte in 0..=255 {
            assert_eq!(
                whole_blocks(&[byte; BLOCK]),
                u8::from(is_code(byte)),
                "{byte}"
            );
        }
        let runs = |text: &str, least| code_runs(text.as_bytes(), least).collect::<Vec<_>>();
        assert!(runs(&"a".repeat(CODE_RUN - 1), 0).is_empty() && runs("", 0).is_empty());
        assert_eq!(runs("a ab+/cdef-_ghij1234 b", 18).first(), Some(&(2..20)));
        assert!(runs("a ab+/cdef-_ghij1234 b", 19).is_empty());
        for length in [CODE_RUN, CODE_RUN + 1, 63, 64, 65, 200] {
            for lead in 0..80 {
                let text = format!(
                    "{}{}= {}",
                    ".".repeat(lead),
                    "x".repeat(length),
                    "y".repeat(length)
                );
                assert_eq!(
                    runs(&text, CODE_RUN),
                    [
                        lead..lead + length,
                        lead + length + 2..lead + 2 * length + 2
                    ]
                );
                assert!(runs(&text, length + 1).is_empty());
            }
        }
    }
}
