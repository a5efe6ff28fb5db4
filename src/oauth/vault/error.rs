//! What can be wrong with the vault, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::seal::{SealError, Sealed};

/// Why the vault cannot be used, or one login in it. Never says what is in a file.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// There is nowhere to keep logins.
    #[error(
        "there is no folder for logins: neither `XDG_STATE_HOME` nor `HOME` is set\n  hint: name one: `vault` under `[oauth]`"
    )]
    NoFolder,
    /// Others could read or change what is kept there.
    #[error("`{}` is open to other users\n  hint: `chmod {mode} {}`", path.display(), path.display())]
    Open {
        /// The folder or key file.
        path: PathBuf,
        /// The mode that it should have.
        mode: &'static str,
    },
    /// The key cannot be had, or is none. Nothing can be read or written.
    #[error("the key of the vault: {0}")]
    Key(String),
    /// One file cannot be opened: its key is not among ours, or it is damaged. It is left as it is.
    #[error("the login in `{}` cannot be opened: {}", file.display(), describe(*why))]
    Sealed {
        file: PathBuf,
        /// What is wrong with it.
        why: Sealed,
    },
    /// There is no room for another login.
    #[error("the vault in `{}` is full ({limit} logins)\n  hint: `lychgate logout UPSTREAM --all` for what is no longer used", folder.display())]
    Full {
        folder: PathBuf,
        /// Logins that there is room for.
        limit: usize,
    },
    /// Somebody else has the lease, and others had it before us, for longer than it takes.
    #[error("another process has been busy with this login for {} s", waited.as_secs())]
    Busy {
        /// How long it was waited for.
        waited: Duration,
    },
    /// The system does not let us.
    #[error("`{}`: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl VaultError {
    /// Whether it is one login that cannot be used, and not all of them.
    pub(super) fn is_of_one(&self) -> bool {
        matches!(
            self,
            Self::Sealed { .. } | Self::Io { .. } | Self::Busy { .. }
        )
    }

    /// What the system says of this path, as an error of ours.
    pub(super) fn of(path: &Path) -> impl FnOnce(io::Error) -> Self {
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
            SealError::Key(told) => Self::Key(told),
            SealError::Io { path, error } => Self::Io { path, error },
        }
    }
}

/// Why a file cannot be opened, and what to do about it.
fn describe(why: Sealed) -> &'static str {
    match why {
        Sealed::OtherKey => {
            "it is encrypted with another key\n  hint: add that key to `earlier_vault_keys` under `[oauth]`, or \
             `lychgate logout` to erase the login"
        }
        Sealed::Damaged => {
            "it is damaged, or belongs to another vault\n  hint: restore it from a backup, or `lychgate logout` to \
             erase the login"
        }
        Sealed::TooLong => "it is too long to be a login\n  hint: `lychgate logout` to erase it",
        Sealed::Later => {
            "it was written by a newer version of lychgate\n  hint: use that version, or `lychgate logout` to erase the login"
        }
    }
}
