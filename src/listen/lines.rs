//! Lines of bounded length from a blocking reader, with the bytes that end them.

use std::io::{self, BufRead, BufReader, Read};

use bytes::Bytes;

/// Reads lines.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    longest: usize,
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line with its line feed, or the rest before the end.
    Whole(Bytes),
    /// A line that was too long. Its bytes are gone.
    TooLong,
}

impl<R: Read> Lines<R> {
    /// Reads lines of up to `longest` bytes, line feed aside.
    pub(super) fn new(from: R, longest: usize) -> Self {
        Self { from: BufReader::with_capacity(64 << 10, from), longest }
    }

    /// The next line; `None` at the end.
    pub(super) fn next_line(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let most = (self.longest as u64).saturating_add(1);
        if self.from.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.len() <= self.longest || line.ends_with(b"\n") {
            return Ok(Some(Line::Whole(line.into())));
        }
        drop(line);
        loop {
            let held = self.from.fill_buf()?;
            if held.is_empty() {
                return Ok(Some(Line::TooLong));
            }
            let end = held.iter().position(|byte| *byte == b'\n');
            let used = end.map_or(held.len(), |at| at + 1);
            self.from.consume(used);
            if end.is_some() {
                return Ok(Some(Line::TooLong));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends_and_long_ones_go() {
        let text = format!("ab\r\n\n{}\n{}\n{}\nrest", "x".repeat(10), "y".repeat(11), "z".repeat(200_000));
        let mut lines = Lines::new(text.as_bytes(), 10);
        let whole = |text: &str| Line::Whole(Bytes::copy_from_slice(text.as_bytes()));
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            seen.push(line);
        }
        let expected = [whole("ab\r\n"), whole("\n"), whole("xxxxxxxxxx\n"), Line::TooLong, Line::TooLong, whole("rest")];
        assert_eq!(seen, expected);
    }
}
