//! Errors of the vault, and how to fix them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::seal::{SealError, UnsealError};

/// Why the vault, or one login in it, cannot be used. Messages never contain the content of a file.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// There is no place to store logins.
    #[error(
        "there is no folder for logins: neither `XDG_STATE_HOME` nor `HOME` is set\n  hint: name one: `vault` under `[oauth]`"
    )]
    NoFolder,
    /// Other users could read or change the folder or key file.
    #[error("`{}` is open to other users\n  hint: `chmod {mode} {}`", path.display(), path.display())]
    Open {
        /// The folder or key file.
        path: PathBuf,
        /// The mode that it should have.
        mode: &'static str,
    },
    /// The key cannot be obtained or is not a valid key. Nothing can be read or written.
    #[error("the key of the vault: {0}")]
    Key(String),
    /// One file cannot be opened: its key is not available, or it is damaged. It is left unchanged.
    #[error("the login in `{}` cannot be opened: {}", file.display(), describe(*why))]
    Sealed {
        file: PathBuf,
        /// Why it cannot be opened.
        why: UnsealError,
    },
    /// There is no room for another login.
    #[error("the vault in `{}` is full ({limit} logins)\n  hint: `lychgate logout UPSTREAM --all` for what is no longer used", folder.display())]
    Full {
        folder: PathBuf,
        /// Maximum number of logins.
        limit: usize,
    },
    /// Other processes have held the lease, one after another, for longer than a lease lasts.
    #[error("another process has been busy with this login for {} s", waited.as_secs())]
    Busy {
        /// How long this process waited.
        waited: Duration,
    },
    /// The system reported an error.
    #[error("`{}`: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl VaultError {
    /// Reports whether the error concerns one login, and not all of them.
    pub(super) fn concerns_one_login(&self) -> bool {
        matches!(
            self,
            Self::Sealed { .. } | Self::Io { .. } | Self::Busy { .. }
        )
    }

    /// Returns a function that turns an I/O error at this path into a [`VaultError`].
    pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        |error| Self::Io {
            path: path.to_owned(),
            error,
        }
    }
}

impl From<SealError> for VaultError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Open { path, mode } => Self::Open { path, mode },
            SealError::Key(message) => Self::Key(message),
            SealError::Io { path, error } => Self::Io { path, error },
        }
    }
}

/// Describes why a file cannot be opened, and how to fix it.
fn describe(why: UnsealError) -> &'static str {
    match why {
        UnsealError::OtherKey => {
            "it is encrypted with another key\n  hint: add that key to `earlier_vault_keys` under `[oauth]`, or \
             `lychgate logout` to erase the login"
        }
        UnsealError::Damaged => {
            "it is damaged, or belongs to another vault\n  hint: restore it from a backup, or `lychgate logout` to \
             erase the login"
        }
        UnsealError::TooLong => {
            "it is too long to be a login\n  hint: `lychgate logout` to erase it"
        }
        UnsealError::NewerVersion => {
            "it was written by a newer version of lychgate\n  hint: use that version, or `lychgate logout` to erase the login"
        }
    }
}
