//! Writes the visible content of a page as plain lines.

/// Output lines, built up while a page is read.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
    /// Whether white space of the source is kept (a fragment in text of another kind).
    verbatim: bool,
    space: bool,
    breaks: usize,
    /// The mark of a list item or a heading, with which the next text on a line of its own begins.
    /// It is not written if no text follows.
    lead: String,
    /// Number of line ends written so far.
    line_ends: usize,
}

/// A position in the lines. The text written since then can be replaced, to put marks around it, at
/// a cost proportional to its length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) at: usize,
    line_ends: usize,
}

impl Lines {
    pub(super) fn new(verbatim: bool, bytes: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
            verbatim,
            ..Self::default()
        }
    }

    /// Returns the number of bytes written so far.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    /// Adds text; `pre` if its white space is significant.
    pub(super) fn text(&mut self, text: &str, pre: bool) {
        if self.verbatim || pre {
            if text.is_empty() {
                return;
            }
            self.settle(text.starts_with('\n'));
            self.push(text);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let words = laid_out(rest);
            if words > 0 {
                self.settle(false);
                self.text.push_str(rest.get(..words).unwrap_or_default());
            }
            rest = rest.get(words..).unwrap_or_default();
            let after = rest.trim_start_matches(is_space);
            self.space |= after.len() < rest.len();
            rest = after;
        }
    }

    /// Adds a mark that belongs to the text after it.
    pub(super) fn mark(&mut self, mark: &str) {
        self.settle(false);
        self.push(mark);
    }

    /// Begins a line whose text is preceded by a mark.
    pub(super) fn lead(&mut self, breaks: usize, mark: &str) {
        self.drop_lead();
        self.end(breaks);
        if self.verbatim {
            self.mark(mark);
        } else {
            self.lead.push_str(mark);
        }
    }

    /// Drops the mark of an element that ended without text.
    pub(super) fn drop_lead(&mut self) {
        self.lead.clear();
    }

    /// Separates a table cell from the preceding cell on its line.
    pub(super) fn cell(&mut self) {
        let first = self.breaks > 0 || self.text.is_empty() || self.text.ends_with(['\n', '|']);
        if !first {
            self.space = true;
            self.mark("|");
        }
        self.space = !first;
    }

    /// Ends the line. With 2 as `breaks`, leaves an empty line.
    pub(super) fn end(&mut self, breaks: usize) {
        // The first block of a list item is on the item's own line.
        if self.lead.is_empty() {
            self.breaks = self.breaks.max(if self.verbatim { 1 } else { breaks });
        }
    }

    /// Returns the point at which the following text begins.
    pub(super) fn point(&mut self) -> Point {
        self.settle(false);
        Point {
            at: self.text.len(),
            line_ends: self.line_ends,
        }
    }

    /// Returns the text written since a point.
    pub(super) fn written_since(&self, point: Point) -> &str {
        self.text.get(point.at..).unwrap_or_default()
    }

    /// Reports whether a line ended since a point.
    pub(super) fn ended_since(&self, point: Point) -> bool {
        self.line_ends > point.line_ends
    }

    /// Replaces the text written since a point.
    pub(super) fn replace_since(&mut self, point: Point, text: &str) {
        if self.text.is_char_boundary(point.at) {
            self.text.truncate(point.at);
            self.push(text);
        }
    }

    pub(super) fn finish(mut self) -> String {
        if !self.verbatim {
            self.text.truncate(self.text.trim_end().len());
        }
        self.text
    }

    fn push(&mut self, text: &str) {
        self.line_ends += memchr::memchr_iter(b'\n', text.as_bytes()).count();
        self.text.push_str(text);
    }

    fn settle(&mut self, broken: bool) {
        if self.breaks > 0 {
            let there = self.text.bytes().rev().take_while(|b| *b == b'\n').count()
                + usize::from(broken && self.verbatim);
            if !self.text.is_empty() {
                let missing = self.breaks.saturating_sub(there);
                self.line_ends += missing;
                self.text.extend(std::iter::repeat_n('\n', missing));
            }
        } else if self.space && !self.text.is_empty() && !self.text.ends_with(is_space) {
            self.text.push(' ');
        }
        self.breaks = 0;
        self.space = false;
        self.text.push_str(&self.lead);
        self.lead.clear();
    }
}

/// Returns how many leading bytes are words separated by single blanks.
fn laid_out(text: &str) -> usize {
    let bytes = text.as_bytes();
    let space = |at: usize| bytes.get(at).is_none_or(|byte| is_space(char::from(*byte)));
    let mut at = 0;
    loop {
        let word = at
            + bytes
                .iter()
                .skip(at)
                .take_while(|byte| !is_space(char::from(**byte)))
                .count();
        if word == at || bytes.get(word) != Some(&b' ') || space(word + 1) {
            return word;
        }
        at = word + 1;
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\n' | '\t' | '\r' | '\u{c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_between_words_is_one_blank() {
        for text in [
            "",
            " ",
            "a",
            " a b",
            "a  b ",
            "a \n b\tc d  e f\u{a0} g ",
            "a b c\r\nd e",
            "é ü  ö",
        ] {
            let mut lines = Lines::new(false, 0);
            lines.text(text, false);
            let words: Vec<&str> = text
                .split(is_space)
                .filter(|word| !word.is_empty())
                .collect();
            assert_eq!(lines.finish(), words.join(" "), "{text:?}");
        }
    }
}
