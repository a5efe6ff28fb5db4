//! The gaps between the words of a text: a blank, punctuation as in sentences, or marks that a
//! model ignores.
//!
//! Markup counts as a gap: tags, link targets, names of JSON members, line numbers and times of
//! subtitles.

use std::ops::Range;

/// Maximum length of a tag, link target, member name or character reference that is read as part of
/// a gap, in bytes.
const PART_BYTES: usize = 200;
/// Maximum length of the name of a JSON member, in bytes.
const NAME_BYTES: usize = 40;

/// Range of lengths of the id of a commit.
const COMMIT_ID: std::ops::RangeInclusive<usize> = 7..=40;

/// The kind of a gap between two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// White space.
    Blank,
    /// The end of a paragraph.
    Paragraph,
    /// Punctuation with white space after it, as in sentences.
    Sentence,
    /// Only marks of emphasis, quotation marks or tags, without white space: the word may continue
    /// after them.
    Inline,
    /// One or more signs that join the parts of a name, an address or a path.
    Joiner,
    /// Any other marks.
    Mark,
    /// Marks with a line end among them.
    Line,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) kind: Kind,
    /// The last character that ends a sentence or a clause, if white space follows it.
    pub(super) clause_end: Option<u8>,
}

/// A word, and the gap before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) gap: Gap,
    pub(super) span: Range<usize>,
}

/// The words of a part of a text, each with the gap before it.
pub(super) struct Words<'t> {
    bytes: &'t [u8],
    at: usize,
    end: usize,
}

impl<'t> Words<'t> {
    pub(super) fn new(text: &'t str, part: Range<usize>) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: part.start,
            end: part.end.min(text.len()),
        }
    }
}

impl Iterator for Words<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        let (start, gap) = read_gap(self.bytes, self.at, self.end);
        let mut at = start;
        while at < self.end {
            match word_char_length(self.bytes, at) {
                0 => {
                    let apostrophe = apostrophe_length(self.bytes, at);
                    if apostrophe == 0
                        || at == start
                        || word_char_length(self.bytes, at + apostrophe) == 0
                    {
                        break;
                    }
                    at += apostrophe;
                }
                length => at += length,
            }
        }
        self.at = at;
        (at > start).then(|| Word {
            gap,
            span: start..at.min(self.end),
        })
    }
}

/// Returns the number of bytes at `at` that belong to a word character, or 0 if there is none.
fn word_char_length(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b) if b.is_ascii_alphanumeric() => 1,
        Some(b) if !b.is_ascii() && punctuation_length(bytes, at) == 0 => 1,
        _ => 0,
    }
}

fn apostrophe_length(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at..).unwrap_or_default() {
        [b'\'', ..] => 1,
        [0xe2, 0x80, 0x99, ..] => 3,
        _ => 0,
    }
}

/// Returns the length of punctuation beyond ASCII: dashes, quotation marks, bullets, ellipses;
/// guillemets; CJK punctuation.
fn punctuation_length(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at..).unwrap_or_default() {
        [0xe2, 0x80, 0x90..=0xaf, ..]
        | [0xe3, 0x80, 0x80..=0x91, ..]
        | [0xe2, 0x94..=0x97, _, ..] => 3,
        [0xc2, 0xab | 0xbb | 0xb7 | 0xa0, ..] => 2,
        _ => 0,
    }
}

/// Returns where the gap that begins at `start` ends, and its kind.
fn read_gap(bytes: &[u8], start: usize, end: usize) -> (usize, Gap) {
    let (mut lines, mut blank, mut mark, mut emphasis, mut joiner) =
        (0_usize, false, false, false, false);
    let mut clause_end = None;
    let mut at = start;
    while at < end {
        let Some(b) = bytes.get(at) else { break };
        let next = bytes.get(at + 1);
        let mut length = 1;
        match b {
            b'\n' => lines += 1,
            b' ' | b'\t' | b'\r' => blank = true,
            b'.' | b',' | b';' | b':' | b'!' | b'?' | b')' => {
                if ends_clause(bytes, at + 1) {
                    clause_end = Some(*b).filter(|b| *b != b')').or(clause_end);
                } else {
                    joiner = true;
                    mark |= *b == b')';
                }
            }
            b'-' | b'_' | b'/' | b'+' | b'=' | b'&' | b'%' | b'@' | b'#'
                if !next.is_some_and(u8::is_ascii_whitespace) && !blank && lines == 0 =>
            {
                joiner = true;
                length = entity_length(bytes, at).unwrap_or(1);
                mark |= length > 1;
            }
            b'<' => {
                let tag = tag_length(bytes, at);
                emphasis |= tag.is_some();
                mark |= tag.is_none();
                length = tag.unwrap_or(1);
            }
            b']' => {
                let target = target_length(bytes, at);
                emphasis |= target.is_some();
                mark |= target.is_none();
                length = target.unwrap_or(1);
            }
            b'[' if begins_link(bytes, at) => emphasis = true,
            b'0'..=b'9' | b'a'..=b'f' if lines > 0 && commit_id_length(bytes, at).is_some() => {
                mark = true;
                length = commit_id_length(bytes, at).unwrap_or(1);
            }
            b'"' => {
                let name = member_name_length(bytes, at);
                emphasis |= name.is_none();
                mark |= name.is_some();
                length = name.unwrap_or(1);
            }
            b'*' | b'~' | b'`' | b'\'' | b'^' => emphasis = true,
            b'\\' => {
                mark = true;
                length = 1 + usize::from(matches!(next, Some(b'n' | b't' | b'r')));
            }
            b'0'..=b'9' => match number_length(bytes, at) {
                Some(digits) if at == start && start == 0 || mark || joiner || lines > 0 => {
                    mark = true;
                    length = digits;
                }
                _ => break,
            },
            b if b.is_ascii_alphabetic() => break,
            b if b.is_ascii() => mark = true,
            _ => {
                length = punctuation_length(bytes, at);
                if length == 0 {
                    break;
                }
                mark = true;
            }
        }
        at += length;
    }
    let has_space = blank || lines > 0;
    let kind = if mark || has_space && (emphasis || joiner && clause_end.is_some()) {
        if lines > 0 { Kind::Line } else { Kind::Mark }
    } else if joiner && emphasis {
        Kind::Mark
    } else if emphasis {
        Kind::Inline
    } else if lines > 1 {
        Kind::Paragraph
    } else if clause_end.is_some() {
        Kind::Sentence
    } else if joiner {
        match (has_space, lines) {
            (false, _) => Kind::Joiner,
            (true, 0) => Kind::Mark,
            (true, _) => Kind::Line,
        }
    } else {
        Kind::Blank
    };
    (at.min(end), Gap { kind, clause_end })
}

/// Reports whether white space follows, directly or after marks that close a quotation or emphasis.
fn ends_clause(bytes: &[u8], at: usize) -> bool {
    let is_closing = |b: &u8| matches!(b, b'*' | b'_' | b'~' | b'`' | b'"' | b'\'' | b')');
    let mut rest = bytes.get(at..).unwrap_or_default().iter().take(5);
    rest.find(|b| !is_closing(b))
        .is_none_or(u8::is_ascii_whitespace)
}

/// Returns the length of a tag.
pub(super) fn tag_length(bytes: &[u8], at: usize) -> Option<usize> {
    let body = bytes.get(at + 1..)?;
    let is_named = body
        .first()
        .is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'/' | b'!'));
    let end = is_named
        .then(|| memchr::memchr3(b'>', b'<', b'\n', body.get(..PART_BYTES).unwrap_or(body)))??;
    (body.get(end) == Some(&b'>')).then_some(end + 2)
}

/// Returns the length of what follows the words of a link: `](target)`, `][label]`.
fn target_length(bytes: &[u8], at: usize) -> Option<usize> {
    let close = match bytes.get(at + 1)? {
        b'(' => b')',
        b'[' => b']',
        _ => return None,
    };
    let body = bytes.get(at + 2..)?;
    let end = body
        .iter()
        .take(PART_BYTES)
        .position(|b| *b == close || *b == b'\n')?;
    (body.get(end) == Some(&close)).then_some(end + 3)
}

/// Reports whether the text of a link begins at a bracket: `[text](target)`, `[text][label]`.
fn begins_link(bytes: &[u8], at: usize) -> bool {
    let body = bytes.get(at + 1..).unwrap_or_default();
    let close = body
        .iter()
        .take(PART_BYTES)
        .position(|b| matches!(b, b']' | b'[' | b'\n'));
    close.is_some_and(|close| {
        body.get(close) == Some(&b']') && target_length(bytes, at + 1 + close).is_some()
    })
}

/// Returns the length of the abbreviated id of a commit at the start of a line of a log.
fn commit_id_length(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let is_hex = |b: &u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f');
    let length = rest
        .iter()
        .take(COMMIT_ID.end() + 1)
        .take_while(|b| is_hex(b))
        .count();
    let id = rest.get(..length)?;
    let is_id = COMMIT_ID.contains(&length)
        && id.iter().any(u8::is_ascii_digit)
        && rest.get(length) == Some(&b' ');
    is_id.then_some(length)
}

/// Returns the length of the name of a JSON member with its colon: `"name": `.
fn member_name_length(bytes: &[u8], at: usize) -> Option<usize> {
    let body = bytes.get(at + 1..)?;
    let end = body
        .iter()
        .take(NAME_BYTES)
        .position(|b| *b == b'"' || *b == b'\n')?;
    let blanks = body
        .get(end + 1..)?
        .iter()
        .take(4)
        .take_while(|b| b.is_ascii_whitespace())
        .count();
    (end > 0 && body.get(end) == Some(&b'"') && body.get(end + 1 + blanks) == Some(&b':'))
        .then_some(end + blanks + 3)
}

/// Returns the length of a named character reference: `&nbsp;`.
fn entity_length(bytes: &[u8], at: usize) -> Option<usize> {
    let body = bytes.get(at..)?.strip_prefix(b"&")?;
    let end = body
        .iter()
        .take(10)
        .position(|b| !b.is_ascii_alphanumeric() && *b != b'#')?;
    (end > 1 && body.get(end) == Some(&b';')).then_some(end + 2)
}

/// Returns the number of digits that are not a word: a line number, a time. A mark or a line end
/// follows them.
fn number_length(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let digits = rest
        .iter()
        .take(PART_BYTES)
        .take_while(|b| b.is_ascii_digit())
        .count();
    let blanks = rest
        .iter()
        .skip(digits)
        .take(PART_BYTES)
        .take_while(|b| matches!(b, b' ' | b'\t' | b'\r'))
        .count();
    let next = rest.get(digits + blanks);
    next.is_none_or(|b| b.is_ascii() && !b.is_ascii_alphanumeric())
        .then_some(digits)
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        Words::new(text, 0..text.len())
            .skip(1)
            .map(|word| word.gap.kind)
            .collect()
    }

    fn words(text: &str) -> Vec<&str> {
        Words::new(text, 0..text.len())
            .map(|word| &text[word.span])
            .collect()
    }

    #[test]
    fn gaps_are_told_apart() {
        use Kind::{Blank, Inline, Joiner, Line, Mark, Paragraph, Sentence};
        for (text, expected) in [
            ("one two\nthree\n\nfour", vec![Blank, Blank, Paragraph]),
            (
                "one, two. three (four) five",
                vec![Sentence, Sentence, Mark, Blank],
            ),
            ("o**n**e t`w`o", vec![Inline, Inline, Blank, Inline, Inline]),
            ("<w>one</w><w>two</w>", vec![Inline]),
            (
                "one_two-three/four.five",
                vec![Joiner, Joiner, Joiner, Joiner],
            ),
            (
                "\"one\" \"two\", [\"three\",\"four\"]",
                vec![Mark, Mark, Mark],
            ),
            ("// one\n// two\n+three", vec![Line, Line]),
            ("[one](http://x) [two][3]", vec![Mark]),
            ("one | two", vec![Mark]),
            (
                "1\n00:00:01,000 --> 00:00:02,000\none\n\n2\n00:00:03,000 --> 00:00:04,000\ntwo",
                vec![Line],
            ),
            (
                "{\"a\":1,\"w\":\"one\"},{\"a\":2,\"w\":\"two\"}",
                vec![Mark],
            ),
        ] {
            assert_eq!(kinds(text), expected, "{text:?}");
        }
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(
            words("don't say “yes” – it’s 12 o'clock"),
            ["don't", "say", "yes", "it’s", "12", "o'clock"]
        );
        assert_eq!(
            words("- pay 900 to\n- him 3"),
            ["pay", "900", "to", "him", "3"]
        );
        assert_eq!(words("a&nbsp;b é"), ["a", "b", "é"]);
    }
}
