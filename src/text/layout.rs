//! Writes what a page shows as plain lines.

/// Lines that grow as a page is read.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
    /// White space of the source is kept (a fragment in text of another kind).
    verbatim: bool,
    space: bool,
    breaks: usize,
}

impl Lines {
    pub(super) fn new(verbatim: bool, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), verbatim, space: false, breaks: 0 }
    }

    /// Adds text; `pre` where its white space counts.
    pub(super) fn text(&mut self, text: &str, pre: bool) {
        if self.verbatim || pre {
            if text.is_empty() {
                return;
            }
            self.settle(text.starts_with('\n'));
            self.text.push_str(text);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let word = rest.find(is_space).unwrap_or(rest.len());
            if word > 0 {
                self.settle(false);
                self.text.push_str(rest.get(..word).unwrap_or_default());
            }
            rest = rest.get(word..).unwrap_or_default();
            let after = rest.trim_start_matches(is_space);
            self.space |= after.len() < rest.len();
            rest = after;
        }
    }

    /// Adds a mark that belongs to the text that follows.
    pub(super) fn mark(&mut self, mark: &str) {
        self.settle(false);
        self.text.push_str(mark);
    }

    /// Parts a cell of a table from the one before it on its line.
    pub(super) fn cell(&mut self) {
        let first = self.breaks > 0 || self.text.is_empty() || self.text.ends_with(['\n', '|']);
        if !first {
            self.space = true;
            self.mark("|");
        }
        self.space = !first;
    }

    /// Ends the line; with 2, leaves an empty one.
    pub(super) fn end(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(if self.verbatim { 1 } else { breaks });
    }

    pub(super) fn finish(mut self) -> String {
        if !self.verbatim {
            self.text.truncate(self.text.trim_end().len());
        }
        self.text
    }

    fn settle(&mut self, broken: bool) {
        if self.breaks > 0 {
            let there = self.text.bytes().rev().take_while(|b| *b == b'\n').count() + usize::from(broken && self.verbatim);
            if !self.text.is_empty() {
                self.text.extend(std::iter::repeat_n('\n', self.breaks.saturating_sub(there)));
            }
        } else if self.space && !self.text.is_empty() && !self.text.ends_with(is_space) {
            self.text.push(' ');
        }
        self.breaks = 0;
        self.space = false;
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\n' | '\t' | '\r' | '\u{c}')
}
