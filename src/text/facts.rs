//! What a text contains, found in one pass.

use std::ops::Range;

/// Minimum length of a run of code characters, in bytes.
pub const CODE_RUN: usize = 16;

/// The runs of code characters, of which base64 and hexadecimal numbers consist, that have at least [`CODE_RUN`] bytes.
pub fn code_runs(text: &str) -> Vec<Range<usize>> {
    runs(text.as_bytes(), CODE_RUN, is_code)
}

/// Whether a byte is a code character.
pub(crate) const fn is_code(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Runs of at least `least` bytes of one kind. Reads one byte in `least` where there are none.
fn runs(bytes: &[u8], least: usize, of_kind: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let (mut at, mut done) = (least - 1, 0);
    while let Some(b) = bytes.get(at) {
        if !of_kind(*b) {
            at += least;
            continue;
        }
        let before = bytes.get(done..at).unwrap_or_default().iter().rev().take_while(|b| of_kind(**b)).count();
        let after = bytes.get(at..).unwrap_or_default().iter().take_while(|b| of_kind(**b)).count();
        done = at + after;
        if before + after >= least {
            runs.push(at - before..done);
        }
        at = done + least;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_are_whole_and_have_the_minimum_length() {
        assert!(code_runs(&"a".repeat(CODE_RUN - 1)).is_empty());
        assert_eq!(code_runs("a ab+/cdef-_ghij1234 b"), [2..20]);
        for length in [CODE_RUN, CODE_RUN + 1, 100] {
            for lead in 0..40 {
                let text = format!("{}{}= {}", "é ".repeat(lead), "x".repeat(length), "y".repeat(length));
                let start = lead * 3;
                assert_eq!(code_runs(&text), [start..start + length, start + length + 2..start + 2 * length + 2]);
            }
        }
    }
}
