//! Targets and titles of links, inline and in definitions (CommonMark 0.31, 4.7 and 6.3).

use std::ops::Range;

use super::PART_BYTES;

/// Maximum nesting of brackets in a target (CommonMark requires at least three).
const DEPTH: usize = 16;

/// The part of a definition after its colon.
pub(super) struct Definition {
    pub(super) target: Range<usize>,
    /// Including its quotes.
    pub(super) title: Option<Range<usize>>,
    /// The end of the line that it ends on.
    pub(super) end: usize,
}

/// Reads a definition from after its colon.
pub(super) fn read_definition(text: &str, at: usize) -> Option<Definition> {
    let start = skip_space(text, at, 1);
    let target = find_target(text, start)?;
    let bare_end = line_end(text, target.end);
    let title = Some(skip_space(text, target.end, 1))
        .filter(|from| *from > target.end)
        .and_then(|from| find_quoted(text, from));
    match title.as_ref().and_then(|title| line_end(text, title.end)) {
        Some(end) => Some(Definition { target, title, end }),
        None => bare_end.map(|end| Definition {
            target,
            title: None,
            end,
        }),
    }
}

/// Returns the title of a link whose parenthesis opened before `at`.
pub(super) fn find_title(text: &str, at: usize) -> Option<Range<usize>> {
    let start = skip_space(text, at, 1);
    let target = find_target(text, start).unwrap_or(start..start);
    let from = skip_space(text, target.end, 1);
    let title = find_quoted(text, from).filter(|_| from > target.end)?;
    let close = skip_space(text, title.end, 1);
    text.get(close..)
        .is_some_and(|rest| rest.starts_with(')'))
        .then_some(target.end..title.end)
}

/// Skips white space with at most `lines` line ends. In block quotes, lines continue with their
/// `>`.
fn skip_space(text: &str, at: usize, lines: usize) -> usize {
    let mut end = at;
    let mut line_ends = 0;
    for b in text
        .as_bytes()
        .get(at..)
        .unwrap_or_default()
        .iter()
        .take(PART_BYTES)
    {
        match b {
            b' ' | b'\t' | b'\r' => {}
            b'\n' if line_ends < lines => line_ends += 1,
            b'>' if line_ends > 0 => {}
            _ => break,
        }
        end += 1;
    }
    end
}

fn find_target(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(at..)?;
    if rest.first() == Some(&b'<') {
        let end = rest
            .iter()
            .take(PART_BYTES)
            .position(|b| matches!(b, b'>' | b'\n'))
            .filter(|end| rest.get(*end) == Some(&b'>'))?;
        return Some(at..at + end + 1);
    }
    let mut depth = 0_usize;
    let mut length = 0;
    for b in rest.iter().take(PART_BYTES) {
        match b {
            b'(' if depth == DEPTH => return None,
            b'(' => depth += 1,
            b')' if depth == 0 => break,
            b')' => depth -= 1,
            b if b.is_ascii_whitespace() => break,
            _ => {}
        }
        length += 1;
    }
    (length > 0 && length < PART_BYTES).then_some(at..at + length)
}

/// Returns the range of the quotes or brackets that open at `at`, including them; `None` if an
/// empty line comes before their end.
fn find_quoted(text: &str, at: usize) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(at..)?;
    let close = match rest.first()? {
        b'(' => b')',
        quote @ (b'"' | b'\'') => *quote,
        _ => return None,
    };
    let mut last = 0;
    for (nth, b) in rest.iter().enumerate().skip(1).take(PART_BYTES) {
        match b {
            b if *b == close && last != b'\\' => return Some(at..at + nth + 1),
            b'\n' if last == b'\n' => return None,
            _ => {}
        }
        last = *b;
    }
    None
}

/// Returns the end of the line, if nothing else is on it.
fn line_end(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let blank = rest
        .bytes()
        .take_while(|b| matches!(b, b' ' | b'\t' | b'\r'))
        .count();
    match rest.as_bytes().get(blank) {
        None => Some(text.len()),
        Some(b'\n') => Some(at + blank + 1),
        Some(_) => None,
    }
}
