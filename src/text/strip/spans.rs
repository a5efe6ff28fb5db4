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
    pub(super) column_span: usize,
    pub(super) row_span: usize,
}

/// A table within the limits.
#[derive(Default)]
pub(super) struct Grid {
    rows: Vec<Vec<Cell>>,
    cells: usize,
    /// For each column, the number of further rows that the cells above extend into.
    remaining_rows: [usize; COLUMNS],
    has_spans: bool,
    /// Number of rows with cells, and of header rows among them.
    row_count: usize,
    header_count: usize,
}

impl Grid {
    /// Adds a row. Returns whether the table is still within the limits.
    pub(super) fn add(&mut self, row: Vec<Cell>, head: bool) -> bool {
        self.cells += row.len() + 1;
        let mut column = 0;
        for cell in &row {
            column += self
                .remaining_rows
                .iter()
                .skip(column)
                .take_while(|rows| **rows > 0)
                .count();
            let is_within_limits =
                (1..=SPAN).contains(&cell.column_span) && (1..=SPAN).contains(&cell.row_span);
            if !is_within_limits || cell.text.len() > CELL_BYTES || cell.text.contains(['|', BLANK])
            {
                return false;
            }
            let Some(covered) = self
                .remaining_rows
                .get_mut(column..column + cell.column_span)
            else {
                return false;
            };
            if covered.iter().any(|rows| *rows > 0) {
                return false;
            }
            covered.fill(cell.row_span);
            column += cell.column_span;
            self.has_spans |= cell.column_span > 1 || cell.row_span > 1;
        }
        self.remaining_rows
            .iter_mut()
            .for_each(|rows| *rows = rows.saturating_sub(1));
        if !row.is_empty() {
            self.header_count += usize::from(head && self.header_count == self.row_count);
            self.row_count += 1;
        }
        self.rows.push(row);
        self.cells <= CELLS
    }

    /// Returns the table that replaces its plain rows of `bytes` bytes, if it has spans and enough
    /// of the page's cells are left after `used_cells`.
    pub(super) fn lay_out(&self, bytes: usize, used_cells: &mut usize) -> Option<String> {
        if !self.has_spans || *used_cells + self.cells + TABLE_CELLS > CELLS {
            return None;
        }
        *used_cells += self.cells + TABLE_CELLS;
        let config = html2text::config::plain();
        let markup = self.markup();
        // A panic in a third-party crate costs only the layout.
        let rendered = catch_unwind(AssertUnwindSafe(|| {
            config.string_from_read(markup.as_bytes(), WIDTH).ok()
        }))
        .ok()
        .flatten()?;
        let table = self.to_markdown(&rendered);
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
            for Cell {
                text,
                column_span: across,
                row_span: down,
            } in row
            {
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
    fn to_markdown(&self, rendered: &str) -> String {
        let mut table = String::with_capacity(rendered.len());
        let mut rows = 0;
        let mut header_rows = self.header_count;
        for line in rendered.lines() {
            let is_border = line
                .chars()
                .all(|c| matches!(c, ' ' | '\u{2500}'..='\u{257f}'));
            if is_border && (header_rows == 0 || rows != header_rows) {
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
            if is_border {
                header_rows = 0;
            } else {
                rows += 1;
            }
        }
        table
    }
}
