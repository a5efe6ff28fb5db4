//! Lines of bounded length, in and out.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Reads lines.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    buffer: Vec<u8>,
    max_bytes: usize,
}

/// The result of one read.
pub(super) enum Line {
    /// A line, or the remainder before the end of the input, without its line feed.
    Whole(Bytes),
    /// The beginning of a line that is too long; the rest of the line is returned next.
    Cut(Bytes),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Creates a reader for lines of up to `max_bytes` bytes.
    pub(super) fn new(reader: R, max_bytes: usize) -> Self {
        Self {
            reader: BufReader::new(reader),
            buffer: Vec::new(),
            max_bytes,
        }
    }

    /// Returns the next line; `None` at the end.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                let rest = std::mem::take(&mut self.buffer);
                return Ok(if rest.is_empty() {
                    None
                } else {
                    Some(Line::Whole(rest.into()))
                });
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let line_part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            let remaining = self.max_bytes.saturating_sub(self.buffer.len());
            if line_part.len() > remaining {
                self.buffer
                    .extend_from_slice(line_part.get(..remaining).unwrap_or_default());
                self.reader.consume(remaining);
                return Ok(Some(Line::Cut(std::mem::take(&mut self.buffer).into())));
            }
            self.buffer.extend_from_slice(line_part);
            let consumed = line_part.len() + usize::from(end.is_some());
            self.reader.consume(consumed);
            if end.is_some() {
                return Ok(Some(Line::Whole(std::mem::take(&mut self.buffer).into())));
            }
        }
    }
}

/// Writes a message as one line: its raw line breaks, which in JSON can only be white space, become
/// spaces.
pub(super) fn one_line(message: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(message.len() + 1);
    line.extend(message.iter().map(|byte| {
        if matches!(byte, b'\n' | b'\r') {
            b' '
        } else {
            *byte
        }
    }));
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_and_long_ones_are_cut() {
        let text = format!("ab\n\n{}\nrest", "x".repeat(25));
        let mut lines = Lines::new(text.as_bytes(), 10);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(match line {
                Line::Whole(line) => format!("whole {}", line.len()),
                Line::Cut(line) => format!("cut {}", line.len()),
            });
        }
        assert_eq!(
            seen,
            [
                "whole 2", "whole 0", "cut 10", "cut 10", "whole 5", "whole 4"
            ]
        );
    }

    #[test]
    fn only_line_breaks_change() {
        assert_eq!(
            one_line(b"{\r\n\t\"a\" : \"\\n\"}\n"),
            b"{  \t\"a\" : \"\\n\"} \n"
        );
    }
}
