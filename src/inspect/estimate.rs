//! An estimate of what judging a message costs, made before it is judged.

use memchr::memchr2_iter;

use crate::detect::work::WorkLimits;
use crate::text::code_runs;

/// What a character that begins markup or an escape adds, in bytes of prose. An escape can stand for a bracket.
const SIGN_BYTES: usize = 16;
/// Shortest run of base64 or hexadecimal characters that may be packed data.
const RUN: usize = 24;
/// What a byte of such a run adds, in bytes of prose: deflate expands data by a factor of up to 1,032.
const EXPANSION: usize = 256;

/// The expected cost of judging a message, in bytes of prose. One cheap pass; never less than the length of the message.
pub fn expected_work(message: &[u8], limits: WorkLimits) -> usize {
    let signs = memchr2_iter(b'<', b'\\', message).count();
    let packed = packed_bytes(message).saturating_mul(EXPANSION).min(limits.judged_bytes);
    message.len() + signs * SIGN_BYTES + packed
}

/// Bytes in runs of at least [`RUN`] characters of base64.
fn packed_bytes(message: &[u8]) -> usize {
    code_runs(message, RUN).map(|run| run.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_data_and_markup_are_expected_to_cost_more() {
        let work = |text: &str| expected_work(text.as_bytes(), WorkLimits::default());
        let prose = "The quick brown fox jumps over the lazy dog. ".repeat(1000);
        assert_eq!(work(&prose), prose.len());
        assert!(work(&"H4sIAAAAAAAC".repeat(30)) > 64 << 10);
        assert!(work(&"<b>word</b> ".repeat(1000)) > 30_000);
        assert!(work(&"\\u003cb> ".repeat(1000)) > 20_000);
        assert_eq!(packed_bytes(&[&b"word "[..], &[b'a'; 24], b" ", &[b'b'; 23], b" word ", &[b'c'; 100]].concat()), 124);
        let all = "A".repeat(8 << 20);
        assert_eq!(work(&all), all.len() + WorkLimits::default().judged_bytes);
    }
}
