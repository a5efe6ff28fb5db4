//! Writes the visible content of a page as plain lines.

/// Output lines, built up while a page is read.
#[derive(Debug, Default)]
pub(super) struct Lines {
    text: String,
    /// Whether white space of the source is kept (a fragment in text of another kind).
    verbatim: bool,
    pending_space: bool,
    pending_breaks: usize,
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
    pub(super) fn add_text(&mut self, text: &str, pre: bool) {
        if self.verbatim || pre {
            if text.is_empty() {
                return;
            }
            self.write_pending(text.starts_with('\n'));
            self.push(text);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let words = words_length(rest);
            if words > 0 {
                self.write_pending(false);
                self.text.push_str(rest.get(..words).unwrap_or_default());
            }
            rest = rest.get(words..).unwrap_or_default();
            let after = rest.trim_start_matches(is_space);
            self.pending_space |= after.len() < rest.len();
            rest = after;
        }
    }

    /// Adds a mark that belongs to the text after it.
    pub(super) fn add_mark(&mut self, mark: &str) {
        self.write_pending(false);
        self.push(mark);
    }

    /// Begins a line whose text is preceded by a mark.
    pub(super) fn begin_line(&mut self, breaks: usize, mark: &str) {
        self.drop_lead();
        self.end_line(breaks);
        if self.verbatim {
            self.add_mark(mark);
        } else {
            self.lead.push_str(mark);
        }
    }

    /// Drops the mark of an element that ended without text.
    pub(super) fn drop_lead(&mut self) {
        self.lead.clear();
    }

    /// Separates a table cell from the preceding cell on its line.
    pub(super) fn add_cell(&mut self) {
        let is_first =
            self.pending_breaks > 0 || self.text.is_empty() || self.text.ends_with(['\n', '|']);
        if !is_first {
            self.pending_space = true;
            self.add_mark("|");
        }
        self.pending_space = !is_first;
    }

    /// Ends the line. With 2 as `breaks`, leaves an empty line.
    pub(super) fn end_line(&mut self, breaks: usize) {
        // The first block of a list item is on the item's own line.
        if self.lead.is_empty() {
            self.pending_breaks = self
                .pending_breaks
                .max(if self.verbatim { 1 } else { breaks });
        }
    }

    /// Returns the point at which the following text begins.
    pub(super) fn point(&mut self) -> Point {
        self.write_pending(false);
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

    fn write_pending(&mut self, starts_with_break: bool) {
        if self.pending_breaks > 0 {
            let present = self.text.bytes().rev().take_while(|b| *b == b'\n').count()
                + usize::from(starts_with_break && self.verbatim);
            if !self.text.is_empty() {
                let missing = self.pending_breaks.saturating_sub(present);
                self.line_ends += missing;
                self.text.extend(std::iter::repeat_n('\n', missing));
            }
        } else if self.pending_space && !self.text.is_empty() && !self.text.ends_with(is_space) {
            self.text.push(' ');
        }
        self.pending_breaks = 0;
        self.pending_space = false;
        self.text.push_str(&self.lead);
        self.lead.clear();
    }
}

/// Returns how many leading bytes are words separated by single blanks.
fn words_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_space_at = |at: usize| bytes.get(at).is_none_or(|byte| is_space(char::from(*byte)));
    let mut at = 0;
    loop {
        let word = at
            + bytes
                .iter()
                .skip(at)
                .take_while(|byte| !is_space(char::from(**byte)))
                .count();
        if word == at || bytes.get(word) != Some(&b' ') || is_space_at(word + 1) {
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
            lines.add_text(text, false);
            let words: Vec<&str> = text
                .split(is_space)
                .filter(|word| !word.is_empty())
                .collect();
            assert_eq!(lines.finish(), words.join(" "), "{text:?}");
        }
    }
}
