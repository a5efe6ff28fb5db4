//! Errors of keys, of sealed bytes and of the folders that contain them.

use std::io;
use std::path::{Path, PathBuf};

/// Why keys or folders cannot be used. Messages never contain the content of a file.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// Other users could read or change the folder or key file.
    #[error("`{}` is open to other users\n  hint: `chmod {mode} {}`", path.display(), path.display())]
    Open {
        /// The folder or key file.
        path: PathBuf,
        /// The mode that it should have.
        mode: &'static str,
    },
    /// The key cannot be obtained or is not a valid key.
    #[error("the key: {0}")]
    Key(String),
    /// The system reported an error.
    #[error("`{}`: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl SealError {
    /// Returns a function that turns an I/O error at this path into a [`SealError`].
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io {
            path: path.to_owned(),
            error,
        }
    }
}

/// Why sealed bytes cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsealError {
    /// They were sealed with a key that is not available.
    OtherKey,
    /// They were modified, or are not in the place where they were written.
    Damaged,
    /// They are longer than any sealed data.
    TooLong,
    /// They were written by a later version of lychgate.
    NewerVersion,
}
