//! The visible part of a page as markup without attributes, for html2text, within the bounds that it needs.

/// html2text is super-linear in nesting (220 kB of nested tags took 5 s) and has panicked on tables: larger or deeper
/// pages than this are written without it.
const BYTES: usize = 256 << 10;
/// Deepest nesting that it gets.
const DEPTH: usize = 32;
/// Most cells of tables that it gets.
const CELLS: usize = 2000;
/// Most cells of a row, and the longest of them in bytes: others it breaks into lines, and mixes those of one cell with
/// those of the next.
const ROW: usize = 4;
const CELL_BYTES: usize = 24;

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
    in_row: usize,
    cell: Option<usize>,
}

impl Clean {
    /// For a page of so many bytes, if it is `wanted`.
    pub(super) fn new(wanted: bool, bytes: usize) -> Self {
        Self { text: (wanted && bytes <= 4 * BYTES).then(String::new), tables: 0, cells: 0, in_row: 0, cell: None }
    }

    /// Begins or, with a slash, ends an element, at a depth.
    pub(super) fn tag(&mut self, name: &str, slash: &str, depth: usize) {
        if self.text.is_none() {
            return;
        }
        self.tables += usize::from(name == "table");
        self.cells += usize::from(matches!(name, "td" | "th"));
        match name {
            "tr" | "table" => (self.in_row, self.cell) = (0, None),
            "td" | "th" if slash.is_empty() => (self.in_row, self.cell) = (self.in_row + 1, Some(0)),
            "td" | "th" => self.cell = None,
            "br" | "p" | "div" | "li" | "pre" | "hr" | "blockquote" if self.cell.is_some() => self.text = None,
            _ => {}
        }
        if depth > DEPTH || self.cells > CELLS || self.in_row > ROW {
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
        if let Some(cell) = &mut self.cell {
            *cell += part.trim().len();
            if *cell > CELL_BYTES {
                self.text = None;
                return;
            }
        }
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
