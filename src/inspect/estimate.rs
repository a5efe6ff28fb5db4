//! An estimate of what judging a message costs, made before it is judged.

use crate::detect::work::WorkLimits;
use crate::text::is_code;

/// What a character that begins markup or an escape adds, in bytes of prose. An escape can stand for a bracket.
const SIGN_BYTES: usize = 16;
/// Shortest run of base64 or hexadecimal characters that may be packed data.
const RUN: usize = 24;
/// What a byte of such a run adds, in bytes of prose: deflate expands data by a factor of up to 1,032.
const EXPANSION: usize = 256;
/// Bytes whose signs fit a counter of one byte.
const SIGN_BLOCK: usize = 128;
const WORD: usize = size_of::<u64>();

/// The expected cost of judging a message, in bytes of prose. One cheap pass; never less than the length of the message.
pub fn expected_work(message: &[u8], limits: WorkLimits) -> usize {
    // Without a branch for each byte, so that the compiler makes vector code of it.
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

/// Bytes in runs of at least [`RUN`] characters of base64. Such a run holds a second word of an aligned pair whole,
/// wherever it begins: only there is it measured.
fn packed_bytes(message: &[u8]) -> usize {
    let (pairs, _) = message.as_chunks::<{ 2 * WORD }>();
    let mut packed = 0;
    let mut done = 0;
    for (nth, pair) in pairs.iter().enumerate() {
        let at = nth * 2 * WORD + WORD;
        let second = pair.last_chunk().copied().map_or(0, u64::from_le_bytes);
        if !may_be_code(second) || at < done {
            continue;
        }
        let back = message
            .get(done..at)
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|byte| is_code(**byte))
            .count();
        let on = message
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take_while(|byte| is_code(**byte))
            .count();
        if back + on >= RUN {
            packed += back + on;
        }
        done = at + on;
    }
    packed
}

/// Whether all bytes of a word are between `+`, the lowest code character, and the end of ASCII.
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
