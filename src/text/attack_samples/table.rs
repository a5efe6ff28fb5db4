//! Tables of samples: in Markdown, in columns, and comma-separated.

use std::ops::Range;

use super::line::Line;
use super::names::is_inert;

/// Names of columns that contain samples.
const SAMPLE: [&str; 21] = [
    "cue", "keyword", "wording", "sample", "example", "input", "prompt", "payload", "phrase",
    "pattern", "text", "string", "query", "message", "trick", "variant", "body", "文本", "样本",
    "输入", "提示",
];
/// Names of columns that describe a sample or its outcome.
const VERDICT: [&str; 33] = [
    "gold",
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
    "category",
    "success",
    "标签",
    "类别",
    "结果",
];

/// The table that contains the current line, if any.
#[derive(Default)]
pub(super) struct Table<'t> {
    /// The separator of the cells of its rows, if it is a table of samples.
    separator: Option<char>,
    previous: Option<&'t str>,
}

impl<'t> Table<'t> {
    /// Ends the table.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Reports whether the cells of its rows are separated as in prose, by commas or tabs.
    pub(super) fn has_commas(&self) -> bool {
        matches!(self.separator, Some(',' | '\t'))
    }

    /// Returns the cells of a row that are samples, or `None` for lines outside of tables of
    /// samples.
    pub(super) fn sample_cells(&mut self, line: &Line<'t>) -> Option<Vec<Range<usize>>> {
        let text = line.text.trim();
        let previous = self.previous.replace(text);
        if let Some(mark) = self.separator {
            if text.contains(mark) {
                return Some(inert_cells(line, mark));
            }
            self.separator = None;
        } else if is_rule(text) && previous.is_some_and(|header| is_header(header.split('|'))) {
            self.separator = Some('|');
            return Some(Vec::new());
        } else if previous.is_none() {
            let header = text.trim_start_matches(['#', ' ']);
            let separates =
                |mark: &char| is_name_list(header, *mark) && is_header(header.split(*mark));
            self.separator = [',', '\t'].into_iter().find(separates);
            return self.separator.map(|_| Vec::new());
        }
        None
    }
}

/// Reports whether a line separates a header from rows.
fn is_rule(text: &str) -> bool {
    text.contains('-')
        && text.contains(['|', '+'])
        && text
            .chars()
            .all(|c| matches!(c, '|' | '-' | ':' | '+' | ' '))
}

/// Reports whether a line is a list of column names.
fn is_name_list(text: &str, separator: char) -> bool {
    text.contains(separator)
        && text.split(separator).all(|name| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || "_-\"".contains(c))
        })
}

/// Reports whether different columns contain samples and describe their outcome.
fn is_header<'h>(columns: impl Iterator<Item = &'h str>) -> bool {
    let columns: Vec<String> = columns.map(str::to_ascii_lowercase).collect();
    let find = |words: &[&str]| -> Vec<usize> {
        let matching = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| words.iter().any(|word| column.contains(word)));
        matching.map(|(at, _)| at).collect()
    };
    let samples = find(&SAMPLE);
    let verdicts = find(&VERDICT);
    samples
        .iter()
        .any(|sample| verdicts.iter().any(|verdict| verdict != sample))
}

/// Returns the cells of a row that give a reader nothing to do.
fn inert_cells(line: &Line<'_>, mark: char) -> Vec<Range<usize>> {
    let mut start = 0;
    let mut ranges = Vec::new();
    for cell in line.text.split(mark) {
        let content = cell.trim().trim_matches('`');
        if !content.is_empty() && !content.contains('`') && is_inert(content, false) {
            let from = line.start + start;
            ranges.push(from..from + cell.len());
        }
        start += cell.len() + mark.len_utf8();
    }
    ranges
}
