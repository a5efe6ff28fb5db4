//! Errors that end a command: an exit code with its message.

use std::fmt::Display;
use std::io::{self, Write};

use crate::document::Fault;

/// The reason why a command ends.
pub(super) enum Exit {
    /// The output cannot be written.
    Io(io::Error),
    /// An exit code and its message.
    Code(u8, String),
}

/// Returns an error with exit code 2.
pub(super) fn error(text: impl Display) -> Exit {
    Exit::Code(2, format!("error: {text}"))
}

/// Returns an error of the command line or of what it names, with exit code 2.
pub(super) fn usage_error(text: impl Into<String>) -> Exit {
    Exit::Code(2, text.into())
}

/// Formats the faults of a config or of rules as one text, one fault per paragraph.
pub(super) fn fault_text(faults: impl AsRef<[Fault]>) -> String {
    faults
        .as_ref()
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Formats faults, one per paragraph, with their number at the end.
pub(super) fn counted_faults(faults: &[Fault]) -> String {
    let count = super::format_count(faults.len(), "fault");
    format!("{}\n{count}", fault_text(faults))
}

impl From<Vec<Fault>> for Exit {
    fn from(faults: Vec<Fault>) -> Self {
        Self::Code(2, fault_text(faults))
    }
}

impl From<io::Error> for Exit {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Exit {
    /// Prints the message and returns the exit code.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn report(self, err: &mut dyn Write) -> io::Result<u8> {
        match self {
            Self::Io(error) => Err(error),
            Self::Code(code, text) => writeln!(err, "{text}").map(|()| code),
        }
    }
}
