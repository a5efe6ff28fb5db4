//! Tables with cells that span columns or rows. html2text lays them out, within limits, as rows of
//! Markdown with aligned columns. This is the only file that uses the crate.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// html2text is super-linear in the rows of a table: maximum number of cells of a page that are
/// passed to it, and the number of cells that each table counts in addition to its own.
const CELLS: usize = 600;
const TABLE_CELLS: usize = 16;
/// Maximum number of columns, of columns or rows that a cell spans, and of bytes in a cell:
/// html2text breaks longer texts into lines and mixes the lines of one cell with those of the next.
const COLUMNS: usize = 8;
const SPAN: usize = 20;
const CELL_BYTES: usize = 24;
/// Replaces a blank at both ends of a cell in the input of html2text, which drops blanks.
const BLANK: char = '␣';
/// Width that fits every row within these limits, in characters.
const WIDTH: usize = COLUMNS * (CELL_BYTES + 3);
/// Maximum growth of a table over its plain rows: a factor, and a number of bytes.
const TIMES: usize = 3;
const MORE_BYTES: usize = 256;

/// A cell, with the columns and rows that it spans.
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) across: usize,
    pub(super) down: usize,
}

/// A table within the limits.
#[derive(Default)]
pub(super) struct Grid {
    rows: Vec<Vec<Cell>>,
    cells: usize,
    /// For each column, the number of further rows that the cells above extend into.
    hanging: [usize; COLUMNS],
    spans: bool,
    /// Number of rows with cells, and of header rows among them.
    written: usize,
    heads: usize,
}

impl Grid {
    /// Adds a row. Returns whether the table is still within the limits.
    pub(super) fn add(&mut self, row: Vec<Cell>, head: bool) -> bool {
        self.cells += row.len() + 1;
        let mut column = 0;
        for cell in &row {
            column += self
                .hanging
                .iter()
                .skip(column)
                .take_while(|rows| **rows > 0)
                .count();
            let fits = (1..=SPAN).contains(&cell.across) && (1..=SPAN).contains(&cell.down);
            if !fits || cell.text.len() > CELL_BYTES || cell.text.contains(['|', BLANK]) {
                return false;
            }
            let Some(under) = self.hanging.get_mut(column..column + cell.across) else {
                return false;
            };
            if under.iter().any(|rows| *rows > 0) {
                return false;
            }
            under.fill(cell.down);
            column += cell.across;
            self.spans |= cell.across > 1 || cell.down > 1;
        }
        self.hanging
            .iter_mut()
            .for_each(|rows| *rows = rows.saturating_sub(1));
        if !row.is_empty() {
            self.heads += usize::from(head && self.heads == self.written);
            self.written += 1;
        }
        self.rows.push(row);
        self.cells <= CELLS
    }

    /// Returns the table that replaces its plain rows of `bytes` bytes, if it has spans and enough
    /// of the page's cells are left after `spent`.
    pub(super) fn lay_out(&self, bytes: usize, spent: &mut usize) -> Option<String> {
        if !self.spans || *spent + self.cells + TABLE_CELLS > CELLS {
            return None;
        }
        *spent += self.cells + TABLE_CELLS;
        let config = html2text::config::plain();
        let markup = self.markup();
        // A panic in a third-party crate costs only the layout.
        let drawn = catch_unwind(AssertUnwindSafe(|| {
            config.string_from_read(markup.as_bytes(), WIDTH).ok()
        }))
        .ok()
        .flatten()?;
        let table = self.rows_of(&drawn);
        // The result must contain the text of the page, in its order, as that is what is judged and
        // shown.
        let mut rest = table.as_str();
        for cell in self.rows.iter().flatten() {
            rest = rest.split_once(&cell.text)?.1;
        }
        (table.len() <= TIMES * bytes + MORE_BYTES).then_some(table)
    }

    fn markup(&self) -> String {
        let mut markup = String::from("<table>");
        for row in &self.rows {
            markup.push_str("<tr>");
            for Cell { text, across, down } in row {
                let text = text
                    .replace('&', "&amp;")
                    .replace('<', "&lt;")
                    .replace('>', "&gt;");
                markup.push_str(&format!(
                    "<td colspan=\"{across}\" rowspan=\"{down}\">{BLANK}{text}{BLANK}</td>"
                ));
            }
            markup.push_str("</tr>");
        }
        markup.push_str("</table>");
        markup
    }

    /// Converts the output of html2text to Markdown, which the readings of tables understand: drops
    /// the borders except for the one under the header.
    fn rows_of(&self, drawn: &str) -> String {
        let mut table = String::with_capacity(drawn.len());
        let mut rows = 0;
        let mut heads = self.heads;
        for line in drawn.lines() {
            let border = line
                .chars()
                .all(|c| matches!(c, ' ' | '\u{2500}'..='\u{257f}'));
            if border && (heads == 0 || rows != heads) {
                continue;
            }
            if !table.is_empty() {
                table.push('\n');
            }
            table.push('|');
            table.extend(line.chars().map(|c| match c {
                '─' => '-',
                '\u{2501}'..='\u{257f}' => '|',
                BLANK => ' ',
                c => c,
            }));
            table.push('|');
            if border {
                heads = 0;
            } else {
                rows += 1;
            }
        }
        table
    }
}
