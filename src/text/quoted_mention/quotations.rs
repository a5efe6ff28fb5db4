//! Finds quotations with both of their ends: in quotation marks, code, italics, elements of HTML,
//! block quotes, and indented blocks and lists that a line introduces.
//!
//! Each search ends after a fixed number of bytes, so the cost is linear.

use std::ops::Range;

use super::{
    FENCE, INTRODUCTION_BYTES, LINE_BYTES, PAIRS, PARAGRAPH_BYTES, QUOTING, ends_with_key,
    find_fences, part_before,
};
use crate::text::cut;

/// Maximum number of quotations of a text, and of places of each form where one may begin.
const MAX_QUOTATIONS: usize = 1000;
const MAX_OPENINGS: usize = 4000;
/// Maximum length of a quotation in an element of HTML, in bytes.
const ELEMENT_BYTES: usize = 2000;
/// Minimum indentation of a quoted block.
const INDENT: usize = 4;
/// Maximum length of the number of an item of a list.
const ITEM_NUMBER_BYTES: usize = 4;
/// Maximum number of words of the name of a field.
const FIELD_WORDS: usize = 3;
/// Minimum numbers of links, and of titles, of a list of them.
const LINKS: usize = 2;
const NUMBERED_TITLES: usize = 3;
/// Words before the numbers of titles.
const NUMBERED: &str = "chapter ch ep episode lecture part session talk track video week";
/// Elements of HTML around blocks.
const BLOCKS: [&str; 2] = ["blockquote", "pre"];
/// Marks that open and close alike, and whether a quotation may continue on the next line.
const ALIKE: [(char, bool); 3] = [('"', true), ('\'', false), ('*', false)];
/// Further marks of which one opens and one closes, beside [`PAIRS`].
const MORE_PAIRS: [(&str, &str); 5] = [
    ("\u{201d}", "\u{201d}"),
    ("\u{201e}", "\""),
    ("\u{201a}", "\u{2018}"),
    ("\u{2039}", "\u{203a}"),
    ("\u{203a}", "\u{2039}"),
];
/// Characters before a mark that opens a quotation, apart from blanks.
const BEFORE_OPENING: &str =
    "([{<>:;,=/|-\u{2013}\u{2014}\u{201c}\u{2018}\u{3001}\u{3002}\u{ff1a}\u{ff08}";

/// A quotation in a text.
#[derive(Debug)]
pub(super) struct Quotation {
    /// With its marks.
    pub(super) outer: Range<usize>,
    /// Without them.
    pub(super) content: Range<usize>,
    pub(super) form: Form,
}

/// How a quotation is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By quotation marks or as code, within a sentence.
    Inline,
    /// By marks within a sentence that also emphasize words or surround values of data.
    Ambiguous,
    /// As a block of lines.
    Block,
    /// As a block of lines by its indentation only.
    Indented,
    /// As an item of a list below a line that introduces it.
    Listed,
    /// As the text of a link that is an item of a list of links.
    Link,
    /// As a title in a program of talks or a list of episodes.
    Title,
}

/// Returns the quotations of a text, in no particular order.
pub(super) fn find_quotations(text: &str) -> Vec<Quotation> {
    let mut found = Vec::new();
    add_fences(text, &mut found);
    add_lines(text, &mut found);
    add_alike(text, &mut found);
    add_pairs(text, &mut found);
    add_elements(text, &mut found);
    add_titles(text, &mut found);
    found.truncate(MAX_QUOTATIONS);
    found
}

/// Returns the text before a quotation, and the text after it, in which it may be introduced.
pub(super) fn surroundings<'t>(text: &'t str, outer: &Range<usize>) -> (&'t str, &'t str) {
    let after = text.get(outer.end..).unwrap_or_default();
    (
        part_before(text, outer.start, INTRODUCTION_BYTES),
        cut(after, INTRODUCTION_BYTES),
    )
}

fn add_fences(text: &str, found: &mut Vec<Quotation>) {
    let fences = find_fences(text);
    for pair in fences.chunks_exact(2) {
        let [open, close] = pair else { continue };
        found.push(Quotation {
            outer: *open..close + FENCE.len(),
            content: open + FENCE.len()..*close,
            form: Form::Block,
        });
    }
}

/// A line of a text.
struct Line<'t> {
    span: Range<usize>,
    text: &'t str,
    indent: usize,
}

/// Adds block quotes, indented blocks and lists.
fn add_lines(text: &str, found: &mut Vec<Quotation>) {
    let mut previous: Option<Line<'_>> = None;
    // Whether the last line is empty, and the line above the list that the last lines belong to.
    let mut is_after_gap = true;
    let mut list_above: Option<Range<usize>> = None;
    // The block that the last lines belong to, and the indentation of its first line.
    let mut block: Option<(Quotation, usize)> = None;
    let mut start = 0;
    for raw_line in text.split_inclusive('\n') {
        let content = raw_line.trim_end();
        let line = Line {
            span: start..start + content.len(),
            text: content,
            indent: indentation(content),
        };
        start += raw_line.len();
        if content.is_empty() {
            is_after_gap = true;
            continue;
        }
        let is_quote = content.trim_start().starts_with('>');
        if !is_item(content) {
            // The list below a heading is the author's own.
            let introduces = is_after_gap && !content.starts_with('#') || ends_with_colon(content);
            list_above = introduces.then(|| line.span.clone());
        } else if let Some(above) = &list_above {
            found.push(Quotation {
                outer: above.end..line.span.end,
                content: line.span.clone(),
                form: Form::Listed,
            });
        }
        is_after_gap = false;
        if let Some((open, indent)) = &mut block {
            let continues = match open.form {
                Form::Indented => line.indent >= *indent,
                _ => is_quote,
            };
            if continues {
                open.outer.end = line.span.end;
                open.content.end = line.span.end;
                previous = Some(line);
                continue;
            }
            found.extend(block.take().map(|(open, _)| open));
        }
        let form = if is_quote {
            Some(Form::Block)
        } else if previous.as_ref().is_some_and(|above| opens(above, &line)) {
            Some(Form::Indented)
        } else {
            None
        };
        if let Some(form) = form {
            let quotation = Quotation {
                outer: line.span.clone(),
                content: line.span.clone(),
                form,
            };
            block = Some((quotation, line.indent));
        }
        previous = Some(line);
    }
    found.extend(block.map(|(open, _)| open));
}

/// Reports whether a line begins an indented block below another one that introduces it.
fn opens(above: &Line<'_>, line: &Line<'_>) -> bool {
    line.indent >= INDENT
        && line.indent > above.indent
        && (ends_with_colon(above.text) || above.text.ends_with(char::is_alphanumeric))
}

/// Reports whether a line may introduce what follows. A definition in Python, below which anybody
/// writes comments, does not.
pub(super) fn ends_with_colon(line: &str) -> bool {
    const BLOCKS: [&str; 4] = ["def ", "async def ", "class ", "elif "];
    let defines = || {
        let code = line.trim_start();
        BLOCKS.iter().any(|block| code.starts_with(block))
    };
    line.ends_with([':', '\u{ff1a}']) && !defines()
}

/// Reports whether a line is an item of a list: `- …`, `2. …`, `(iv) …`, `B.1 …`.
fn is_item(line: &str) -> bool {
    let Some((mark, _)) = line.trim_start().split_once(' ') else {
        return false;
    };
    let number = mark.trim_start_matches('(').trim_end_matches(['.', ')']);
    let has_number = !number.is_empty()
        && number.len() <= ITEM_NUMBER_BYTES
        && number
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '.')
        && (number.len() < mark.len() || number.contains('.'));
    has_number || matches!(mark, "-" | "*" | "+" | "\u{2022}" | "\u{2013}")
}

fn indentation(line: &str) -> usize {
    let blanks = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
    blanks.map(|c| if c == '\t' { INDENT } else { 1 }).sum()
}

/// Adds quotations between marks that open and close alike, and code between grave accents.
fn add_alike(text: &str, found: &mut Vec<Quotation>) {
    // Where the search for each mark continues.
    let mut resumes = [0; ALIKE.len()];
    let mut code_end = 0;
    let mut openings = 0;
    // Strings of JSON are data.
    let mut is_json_line = text.trim_start().starts_with('{');
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'\n' => {
                let line = cut(text.get(at + 1..).unwrap_or_default(), LINE_BYTES);
                is_json_line = line.trim_start().starts_with('{');
            }
            b'`' if at >= code_end => {
                let (end, content) = code_at(text, at);
                code_end = end;
                openings += 1;
                found.extend(content.map(|content| Quotation {
                    outer: at..end,
                    content,
                    form: Form::Inline,
                }));
            }
            _ => {}
        }
        let marks = ALIKE.iter().zip(&mut resumes);
        for ((mark, may_wrap), resume) in marks {
            if u32::from(byte) != u32::from(*mark)
                || at < *resume
                || is_json_line && *mark == '"'
                || !may_open(text, at, *mark)
            {
                continue;
            }
            openings += 1;
            if is_data(text, at, *mark) {
                continue;
            }
            if let Some(content) = content_at(text, at + 1, *mark, *may_wrap) {
                *resume = content.end + 1;
                let is_ambiguous = *mark == '*' || may_be_value(text, at);
                found.push(Quotation {
                    outer: at..content.end + 1,
                    content,
                    form: if is_ambiguous {
                        Form::Ambiguous
                    } else {
                        Form::Inline
                    },
                });
            }
        }
        if openings >= MAX_OPENINGS {
            return;
        }
    }
}

/// Returns the end of the code that begins with grave accents at `at`, and its content.
fn code_at(text: &str, at: usize) -> (usize, Option<Range<usize>>) {
    let rest = text.get(at..).unwrap_or_default();
    let inside = rest.trim_start_matches('`');
    let marks = rest.len() - inside.len();
    let begin = at + marks;
    let line = cut(inside, PARAGRAPH_BYTES)
        .lines()
        .next()
        .unwrap_or_default();
    let fence = rest.get(..marks).unwrap_or_default();
    match line.find(fence).filter(|length| *length > 0) {
        Some(length) => (begin + length + marks, Some(begin..begin + length)),
        None => (begin, None),
    }
}

/// Reports whether the mark at `at` may open a quotation, rather than closing one or being an
/// apostrophe.
fn may_open(text: &str, at: usize, mark: char) -> bool {
    let before = text.get(..at).unwrap_or_default().chars().next_back();
    let rest = text.get(at + 1..).unwrap_or_default();
    let is_comment = mark == '*' && before == Some('/');
    !is_comment
        && before.is_none_or(|c| c.is_whitespace() || BEFORE_OPENING.contains(c) || !c.is_ascii())
        && rest.starts_with(|c: char| !c.is_whitespace() && c != mark)
}

/// Reports whether a mark of so many bytes follows a blank or a bracket and precedes a word.
fn opens_word(text: &str, at: usize, bytes: usize) -> bool {
    let before = text.get(..at).unwrap_or_default().chars().next_back();
    let rest = text.get(at + bytes..).unwrap_or_default();
    before.is_none_or(|c| c.is_whitespace() || BEFORE_OPENING.contains(c))
        && rest.starts_with(char::is_alphanumeric)
}

/// Reports whether the mark at `at` begins a value of a tag or of YAML, or an item of a list.
fn is_data(text: &str, at: usize, mark: char) -> bool {
    let before = part_before(text, at, LINE_BYTES);
    let line = before.rsplit('\n').next().unwrap_or_default();
    let is_bullet = mark == '*' && line.trim().is_empty();
    is_bullet || line.ends_with('=') && line.contains('<') || ends_with_key(line)
}

/// Reports whether the mark at `at` may begin a value: in code, in a list or in a table, or of a
/// field at the start of a line (`Delivery note: "…"`).
fn may_be_value(text: &str, at: usize) -> bool {
    let before = part_before(text, at, LINE_BYTES);
    let is_call = || {
        let called = before.strip_suffix('(');
        called.is_some_and(|name| name.ends_with(char::is_alphanumeric))
    };
    let line = before.rsplit('\n').next().unwrap_or_default();
    let is_field =
        || line.trim_end().ends_with(':') && line.split_whitespace().count() <= FIELD_WORDS;
    before.trim_end().ends_with('=') || before.ends_with([',', '[', '|']) || is_call() || is_field()
}

/// Returns the content of a quotation up to its closing mark.
fn content_at(text: &str, begin: usize, mark: char, may_wrap: bool) -> Option<Range<usize>> {
    let rest = cut(text.get(begin..)?, PARAGRAPH_BYTES);
    let end = if may_wrap {
        rest.find("\n\n")
    } else {
        rest.find('\n')
    };
    let part = rest.get(..end.unwrap_or(rest.len()))?;
    let closes = |at: &usize| {
        let head = part.get(..*at).unwrap_or_default();
        let tail = part.get(at + 1..).unwrap_or_default();
        !head.ends_with(|c: char| c.is_whitespace() || c == '\\' || c == '*')
            && (mark == '"' || !tail.starts_with(|c: char| c.is_alphanumeric() || c == '*'))
    };
    let length = part.match_indices(mark).map(|(at, _)| at).find(closes)?;
    (length > 0).then(|| begin..begin + length)
}

/// Adds quotations between marks of which one opens and one closes.
fn add_pairs(text: &str, found: &mut Vec<Quotation>) {
    if text.is_ascii() && !text.contains('&') {
        return;
    }
    for (open, close) in PAIRS.into_iter().chain(MORE_PAIRS) {
        for (at, _) in text.match_indices(open).take(MAX_OPENINGS) {
            if open == close && !opens_word(text, at, open.len()) {
                continue;
            }
            let begin = at + open.len();
            let rest = cut(text.get(begin..).unwrap_or_default(), PARAGRAPH_BYTES);
            let part = rest.split("\n\n").next().unwrap_or_default();
            let length = part
                .match_indices(close)
                .map(|(at, _)| at)
                .find(|at| close != "\u{2019}" || !is_apostrophe(part, *at));
            found.extend(length.filter(|length| *length > 0).map(|length| Quotation {
                outer: at..begin + length + close.len(),
                content: begin..begin + length,
                form: Form::Inline,
            }));
        }
    }
}

/// Reports whether the closing mark at `at` is between two letters of a Latin word.
fn is_apostrophe(text: &str, at: usize) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic();
    let tail = text.get(at..).unwrap_or_default();
    text.get(..at).is_some_and(|head| head.ends_with(is_letter))
        && tail.chars().nth(1).is_some_and(is_letter)
}

/// Adds the texts of the links in lists of links, and the titles in programs and lists of episodes.
fn add_titles(text: &str, found: &mut Vec<Quotation>) {
    let mut links = Vec::new();
    let mut titles = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let (indent, content) = (line.len() - line.trim_start().len(), line.trim());
        let at = start + indent;
        start += line.len();
        if let Some(link) = is_item(content).then(|| link_text(content)).flatten() {
            links.push((at + link.start..at + link.end, Form::Link));
        } else if let Some(title) = title_after_number(content) {
            titles.push((at + title.start..at + title.end, Form::Title));
        }
    }
    let lists = [(links, LINKS), (titles, NUMBERED_TITLES)];
    for (content, form) in lists
        .into_iter()
        .filter(|(list, min)| list.len() >= *min)
        .flat_map(|(list, _)| list)
        .take(MAX_OPENINGS)
    {
        found.push(Quotation {
            outer: content.clone(),
            content,
            form,
        });
    }
}

/// Returns the text of the link that an item of a list begins with.
fn link_text(item: &str) -> Option<Range<usize>> {
    let begin = item.find(' ')? + 1;
    let link = item.get(begin..)?.strip_prefix('[')?;
    let (content, address) = link.split_once("](")?;
    (address.starts_with("http") || address.starts_with(['/', '#']))
        .then(|| begin + 1..begin + 1 + content.len())
}

/// Returns the title in a line that begins with a time or a number: `09:30  …`, `Ep. 3 – …`,
/// `2. …  4:05`.
fn title_after_number(line: &str) -> Option<Range<usize>> {
    let first = line.split(|c: char| !c.is_alphabetic()).next()?;
    let is_numbered = NUMBERED
        .split_ascii_whitespace()
        .any(|word| first.eq_ignore_ascii_case(word));
    let number = line
        .get(first.len()..)?
        .trim_start_matches(|c: char| !c.is_alphanumeric());
    let digits = number.len()
        - number
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .len();
    let rest = number.get(digits..)?;
    let rest = if is_numbered && digits > 0
        || first.is_empty() && rest.starts_with(['.', ')']) && ends_with_duration(line)
    {
        rest
    } else if first.is_empty() && digits > 0 {
        // A time.
        let minutes = rest.strip_prefix([':', '.'])?;
        let digits = minutes.bytes().take_while(u8::is_ascii_digit).count();
        minutes.get(digits..).filter(|_| digits == 2)?
    } else {
        return None;
    };
    let begin = line.len()
        - rest
            .trim_start_matches(|c: char| !c.is_alphanumeric())
            .len();
    let title = line.get(begin..)?;
    let title = title.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    let end = title.find([':', '(', '\u{2013}', '\u{2014}', '?', '!', '"']);
    let title = title.get(..end.unwrap_or(title.len()))?.trim_end();
    (!title.is_empty()).then(|| begin..begin + title.len())
}

/// Reports whether a line ends with minutes and seconds.
fn ends_with_duration(line: &str) -> bool {
    let last = line.split_whitespace().next_back().unwrap_or_default();
    last.split_once(':').is_some_and(|(minutes, seconds)| {
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        !minutes.is_empty() && seconds.len() == 2 && is_number(minutes) && is_number(seconds)
    })
}

/// Adds the contents of elements of HTML around examples and quotations.
fn add_elements(text: &str, found: &mut Vec<Quotation>) {
    let mut openings = 0;
    for (at, _) in text.match_indices('<') {
        let tag = text.get(at + 1..).unwrap_or_default();
        let name_end = cut(tag, LINE_BYTES)
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(tag.len());
        let name = tag.get(..name_end).unwrap_or_default();
        if !QUOTING.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            continue;
        }
        openings += 1;
        if openings > MAX_OPENINGS {
            return;
        }
        let part = cut(tag, ELEMENT_BYTES);
        let content = part.find('>').and_then(|head| {
            let close = part.match_indices("</").map(|(at, _)| at).find(|close| {
                let after = part.get(close + 2..).unwrap_or_default();
                after
                    .get(..name.len())
                    .is_some_and(|other| other.eq_ignore_ascii_case(name))
            })?;
            (head + 1 < close).then(|| at + 2 + head..at + 1 + close)
        });
        let is_block = BLOCKS.iter().any(|block| name.eq_ignore_ascii_case(block));
        found.extend(content.map(|content| Quotation {
            outer: at..content.end,
            content,
            form: if is_block {
                Form::Block
            } else {
                Form::Ambiguous
            },
        }));
    }
}
