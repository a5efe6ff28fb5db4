//! Further content that Markdown and its relatives do not display: attributes in braces (kramdown,
//! Pandoc), words after a fence, cells beyond a table's head (GFM 4.10), phantoms and white letters
//! of formulas.

use std::ops::Range;

use super::PART_BYTES;
use crate::text::presentational_attrs::prose;
use crate::text::{Facts, holds};

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
    if facts.has(b'{') && facts.has(b'=') && holds(text, "=\"") {
        attributes(text, cuts);
    }
    if facts.has(b'\\') {
        phantoms(text, cuts);
    }
    if facts.has(b'|') && (holds(text, "|-") || holds(text, "| -") || holds(text, "|:")) {
        cells(text, cuts);
    }
}

fn attributes(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let inner = line.trim_end();
        if inner.ends_with('}')
            && let Some(open) = inner.rfind('{')
        {
            let before = inner.get(..open).unwrap_or_default();
            let held = inner.get(open..).unwrap_or_default();
            let placed = before.starts_with('#')
                || before.ends_with([')', ']', '`'])
                || held.starts_with("{:");
            if placed && held.contains("=\"") && held.split('"').any(prose) {
                cuts.push((start + open..start + inner.len(), ""));
            }
        }
        start += line.len();
    }
}

fn phantoms(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    for name in PHANTOMS {
        for at in memchr::memmem::find_iter(text.as_bytes(), name) {
            let from = at + name.len() - usize::from(name.ends_with('{'));
            let rest = crate::text::cut(text.get(from..).unwrap_or_default(), PART_BYTES);
            let lead = rest.find(['{', '\n']).unwrap_or(rest.len());
            let length = match name {
                r"\begin{comment}" => rest.find(r"\end{comment}").unwrap_or(0),
                _ => lead + braces(rest.get(lead..).unwrap_or_default()),
            };
            if text.get(from..from + length).is_some_and(prose) {
                cuts.push((from..from + length, "{}"));
            }
        }
    }
}

/// Returns the length of the braces that open here, with their content.
fn braces(rest: &str) -> usize {
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
fn cells(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    let mut columns = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let row = line.trim();
        let at = start + (line.len() - line.trim_start().len());
        start += line.len();
        if !row.starts_with('|') {
            columns = None;
        } else if row.contains("--")
            && row
                .bytes()
                .all(|b| matches!(b, b'|' | b'-' | b':' | b' ' | b'\t'))
        {
            columns = Some(
                bars(row)
                    .len()
                    .saturating_sub(usize::from(row.ends_with('|'))),
            );
        } else if let Some(columns) = columns
            && let Some(last) = bars(row).get(columns)
            && let Some(more) = row.get(*last + 1..)
            && prose(more.trim_matches([' ', '|']))
        {
            cuts.push((at + last + 1..at + row.len(), ""));
        }
    }
}

/// Returns the positions of the bars that separate the cells of a row.
fn bars(row: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut code = false;
    let mut last = b' ';
    for (at, b) in row.bytes().enumerate() {
        match b {
            b'`' => code = !code,
            b'|' if last != b'\\' && !code => found.push(at),
            _ => {}
        }
        last = b;
    }
    found
}

/// Finds the text after a fence other than a language and options.
pub(super) fn fences(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    let mut start = 0;
    let mut open = false;
    for line in text.split_inclusive('\n') {
        let inner = line.trim_start();
        let mark = inner
            .bytes()
            .take_while(|b| matches!(b, b'`' | b'~'))
            .count();
        if mark >= 3 {
            let said = inner.get(mark..).unwrap_or_default();
            let info = said.trim();
            if std::mem::replace(&mut open, true) {
                open = !info.is_empty();
            } else if talks(info) {
                let language = info.split_ascii_whitespace().next().map_or(0, str::len);
                let from = start + line.len() - said.trim_start().len() + language;
                cuts.push((from..start + line.trim_end().len(), ""));
            }
        }
        start += line.len();
    }
}

fn talks(info: &str) -> bool {
    let plain = |word: &&str| {
        word.bytes()
            .all(|b| b.is_ascii_alphabetic() || matches!(b, b',' | b'.' | b'\''))
    };
    !info.contains('`')
        && info.split_ascii_whitespace().skip(1).filter(plain).count() >= FENCE_WORDS
}
