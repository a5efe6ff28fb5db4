//! What can be wrong with keys, with sealed bytes and with the folders that hold them.

use std::io;
use std::path::{Path, PathBuf};

/// Why keys or folders cannot be used. Never says what is in a file.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// Others could read or change what is kept there.
    #[error("`{}` is open to other users\n  hint: `chmod {mode} {}`", path.display(), path.display())]
    Open {
        /// The folder or key file.
        path: PathBuf,
        /// The mode that it should have.
        mode: &'static str,
    },
    /// The key cannot be had, or is none.
    #[error("the key: {0}")]
    Key(String),
    /// The system does not let us.
    #[error("`{}`: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl SealError {
    /// What the system says of this path, as an error of ours.
    pub fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io {
            path: path.to_owned(),
            error,
        }
    }
}

/// Why sealed bytes cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// By a key that we do not have.
    OtherKey,
    /// They are not what was written, or not where they were written.
    Damaged,
    /// They are longer than anything that is sealed.
    TooLong,
    /// A later version of lychgate wrote them.
    Later,
}
