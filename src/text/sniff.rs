//! Whether a text is HTML, or holds some, told from prose, program text and XML that only look like it.

use std::ops::Range;

/// How HTML stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All of it is a page or a piece of one: white space is layout.
    Document,
    /// Tags stand in a text of another kind (Markdown, prose), whose own white space counts.
    Fragment,
}

/// Tags without any that hides make a fragment from this number on: one `<b>` in prose may be a word.
const FRAGMENT_TAGS: usize = 3;

/// Elements of HTML (WHATWG, 4; obsolete ones included), without those that are words of other notations.
const ELEMENTS: [&str; 100] = [
    "a",
    "abbr",
    "address",
    "applet",
    "area",
    "article",
    "aside",
    "audio",
    "b",
    "base",
    "big",
    "blockquote",
    "body",
    "br",
    "button",
    "canvas",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "details",
    "dfn",
    "dialog",
    "div",
    "dl",
    "dt",
    "em",
    "embed",
    "fieldset",
    "figcaption",
    "figure",
    "font",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "i",
    "iframe",
    "img",
    "input",
    "ins",
    "kbd",
    "label",
    "legend",
    "li",
    "main",
    "map",
    "mark",
    "marquee",
    "meta",
    "nav",
    "noscript",
    "object",
    "ol",
    "optgroup",
    "option",
    "p",
    "picture",
    "pre",
    "s",
    "samp",
    "script",
    "section",
    "select",
    "small",
    "span",
    "strike",
    "strong",
    "style",
    "sub",
    "summary",
    "sup",
    "svg",
    "table",
    "tbody",
    "td",
    "template",
    "textarea",
    "tfoot",
    "th",
    "thead",
    "tr",
    "tt",
    "u",
    "ul",
    "video",
];

/// Elements whose content nobody sees.
const HIDING: [&str; 6] = ["head", "noscript", "script", "style", "svg", "template"];

/// Attributes by which an element may be hidden; they stand in tags of prose about HTML too, but with other tags.
const HIDING_ATTRIBUTES: [&str; 4] = ["style=", "hidden", "class=", "color="];

/// The shape of the HTML in a text, if there is any. `code` says where Markdown shows text as it is.
pub(super) fn shape(text: &str, code: &[Range<usize>]) -> Option<Shape> {
    let (mut tags, mut hides, mut closes) = (0, false, false);
    let mut code = code.iter().peekable();
    for (at, _) in text.match_indices('<') {
        while code.next_if(|range| range.end <= at).is_some() {}
        if code.peek().is_some_and(|range| range.contains(&at)) {
            continue;
        }
        let rest = text.get(at + 1..).unwrap_or_default();
        if rest.starts_with("!--") {
            hides = true;
            continue;
        }
        if rest.get(..9).is_some_and(|start| start.eq_ignore_ascii_case("!doctype ")) && rest.len() > 13 {
            return rest.get(9..13).filter(|kind| kind.eq_ignore_ascii_case("html")).map(|_| Shape::Document);
        }
        let (closing, rest) = rest.strip_prefix('/').map_or((false, rest), |rest| (true, rest));
        let Some(name) = element(rest) else { continue };
        if matches!(name, "html" | "body" | "head") && !closing && at < 1000 {
            return Some(Shape::Document);
        }
        let attributes = rest.get(name.len()..).and_then(|after| after.split(['>', '<']).next()).unwrap_or_default();
        let generic = !closing
            && attributes.is_empty()
            && text
                .get(..at)
                .is_some_and(|before| before.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':')));
        if generic && name.len() == 1 {
            continue;
        }
        tags += 1;
        closes |= closing;
        hides |= HIDING.contains(&name)
            || (attributes.starts_with(char::is_whitespace) && HIDING_ATTRIBUTES.iter().any(|word| attributes.contains(word)));
    }
    let trimmed = text.trim();
    if tags > 1 && trimmed.ends_with('>') && trimmed.strip_prefix('<').and_then(element).is_some() && code.len() == 0 {
        return Some(Shape::Document);
    }
    let found = (hides && (tags > 0 || text.contains("<!--"))) || (tags >= FRAGMENT_TAGS && closes);
    (found && !is_program(text)).then_some(Shape::Fragment)
}

/// The element name at the start of a tag's inside, if it is one of HTML.
fn element(rest: &str) -> Option<&'static str> {
    let length = rest.bytes().take(12).take_while(u8::is_ascii_alphanumeric).count();
    let name = rest.get(..length)?;
    match rest.as_bytes().get(length) {
        Some(b'>' | b'/' | b' ' | b'\n' | b'\t' | b'\r' | 0x0C) => {}
        _ => return None,
    }
    let known = |element: &&&str| element.eq_ignore_ascii_case(name);
    ELEMENTS.iter().find(known).copied()
}

/// Whether most of what begins the lines is a programming language's: tags in a program are its own business.
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
    let (mut lines, mut code) = (0, 0);
    for line in text.lines().map(str::trim_start).filter(|line| !line.is_empty()).take(300) {
        lines += 1;
        code += usize::from(STARTS.iter().any(|start| line.starts_with(start)) || line.ends_with([';', '{']));
    }
    code >= 3 && code * 5 >= lines
}

/// Where Markdown shows text as it is: fenced blocks and code spans (CommonMark 4.5, 6.1), outside HTML comments.
pub(super) fn code(text: &str) -> Vec<Range<usize>> {
    if !text.contains('`') && !text.contains("~~~") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut fence: Option<(usize, &str)> = None;
    let mut comment = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        if comment {
            comment = !line.contains("-->");
            continue;
        }
        match fence {
            Some((opened, mark)) => {
                if trimmed.starts_with(mark) && trimmed.trim_matches(['`', '~']).is_empty() {
                    found.push(opened..at);
                    fence = None;
                }
            }
            None if trimmed.starts_with("```") || trimmed.starts_with("~~~") => {
                fence = Some((start, if trimmed.starts_with('`') { "```" } else { "~~~" }));
            }
            None => {
                if let Some((_, after)) = line.rsplit_once("<!--") {
                    comment = !after.contains("-->");
                }
                spans(line, start, &mut found);
            }
        }
    }
    if let Some((opened, _)) = fence {
        found.push(opened..text.len());
    }
    found
}

/// The code spans of one line.
fn spans(line: &str, start: usize, found: &mut Vec<Range<usize>>) {
    let mut open: Option<usize> = None;
    for (at, _) in line.match_indices('`') {
        match open.take() {
            Some(from) => found.push(start + from..start + at + 1),
            None => open = Some(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Shape> {
        shape(text, &code(text))
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
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_html() {
        for text in ["<!DOCTYPE html><p>x", "<html lang=en>x", "<div>a</div>", "<p>one <b>two</b>", "\n<ul><li>x</li></ul>\n"] {
            assert!(of(text).is_some(), "{text}");
        }
        for text in [
            "# Title\n\n<p align=\"center\"><img src=x></p>\n\ntext",
            "text <!-- note --> text",
            "a <span style=\"color:red\">b</span>",
            "a <script>x</script> b",
        ] {
            assert_eq!(of(text), Some(Shape::Fragment), "{text}");
        }
        assert_eq!(of("<div>a</div>"), Some(Shape::Document));
    }

    #[test]
    fn a_fence_in_a_comment_is_none() {
        let text = "<!--\n```\n-->\n<p hidden>x</p>\n";
        assert_eq!(code(text), Vec::<Range<usize>>::new());
        assert!(of(text).is_some());
    }
}
