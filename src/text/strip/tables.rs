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
    written: usize,
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
    head: bool,
    /// Whether the row contains more than text.
    layout: bool,
}

impl Row {
    fn is_header(&self) -> bool {
        self.head || self.headers == self.cells.len()
    }

    /// Returns the lines of a cell.
    fn parts<'w>(&self, cell: &Range<usize>, written: &'w str) -> impl Iterator<Item = &'w str> {
        let range =
            cell.start.saturating_sub(self.start.at)..cell.end.saturating_sub(self.start.at);
        written
            .get(range)
            .unwrap_or_default()
            .split('\n')
            .map(str::trim)
            .filter(|part| !part.is_empty())
    }

    /// Returns the table with this row added, if it is within the limits.
    fn add_to(&self, mut grid: Grid, written: &str) -> Option<Grid> {
        let cells = self.cells.iter().zip(&self.spans);
        let cells = cells.map(|(cell, &(across, down))| {
            let text = self.parts(cell, written).collect::<Vec<_>>().join(" ");
            Cell { text, across, down }
        });
        grid.add(cells.collect(), self.is_header()).then_some(grid)
    }
}

impl Reader {
    pub(super) fn table_starts(&mut self) {
        let grid = self.tables.is_empty().then(Grid::default);
        self.tables.push(Table {
            grid,
            ..Table::default()
        });
    }

    pub(super) fn table_ends(&mut self) {
        if let Some(Table {
            grid: Some(grid),
            start: Some(start),
            end,
            ..
        }) = self.tables.pop()
            && end == self.lines.len()
            && let Some(table) = grid.lay_out(end.saturating_sub(start.at), &mut self.laid_out)
        {
            self.lines.replace_since(start, &table);
        }
        self.lines.end(2);
    }

    pub(super) fn row_starts(&mut self) -> Mark {
        let Some(table) = self.tables.last_mut() else {
            return Mark::None;
        };
        let head = self
            .tree
            .place("thead")
            .is_some_and(|head| self.tree.place("table").is_none_or(|table| head > table));
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
            head,
            layout: false,
        });
        Mark::Row
    }

    pub(super) fn cell_starts(&mut self, header: bool) -> Mark {
        self.lines.cell();
        let start = self.lines.point().at;
        match self.rows.last_mut().filter(|row| !row.layout) {
            Some(row) => {
                row.headers += usize::from(header);
                row.cells.push(start..start);
                row.spans.push(self.tag.spans);
                Mark::Cell
            }
            None => Mark::None,
        }
    }

    pub(super) fn cell_ends(&mut self) {
        let end = self.lines.len();
        if let Some(cell) = self.rows.last_mut().and_then(|row| row.cells.last_mut()) {
            cell.end = end.max(cell.start);
        }
    }

    /// Records that a row contains more than text.
    pub(super) fn lay_out_row(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.layout = true;
        }
    }

    pub(super) fn row_ends(&mut self) {
        let Some((row, table)) = self.rows.pop().zip(self.tables.last_mut()) else {
            return;
        };
        table.rows += 1;
        let written = self.lines.written_since(row.start);
        let long = written.len() > ROW_BYTES && self.lines.ended_since(row.start);
        table.grid = table
            .grid
            .take()
            .filter(|_| !row.layout && !long)
            .and_then(|grid| row.add_to(grid, written));
        table.end = self.lines.len();
        // A single cell between the rows of a table serves as a heading, or contains a part of the
        // page.
        let cells = if table.written > 0 { 1 } else { 2 };
        if row.layout || long || written.is_empty() || row.cells.len() < cells {
            return;
        }
        let mut line = String::with_capacity(written.len() + 4 * row.cells.len());
        for cell in &row.cells {
            line.push_str("| ");
            for part in row.parts(cell, written) {
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
        table.written += 1;
        self.lines.replace_since(row.start, &line);
        table.end = self.lines.len();
    }
}
