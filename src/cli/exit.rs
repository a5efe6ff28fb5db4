//! What ends a verb before it is done.

use std::fmt::Display;
use std::io::{self, Write};

/// What went wrong.
pub(super) enum Exit {
    /// Nothing can be written here.
    Io(io::Error),
    /// The exit code, and why.
    Code(u8, String),
}

/// An error with exit code 2.
pub(super) fn error(text: impl Display) -> Exit {
    Exit::Code(2, format!("error: {text}"))
}

impl From<io::Error> for Exit {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Exit {
    /// Says why, and gives the exit code.
    ///
    /// # Errors
    /// It cannot be said, or nothing could be written before.
    pub(super) fn report(self, err: &mut dyn Write) -> io::Result<u8> {
        match self {
            Self::Io(error) => Err(error),
            Self::Code(code, text) => writeln!(err, "{text}").map(|()| code),
        }
    }
}
