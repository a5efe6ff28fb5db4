//! What ends a verb before it is done.

use std::fmt::Display;
use std::io::{self, Write};

/// What went wrong.
pub(super) enum Trouble {
    /// Nothing can be written here.
    Write(io::Error),
    /// The exit code, and why.
    Told(u8, String),
}

/// An error with exit code 2.
pub(super) fn error(text: impl Display) -> Trouble {
    Trouble::Told(2, format!("error: {text}"))
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

impl Trouble {
    /// Says why, and gives the exit code.
    ///
    /// # Errors
    /// It cannot be said, or nothing could be written before.
    pub(super) fn told(self, err: &mut dyn Write) -> io::Result<u8> {
        match self {
            Self::Write(error) => Err(error),
            Self::Told(code, text) => writeln!(err, "{text}").map(|()| code),
        }
    }
}
