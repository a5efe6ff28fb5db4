//! Standard output, or a device, as a log: lines hang together for as long as the process lives.

use std::fs::File;
use std::io::{self, Write};

use crate::record::chain::Head;

use super::opened;

/// An open stream.
pub(super) struct Stream {
    to: StreamTarget,
    head: Head,
    /// The last write broke off within a line.
    torn: bool,
}

/// Where lines go.
pub(super) enum StreamTarget {
    Stdout,
    Device(File),
}

impl Stream {
    /// A stream that nothing was written to.
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
    /// They were not written, or not all.
    pub(super) fn append<'l>(&mut self, lines: impl Iterator<Item = &'l str>) -> io::Result<()> {
        let mut out = Vec::new();
        let mut head = self.head;
        if std::mem::replace(&mut self.torn, true) {
            out.push(b'\n');
        }
        if head.seq == 0 {
            head.append(&opened("new", 0), &mut out);
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
