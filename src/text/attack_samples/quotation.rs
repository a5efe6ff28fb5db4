//! Quotations in prose that are introduced as wording (`the words "…"`, `phrases such as "…"`), and
//! enumerations of phrases (`knows "…", "…" and "…"`).

use std::ops::Range;

use super::line::Line;
use super::names::{is_inert, is_search_phrase};

/// Quotation marks.
const MARKS: [(char, char); 4] = [
    ('"', '"'),
    ('`', '`'),
    ('\u{201c}', '\u{201d}'),
    ('\u{ab}', '\u{bb}'),
];
/// Words directly before a quotation that introduce wording.
const INTRODUCTIONS: &str = "words phrase phrases sentence sentences string strings text texts line payload payloads quotation typing \
    typed types writes wrote written";
/// Pairs of words that do.
const PAIRS: [(&str, &str); 6] = [
    ("such", "as"),
    ("the", "form"),
    ("phrases", "like"),
    ("texts", "like"),
    ("strings", "like"),
    ("something", "like"),
];
/// Words of a sentence that tells its reader to do what a quotation says.
const REQUESTS: &str = "you your please must should shall now assistant follow obey execute perform do carry reply respond answer output \
    say print send repeat return run call use apply accept";
/// How far before a quotation its sentence is read, in bytes.
const SENTENCE_BYTES: usize = 160;
/// Maximum number of quotations that are read in one line.
const QUOTATIONS: usize = 32;

/// Minimum number of phrases in an enumeration.
const ENUMERATED: usize = 3;

/// Returns the introduced and the enumerated quotations of a line.
pub(super) fn find_quotations(line: &Line<'_>) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    let mut enumerated = Vec::new();
    let mut at = 0;
    for _ in 0..QUOTATIONS {
        let Some(rest) = line.text.get(at..) else {
            break;
        };
        let Some((begin, inside, close)) = find_opening(rest) else {
            break;
        };
        let Some(content) = rest
            .get(inside..)
            .and_then(|rest| rest.split_once(close))
            .map(|(content, _)| content)
        else {
            break;
        };
        let before = line.text.get(..at + begin).unwrap_or_default();
        let start = line.start + at + inside;
        let span = start..start + content.len();
        let is_quoted = is_inert(content, false);
        let between = rest
            .get(..begin)
            .unwrap_or_default()
            .trim()
            .trim_start_matches(',')
            .trim();
        if !matches!(between, "" | "/" | "|" | "and" | "or")
            || !is_quoted
            || !is_search_phrase(content)
        {
            end_enumeration(&mut enumerated, &mut spans);
        }
        if is_quoted && is_introduced(before) {
            spans.push(span);
        } else if is_quoted && is_search_phrase(content) {
            enumerated.push(span);
        }
        at += inside + content.len() + close.len_utf8();
    }
    end_enumeration(&mut enumerated, &mut spans);
    spans
}

/// Returns the position of the first quotation mark of a text, the position where the quoted text
/// begins, and the closing mark.
fn find_opening(text: &str) -> Option<(usize, usize, char)> {
    let mut may_open = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| matches!(byte, b'"' | b'`') || !byte.is_ascii());
    may_open.find_map(|(begin, _)| {
        let c = text.get(begin..)?.chars().next()?;
        let (_, close) = MARKS.iter().find(|(open, _)| *open == c)?;
        Some((begin, begin + c.len_utf8(), *close))
    })
}

fn end_enumeration(enumerated: &mut Vec<Range<usize>>, spans: &mut Vec<Range<usize>>) {
    if enumerated.len() >= ENUMERATED {
        spans.append(enumerated);
    }
    enumerated.clear();
}

fn is_introduced(before: &str) -> bool {
    let start = before.ceil_char_boundary(before.len().saturating_sub(SENTENCE_BYTES));
    let near = before.get(start..).unwrap_or_default();
    let sentence = near
        .rsplit(['.', '!', '?', ';'])
        .next()
        .unwrap_or(near)
        .to_ascii_lowercase();
    let words: Vec<&str> = sentence
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    let is_in = |list: &str, word: &str| list.split_ascii_whitespace().any(|listed| listed == word);
    let introduces = match words.as_slice() {
        [.., second, last] => is_in(INTRODUCTIONS, last) || PAIRS.contains(&(second, last)),
        _ => false,
    };
    introduces && !words.iter().any(|word| is_in(REQUESTS, word))
}
