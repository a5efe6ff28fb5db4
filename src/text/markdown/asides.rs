//! Further content that Markdown and its relatives do not display: attributes in braces (kramdown,
//! Pandoc), words after a fence, cells beyond a table's head (GFM 4.10), phantoms and white letters
//! of formulas.

use std::ops::Range;

use super::PART_BYTES;
use crate::text::lines::lines;
use crate::text::presentational_attrs::is_prose;
use crate::text::{Facts, contains};

/// Commands in formulas that reserve space for the content of the following braces, but do not
/// display it.
const PHANTOMS: [&str; 6] = [
    r"phantom{",
    r"\textcolor{white}{",
    r"\color{white}",
    r"\textcolor{#fff",
    r"\color{#fff",
    r"\begin{comment}",
];
/// Minimum number of words after a fence that cannot be a language and options.
const FENCE_WORDS: usize = 5;

/// Finds all of this content, except for words after fences.
pub(super) fn find(text: &str, facts: &Facts, cuts: &mut Vec<(Range<usize>, &str)>) {
    if facts.has(b'{') && facts.has(b'=') && contains(text, "=\"") {
        find_attributes(text, cuts);
    }
    if facts.has(b'\\') {
        find_phantoms(text, cuts);
    }
    if facts.has(b'|') && (contains(text, "|-") || contains(text, "| -") || contains(text, "|:")) {
        find_extra_cells(text, cuts);
    }
}

fn find_attributes(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    for (start, line) in lines(text) {
        let inner = line.trim_end();
        if inner.ends_with('}')
            && let Some(open) = inner.rfind('{')
        {
            let before = inner.get(..open).unwrap_or_default();
            let block = inner.get(open..).unwrap_or_default();
            let is_attached = before.starts_with('#')
                || before.ends_with([')', ']', '`'])
                || block.starts_with("{:");
            if is_attached && block.contains("=\"") && block.split('"').any(is_prose) {
                cuts.push((start + open..start + inner.len(), ""));
            }
        }
    }
}

fn find_phantoms(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    for name in PHANTOMS {
        for at in memchr::memmem::find_iter(text.as_bytes(), name) {
            let from = at + name.len() - usize::from(name.ends_with('{'));
            let rest = crate::text::cut(text.get(from..).unwrap_or_default(), PART_BYTES);
            let lead = rest.find(['{', '\n']).unwrap_or(rest.len());
            let length = match name {
                r"\begin{comment}" => rest.find(r"\end{comment}").unwrap_or(0),
                _ => lead + braces_length(rest.get(lead..).unwrap_or_default()),
            };
            if text.get(from..from + length).is_some_and(is_prose) {
                cuts.push((from..from + length, "{}"));
            }
        }
    }
}

/// Returns the length of the braces that open here, with their content.
fn braces_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    for (at, b) in rest.bytes().enumerate() {
        match b {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if at == 0 { 0 } else { at + 1 };
        }
    }
    0
}

/// Finds cells of a row beyond those of the head.
fn find_extra_cells(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    let mut columns = None;
    for (start, line) in lines(text) {
        let row = line.trim();
        let at = start + (line.len() - line.trim_start().len());
        if !row.starts_with('|') {
            columns = None;
        } else if row.contains("--")
            && row
                .bytes()
                .all(|b| matches!(b, b'|' | b'-' | b':' | b' ' | b'\t'))
        {
            columns = Some(
                bar_positions(row)
                    .len()
                    .saturating_sub(usize::from(row.ends_with('|'))),
            );
        } else if let Some(columns) = columns
            && let Some(last) = bar_positions(row).get(columns)
            && let Some(extra) = row.get(*last + 1..)
            && is_prose(extra.trim_matches([' ', '|']))
        {
            cuts.push((at + last + 1..at + row.len(), ""));
        }
    }
}

/// Returns the positions of the bars that separate the cells of a row.
fn bar_positions(row: &str) -> Vec<usize> {
    let mut positions = Vec::new();
    let mut in_code = false;
    let mut last = b' ';
    for (at, b) in row.bytes().enumerate() {
        match b {
            b'`' => in_code = !in_code,
            b'|' if last != b'\\' && !in_code => positions.push(at),
            _ => {}
        }
        last = b;
    }
    positions
}

/// Finds the text after a fence other than a language and options.
pub(super) fn find_fence_text(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    let mut open = false;
    for (start, line) in lines(text) {
        if memchr::memchr2(b'`', b'~', line.as_bytes()).is_none() {
            continue;
        }
        let inner = line.trim_start();
        let mark = inner
            .bytes()
            .take_while(|b| matches!(b, b'`' | b'~'))
            .count();
        if mark >= 3 {
            let rest = inner.get(mark..).unwrap_or_default();
            let info = rest.trim();
            if std::mem::replace(&mut open, true) {
                open = !info.is_empty();
            } else if has_prose(info) {
                let language = info.split_ascii_whitespace().next().map_or(0, str::len);
                let from = start + line.len() - rest.trim_start().len() + language;
                cuts.push((from..start + line.trim_end().len(), ""));
            }
        }
    }
}

fn has_prose(info: &str) -> bool {
    let is_plain = |word: &&str| {
        word.bytes()
            .all(|b| b.is_ascii_alphabetic() || matches!(b, b',' | b'.' | b'\''))
    };
    !info.contains('`')
        && info
            .split_ascii_whitespace()
            .skip(1)
            .filter(is_plain)
            .count()
            >= FENCE_WORDS
}
