//! Finds text that Markdown does not display: titles of links, definitions without references,
//! comments written as such definitions, long descriptions of images (CommonMark 0.31, 4.7 and
//! 6.3).

mod asides;
mod link;

use std::ops::Range;

use super::lines::lines;
use super::presentational_attrs::{ALT_BYTES, is_prose};
use super::{Facts, contains};

/// Maximum length of a title or label that is examined, in bytes.
const PART_BYTES: usize = 4000;
/// Words in brackets at the start of log lines.
const LEVELS: [&str; 12] = [
    "info", "warn", "warning", "error", "debug", "trace", "notice", "fatal", "critical", "ok",
    "fail", "skip",
];
/// Maximum number of labels whose references are searched for in the text; further labels count as
/// unreferenced.
const LABELS: usize = 64;

/// Returns the parts that are not displayed, in order and without overlaps, each with the text that
/// a renderer shows in its place.
pub(super) fn find_hidden(
    text: &str,
    facts: &Facts,
    code: &[Range<usize>],
) -> Vec<(Range<usize>, &'static str)> {
    let mut cuts: Vec<(Range<usize>, &'static str)> = Vec::new();
    if facts.has_any(b"[]")
        && (contains(text, "](") || contains(text, "]:") || contains(text, "!["))
    {
        find_definitions(text, &mut cuts);
        find_inline(text, &mut cuts);
    }
    asides::find(text, facts, &mut cuts);
    let mut code = code.iter().peekable();
    cuts.sort_by_key(|(range, _)| range.start);
    cuts.retain(|(range, _)| {
        while code
            .next_if(|code_range| code_range.end <= range.start)
            .is_some()
        {}
        !code
            .peek()
            .is_some_and(|code_range| code_range.contains(&range.start))
    });
    if facts.has_any(b"`~") && (contains(text, "```") || contains(text, "~~~")) {
        asides::find_fence_text(text, &mut cuts);
        cuts.sort_by_key(|(range, _)| range.start);
    }
    let mut end = 0;
    cuts.retain(|(range, _)| {
        let is_separate = range.start >= end;
        end = if is_separate { range.end } else { end };
        is_separate
    });
    cuts
}

/// Finds definitions at the start of lines: `[label]: target "title"`, `[^note]: text`.
fn find_definitions(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    let mut labels = 0;
    let mut line_before = "";
    let mut definition_end = 0;
    for (start, line) in lines(text) {
        if start < definition_end {
            continue;
        }
        let before = std::mem::replace(&mut line_before, line);
        if memchr::memchr(b'[', line.as_bytes()).is_none() {
            continue;
        }
        let at = start + line.len();
        let inner = without_list_marks(line);
        let indent = line.len() - inner.len();
        let spaces = line.bytes().take_while(|b| *b == b' ').count();
        if spaces > 3 || indent > 12 || !inner.starts_with('[') {
            continue;
        }
        let Some((label, rest)) = inner.get(1..).and_then(|rest| rest.split_once("]:")) else {
            continue;
        };
        if label.contains(['[', ']']) || label.len() > PART_BYTES {
            continue;
        }
        let from = start + indent;
        let mut is_referenced = || {
            labels += 1;
            let name = format!("[{label}]");
            labels <= LABELS && text.matches(&*name).nth(1).is_some()
        };
        let after = at - rest.len();
        if label.starts_with('^') {
            let end = at + continuation_length(text.get(at..).unwrap_or_default());
            if text.get(after..end).is_some_and(is_prose) && !is_referenced() {
                cuts.push((from..end, ""));
            }
            continue;
        }
        let Some(definition) = link::read_definition(text, after) else {
            continue;
        };
        // Within a paragraph, it is part of the paragraph.
        let may_begin = ends_paragraph(before);
        line_before = before;
        definition_end = definition.end;
        let target = text.get(definition.target.clone()).unwrap_or_default();
        let is_empty_target = matches!(
            target,
            "#" | "<>" | "-" | "_" | "//" | "/" | "<#>" | "." | "about:blank"
        );
        let is_comment = !label.contains(|c: char| c.is_alphanumeric())
            || ["comment", "comments", "note", "hidden"]
                .iter()
                .any(|word| label.eq_ignore_ascii_case(word));
        let is_log = LEVELS.iter().any(|level| label.eq_ignore_ascii_case(level));
        let Some(title) = definition.title else {
            if (is_empty_target || is_link_target(target))
                && is_prose(label)
                && label.split(' ').count() > 5
                && !(is_empty_target && is_referenced())
            {
                cuts.push((from..definition.end, ""));
            }
            continue;
        };
        let title_text = text.get(title.clone()).unwrap_or_default();
        let is_quoted = !title_text.starts_with('(');
        // Text that only resembles a definition is surrounded by similar lines.
        let is_alone = may_begin
            && text.get(definition.end..).is_none_or(|rest| {
                rest.trim_start_matches([' ', '>']).starts_with('\n') || rest.is_empty()
            });
        if (is_empty_target || is_comment) && title_text.len() >= 8 {
            cuts.push((from..definition.end, ""));
        } else if is_prose(title_text)
            && !is_log
            && (is_link_target(target) && (is_quoted || may_begin)
                || may_begin && is_quoted
                || is_alone)
        {
            cuts.push((title, ""));
        }
    }
}

fn without_list_marks(line: &str) -> &str {
    line.trim_start_matches([' ', '>', '-', '*', '+', '\t'])
}

/// Reports whether the line after this one is not part of the same paragraph.
fn ends_paragraph(line: &str) -> bool {
    let inner = without_list_marks(line);
    inner.trim().is_empty() || inner.starts_with('#')
}

/// Returns how many of the following bytes belong to a footnote: its indented continuation lines.
fn continuation_length(rest: &str) -> usize {
    rest.split_inclusive('\n')
        .take_while(|line| line.starts_with("    ") || line.starts_with('\t'))
        .map(str::len)
        .sum()
}

fn is_link_target(target: &str) -> bool {
    let scheme = target
        .bytes()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        .count();
    target.starts_with(['/', '#', '.', '<'])
        || (scheme > 1 && target.as_bytes().get(scheme) == Some(&b':'))
}

/// Finds titles within links, and long descriptions of images.
fn find_inline(text: &str, cuts: &mut Vec<(Range<usize>, &str)>) {
    let positions = |sign: &'static str| {
        memchr::memmem::find_iter(text.as_bytes(), sign).map(move |at| (at, sign))
    };
    for (at, mark) in positions("](").chain(positions("][")) {
        if mark == "](" {
            if let Some(title) = link::find_title(text, at + 2)
                && text.get(title.clone()).is_some_and(is_prose)
            {
                cuts.push((title, ""));
            }
        } else if let Some(label) = text
            .get(at + 2..)
            .map(|rest| super::cut(rest, PART_BYTES))
            .and_then(|rest| rest.split_once(']'))
            && is_prose(label.0)
            && label.0.split(' ').count() > 5
            && !label.0.contains(['[', '\n'])
        {
            // Of two labels, only the first is displayed.
            cuts.push((at + 2..at + 2 + label.0.len(), "link"));
        }
        if let Some(alt) = image_description(text, at)
            && alt.len() > ALT_BYTES
        {
            cuts.push((alt, "image"));
        }
    }
}

/// Returns the range of the image description whose closing bracket is at `close`.
fn image_description(text: &str, close: usize) -> Option<Range<usize>> {
    let before = text
        .as_bytes()
        .get(close.saturating_sub(PART_BYTES)..close)?;
    let open = before
        .iter()
        .rposition(|b| matches!(b, b'[' | b']'))
        .filter(|at| before.get(*at) == Some(&b'['))?;
    let start = close - (before.len() - open) + 1;
    text.get(..start)?.ends_with("![").then_some(start..close)
}

#[cfg(test)]
#[allow(clippy::string_slice)]
mod tests {
    use super::{Facts, find_hidden};

    fn strip(text: &str, code: &[std::ops::Range<usize>]) -> Option<(String, String)> {
        let mut left = String::new();
        let mut taken = String::new();
        let mut at = 0;
        for (range, stand_in) in find_hidden(text, &Facts::new(text), code) {
            left.push_str(&text[at..range.start]);
            left.push_str(stand_in);
            taken.push_str(&text[range.clone()]);
            at = range.end;
        }
        left.push_str(&text[at..]);
        (at > 0).then_some((left, taken))
    }

    fn left(text: &str) -> String {
        strip(text, &[]).map_or_else(|| text.to_owned(), |(left, _)| left)
    }

    #[test]
    fn what_shows_nowhere_is_taken_out() {
        for text in [
            "a\n\n[//]: # (SECRET words for nobody)\n\nb",
            "a\n\n[comment]: <> (SECRET words for nobody)\n\nb",
            "see [x](https://a.test/ \"SECRET words for nobody at all\") b",
            "see [x][y] b\n\n[y]: https://a.test/ 'SECRET words for nobody'\n",
            "see [x][y] b\n\n[y]: https://a.test/\n  \"SECRET words for nobody\"\n",
            "b\n\n[SECRET words that say what nobody shall see]: #\n",
            "b\n\n[^1]: SECRET words for nobody to see\n",
            "b [x]( <https://a.test/b c> (SECRET words for nobody at all) )",
            "b [x](https://a.test/b(c) 'SECRET words for nobody at all')",
            "b\n\n[a]: c (SECRET words for nobody at all)\n\nd",
            "b\n\n[a]:\nc\n\"SECRET words for nobody at all\"\n",
            "b\n\n[comment]: # (\nSECRET words for nobody\n)\n",
            "> b\n>\n> [a]: /u \"SECRET words for nobody at all\"\n",
            "b\n\n[x]: javascript:0 \"SECRET words for nobody at all\"\n",
            "b\n\n[^n]: one\n    SECRET words for nobody to see\n",
            "![b][SECRET words that say what nobody shall see]",
            "```text SECRET words that say what nobody shall see\nb\n```\n",
            "## b {#c data-note=\"SECRET words for nobody at all\"}\n",
            "[b](/c){title=\"SECRET words for nobody at all\"}",
            "b $x\\phantom{\\text{SECRET words for nobody at all}}$",
            "b \\textcolor{white}{SECRET words for nobody at all}",
            "| b | c |\n|---|---|\n| d | e | SECRET words for nobody |\n",
            &format!("![SECRET {}][b]\n\n[b]: a.png", "word ".repeat(20)),
            &format!("![SECRET {}](a.png) b", "word ".repeat(20)),
        ] {
            let (left, taken) = strip(text, &[]).unwrap_or_else(|| panic!("{text}"));
            assert!(
                !left.contains("SECRET") && taken.contains("SECRET") && left.contains('b'),
                "{left}"
            );
        }
    }

    #[test]
    fn what_shows_or_only_looks_so_stays() {
        for text in [
            "see [the guide](https://a.test/b \"Guide\") and ![a logo](l.png)",
            "a[^1]\n\n[^1]: A note that is referred to above.\n",
            "[INFO]: started (with 3 workers and more)\n[WARN]: a.txt (was not found in the path)\n",
            "[section]: \"a quoted text that follows\"\nlist[0]: 'one of these words'\n",
            "[a]: https://a.test/\n[b]: <https://b.test>\n",
            "text\n[main]: started (with 3 workers and more)\n[main]: stopped (with no workers any more)\n",
            "[a]: first \"b\" c\n",
            "```rust,ignore (only an example)\nx\n```\n",
            "```js title=\"a b c.js\" {1,3}\nx\n```\n",
            "let x = y {a: \"one two three four\"};\n{ \"a\": \"one two three four\" }\n",
            "| a | b |\n|---|---|\n| c `d | e` | f |\n| c \\| d | e |\n",
            "a | b | c\nno table | at | all | here\n",
            "$a \\phantom{0} b$ \\textcolor{red}{one two three four five}",
        ] {
            assert_eq!(left(text), text);
        }
    }

    #[test]
    fn many_brackets_cost_linear_time() {
        for text in [
            "](".repeat(50_000),
            "[a]: # (".repeat(50_000),
            "[a]:\n".repeat(50_000),
            "![".repeat(50_000),
        ] {
            let began = std::time::Instant::now();
            strip(&text, &[]);
            assert!(began.elapsed().as_secs() < 5, "{:?}", text.get(..8));
        }
    }
}
