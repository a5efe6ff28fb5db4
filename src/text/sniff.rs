//! Whether a text is HTML or contains some, as opposed to prose, program text and XML that only
//! resemble it.

use std::ops::Range;

use super::lines::lines;
use super::{Facts, contains};

/// How HTML occurs in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// The whole text is a page or a piece of one: white space is layout.
    Document,
    /// Tags occur in a text of another kind (Markdown, prose), whose own white space is
    /// significant.
    Fragment,
}

/// Maximum length of an attribute value that is followed to its end here, in bytes.
const TAG_BYTES: usize = 2000;
/// Minimum number of tags in a fragment if none of them hides anything: a single `<b>` in prose may
/// be a word.
const FRAGMENT_TAGS: usize = 3;

/// Elements of HTML (WHATWG, 4; including obsolete ones), without those whose names are words in
/// other notations.
#[rustfmt::skip]
const ELEMENTS: [&str; 116] = [
    "a", "abbr", "address", "annotation", "applet", "area", "article", "aside", "audio", "b", "base", "bdi", "bdo", "big", "blockquote", "body", "br", "button", "canvas", "caption", "center", "cite", "code", "col", "colgroup", "datalist", "dd", "del", "details", "dfn", "dialog", "div", "dl", "dt", "em", "embed", "fieldset", "figcaption", "figure", "font", "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hgroup", "hr", "html", "i", "iframe", "img", "input", "ins", "kbd", "label", "legend", "li", "main", "map", "mark", "marquee", "math", "meta", "mtext", "nav", "nobr", "noembed", "noframes", "noscript", "object", "ol", "optgroup", "option", "p", "picture", "plaintext", "pre", "rp", "rt", "ruby", "s", "samp", "script", "section", "select", "small", "span", "strike", "strong", "style", "sub", "summary", "sup", "svg", "table", "tbody", "td", "template", "textarea", "tfoot", "th", "thead", "tr", "tt", "u", "ul", "video", "wbr", "xmp",
];

/// Elements whose content is not displayed.
const HIDING: [&str; 6] = ["head", "noscript", "script", "style", "svg", "template"];

/// More such elements, which count only if an end tag shows that they are meant as elements: the
/// names alone occur in prose about HTML.
const HIDING_IF_CLOSED: [&str; 22] = [
    "annotation",
    "audio",
    "canvas",
    "datalist",
    "desc",
    "details",
    "dialog",
    "iframe",
    "math",
    "metadata",
    "meter",
    "mphantom",
    "noembed",
    "noframes",
    "object",
    "progress",
    "rp",
    "ruby",
    "summary",
    "title",
    "video",
    "xmp",
];

/// Attributes through which a page fetches or sends something, matched by their ends.
const LOADING: [&str; 8] = [
    "src",
    "srcset",
    "poster",
    "action",
    "background",
    "ping",
    "data",
    "xlink:href",
];

/// Elements without content whose names are also words in other notations.
const VOID: [&str; 5] = ["bgsound", "link", "param", "source", "track"];

/// Attributes that may hide an element. They occur in tags in prose about HTML too, but with other
/// tags.
const HIDING_ATTRIBUTES: [&str; 9] = [
    "style",
    "hidden",
    "class",
    "color",
    "bgcolor",
    "inert",
    "popover",
    "aria-hidden",
    "id",
];

/// Reports whether a text is a page from its beginning (WHATWG, 13.1): after blanks, comments and
/// an XML declaration, it has an HTML doctype or the start of one of the elements that make up a
/// page.
pub(super) fn is_page(text: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    for (open, close) in [("<?xml", "?>"), ("<!--", "-->"), ("<!--", "-->")] {
        if rest.starts_with(open) {
            let Some((_, after)) = rest.split_once(close) else {
                return false;
            };
            rest = after.trim_start();
        }
    }
    let begins_with = |start: &str| {
        rest.get(..start.len())
            .is_some_and(|prefix| prefix.eq_ignore_ascii_case(start))
            && rest
                .as_bytes()
                .get(start.len())
                .is_none_or(|b| b.is_ascii_whitespace() || *b == b'>')
    };
    ["<!doctype html", "<html", "<head", "<body"]
        .into_iter()
        .any(begins_with)
}

/// Returns the shape of the HTML in a text, if there is any. `code` contains the ranges that
/// Markdown shows verbatim.
pub(super) fn shape(text: &str, code: &[Range<usize>]) -> Option<Shape> {
    let mut tags = 0;
    let mut has_hiding = false;
    let mut has_end_tag = false;
    let mut has_hiding_end_tag = false;
    let trimmed = text.trim();
    let is_xml = trimmed.strip_prefix('<').is_some_and(|rest| {
        find_element(rest).is_none()
            && !rest.starts_with("!--")
            && !HIDING_IF_CLOSED
                .iter()
                .any(|name| is_end_tag_of(rest, name))
            && !VOID.iter().any(|name| opens_element(rest, name))
    });
    let mut ranges = code.iter().peekable();
    let mut at = 0;
    while let Some(next) = text
        .get(at..)
        .and_then(|rest| memchr::memchr(b'<', rest.as_bytes()))
    {
        at += next + 1;
        let start = at - 1;
        while ranges.next_if(|range| range.end <= start).is_some() {}
        if ranges.peek().is_some_and(|range| range.contains(&start)) {
            continue;
        }
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with("!--") {
            has_hiding = true;
            continue;
        }
        if rest
            .get(..9)
            .is_some_and(|start| start.eq_ignore_ascii_case("!doctype "))
            && rest.len() > 13
        {
            return rest
                .get(9..13)
                .filter(|kind| kind.eq_ignore_ascii_case("html"))
                .map(|_| Shape::Document);
        }
        if rest.starts_with(['!', '?', '/']) && !is_xml && is_bogus_comment(rest) {
            has_hiding = true;
            tags += 1;
            continue;
        }
        let (closing, rest) = rest
            .strip_prefix('/')
            .map_or((false, rest), |rest| (true, rest));
        let html_element = find_element(rest);
        if closing {
            if let Some(name) = html_element {
                tags += 1;
                has_end_tag = true;
                has_hiding_end_tag |= HIDING_IF_CLOSED.contains(&name);
            } else {
                has_hiding_end_tag |= HIDING_IF_CLOSED
                    .iter()
                    .any(|name| is_end_tag_of(rest, name));
            }
            has_hiding |= has_hiding_end_tag && !is_xml;
            continue;
        }
        if matches!(html_element, Some("html" | "body" | "head")) && start < 1000 {
            return Some(Shape::Document);
        }
        let name = rest
            .bytes()
            .take(64)
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b':' | b'_' | b'.'))
            .count();
        if !rest.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        let end = tag_end(rest, name);
        let attributes = rest.get(name..end).unwrap_or_default();
        let Some(element) = html_element else {
            // For elements that are not HTML, or whose names are words in other notations, only
            // explicit hiding counts.
            let is_custom = rest.get(..name).is_some_and(|name| {
                name.contains('-') || VOID.iter().any(|v| name.eq_ignore_ascii_case(v))
            });
            let is_explicit = !is_xml
                || is_custom
                || attributes.contains("hidden")
                || attributes.contains("display");
            if (attributes.len() > 5 && may_hide(attributes, false) && is_explicit)
                || (is_custom && !is_xml && (may_hide(attributes, true) || is_fetching(attributes)))
            {
                tags += 1;
                has_hiding = true;
            }
            continue;
        };
        let is_generic = attributes.is_empty()
            && text.get(..start).is_some_and(|before| {
                before.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'))
            });
        if is_generic && element.len() == 1 {
            continue;
        }
        tags += 1;
        has_hiding |=
            HIDING.contains(&element) || may_hide(attributes, true) || is_fetching(attributes);
        if !attributes.is_empty() {
            at += end;
        }
    }
    if tags > 1 && trimmed.ends_with('>') && !is_xml && trimmed.starts_with('<') && code.is_empty()
    {
        return Some(Shape::Document);
    }
    let has_html = (has_hiding && (tags > 0 || contains(text, "<!--") || has_hiding_end_tag))
        || (tags >= FRAGMENT_TAGS && has_end_tag);
    (has_html && !is_program(text)).then_some(Shape::Fragment)
}

/// Reports whether a tag opens an element and has attributes.
fn opens_element(rest: &str, name: &str) -> bool {
    rest.get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
        && rest
            .as_bytes()
            .get(name.len())
            .is_some_and(u8::is_ascii_whitespace)
}

/// Reports whether an end tag belongs to an element.
fn is_end_tag_of(rest: &str, name: &str) -> bool {
    rest.get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
        && rest.as_bytes().get(name.len()) == Some(&b'>')
}

/// Reports whether `!`, `?` or `/` after a bracket begins a bogus comment in HTML (WHATWG,
/// 13.2.5.41) that contains a sentence.
fn is_bogus_comment(rest: &str) -> bool {
    const OTHERS: [&str; 9] = [
        "!doctype",
        "!element",
        "!entity",
        "!attlist",
        "!notation",
        "?xml",
        "?php",
        "?=",
        "/",
    ];
    let is_other_notation = OTHERS.iter().any(|other| {
        rest.get(..other.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(other))
    });
    let is_tag = rest.starts_with('/')
        && rest
            .as_bytes()
            .get(1)
            .is_none_or(|b| b.is_ascii_alphabetic() || *b == b'/');
    if is_tag || (is_other_notation && !rest.starts_with('/')) {
        return false;
    }
    let inner = super::cut(rest, 2000);
    inner
        .find('>')
        .and_then(|end| inner.get(..end))
        .is_some_and(super::presentational_attrs::is_prose)
}

/// Returns where a tag ends, ignoring `>` in quotes. If the quotes never close, returns where its
/// first part ends.
fn tag_end(rest: &str, from: usize) -> usize {
    let bytes = rest.as_bytes();
    let mut at = from;
    while let Some(b) = bytes.get(at).filter(|_| at - from < TAG_BYTES) {
        match b {
            b'>' => return at,
            b'<' => break,
            b'"' | b'\'' => {
                let inner = bytes.get(at + 1..).unwrap_or_default();
                let Some(close) = inner.iter().take(TAG_BYTES).position(|other| other == b) else {
                    break;
                };
                at += close + 2;
            }
            _ => at += 1,
        }
    }
    rest.get(from..)
        .and_then(|rest| rest.find(['>', '<']))
        .map_or(rest.len(), |end| from + end)
        .min(from + TAG_BYTES)
}

/// Reports whether one of a tag's attributes may hide it. With `all`, checks all of
/// [`HIDING_ATTRIBUTES`], and also whether an attribute is itself a text that nobody sees.
fn may_hide(attributes: &str, all: bool) -> bool {
    if !attributes.starts_with(|c: char| c.is_whitespace() || c == '/') {
        return false;
    }
    let lower = attributes.to_ascii_lowercase();
    let names: &[&str] = if all {
        &HIDING_ATTRIBUTES
    } else {
        &["style", "hidden", "inert", "popover", "aria-hidden"]
    };
    let is_present = |name: &&str| {
        lower.match_indices(*name).any(|(at, _)| {
            let before = lower
                .get(..at)
                .and_then(|before| before.chars().next_back());
            let after = lower
                .get(at + name.len()..)
                .and_then(|after| after.chars().next());
            before.is_some_and(|c| c.is_whitespace() || matches!(c, '/' | '"' | '\''))
                && after.is_none_or(|c| c.is_whitespace() || matches!(c, '=' | '/'))
        })
    };
    names.iter().any(is_present)
        || (all
            && lower
                .split(['"', '\''])
                .any(super::presentational_attrs::is_prose))
}

/// Reports whether a tag causes a viewer to fetch or send something.
fn is_fetching(attributes: &str) -> bool {
    let is_remote = |value: &str| {
        let value = value.trim_start_matches(['"', '\'', ' ']);
        ["http:", "https:", "//"].iter().any(|start| {
            value
                .get(..start.len())
                .is_some_and(|v| v.eq_ignore_ascii_case(start))
        })
    };
    attributes.match_indices('=').any(|(at, _)| {
        let name = attributes.get(..at).unwrap_or_default().trim_end();
        let is_loading = |loading_name: &&str| {
            let from = name.len().checked_sub(loading_name.len());
            from.and_then(|from| name.get(from..))
                .is_some_and(|name| name.eq_ignore_ascii_case(loading_name))
        };
        LOADING.iter().any(is_loading) && attributes.get(at + 1..).is_some_and(is_remote)
    })
}

/// Returns the element name at the start of a tag's content, if it is an HTML element.
fn find_element(rest: &str) -> Option<&'static str> {
    let length = rest
        .bytes()
        .take(12)
        .take_while(u8::is_ascii_alphanumeric)
        .count();
    let name = rest.get(..length)?;
    match rest.as_bytes().get(length) {
        Some(b'>' | b'/' | b' ' | b'\n' | b'\t' | b'\r' | 0x0C) => {}
        _ => return None,
    }
    let is_same = |element: &&&str| element.eq_ignore_ascii_case(name);
    ELEMENTS.iter().find(is_same).copied()
}

/// Reports whether the lines of a text begin like those of a program: tags in a program are not
/// markup.
fn is_program(text: &str) -> bool {
    const STARTS: [&str; 30] = [
        "import ",
        "from ",
        "export ",
        "const ",
        "let ",
        "var ",
        "function ",
        "def ",
        "class ",
        "#include",
        "#define",
        "package ",
        "use ",
        "using ",
        "namespace ",
        "fn ",
        "pub ",
        "public ",
        "private ",
        "static ",
        "return ",
        "return;",
        "if (",
        "for (",
        "} else",
        "};",
        "});",
        "#!",
        "<?php",
        "self.",
    ];
    let mut lines = 0;
    let mut code = 0;
    for line in text
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.is_empty())
        .take(300)
    {
        lines += 1;
        code += usize::from(
            STARTS.iter().any(|start| line.starts_with(start)) || line.ends_with([';', '{']),
        );
    }
    code >= 3 && code * 5 >= lines
}

/// Returns the ranges that Markdown shows verbatim: fenced blocks and code spans (CommonMark 4.5,
/// 6.1), outside HTML comments.
pub(super) fn code_ranges(text: &str, facts: &Facts) -> Vec<Range<usize>> {
    if !(facts.has(b'`') || facts.has(b'~') && contains(text, "~~~")) {
        return Vec::new();
    }
    let has_comments = facts.has(b'<') && contains(text, "<!--");
    let mut ranges = Vec::new();
    let mut fence: Option<(usize, &str)> = None;
    let mut in_comment = false;
    for (start, line) in lines(text) {
        if in_comment {
            in_comment = !line.contains("-->");
            continue;
        }
        if memchr::memchr3(b'`', b'~', b'<', line.as_bytes()).is_none() {
            continue;
        }
        let trimmed = line.trim();
        match fence {
            Some((opened, mark)) => {
                if trimmed.starts_with(mark)
                    && trimmed
                        .trim_start_matches(mark.get(..1).unwrap_or_default())
                        .is_empty()
                {
                    ranges.push(opened..start + line.len());
                    fence = None;
                }
            }
            None if trimmed.starts_with("```") || trimmed.starts_with("~~~") => {
                fence = Some((
                    start,
                    trimmed
                        .split(|c: char| !trimmed.starts_with(c))
                        .next()
                        .unwrap_or_default(),
                ));
            }
            None => {
                if has_comments && let Some((_, after)) = line.rsplit_once("<!--") {
                    in_comment = !after.contains("-->");
                }
                find_code_spans(line, start, &mut ranges);
            }
        }
    }
    ranges.extend(fence.map(|(opened, _)| opened..text.len()));
    ranges
}

/// Finds the code spans of one line.
fn find_code_spans(line: &str, start: usize, ranges: &mut Vec<Range<usize>>) {
    let mut open: Option<usize> = None;
    for at in memchr::memchr_iter(b'`', line.as_bytes()) {
        match open.take() {
            Some(from) => ranges.push(start + from..start + at + 1),
            None => open = Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(text: &str) -> Option<Shape> {
        shape(text, &code_ranges(text, &Facts::new(text)))
    }

    #[test]
    fn what_only_looks_like_html() {
        for text in [
            "a < b and c > d",
            "let v: Vec<String> = Vec::<u8>::new();",
            "Map<a, b> and Option<b> or List<i>",
            "the `<div>` and `<span style=x>` elements and `<script>`",
            "```html\n<div hidden><p>x</p></div>\n```\n",
            "<project><dependency>x</dependency></project>",
            "<?xml version=\"1.0\"?><root><item/></root>",
            "Use the <b> tag for bold.",
            "x <- y; 1 <2; <name@example.test>",
            "import React from 'react';\nexport default () => {\n  return (<div className=\"a\"><p>x</p><b>y</b></div>);\n};\n",
        ] {
            assert_eq!(detect(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_html() {
        for text in [
            "<!DOCTYPE html><p>x",
            "<html lang=en>x",
            "<div>a</div>",
            "<p>one <b>two</b>",
            "\n<ul><li>x</li></ul>\n",
        ] {
            assert!(detect(text).is_some(), "{text}");
        }
        for text in [
            "# Title\n\n<p align=\"center\"><img src=x></p>\n\ntext",
            "text <!-- note --> text",
            "a <span style=\"color:red\">b</span>",
            "a <script>x</script> b",
        ] {
            assert_eq!(detect(text), Some(Shape::Fragment), "{text}");
        }
        assert_eq!(detect("<div>a</div>"), Some(Shape::Document));
    }

    #[test]
    fn a_fence_in_a_comment_is_none() {
        let text = "<!--\n```\n-->\n<p hidden>x</p>\n";
        assert_eq!(
            code_ranges(text, &Facts::new(text)),
            Vec::<Range<usize>>::new()
        );
        assert!(detect(text).is_some());
    }
}
