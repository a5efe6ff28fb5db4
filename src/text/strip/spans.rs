//! Tables with cells that span columns or rows, laid out by html2text within bounds, as rows of Markdown whose columns are
//! aligned. The only file that uses the crate.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// html2text is super-linear in the rows of a table: most cells of a page that it gets, and what a table counts besides its cells.
const CELLS: usize = 600;
const TABLE_CELLS: usize = 16;
/// Maximum number of columns, most of them or of rows that a cell spans, and the longest text of a cell, in bytes: html2text
/// breaks longer ones into lines and mixes those of one cell with those of the next.
const COLUMNS: usize = 8;
const SPAN: usize = 20;
const CELL_BYTES: usize = 24;
/// What html2text gets for a blank at both ends of a cell: it drops blanks.
const BLANK: char = '␣';
/// Width that every row within these bounds fits, in characters.
const WIDTH: usize = COLUMNS * (CELL_BYTES + 3);
/// How much longer a table may become than its plain rows: so many times, and so many bytes.
const TIMES: usize = 3;
const MORE_BYTES: usize = 256;

/// A cell, with the columns and rows that it spans.
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) across: usize,
    pub(super) down: usize,
}

/// A table within the bounds.
#[derive(Default)]
pub(super) struct Grid {
    rows: Vec<Vec<Cell>>,
    cells: usize,
    /// For how many more rows the cells above reach into each column.
    hanging: [usize; COLUMNS],
    spans: bool,
    /// Rows with cells, and those of them that head the table.
    written: usize,
    heads: usize,
}

impl Grid {
    /// Adds a row; whether the table is still within the bounds.
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

    /// The table in place of its plain rows of so many bytes, where it has spans and `spent` of the page's cells leaves it
    /// enough.
    pub(super) fn lay_out(&self, bytes: usize, spent: &mut usize) -> Option<String> {
        if !self.spans || *spent + self.cells + TABLE_CELLS > CELLS {
            return None;
        }
        *spent += self.cells + TABLE_CELLS;
        let config = html2text::config::plain();
        let markup = self.markup();
        // A panic in a foreign crate costs no more than the layout.
        let drawn = catch_unwind(AssertUnwindSafe(|| {
            config.string_from_read(markup.as_bytes(), WIDTH).ok()
        }))
        .ok()
        .flatten()?;
        let table = self.rows_of(&drawn);
        // What is judged and shown is what the page says, in its order.
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

    /// What html2text drew, without the borders but the one under the heads, in the signs of Markdown: the readings of tables
    /// know those.
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
