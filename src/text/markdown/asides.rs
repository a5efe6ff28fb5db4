//! What else Markdown and its relatives do not show: attributes in braces (kramdown, Pandoc), words after a fence, cells
//! beyond a table's head (GFM 4.10), phantoms and white letters of formulas.

use std::ops::Range;

use super::PART_BYTES;
use crate::text::presentational_attrs::prose;
use crate::text::{Facts, holds};

/// Commands of formulas that leave room for what is in the braces that follow, and show nothing there.
const PHANTOMS: [&str; 6] = [
    r"phantom{",
    r"\textcolor{white}{",
    r"\color{white}",
    r"\textcolor{#fff",
    r"\color{#fff",
    r"\begin{comment}",
];
/// Words after a fence from which on they are no language and no options.
const FENCE_WORDS: usize = 5;

/// Finds them.
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

/// Length of what stands in braces that open here.
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

/// Cells of a row beyond those of the head.
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

/// Where the bars of a row stand that part its cells.
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

/// What stands after a fence besides a language and options.
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
