//! Lines of code, and the string literals in them, in any language.

use std::ops::Range;

use super::names::{is_output, is_regex, is_slashed_regex, names_samples};

/// Maximum length of a line that is read, in bytes; a longer one is not code written by a person.
const LINE_BYTES: usize = 4000;
/// Maximum number of literals that are read in a line.
const LITERALS: usize = 64;
/// Quotation marks of docstrings and blocks of text.
const TRIPLE: [&str; 2] = ["\"\"\"", "'''"];
/// The marks that open and close a block comment.
const BLOCK_COMMENTS: [(&str, &str); 2] = [("/*", "*/"), ("<!--", "-->")];
/// Beginnings of assertions.
const ASSERTIONS: [&str; 5] = ["expect(", "assert", "require.", "refute", "should"];
/// Words that precede a condition.
const CONDITIONS: [&str; 8] = [
    "if", "elif", "while", "and", "or", "not", "return", "assert",
];
/// Words that may follow a literal in code.
const AFTER: [&str; 9] = ["in", "nocase", "do", "and", "or", "if", "for", "as", "then"];

/// A line of a text.
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    /// Its position in the text.
    pub(super) start: usize,
    pub(super) indent: usize,
}

impl<'t> Line<'t> {
    pub(super) fn new(text: &'t str, start: usize) -> Self {
        // A diff marker is not part of the line.
        let unmarked = text
            .strip_prefix(['+', '-'])
            .filter(|rest| rest.starts_with(['\t', ' ']) && !rest.starts_with(" \""));
        let indented = unmarked.unwrap_or(text);
        let indent = text.len() - indented.trim_start().len();
        Self {
            text,
            start,
            indent,
        }
    }

    /// Reports whether it opens or closes a Markdown code block.
    pub(super) fn is_fence(&self) -> bool {
        self.text.trim_start().starts_with("```")
    }

    /// Reports whether the lines indented below it are part of what it begins.
    pub(super) fn opens_block(&self) -> bool {
        let text = self.text.trim_end();
        let is_statement = |head: &str| {
            head.ends_with(')')
                || ["class ", "for "]
                    .iter()
                    .any(|word| head.trim_start().starts_with(word))
        };
        self.is_key()
            || text.strip_suffix(':').is_some_and(is_statement)
            || text.ends_with(['[', '(', '{', '=', ',', '|', '\\'])
            || text.ends_with(" do")
            || text.ends_with("VALUES")
    }

    /// Reports whether it is a YAML key whose value is below it.
    pub(super) fn is_key(&self) -> bool {
        let key = self
            .text
            .trim()
            .strip_suffix(':')
            .map(|key| key.trim_start_matches("- "));
        key.is_some_and(|key| {
            key.chars()
                .all(|c| c.is_alphanumeric() || "_-.\"'".contains(c))
        })
    }

    /// Reports whether it only opens a bracket.
    pub(super) fn is_bracket(&self) -> bool {
        matches!(self.text.trim(), "{" | "[" | "(")
    }

    /// Returns the value of a YAML entry without quotation marks, with its range in the text.
    pub(super) fn value(&self) -> Option<(Range<usize>, &'t str)> {
        let member = self.text.trim_start().trim_start_matches("- ");
        let (key, value) = member.split_once(": ")?;
        let start = self.start + self.text.len() - value.len();
        (!key.contains(' ')).then_some((start..start + value.len(), value))
    }
}

/// A string literal.
pub(super) struct Literal<'t> {
    pub(super) span: Range<usize>,
    pub(super) content: &'t str,
    pub(super) is_regex: bool,
    /// Whether it is an element, an argument or a value, and is not shown to a reader.
    pub(super) is_value: bool,
    /// Whether it is an element of a list.
    pub(super) is_element: bool,
    /// Whether the code checks if a text contains it.
    pub(super) is_searched_for: bool,
}

/// The content of a line.
#[derive(Default)]
pub(super) struct LineContent<'t> {
    pub(super) literals: Vec<Literal<'t>>,
    /// The end of the first name in it that denotes samples.
    pub(super) named_at: Option<usize>,
    pub(super) is_comment: bool,
    /// Whether it asserts the result of the preceding lines.
    pub(super) is_assertion: bool,
}

/// Reads the literals of consecutive lines.
#[derive(Default)]
pub(super) struct Literals {
    /// The mark that closes the open comment or text block.
    closing_mark: Option<&'static str>,
}

impl Literals {
    /// Reports whether a comment or a text block is open.
    pub(super) fn is_open(&self) -> bool {
        self.closing_mark.is_some()
    }

    pub(super) fn read<'t>(&mut self, line: &Line<'t>) -> LineContent<'t> {
        let mut line_content = LineContent::default();
        let text = line.text;
        let mut at = 0;
        if let Some(close) = self.closing_mark {
            line_content.is_comment = true;
            let Some(end) = text.find(close) else {
                return line_content;
            };
            self.closing_mark = None;
            at = end + close.len();
        }
        if text.len() > LINE_BYTES {
            return line_content;
        }
        let mut scan = Scan {
            line,
            line_content,
            searched_end: at,
            in_comment: false,
            unclosed: Vec::new(),
        };
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            at = match scan.step(at, rest) {
                Step::To(next) => next,
                Step::Open(close) => {
                    self.closing_mark = Some(close);
                    break;
                }
            };
        }
        scan.find_name(text.len());
        scan.line_content.is_assertion = ASSERTIONS
            .iter()
            .any(|word| text.trim_start().starts_with(word));
        scan.line_content
    }
}

enum Step {
    To(usize),
    /// The rest of the line, and the following lines up to this mark, are a comment or a text
    /// block.
    Open(&'static str),
}

/// A line that is being read.
struct Scan<'l, 't> {
    line: &'l Line<'t>,
    line_content: LineContent<'t>,
    /// The end of the code that has been searched for names.
    searched_end: usize,
    in_comment: bool,
    /// Quotation marks that are not closed on this line.
    unclosed: Vec<char>,
}

impl<'t> Scan<'_, 't> {
    /// Reads the character or literal at `at`, where `rest` begins.
    fn step(&mut self, at: usize, rest: &'t str) -> Step {
        let text = self.line.text;
        let before = text.get(..at).unwrap_or_default();
        let Some(mark) = rest.chars().next() else {
            return Step::To(text.len());
        };
        let next = Step::To(at + mark.len_utf8());
        if !matches!(mark, '"' | '\'' | '`' | '/' | '#' | '<') {
            return next;
        }
        let block_marks = TRIPLE
            .into_iter()
            .map(|mark| (mark, mark))
            .chain(BLOCK_COMMENTS);
        // In `src/*.rs`, it is part of a glob.
        let is_glob = before.ends_with(|c: char| c.is_alphanumeric() || c == '*');
        let mut opened_blocks = block_marks.filter(|(open, _)| {
            rest.starts_with(open) && !self.in_comment && !(*open == "/*" && is_glob)
        });
        if let Some((open, close)) = opened_blocks.next() {
            self.find_name(at);
            self.line_content.is_comment |= before.trim().is_empty();
            let inside = rest.get(open.len()..).unwrap_or_default();
            let Some(end) = inside.find(close) else {
                return Step::Open(close);
            };
            self.searched_end = at + open.len() + end + close.len();
            return Step::To(self.searched_end);
        }
        let starts_comment = rest.starts_with("//") && !before.ends_with(':')
            || mark == '#'
                && (before.is_empty() || before.ends_with(' '))
                && rest
                    .get(1..)
                    .is_some_and(|rest| rest.starts_with([' ', '!']));
        if starts_comment && !self.in_comment {
            self.find_name(at);
            self.searched_end = text.len();
            self.in_comment = true;
            self.line_content.is_comment |= before.trim().is_empty();
            return next;
        }
        let is_prefix =
            |head: &str| head.ends_with(['r', 'b', 'f', 'u', 'R', 'L', 'w']) && head.len() < 2;
        let word = before
            .rsplit(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        let is_opening = match mark {
            '\'' => word.is_empty() || is_prefix(word),
            '/' => {
                let head = before.trim_end();
                (head.is_empty() || head.ends_with(['(', ',', '=', ':', '['])) && !self.in_comment
            }
            '"' | '`' => true,
            _ => false,
        };
        if !is_opening
            || self.unclosed.contains(&mark)
            || self.line_content.literals.len() >= LITERALS
        {
            return next;
        }
        let inside = rest.get(mark.len_utf8()..).unwrap_or_default();
        let Some(length) = literal_length(inside, mark) else {
            self.unclosed.push(mark);
            return next;
        };
        let content = inside.get(..length).unwrap_or_default();
        let start = at + 1;
        let end = start + length;
        let after = text.get(end + 1..).unwrap_or_default();
        if mark == '/' && !is_slashed_regex(content) {
            return next;
        }
        let is_key = after.trim_start().starts_with(':') && !after.trim_start().starts_with("::");
        if !is_key {
            self.find_name(at);
            let head = before
                .get(..before.len() - if is_prefix(word) { word.len() } else { 0 })
                .unwrap_or(before);
            // Raw strings are hardly anything but regexes.
            let is_raw = matches!(word, "r" | "R");
            let is_regex = is_regex(content) || is_raw && is_slashed_regex(content);
            let is_searched_for = precedes_condition(head) && is_search(after);
            let is_passed = follows_code(head) && precedes_code(after) && !is_shown(head);
            let is_value = !self.in_comment && (is_searched_for || is_passed);
            let begins_element =
                head.trim().is_empty() || head.trim_end().ends_with(['[', '(', '{', ',']);
            let is_element = begins_element && after.trim_start().starts_with([',', ']', ')', '}']);
            self.line_content.literals.push(Literal {
                span: self.line.start + start..self.line.start + end,
                content,
                is_regex: !self.in_comment && (mark == '/' || is_regex && follows_code(head)),
                is_value,
                is_element: is_element && is_value,
                is_searched_for,
            });
            self.searched_end = self.searched_end.max(end + 1);
        }
        Step::To(end + 1)
    }

    /// Searches the code up to `end` for names.
    fn find_name(&mut self, end: usize) {
        if self.line_content.named_at.is_none() {
            let code = self
                .line
                .text
                .get(self.searched_end..end)
                .unwrap_or_default();
            self.line_content.named_at =
                names_samples(code).map(|at| self.line.start + self.searched_end + at);
        }
        self.searched_end = self.searched_end.max(end);
    }
}

/// Returns the length of a literal, up to its closing mark on the same line.
fn literal_length(inside: &str, mark: char) -> Option<usize> {
    let mut is_escaped = false;
    inside.char_indices().find_map(|(at, c)| {
        let closes = c == mark && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        closes.then_some(at)
    })
}

/// Reports whether a literal after this is an element, an argument or a value of code.
fn follows_code(before: &str) -> bool {
    let head = before.trim().trim_start_matches(['+', '-']).trim_start();
    if head.is_empty() {
        return true;
    }
    let has_bracket = head.contains(['(', '[', '{', '=']);
    if let Some(key) = head.strip_suffix(':') {
        let (object, key) = key.rsplit_once([',', '{', '(', '[']).unwrap_or(("", key));
        return !key.trim().trim_start_matches("- ").contains(' ')
            && (object.is_empty() || has_bracket);
    }
    // In prose, a comma follows words separated by blanks.
    let is_listed = |head: &str| {
        head.ends_with(['"', '\'', '`', ']', '}', ')']) || has_bracket || !head.contains(' ')
    };
    head.ends_with(['[', '(', '{', '=', '|', '&', '>'])
        || head.strip_suffix(',').is_some_and(is_listed)
}

/// Reports whether code continues after a literal.
fn precedes_code(after: &str) -> bool {
    let tail = after.trim_start();
    let word = tail
        .split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default();
    word.is_empty() || AFTER.contains(&word) || word == "i" && after.starts_with('i')
}

/// Reports whether code that ends here continues with a condition.
fn precedes_condition(before: &str) -> bool {
    let last = before.split_ascii_whitespace().next_back();
    last.is_none_or(|word| CONDITIONS.contains(&word) || word.ends_with(['(', '[', ',', '=']))
}

/// Reports whether code checks if a text contains the literal before this: `"…" in text`.
fn is_search(after: &str) -> bool {
    let Some(tail) = after
        .strip_prefix(" in ")
        .or_else(|| after.strip_prefix(" not in "))
    else {
        return false;
    };
    let name: &str = tail
        .split(|c: char| !(c.is_alphanumeric() || "_.()".contains(c)))
        .next()
        .unwrap_or_default();
    let rest = tail.get(name.len()..).unwrap_or_default();
    !name.is_empty()
        && (rest.is_empty()
            || [":", " or ", " and ", ")", ","]
                .iter()
                .any(|end| rest.starts_with(end)))
}

/// Reports whether code shows the literal after this to a reader.
fn is_shown(before: &str) -> bool {
    let words = |text: &str| {
        text.rsplit(|c: char| !(c.is_alphanumeric() || "_.:!>-".contains(c)))
            .next()
            .map(str::to_owned)
    };
    let mut calls = before.split('(');
    let last = calls.next_back().unwrap_or_default();
    let is_argument = calls.any(|head| words(head.trim_end()).is_some_and(|name| is_output(&name)));
    let is_statement = last
        .split_ascii_whitespace()
        .next_back()
        .is_some_and(|word| is_output(word) || word == "return");
    let first = before.split_ascii_whitespace().next().unwrap_or_default();
    is_argument || is_statement || is_output(first) || matches!(first, "return" | "yield")
}
