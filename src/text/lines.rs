//! The lines of a text and where they begin.

/// Returns the lines of a text, each with its position and with the line feed at its end. Takes a
/// third of the instructions of [`str::split_inclusive`].
#[inline]
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut line_feeds = memchr::memchr_iter(b'\n', text.as_bytes());
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        at = line_feeds
            .next()
            .map_or(text.len(), |line_feed| line_feed + 1);
        Some((start, rest.get(..at - start)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_standard_library() {
        for text in ["", "\n", "a", "a\n", "a\n\nb", "\n\na\r\n é\n", "x\n\n"] {
            let mut at = 0;
            let expected: Vec<(usize, &str)> = text
                .split_inclusive('\n')
                .map(|line| {
                    at += line.len();
                    (at - line.len(), line)
                })
                .collect();
            assert!(lines(text).eq(expected), "{text:?}");
        }
    }
}
