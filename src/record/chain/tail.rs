//! Reads the end of a file of the log.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::files::{Lines, Piece};
use super::{Head, Link, MAX_LINE_BYTES, is_torn, sha};

/// Number of bytes that are read first from the end of a file; they usually suffice.
const FIRST_READ_BYTES: u64 = 64 << 10;

/// The end of a file of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::record) struct Tail {
    /// Its last complete line; `None` if it has none with a link.
    pub(in crate::record) head: Option<Head>,
    /// Number of bytes after that line, which are of incompletely written lines.
    pub(in crate::record) torn: u64,
    /// Whether the file does not end in a line feed.
    pub(in crate::record) open: bool,
    /// Whether these bytes contain anything that cannot be the beginning of a line of the gate.
    pub(in crate::record) foreign: bool,
}

impl Tail {
    /// Reads the end of a file of length `length`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(in crate::record) fn read(file: &File, length: u64) -> io::Result<Self> {
        let mut window = FIRST_READ_BYTES;
        loop {
            let from = length.saturating_sub(window);
            let mut bytes = vec![0; usize::try_from(length - from).map_err(io::Error::other)?];
            file.read_exact_at(&mut bytes, from)?;
            let tail = Self::parse(&bytes, from == 0);
            if tail.head.is_some() || from == 0 || window > 2 * MAX_LINE_BYTES as u64 {
                return Ok(Self {
                    torn: if tail.head.is_some() {
                        tail.torn
                    } else {
                        length
                    },
                    ..tail
                });
            }
            window *= 4;
        }
    }

    /// Determines the end of a file from its last bytes. `is_whole` means that they are the whole
    /// file; otherwise the first line may be incomplete.
    fn parse(bytes: &[u8], is_whole: bool) -> Self {
        let open = bytes.last().is_some_and(|last| *last != b'\n');
        let mut end = bytes.len();
        let mut rest = bytes;
        while let Some(feed) = memchr::memrchr(b'\n', rest) {
            let before = rest.get(..feed).unwrap_or_default();
            let start = memchr::memrchr(b'\n', before).map(|at| at + 1);
            if let (Some(start), Some(line)) = (
                start.or(is_whole.then_some(0)),
                before.get(start.unwrap_or(0)..),
            ) {
                if let Some(link) = Link::parse(line) {
                    let torn = (end - feed - 1) as u64;
                    let remainder = bytes.get(feed + 1..).unwrap_or_default();
                    let mut tail = Self {
                        head: Some(Head {
                            seq: link.seq,
                            sha: sha(line),
                        }),
                        torn,
                        open,
                        foreign: false,
                    };
                    tail.examine_rest(remainder);
                    return tail;
                }
                rest = before.get(..start).unwrap_or_default();
                end = bytes.len();
            } else {
                break;
            }
        }
        let mut tail = Self {
            head: None,
            torn: bytes.len() as u64,
            open,
            foreign: false,
        };
        if is_whole {
            tail.examine_rest(bytes);
        }
        tail
    }

    /// Examines what follows the last complete line. A line that lacks only its line feed counts as
    /// complete.
    fn examine_rest(&mut self, rest: &[u8]) {
        let link = Link::parse(rest).filter(|link| self.head.unwrap_or_default().leads_to(link));
        if let Some(link) = link.filter(|_| !rest.contains(&b'\n')) {
            *self = Self {
                head: Some(Head {
                    seq: link.seq,
                    sha: sha(rest),
                }),
                torn: 0,
                open: true,
                foreign: false,
            };
        } else {
            self.foreign = rest.split(|byte| *byte == b'\n').any(|line| !is_torn(line));
        }
    }
}

/// Returns the last line of a rotated file. A compressed one is read as a whole.
///
/// # Errors
/// The file cannot be read.
pub(in crate::record) fn last_head(path: &Path) -> io::Result<Option<Head>> {
    if path.extension().is_none_or(|extension| extension != "gz") {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        return Ok(Tail::read(&file, length)?.head);
    }
    let mut lines = Lines::open(path)?;
    let mut head = None;
    while let Some(piece) = lines.next()? {
        if let Piece::Whole(line) = piece
            && let Some(link) = Link::parse(&line)
        {
            head = Some(Head {
                seq: link.seq,
                sha: sha(&line),
            });
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_last_whole_line_is_found_wherever_a_file_breaks_off() {
        let mut head = Head::default();
        let mut text = Vec::new();
        let mut heads = vec![(0, Head::default())];
        for line in ["{\"a\":1}", "{}", "{\"b\":\"x\"}"] {
            head.append(line, &mut text);
            heads.push((text.len(), head));
        }
        for length in 0..=text.len() {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&text[..length]).unwrap();
            let tail = Tail::read(&file, length as u64).unwrap();
            let (whole, last) = *heads
                .iter()
                .rev()
                .find(|(end, _)| *end <= length + 1 && *end != 1)
                .unwrap();
            let torn = length.saturating_sub(whole) as u64;
            assert_eq!(
                tail.head,
                Some(last).filter(|last| last.seq > 0),
                "{length}"
            );
            assert_eq!(
                (tail.torn, tail.open),
                (torn, length > 0 && text[length - 1] != b'\n'),
                "{length}"
            );
        }
    }

    #[test]
    fn long_lines_and_several_torn_ones_are_passed_over() {
        let mut head = Head::default();
        let mut text = Vec::new();
        head.append(&format!("{{\"a\":\"{}\"}}", "x".repeat(300_000)), &mut text);
        let length = text.len();
        text.extend_from_slice(b"{\"half\n{\"ha");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&text).unwrap();
        let tail = Tail::read(&file, text.len() as u64).unwrap();
        assert_eq!(
            tail,
            Tail {
                head: Some(head),
                torn: (text.len() - length) as u64,
                open: true,
                foreign: false
            }
        );
        for forged in ["{\"event\":\"judged\"}\n", "junk\n{\"ha", "{\"half\njunk"] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&[&text[..length], forged.as_bytes()].concat())
                .unwrap();
            assert!(
                Tail::read(&file, (length + forged.len()) as u64)
                    .unwrap()
                    .foreign,
                "{forged}"
            );
        }
        let plain = b"no chain\n".repeat(20_000);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&plain).unwrap();
        let tail = Tail::read(&file, plain.len() as u64).unwrap();
        assert_eq!(
            tail,
            Tail {
                head: None,
                torn: plain.len() as u64,
                open: false,
                foreign: true
            }
        );
    }
}
