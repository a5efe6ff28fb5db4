//! Quotes and brackets: where they close, and how ANSI-C quoting is decoded.

use crate::text::quick::WordSet;
use std::borrow::Cow;
use std::ops::Range;

/// Returns the text between two offsets; empty if they are not character boundaries.
pub(super) fn cut(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end.min(text.len()).max(start))
        .unwrap_or("")
}

/// Returns the position of the next `wanted` from `start`, or the end.
pub(super) fn find(bytes: &[u8], start: usize, wanted: u8) -> usize {
    bytes
        .get(start..)
        .and_then(|rest| rest.iter().position(|b| *b == wanted))
        .map_or(bytes.len(), |at| start + at)
}

/// Returns the position of the next `wanted` from `start`, or the end.
pub(super) fn find_text(text: &str, start: usize, wanted: &str) -> usize {
    text.get(start..)
        .and_then(|rest| rest.find(wanted))
        .map_or(text.len(), |at| start + at)
}

/// Returns the character that starts at an offset.
pub(super) fn char_at(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}

/// Returns the name of letters, digits and underscores that a text begins with, and the rest.
pub(super) fn split_name(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Splits a text at the first `by` that no backslash escapes.
pub(super) fn split_unescaped(text: &str, by: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    let at = text.find(|c: char| {
        let is_end = c == by && !escaped;
        escaped = c == '\\' && !escaped;
        is_end
    })?;
    Some((text.get(..at)?, text.get(at + by.len_utf8()..)?))
}

/// Does the same as [`find`], but skips characters that are escaped by a backslash.
pub(super) fn find_unescaped(bytes: &[u8], start: usize, wanted: u8) -> usize {
    let mut at = start;
    while let Some(b) = bytes.get(at) {
        match b {
            b'\\' => at += 1,
            b if *b == wanted => return at,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Returns where the bracket that was opened before `start` closes, skipping quotes and inner
/// brackets, or the end.
pub(super) fn find_closing(bytes: &[u8], start: usize, closer: u8) -> usize {
    let mut open = vec![closer];
    let mut at = start;
    while let (Some(&b), Some(&expected)) = (bytes.get(at), open.last()) {
        let quoted = expected == b'"';
        match b {
            b'\\' => at += 1,
            b if b == expected => {
                open.pop();
                if open.is_empty() {
                    return at;
                }
            }
            b'\'' if !quoted => at = find(bytes, at + 1, b'\''),
            b'"' if !quoted => open.push(b'"'),
            b'`' => at = find_unescaped(bytes, at + 1, b'`'),
            b'(' if !quoted || bytes.get(at.wrapping_sub(1)) == Some(&b'$') => open.push(b')'),
            b'{' if bytes.get(at.wrapping_sub(1)) == Some(&b'$') => open.push(b'}'),
            b'#' if expected == b')'
                && bytes
                    .get(at.wrapping_sub(1))
                    .is_some_and(u8::is_ascii_whitespace) =>
            {
                at = find(bytes, at, b'\n');
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

/// Operators and parameters of PowerShell that search for what follows.
static SEARCHES: WordSet =
    WordSet::new("-match -notmatch -imatch -cmatch -like -notlike -ilike -clike -pattern");

/// Reports whether a text ends with one of the operators that search for what follows.
fn ends_in_search(text: &str) -> bool {
    let text = text.trim_end_matches([' ', '(', '@']).as_bytes();
    SEARCHES.iter().any(|operator| {
        text.len()
            .checked_sub(operator.len())
            .and_then(|start| text.get(start..))
            .is_some_and(|end| end.eq_ignore_ascii_case(operator.as_bytes()))
    })
}

/// Returns the text without comments, bodies of here-documents, quoted runs that contain white
/// space, and what PowerShell searches for: these are mentioned, not run.
pub(super) fn strip_mentions(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut documents = true;
    let mut searched = false;
    while at < bytes.len() {
        let next = bytes
            .get(at..)
            .and_then(|rest| {
                rest.iter()
                    .position(|b| matches!(b, b'\'' | b'"' | b'\\' | b'#' | b'<'))
            })
            .map_or(bytes.len(), |n| at + n);
        out.push_str(cut(text, at, next));
        match bytes.get(next) {
            Some(b'\\') => {
                let length = char_at(text, next + 1).map_or(0, char::len_utf8);
                out.push_str(cut(text, next, next + 1 + length));
                at = next + 1 + length;
            }
            Some(b'#') => {
                let before = next.checked_sub(1).and_then(|before| bytes.get(before));
                let comment = before.is_none_or(|b| b.is_ascii_whitespace() || *b == b';');
                at = if comment {
                    find(bytes, next, b'\n')
                } else {
                    next + 1
                };
                out.push_str(if comment { "" } else { "#" });
            }
            Some(b'<') if text.get(next..).is_some_and(|rest| rest.starts_with("<<<")) => {
                out.push_str("<<<");
                at = next + 3;
            }
            Some(b'<') => {
                let body = documents.then(|| here_document_body(text, next)).flatten();
                // Stop after the first search for an end that is missing: repeated searches would
                // take quadratic time.
                documents &= body.is_some() || bytes.get(next + 1) != Some(&b'<');
                at = body.as_ref().map_or(next + 1, |body| body.end);
                out.push_str(cut(text, next, body.map_or(next + 1, |body| body.start)));
            }
            Some(mark) => {
                let (end, empty) = match mark {
                    b'\'' => (find(bytes, next + 1, b'\''), "''"),
                    _ => (find_unescaped(bytes, next + 1, b'"'), "\"\""),
                };
                let inside = cut(text, next + 1, end);
                let list = out.strip_suffix(',').filter(|_| searched);
                searched = ends_in_search(&out) || list.is_some_and(|list| list.ends_with(empty));
                out.push_str(if searched || inside.contains([' ', '\n', '\t']) {
                    empty
                } else {
                    inside
                });
                at = end + 1;
            }
            None => break,
        }
    }
    out
}

/// Returns the body of the here-document whose `<<` is at `start`, if a line of its own ends it.
fn here_document_body(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = text
        .get(start..)?
        .strip_prefix("<<")
        .filter(|rest| !rest.starts_with('<'))?;
    let line = rest.split('\n').next()?;
    let word = line.trim_start_matches('-').trim_start();
    let end = word
        .find(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>' | ')'))
        .unwrap_or(word.len());
    let delimiter = word.get(..end)?.trim_matches(['\'', '"', '\\']);
    let is_word_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if delimiter.is_empty() || !delimiter.chars().all(is_word_char) {
        return None;
    }
    let body = start + 2 + line.len();
    let mut at = body + 1;
    for line in text.get(at..)?.split_inclusive('\n') {
        if line.trim() == delimiter {
            return Some(body..at + line.trim_end().len());
        }
        at += line.len();
    }
    None
}

/// Reads `$'…'` from after its opening quote. Returns its value, and the offset after its closing
/// quote.
pub(super) fn read_ansi_c(text: &str, start: usize) -> (String, usize) {
    let bytes = text.as_bytes();
    let end = find_unescaped(bytes, start, b'\'');
    // The value ends at a NUL, like a C string.
    let value = decode_escapes(cut(text, start, end));
    (
        value.split('\0').next().unwrap_or_default().to_owned(),
        end + 1,
    )
}

/// Returns a text as one word of a script; plain ones remain unchanged.
pub(super) fn as_word(text: &str) -> Cow<'_, str> {
    if text.contains([
        ' ', '\t', '\n', '\'', '"', ';', '&', '|', '<', '>', '(', ')', '$', '`', '\\',
    ]) {
        Cow::Owned(format!("'{}'", text.replace('\'', "'\\''")))
    } else {
        Cow::Borrowed(text)
    }
}

/// Decodes backslash escapes as `echo -e`, `printf` and `$'…'` do. Bytes that are not valid UTF-8
/// become characters.
pub(super) fn decode_escapes(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let Some(kind) = chars.next() else {
            out.push(b'\\');
            break;
        };
        match kind {
            'a' => {}
            'b' => out.push(8),
            'e' | 'E' => out.push(0x1b),
            'f' => out.push(0xc),
            'n' => out.push(b'\n'),
            'r' => out.push(b'\r'),
            't' => out.push(b'\t'),
            'v' => out.push(0xb),
            'c' => {
                chars.next();
            }
            'x' => out.push(read_number(&mut chars, 16, 2) as u8),
            'u' => push_code_point(&mut out, read_number(&mut chars, 16, 4)),
            'U' => push_code_point(&mut out, read_number(&mut chars, 16, 8)),
            '0' => out.push(read_number(&mut chars, 8, 3) as u8),
            '1'..='7' => {
                let first = kind.to_digit(8).unwrap_or(0);
                let digits = chars.clone().take(2).take_while(|c| c.is_digit(8)).count();
                let rest = read_number(&mut chars, 8, 2);
                out.push((first * 8u32.pow(digits as u32) + rest) as u8);
            }
            '\\' | '\'' | '"' | '?' => out.push(kind as u8),
            other => {
                out.push(b'\\');
                out.extend(other.encode_utf8(&mut [0; 4]).bytes());
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn read_number(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    radix: u32,
    digits: usize,
) -> u32 {
    let mut value = 0u32;
    if radix == 16 && chars.peek() == Some(&'{') {
        chars.next();
        while let Some(c) = chars.next_if(|c| *c != '}') {
            value = value
                .wrapping_mul(16)
                .wrapping_add(c.to_digit(16).unwrap_or(0));
        }
        chars.next();
        return value;
    }
    for _ in 0..digits {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else {
            break;
        };
        chars.next();
        value = value.wrapping_mul(radix).wrapping_add(digit);
    }
    value
}

fn push_code_point(out: &mut Vec<u8>, code: u32) {
    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend(c.encode_utf8(&mut [0; 4]).bytes());
}
