//! Tables of a page as Markdown tables. A row whose cells contain lists, code, headings or tables
//! keeps its layout: pages use tables to place their parts. A table whose cells span columns or
//! rows is laid out as a whole when it ends.

use std::ops::Range;

use super::Reader;
use super::spans::{Cell, Grid};
use crate::text::element::Mark;
use crate::text::render::Point;

/// Maximum length of a row with line breaks in its cells that is written on one line, in bytes;
/// longer ones are columns of a page.
const ROW_BYTES: usize = 1000;

/// An open table.
#[derive(Default)]
pub(super) struct Table {
    rows: usize,
    /// Number of rows that were written as Markdown rows.
    markdown_rows: usize,
    /// Its cells, as long as they may be laid out together.
    grid: Option<Grid>,
    /// Where its first row begins and its last row ended.
    start: Option<Point>,
    end: usize,
}

/// An open row.
pub(super) struct Row {
    start: Point,
    cells: Vec<Range<usize>>,
    /// The number of columns and rows that each cell spans.
    spans: Vec<(usize, usize)>,
    /// Number of cells that are headers of a column or a row.
    headers: usize,
    /// Whether the row is in the head of its table.
    in_head: bool,
    /// Whether the row contains more than text.
    has_layout: bool,
}

impl Row {
    fn is_header(&self) -> bool {
        self.in_head || self.headers == self.cells.len()
    }

    /// Returns the lines of a cell.
    fn cell_lines<'w>(
        &self,
        cell: &Range<usize>,
        row_text: &'w str,
    ) -> impl Iterator<Item = &'w str> {
        let range =
            cell.start.saturating_sub(self.start.at)..cell.end.saturating_sub(self.start.at);
        row_text
            .get(range)
            .unwrap_or_default()
            .split('\n')
            .map(str::trim)
            .filter(|part| !part.is_empty())
    }

    /// Returns the table with this row added, if it is within the limits.
    fn add_to(&self, mut grid: Grid, row_text: &str) -> Option<Grid> {
        let cells = self.cells.iter().zip(&self.spans);
        let cells = cells.map(|(cell, &(across, down))| {
            let text = self
                .cell_lines(cell, row_text)
                .collect::<Vec<_>>()
                .join(" ");
            Cell {
                text,
                column_span: across,
                row_span: down,
            }
        });
        grid.add(cells.collect(), self.is_header()).then_some(grid)
    }
}

impl Reader {
    pub(super) fn open_table(&mut self) {
        let grid = self.tables.is_empty().then(Grid::default);
        self.tables.push(Table {
            grid,
            ..Table::default()
        });
    }

    pub(super) fn close_table(&mut self) {
        if let Some(Table {
            grid: Some(grid),
            start: Some(start),
            end,
            ..
        }) = self.tables.pop()
            && end == self.lines.len()
            && let Some(table) =
                grid.lay_out(end.saturating_sub(start.at), &mut self.laid_out_cells)
        {
            self.lines.replace_since(start, &table);
        }
        self.lines.end_line(2);
    }

    pub(super) fn open_row(&mut self) -> Mark {
        let Some(table) = self.tables.last_mut() else {
            return Mark::None;
        };
        let in_head = self
            .tree
            .position("thead")
            .is_some_and(|head| self.tree.position("table").is_none_or(|table| head > table));
        let start = self.lines.point();
        if table.start.is_none() {
            table.start = Some(start);
        } else if start.at > table.end + 1 {
            // There is text between the rows, which a layout of the cells would lose.
            table.grid = None;
        }
        self.rows.push(Row {
            start,
            cells: Vec::new(),
            spans: Vec::new(),
            headers: 0,
            in_head,
            has_layout: false,
        });
        Mark::Row
    }

    pub(super) fn open_cell(&mut self, header: bool) -> Mark {
        self.lines.add_cell();
        let start = self.lines.point().at;
        match self.rows.last_mut().filter(|row| !row.has_layout) {
            Some(row) => {
                row.headers += usize::from(header);
                row.cells.push(start..start);
                row.spans.push(self.tag.spans);
                Mark::Cell
            }
            None => Mark::None,
        }
    }

    pub(super) fn close_cell(&mut self) {
        let end = self.lines.len();
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.cells.last_mut()) {
            cell.end = end.max(cell.start);
        }
    }

    /// Records that a row contains more than text.
    pub(super) fn lay_out_row(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.has_layout = true;
        }
    }

    pub(super) fn close_row(&mut self) {
        let Some((row, table)) = self.rows.pop().zip(self.tables.last_mut()) else {
            return;
        };
        table.rows += 1;
        let row_text = self.lines.written_since(row.start);
        let is_long = row_text.len() > ROW_BYTES && self.lines.ended_since(row.start);
        table.grid = table
            .grid
            .take()
            .filter(|_| !row.has_layout && !is_long)
            .and_then(|grid| row.add_to(grid, row_text));
        table.end = self.lines.len();
        // A single cell between the rows of a table serves as a heading, or contains a part of the
        // page.
        let min_cells = if table.markdown_rows > 0 { 1 } else { 2 };
        if row.has_layout || is_long || row_text.is_empty() || row.cells.len() < min_cells {
            return;
        }
        let mut line = String::with_capacity(row_text.len() + 4 * row.cells.len());
        for cell in &row.cells {
            line.push_str("| ");
            for part in row.cell_lines(cell, row_text) {
                line.push_str(&part.replace('|', "\\|"));
                line.push(' ');
            }
        }
        line.push('|');
        if table.rows == 1 && row.is_header() {
            line.push('\n');
            line.push_str(&"| --- ".repeat(row.cells.len()));
            line.push('|');
        }
        table.markdown_rows += 1;
        self.lines.replace_since(row.start, &line);
        table.end = self.lines.len();
    }
}
