//! Secrets in pieces, assembled from the lines and literals of one text, or from the arguments of a
//! call.

use std::ops::Range;

use super::class::Class;

/// Maximum length of a piece, number of pieces and length of the assembled text, in bytes: a secret
/// that was split is not a document.
const PIECE_BYTES: usize = 512;
const PIECES: usize = 64;
const ASSEMBLED_BYTES: usize = 16 << 10;
/// Maximum length of the joints between two pieces, in bytes.
const JOINT_BYTES: usize = 24;
/// Cost of one step from piece to piece, in bytes.
const STEP_BYTES: usize = 12;

/// Text assembled from pieces.
pub(super) struct AssembledText {
    pub(super) text: String,
    /// For each piece but the first: where it begins in the assembled text, and where in the
    /// original text.
    seams: Vec<(usize, usize)>,
    /// Number of steps that were needed to assemble the text.
    steps: usize,
}

impl AssembledText {
    /// Returns the cost of assembling the text, in bytes.
    pub(super) fn cost(&self) -> usize {
        self.text.len() * 2 + self.steps * STEP_BYTES
    }

    /// Reports whether a seam is within a range.
    pub(super) fn has_seam_within(&self, span: &Range<usize>) -> bool {
        self.seams
            .iter()
            .any(|(at, _)| span.start < *at && *at < span.end)
    }

    /// Returns the positions where pieces begin.
    pub(super) fn piece_starts(&self) -> Vec<usize> {
        self.seams.iter().map(|(at, _)| *at).collect()
    }

    /// Reports whether a piece begins at `at`.
    pub(super) fn has_seam_at(&self, at: usize) -> bool {
        self.seams.iter().any(|(seam, _)| *seam == at)
    }

    /// Reports whether a seam is before `end`.
    pub(super) fn has_seam_before(&self, end: usize) -> bool {
        self.has_seam_within(&(0..end))
    }

    /// Returns the position in the original text that `end` corresponds to.
    pub(super) fn original_end(&self, end: usize) -> usize {
        let seam = self.seams.iter().rev().find(|(at, _)| *at < end);
        seam.map_or(end, |(at, from)| from + (end - at))
    }
}

/// Joins the values of a call's arguments that can be pieces of a secret: short, and without white
/// space.
pub(super) fn join_arguments(parts: &[&str]) -> Option<AssembledText> {
    let mut assembled = AssembledText {
        text: String::new(),
        seams: Vec::new(),
        steps: 0,
    };
    let fits = |part: &&&str| {
        !part.is_empty() && part.len() <= PIECE_BYTES && !part.trim().contains(char::is_whitespace)
    };
    for part in parts.iter().filter(fits).take(PIECES) {
        if assembled.text.len() + part.len() > ASSEMBLED_BYTES {
            break;
        }
        if !assembled.text.is_empty() {
            assembled
                .seams
                .push((assembled.text.len(), assembled.text.len()));
        }
        assembled.text.push_str(part.trim());
    }
    (!assembled.seams.is_empty()).then_some(assembled)
}

/// Returns the beginning of a text with the joints between its pieces removed; `None` if there are
/// no joints.
pub(super) fn assemble(text: &str, limit: usize) -> Option<AssembledText> {
    let mut assembled = AssembledText {
        text: String::new(),
        seams: Vec::new(),
        steps: 0,
    };
    let bytes = text.as_bytes();
    let mut at = 0;
    while assembled.text.len() < limit {
        assembled.steps += 1;
        let piece = bytes
            .get(at..)?
            .iter()
            .take(limit)
            .take_while(|byte| !Class::from_byte(**byte).is_joint() && byte.is_ascii())
            .count();
        assembled.text.push_str(text.get(at..at + piece)?);
        at += piece;
        let joint = joint_length(bytes.get(at..)?);
        if joint == 0 {
            // A sign that joins nothing belongs to the text around it.
            match bytes.get(at) {
                Some(b'+') => {
                    let signs = bytes
                        .get(at..)?
                        .iter()
                        .take(JOINT_BYTES)
                        .take_while(|byte| **byte == b'+')
                        .count();
                    assembled.text.push_str(text.get(at..at + signs)?);
                    at += signs;
                }
                _ => break,
            }
            continue;
        }
        at += joint;
        assembled.seams.push((assembled.text.len(), at));
    }
    let last = assembled.seams.last().map(|(at, _)| *at)?;
    (last > 0).then_some(assembled)
}

/// Returns the length of the joint at the beginning of `bytes`: blanks, line ends (also written as
/// escapes), quotes, and signs between them.
fn joint_length(bytes: &[u8]) -> usize {
    let mut quoted = false;
    // A period between quotes joins literals; elsewhere it may be part of a secret.
    let joins = |byte: &&u8| {
        quoted |= matches!(byte, b'"' | b'\'' | b'`');
        Class::from_byte(**byte).is_joint() || quoted && **byte == b'.'
    };
    let length = bytes.iter().take(JOINT_BYTES).take_while(joins).count();
    let joint = bytes.get(..length).unwrap_or_default();
    let blank = joint.iter().any(|byte| {
        matches!(
            byte,
            b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'`' | b'\\'
        )
    });
    if !blank {
        return 0;
    }
    // `\n` as two characters.
    let escaped = joint.ends_with(b"\\") && matches!(bytes.get(length), Some(b'n' | b'r'));
    length + usize::from(escaped)
}

/// Returns where the literal of `length` bytes that ends at `last` begins, and whether its bytes
/// are contiguous.
pub(super) fn literal_start(text: &str, last: usize, length: usize) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    let from = (last + 1).checked_sub(length)?;
    if bytes
        .get(from..=last)?
        .iter()
        .all(|byte| !Class::from_byte(*byte).is_joint())
    {
        return Some((from, true));
    }
    let mut remaining = length;
    for at in (last.saturating_sub(length * 6)..=last).rev() {
        remaining -= usize::from(!Class::from_byte(*bytes.get(at)?).is_joint());
        if remaining == 0 {
            return Some((at, false));
        }
    }
    None
}

/// Reports whether a new word begins at `start`: no letter or digit precedes it, unless it is part
/// of an escape.
pub(super) fn begins_word(text: &str, start: usize) -> bool {
    let bytes = text.as_bytes();
    let alnum = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_alphanumeric)
    };
    if !alnum(Some(start)) || !alnum(start.checked_sub(1)) {
        return true;
    }
    let escape = start.checked_sub(2).and_then(|at| bytes.get(at..start));
    matches!(
        escape,
        Some([b'\\', b'n' | b'r' | b't' | b'b' | b'f' | b'v'])
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(text: &str) -> Option<String> {
        assemble(text, 100).map(|joined| joined.text)
    }

    #[test]
    fn pieces_are_put_together() {
        for text in [
            "AKIA\nABCD",
            "AKIA\" + \"ABCD",
            "AKIA', 'ABCD",
            "AKIA\" . \"ABCD",
            "AKIA\\\n   ABCD",
            "AKIA\\nABCD",
            "A K I A A B C D",
            "AKIA\"\"ABCD",
        ] {
            assert_eq!(squeezed(text).as_deref(), Some("AKIAABCD"), "{text}");
        }
        assert_eq!(squeezed("a+b\"c").as_deref(), Some("a+bc"));
        assert_eq!(squeezed("AKIA&ABCD"), None);
        assert_eq!(squeezed("AKIA"), None);
    }

    #[test]
    fn places_are_those_of_the_text() {
        let joined = assemble("AKIA\" + \"ABCD\" use", 100).unwrap();
        assert!(joined.has_seam_before(8) && !joined.has_seam_before(4));
        assert_eq!((joined.original_end(4), joined.original_end(8)), (4, 13));
    }

    #[test]
    fn arguments_that_are_texts_are_no_pieces() {
        assert_eq!(
            join_arguments(&["AKIA", "a text", "ABCD"]).unwrap().text,
            "AKIAABCD"
        );
        assert!(join_arguments(&["AKIA"]).is_none() && join_arguments(&["", "x"]).is_none());
    }
}
