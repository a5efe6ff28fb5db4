//! The visible part of a page as markup without attributes, for html2text, within the bounds that it needs.

/// html2text is super-linear in nesting (220 kB of nested tags took 5 s) and has panicked on tables: larger or deeper
/// pages than this are written without it.
const BYTES: usize = 256 << 10;
/// Deepest nesting that it gets.
const DEPTH: usize = 32;
/// Most cells of tables that it gets.
const CELLS: usize = 2000;

const KEPT: [&str; 26] = [
    "b",
    "blockquote",
    "br",
    "caption",
    "code",
    "dd",
    "div",
    "dl",
    "dt",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "hr",
    "i",
    "li",
    "ol",
    "p",
    "pre",
    "strong",
    "table",
    "td",
    "th",
    "tr",
    "ul",
];

/// Markup that grows as a page is read, until it is too much.
#[derive(Debug)]
pub(super) struct Clean {
    text: Option<String>,
    tables: usize,
    cells: usize,
}

impl Clean {
    /// For a page of so many bytes, if it is `wanted`.
    pub(super) fn new(wanted: bool, bytes: usize) -> Self {
        Self { text: (wanted && bytes <= 4 * BYTES).then(String::new), tables: 0, cells: 0 }
    }

    /// Begins or, with a slash, ends an element, at a depth.
    pub(super) fn tag(&mut self, name: &str, slash: &str, depth: usize) {
        self.tables += usize::from(name == "table");
        self.cells += usize::from(matches!(name, "td" | "th"));
        if depth > DEPTH || self.cells > CELLS {
            self.text = None;
        }
        if let Some(text) = self.text.as_mut().filter(|_| KEPT.binary_search(&name).is_ok()) {
            for part in ["<", slash, name, ">"] {
                text.push_str(part);
            }
        }
    }

    pub(super) fn text(&mut self, part: &str) {
        let Some(text) = &mut self.text else { return };
        for c in part.chars() {
            match c {
                '<' => text.push_str("&lt;"),
                '>' => text.push_str("&gt;"),
                '&' => text.push_str("&amp;"),
                c => text.push(c),
            }
        }
        if text.len() > BYTES {
            self.text = None;
        }
    }

    /// The markup, where it has tables: all else is written as well without html2text.
    pub(super) fn finish(self) -> Option<String> {
        self.text.filter(|_| self.tables > 0)
    }
}
