//! Tables of samples: in Markdown, in columns, and comma-separated.

use std::ops::Range;

use super::line::Line;
use super::names::is_inert;

/// Columns that hold samples.
const SAMPLE: [&str; 14] = [
    "sample", "example", "input", "prompt", "payload", "phrase", "pattern", "text", "string",
    "query", "message", "trick", "variant", "body",
];
/// Columns that say what a sample is, and what became of it.
const VERDICT: [&str; 27] = [
    "techni",
    "trick",
    "attack",
    "evasion",
    "vector",
    "detect",
    "caught",
    "handled",
    "blocked",
    "result",
    "expect",
    "verdict",
    "flagged",
    "score",
    "label",
    "passed",
    "pass",
    "refus",
    "inject",
    "jailbreak",
    "severity",
    "outcome",
    "malicious",
    "hit",
    "disguise",
    "obfuscat",
    "class",
];

/// The table that a line may be in.
#[derive(Default)]
pub(super) struct Table<'t> {
    /// What parts the cells of its rows, if it is a table of samples.
    rows: Option<char>,
    previous: Option<&'t str>,
}

impl<'t> Table<'t> {
    /// Ends the table.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Whether commas part the cells of its rows.
    pub(super) fn has_commas(&self) -> bool {
        self.rows == Some(',')
    }

    /// The cells of a row that are samples. `None` for lines outside of tables of samples.
    pub(super) fn cells(&mut self, line: &Line<'t>) -> Option<Vec<Range<usize>>> {
        let text = line.text.trim();
        let previous = self.previous.replace(text);
        if let Some(mark) = self.rows {
            if text.contains(mark) {
                return Some(cells(line, mark));
            }
            self.rows = None;
        } else if is_rule(text) && previous.is_some_and(|header| is_header(header.split('|'))) {
            self.rows = Some('|');
            return Some(Vec::new());
        } else if previous.is_none() && is_names(text) && is_header(text.split(',')) {
            self.rows = Some(',');
            return Some(Vec::new());
        }
        None
    }
}

/// Whether a line separates a header from rows.
fn is_rule(text: &str) -> bool {
    text.contains('-')
        && text.contains(['|', '+'])
        && text
            .chars()
            .all(|c| matches!(c, '|' | '-' | ':' | '+' | ' '))
}

/// Whether a line is a list of the names of columns.
fn is_names(text: &str) -> bool {
    text.contains(',')
        && text.split(',').all(|name| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || "_-\"".contains(c))
        })
}

/// Whether different columns hold samples and say what became of them.
fn is_header<'h>(columns: impl Iterator<Item = &'h str>) -> bool {
    let columns: Vec<String> = columns.map(str::to_ascii_lowercase).collect();
    let find = |words: &[&str]| -> Vec<usize> {
        let named = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| words.iter().any(|word| column.contains(word)));
        named.map(|(at, _)| at).collect()
    };
    let samples = find(&SAMPLE);
    let verdicts = find(&VERDICT);
    samples
        .iter()
        .any(|sample| verdicts.iter().any(|verdict| verdict != sample))
}

/// The cells of a row, if nothing in it is for the reader to do.
fn cells(line: &Line<'_>, mark: char) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut found = Vec::new();
    for cell in line.text.split(mark) {
        let content = cell.trim().trim_matches('`');
        if !content.is_empty() && !content.contains('`') && is_inert(content, false) {
            let from = line.start + start;
            found.push(from..from + cell.len());
        }
        start += cell.len() + mark.len_utf8();
    }
    found
}
