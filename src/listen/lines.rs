//! Lines of bounded length, with the bytes that end them.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Reads lines.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    max_bytes: usize,
}

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line with its line feed, or the rest of the input.
    Whole(Bytes),
    /// A line that was too long. Its bytes are discarded.
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Creates a reader for lines of up to `max_bytes` bytes, excluding the line feed.
    pub(super) fn new(reader: R, max_bytes: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            max_bytes,
        }
    }

    /// Returns the next line, or `None` at the end.
    pub(super) async fn next_line(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut is_too_long = false;
        loop {
            let buffered = self.reader.fill_buf().await?;
            let end = buffered.iter().position(|byte| *byte == b'\n');
            let consumed = end.map_or(buffered.len(), |at| at + 1);
            if line.len() + end.unwrap_or(consumed) > self.max_bytes {
                (line, is_too_long) = (Vec::new(), true);
            } else if !is_too_long {
                line.extend_from_slice(buffered.get(..consumed).unwrap_or_default());
            }
            self.reader.consume(consumed);
            if end.is_none() && consumed > 0 {
                continue;
            }
            return Ok(match (is_too_long, line.is_empty()) {
                (true, _) => Some(Line::TooLong),
                (false, true) => None,
                (false, false) => Some(Line::Whole(line.into())),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_keep_their_ends_and_long_ones_go() {
        let text = format!(
            "ab\r\n\n{}\n{}\n{}\nrest",
            "x".repeat(10),
            "y".repeat(11),
            "z".repeat(200_000)
        );
        let mut lines = Lines::new(text.as_bytes(), 10);
        let whole = |text: &str| Line::Whole(Bytes::copy_from_slice(text.as_bytes()));
        let mut seen = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            seen.push(line);
        }
        let expected = [
            whole("ab\r\n"),
            whole("\n"),
            whole("xxxxxxxxxx\n"),
            Line::TooLong,
            Line::TooLong,
            whole("rest"),
        ];
        assert_eq!(seen, expected);
    }

    #[tokio::test]
    async fn the_rest_of_a_long_line_is_no_line() {
        let text = format!("{}\nshort", "z".repeat((64 << 10) + 5));
        let mut lines = Lines::new(text.as_bytes(), 10);
        assert_eq!(lines.next_line().await.unwrap(), Some(Line::TooLong));
        assert_eq!(
            lines.next_line().await.unwrap(),
            Some(Line::Whole("short".into()))
        );
        assert_eq!(lines.next_line().await.unwrap(), None);
    }
}
