//! Reads a command as a terminal or shell would take it: control characters, invisible characters
//! and look-alikes are resolved before anything is lexed.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use crate::text;

/// Returns the readings of a command that are worth lexing: the command itself if it is plain,
/// otherwise the different ways to resolve its control characters.
pub(super) fn readings(raw: &str) -> impl Iterator<Item = Cow<'_, str>> {
    if is_plain(raw) {
        return [Some(Cow::Borrowed(raw)), None, None].into_iter().flatten();
    }
    let folded = fold(raw);
    let dropped = resolve(&folded, Backspace::Drops);
    let erases = folded.contains(['\u{8}', '\u{7f}']);
    let erased = erases
        .then(|| resolve(&folded, Backspace::Erases))
        .filter(|erased| *erased != dropped);
    let spaced = spaced(&folded).map(|spaced| resolve(&spaced, Backspace::Drops));
    [
        erased.map(Cow::Owned),
        spaced.map(Cow::Owned),
        Some(Cow::Owned(dropped)),
    ]
    .into_iter()
    .flatten()
}

/// Returns the text with a space in place of an invisible character between a word and an option,
/// since a filter on the way may replace it with one.
fn spaced(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut changed = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let separates = invisible(c)
            && chars.peek() == Some(&'-')
            && out.ends_with(|c: char| c.is_alphanumeric());
        out.push(if separates { ' ' } else { c });
        changed |= separates;
    }
    changed.then_some(out)
}

/// Reports whether the text contains nothing that must be resolved.
pub(super) fn is_plain(raw: &str) -> bool {
    raw.bytes()
        .all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t'))
}

/// The effect of a backspace on the character before it: a terminal erases it, a pipe does not.
#[derive(Clone, Copy, PartialEq)]
enum Backspace {
    Erases,
    Drops,
}

fn resolve(text: &str, backspace: Backspace) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => out.push(c),
            '\r' => {
                // CR LF ends one line. A lone CR hides the text after it from a reader, so both
                // sides count.
                if chars.peek() != Some(&'\n') {
                    lone_return(&mut out, chars.peek().copied());
                }
            }
            '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push(' '),
            '\u{8}' | '\u{7f}' => {
                if backspace == Backspace::Erases {
                    out.pop();
                }
            }
            '\u{1b}' | '\u{9b}' => escape_sequence(c, &mut chars),
            c if c.is_control() || invisible(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// Treats a carriage return between a word and its arguments as a space, and one before a comment
/// as a line end.
fn lone_return(out: &mut String, next: Option<char>) {
    out.push(if next.is_none_or(|c| c == ' ' || c == '\t') {
        ' '
    } else {
        '\n'
    });
}

/// Skips an ANSI sequence (ECMA-48): CSI up to its final byte, OSC and similar ones up to BEL or
/// ST.
fn escape_sequence(start: char, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let kind = if start == '\u{9b}' {
        Some('[')
    } else {
        chars.next()
    };
    match kind {
        Some('[') => {
            while let Some(c) = chars.next_if(|c| (' '..='?').contains(c)) {
                let _: char = c;
            }
            let _: Option<char> = chars.next_if(|c| ('@'..='~').contains(c));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            // An unclosed string would hide everything after it, so it ends with the line.
            while let Some(c) = chars.next_if(|c| *c != '\n') {
                if c == '\u{7}' {
                    return;
                }
                if c == '\u{1b}' {
                    let _: Option<char> = chars.next_if_eq(&'\\');
                    return;
                }
            }
        }
        Some('(' | ')' | '#' | '%' | ' ') => {
            let _: Option<char> = chars.next_if(|c| *c != '\n');
        }
        _ => {}
    }
}

/// Replaces compatibility forms by their plain ones (NFKC), and look-alikes of Latin letters by the
/// letters. Look-alikes are replaced before NFKC as well, because NFKC maps some of them, such as the
/// lunate sigma, to letters that resemble none.
fn fold(raw: &str) -> Cow<'_, str> {
    if raw.is_ascii() {
        return Cow::Borrowed(raw);
    }
    Cow::Owned(raw.chars().map(look_alike).nfkc().map(look_alike).collect())
}

fn invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Replaces characters that look like shell operators, quotes or letters: see [`text::looks_like`].
fn look_alike(c: char) -> char {
    match c {
        '‐'..='―' | '−' | '﹣' | '－' => '-',
        '∕' | '⁄' | '⧸' | '╱' => '/',
        '∣' | 'ǀ' | '⎪' => '|',
        '∗' | '⁎' => '*',
        '∼' | '˜' => '~',
        '‘' | '’' | '‚' | '‛' => '\'',
        '“' | '”' | '„' => '"',
        '\u{1680}' | '\u{2800}' => ' ',
        c => text::looks_like(c).unwrap_or(c),
    }
}
