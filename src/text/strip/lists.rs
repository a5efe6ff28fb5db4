//! Lists of a page: the numbers and the indentation of their items.

use super::Reader;

/// Maximum depth of nested lists that are indented.
const INDENTS: usize = 6;

impl Reader {
    /// Opens a list.
    pub(super) fn open_list(&mut self, ordered: bool) {
        self.drop_closed_lists();
        self.lines
            .end_line(if self.lists.is_empty() { 2 } else { 1 });
        let before = self
            .tag
            .number
            .map_or(0, |first| usize::from(first.saturating_sub(1)));
        self.lists
            .push((self.tree.depth(), ordered.then_some(before)));
    }

    /// Returns the mark with which an item of the innermost open list begins.
    pub(super) fn item_mark(&mut self) -> String {
        self.drop_closed_lists();
        let indent = "  ".repeat(self.lists.len().saturating_sub(1).min(INDENTS));
        match self.lists.last_mut() {
            Some((_, Some(count))) => {
                *count = self.tag.number.map_or(*count + 1, usize::from);
                format!("{indent}{count}. ")
            }
            _ => format!("{indent}- "),
        }
    }

    fn drop_closed_lists(&mut self) {
        let depth = self.tree.depth();
        while self.lists.pop_if(|(open, _)| *open >= depth).is_some() {}
    }
}
