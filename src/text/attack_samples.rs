//! Samples of attacks in code and in tables: phrase lists, regexes, inputs of tests, tables of
//! techniques.
//!
//! A string literal is a sample if the surrounding code marks it as one: the name on its line, or
//! on a line that it is indented below, is that of a list of patterns, of a test or of a search
//! (`BLOCKLIST = [`, `fn rejects_overrides() {`, `expect(scan(`). A cell is a sample if the header
//! of its table names both samples and their outcome. A quotation is a sample if its sentence
//! introduces it as wording.
//!
//! A sample gives its reader nothing to do: it is short, addresses no assistant, and names no
//! address, file, command or tool. Comments, docstrings, printed strings and other prose are never
//! samples, except that a comment may quote a sample of the same text.

mod line;
mod names;
mod quotation;
mod table;

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use line::{Line, Literals};
pub(super) use names::{is_inert, names_action};
use names::{is_regex, is_search_phrase};
use quotation::find_quotations;
use table::Table;

/// Maximum length of a passage that consists of several samples, in bytes.
const PASSAGE_BYTES: usize = 800;
/// Maximum number of letters and digits of code before or after the samples of a passage, and
/// between two of them.
const BESIDE: usize = 24;
const BETWEEN: usize = 48;
/// Minimum number of search phrases in a list whose name does not mark it as samples.
const PHRASES: usize = 3;
/// Beginnings of regexes that are a line by themselves.
const REGEX_STARTS: [char; 3] = ['(', '^', '\\'];
/// What files have one of per line.
const ANNOUNCED: [&str; 8] = [
    "phrase", "pattern", "term", "string", "regex", "rule", "keyword", "entry",
];
const PER_LINE: &str = " per line";
/// Maximum number of enclosing lines, by indentation, that are tracked for a line.
const DEPTH: usize = 64;

/// The samples of a text.
#[derive(Debug)]
pub(super) struct AttackSamples {
    /// In the order of the text, without overlaps.
    spans: Vec<Range<usize>>,
    /// Start positions of samples that are recognized by their form only. A passage must not
    /// continue from one sample to another if either is such a sample: its words may have been put
    /// into separate quotation marks.
    formal: BTreeSet<usize>,
}

impl AttackSamples {
    /// Finds the samples of a text. Strings of JSON are data rather than code, and are judged one
    /// by one.
    pub(super) fn new(text: &str) -> Self {
        let trimmed = text.trim();
        let is_json = trimmed.starts_with('{') && trimmed.ends_with('}')
            || trimmed.starts_with('[') && trimmed.ends_with(']');
        if is_json {
            Self {
                spans: Vec::new(),
                formal: BTreeSet::new(),
            }
        } else {
            Finder::default().find(text)
        }
    }

    /// Reports whether a passage of the same text consists of samples.
    pub(super) fn contains(&self, text: &str, span: &Range<usize>) -> bool {
        let Some(passage) = text
            .get(span.clone())
            .filter(|passage| passage.len() <= PASSAGE_BYTES)
        else {
            return false;
        };
        let is_mark = |c: char| !c.is_alphanumeric();
        let start = span.end - passage.trim_start_matches(is_mark).len();
        let end = span.start + passage.trim_end_matches(is_mark).len();
        let is_code = |part: Range<usize>, limit| {
            let between = text.get(part).unwrap_or_default();
            between
                .bytes()
                .filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
                .count()
                <= limit
        };
        let first = self.spans.partition_point(|sample| sample.end <= start);
        let mut reached = start;
        let mut is_formal = false;
        for sample in self
            .spans
            .iter()
            .skip(first)
            .take_while(|sample| sample.start < end)
        {
            if !is_code(
                reached..sample.start.max(reached),
                if reached == start { BESIDE } else { BETWEEN },
            ) {
                return false;
            }
            if reached > start && (is_formal || self.formal.contains(&sample.start)) {
                return false;
            }
            is_formal = self.formal.contains(&sample.start);
            reached = sample.end;
        }
        reached > start && (reached >= end || is_code(reached..end, BESIDE))
    }
}

/// Reads a text line by line.
#[derive(Default)]
struct Finder<'t> {
    spans: Vec<Range<usize>>,
    formal: BTreeSet<usize>,
    /// The lines that the current one is indented below.
    parents: Vec<ParentLine>,
    previous: PreviousLine,
    table: Table<'t>,
    /// Literals that are samples if an equal literal of the same text is.
    quoted: Vec<(Range<usize>, &'t str)>,
    /// Consecutive search phrases in a list whose name does not mark it as samples.
    phrases: Vec<Range<usize>>,
    literals: Literals,
    /// Whether a line said that each of those after it has one phrase.
    has_phrase_lines: bool,
}

/// The line of code before the current one.
#[derive(Default)]
struct PreviousLine {
    indent: usize,
    names_samples: bool,
    /// Its values that are not known to be samples. An assertion on the next line makes them
    /// samples.
    values: Vec<Range<usize>>,
}

/// A line that other lines are indented below.
struct ParentLine {
    indent: usize,
    /// Whether it, or a line above it, names samples.
    is_named: bool,
    /// Whether it is a YAML key, so that the values below it need no quotation marks.
    is_key: bool,
}

impl<'t> Finder<'t> {
    fn find(mut self, text: &'t str) -> AttackSamples {
        let mut start = 0;
        for raw_line in text.split_inclusive('\n') {
            let line = Line::new(raw_line.trim_end_matches(['\n', '\r']), start);
            start += raw_line.len();
            self.read(&line);
        }
        self.end_phrases();
        let sample_texts: HashSet<String> = self
            .spans
            .iter()
            .filter_map(|span| text.get(span.clone()))
            .map(str::to_ascii_lowercase)
            .collect();
        let repeated = self
            .quoted
            .into_iter()
            .filter(|(_, content)| sample_texts.contains(&content.to_ascii_lowercase()));
        self.spans.extend(repeated.map(|(span, _)| span));
        self.spans
            .sort_unstable_by_key(|span| (span.start, span.end));
        let mut spans: Vec<Range<usize>> = Vec::with_capacity(self.spans.len());
        for span in self.spans {
            match spans.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                _ => spans.push(span),
            }
        }
        AttackSamples {
            spans,
            formal: self.formal,
        }
    }

    fn read(&mut self, line: &Line<'t>) {
        if line.text.trim().is_empty() {
            self.table.end();
            return;
        }
        if line.is_fence() {
            self.parents.clear();
            self.table.end();
            return;
        }
        // A list of regexes.
        let content = line.text.trim();
        if content.starts_with(REGEX_STARTS) && is_regex(content) && is_inert(content, true) {
            let start = line.start + line.text.len() - line.text.trim_start().len();
            self.spans.push(start..start + content.len());
            return;
        }
        self.has_phrase_lines |= announces_phrases(content);
        if self.has_phrase_lines && is_inert(content, false) && is_search_phrase(content) {
            let start = line.start + line.text.len() - line.text.trim_start().len();
            self.spans.push(start..start + content.len());
            return;
        }
        let cells = if self.literals.is_open() {
            None
        } else {
            self.table.sample_cells(line)
        };
        if let Some(cells) = cells {
            // Prose contains commas, too.
            if self.table.has_commas() {
                self.formal.extend(cells.iter().map(|cell| cell.start));
            }
            self.spans.extend(cells);
            return;
        }
        for quotation in find_quotations(line) {
            self.formal.insert(quotation.start);
            self.spans.push(quotation);
        }
        // A line that closes a bracket continues the statement that opened it.
        let mut continues_named = false;
        while let Some(parent) = self.parents.pop_if(|above| above.indent >= line.indent) {
            continues_named = parent.is_named
                && parent.indent == line.indent
                && line.text.trim_start().starts_with(['}', ')', ']']);
        }
        let (is_below, is_below_key) = self
            .parents
            .last()
            .map_or((false, false), |parent| (parent.is_named, parent.is_key));
        let line_content = self.literals.read(line);
        if line_content.is_comment && line_content.literals.is_empty() {
            return;
        }
        if line_content.is_assertion && self.previous.indent == line.indent {
            self.spans.append(&mut self.previous.values);
        }
        let mut values = Vec::new();
        for literal in &line_content.literals {
            let is_named = is_below
                || line_content
                    .named_at
                    .is_some_and(|at| at <= literal.span.start);
            let is_inert = is_inert(literal.content, literal.is_regex);
            if is_inert
                && (literal.is_regex || literal.is_value && (is_named || literal.is_searched_for))
            {
                self.formal.remove(&literal.span.start);
                self.spans.push(literal.span.clone());
                continue;
            }
            if is_inert && literal.is_element && is_search_phrase(literal.content) {
                self.phrases.push(literal.span.clone());
            } else {
                self.end_phrases();
            }
            if is_inert {
                self.quoted.push((literal.span.clone(), literal.content));
            }
            if is_inert && literal.is_value {
                values.push(literal.span.clone());
            }
        }
        if line_content.literals.is_empty() {
            if is_below && is_below_key {
                let value = line.value();
                self.spans.extend(
                    value
                        .filter(|(_, content)| is_inert(content, false))
                        .map(|(span, _)| span),
                );
            }
            if line.text.contains(|c: char| c.is_alphanumeric()) {
                self.end_phrases();
            }
        }
        if line_content.is_comment {
            return;
        }
        // A bracket on a line of its own belongs to the line before it.
        let continues_previous =
            line.is_bracket() && self.previous.names_samples && self.previous.indent == line.indent;
        let is_named = line.opens_block() && (continues_named || line_content.named_at.is_some())
            || continues_previous;
        if self.parents.len() < DEPTH {
            let is_key = line.is_key() || is_below_key && !line.opens_block();
            self.parents.push(ParentLine {
                indent: line.indent,
                is_named: is_below || is_named,
                is_key,
            });
        }
        self.previous = PreviousLine {
            indent: line.indent,
            names_samples: line_content.named_at.is_some(),
            values,
        };
    }

    /// Ends a list without such a name: three or more search phrases are samples.
    fn end_phrases(&mut self) {
        if self.phrases.len() >= PHRASES {
            self.formal
                .extend(self.phrases.iter().map(|phrase| phrase.start));
            self.spans.append(&mut self.phrases);
        }
        self.phrases.clear();
    }
}

/// Reports whether a line says that each line has one phrase: `# one pattern per line`.
fn announces_phrases(line: &str) -> bool {
    line.find(PER_LINE)
        .and_then(|at| line.get(..at))
        .and_then(|before| before.rsplit_once(' '))
        .is_some_and(|(before, unit)| {
            ANNOUNCED.contains(&unit) && before.to_ascii_lowercase().ends_with("one")
        })
}

#[cfg(test)]
mod tests;
