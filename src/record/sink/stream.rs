//! Standard output or a device as a log. The chain of lines lasts as long as the process.

use std::fs::File;
use std::io::{self, Write};

use crate::record::chain::Head;

use super::opened_line;

/// An open stream.
pub(super) struct Stream {
    to: StreamTarget,
    head: Head,
    /// Whether the last write ended within a line.
    torn: bool,
}

/// The destination of lines.
pub(super) enum StreamTarget {
    Stdout,
    Device(File),
}

impl Stream {
    /// Creates a stream that nothing was written to.
    pub(super) fn new(to: StreamTarget) -> Self {
        Self {
            to,
            head: Head::default(),
            torn: false,
        }
    }

    /// Appends lines.
    ///
    /// # Errors
    /// The lines were not written, or not all of them.
    pub(super) fn append<'l>(&mut self, lines: impl Iterator<Item = &'l str>) -> io::Result<()> {
        let mut out = Vec::new();
        let mut head = self.head;
        if std::mem::replace(&mut self.torn, true) {
            out.push(b'\n');
        }
        if head.seq == 0 {
            head.append(&opened_line("new", 0), &mut out);
        }
        lines.for_each(|line| head.append(line, &mut out));
        match &mut self.to {
            StreamTarget::Device(file) => file.write_all(&out)?,
            StreamTarget::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(&out)?;
                stdout.flush()?;
            }
        }
        (self.head, self.torn) = (head, false);
        Ok(())
    }
}
