//! An estimate of the cost of judging a message, made before it is judged.

use crate::detect::work::WorkLimits;
use crate::text::is_code;

/// Additional cost of a character that begins markup or an escape, in bytes of prose. An escape can
/// represent a bracket.
const SIGN_BYTES: usize = 16;
/// Minimum length of a run of base64 or hexadecimal characters that may be packed data.
const RUN: usize = 24;
/// Additional cost of a byte of such a run, in bytes of prose: deflate expands data by a factor of
/// up to 1,032.
const EXPANSION: usize = 256;
/// Number of bytes per block, so that the count of such characters fits one byte.
const SIGN_BLOCK: usize = 128;
const WORD: usize = size_of::<u64>();

/// Returns the expected cost of judging a message, in bytes of prose. One cheap pass; never less
/// than the length of the message.
pub fn expected_work(message: &[u8], limits: WorkLimits) -> usize {
    // No branch per byte, so that the compiler can vectorize the loop.
    let in_block = |block: &[u8]| {
        block.iter().fold(0_u8, |signs, byte| {
            signs + u8::from((*byte == b'<') | (*byte == b'\\'))
        })
    };
    let signs: usize = message
        .chunks(SIGN_BLOCK)
        .map(in_block)
        .map(usize::from)
        .sum();
    let packed = packed_bytes(message)
        .saturating_mul(EXPANSION)
        .min(limits.judged_bytes);
    message.len() + signs * SIGN_BYTES + packed
}

/// Returns the number of bytes in runs of at least [`RUN`] base64 characters. Wherever such a run
/// begins, it contains the second word of an aligned pair entirely: it is measured only there.
fn packed_bytes(message: &[u8]) -> usize {
    let (pairs, _) = message.as_chunks::<{ 2 * WORD }>();
    let mut packed = 0;
    let mut run_end = 0;
    for (nth, pair) in pairs.iter().enumerate() {
        let at = nth * 2 * WORD + WORD;
        let second = pair.last_chunk().copied().map_or(0, u64::from_le_bytes);
        if !may_be_code(second) || at < run_end {
            continue;
        }
        let bytes_before = message
            .get(run_end..at)
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|byte| is_code(**byte))
            .count();
        let bytes_after = message
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| is_code(**byte))
            .count();
        if bytes_before + bytes_after >= RUN {
            packed += bytes_before + bytes_after;
        }
        run_end = at + bytes_after;
    }
    packed
}

/// Returns whether all bytes of a word are between `+`, the lowest base64 character, and the end of
/// ASCII.
const fn may_be_code(word: u64) -> bool {
    const HIGH: u64 = u64::from_le_bytes([0x80; WORD]);
    const TO_HIGH: u64 = u64::from_le_bytes([0x80 - b'+'; WORD]);
    (word & !HIGH).wrapping_add(TO_HIGH) & !word & HIGH == HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bytes_are_those_of_long_runs() {
        let mut state = 1_u32;
        for _ in 0..2000 {
            let text: Vec<u8> = (0..200)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    *b"abcXYZ09+/-_abcdefghijklmnopqrs.: \x80"
                        .get(state as usize >> 24 & 0x3f)
                        .unwrap_or(&b'a')
                })
                .collect();
            let runs: usize = text
                .split(|byte| !is_code(*byte))
                .map(<[u8]>::len)
                .filter(|run| *run >= RUN)
                .sum();
            assert_eq!(packed_bytes(&text), runs, "{text:?}");
        }
    }

    #[test]
    fn packed_data_and_markup_are_expected_to_cost_more() {
        let work = |text: &str| expected_work(text.as_bytes(), WorkLimits::default());
        let prose = "The quick brown fox jumps over the lazy dog. ".repeat(1000);
        assert_eq!(work(&prose), prose.len());
        assert!(work(&"H4sIAAAAAAAC".repeat(30)) > 64 << 10);
        assert!(work(&"<b>word</b> ".repeat(1000)) > 30_000);
        assert!(work(&"\\u003cb> ".repeat(1000)) > 20_000);
        assert_eq!(
            packed_bytes(
                &[
                    &b"word "[..],
                    &[b'a'; 24],
                    b" ",
                    &[b'b'; 23],
                    b" word ",
                    &[b'c'; 100]
                ]
                .concat()
            ),
            124
        );
        let all = "A".repeat(8 << 20);
        assert_eq!(work(&all), all.len() + WorkLimits::default().judged_bytes);
    }
}
