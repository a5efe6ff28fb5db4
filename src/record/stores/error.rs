//! What can be wrong with what is kept, and what to do about it.

use std::path::PathBuf;

use crate::seal::{Keychain, Keys, SealError, Sealed};

/// Why a store cannot be used, or something in it. Never says what is in a file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Its folder or its key cannot be used.
    #[error("{of}: {error}")]
    Place {
        /// Which store: `the quarantine` or `the evidence store`.
        of: &'static str,
        /// What is wrong.
        error: SealError,
    },
    /// Something in it cannot be opened. It is left as it is.
    #[error("`{}` cannot be opened: {}", file.display(), describe(*why))]
    Sealed {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: Sealed,
    },
    /// Something in it cannot be opened, for the key is not where it should be. It is left as it is.
    #[error(
        "`{}` cannot be opened: no key in {at}\n  hint: bring the key back to there, or have the config name where it is",
        file.display()
    )]
    NoKey {
        /// The file.
        file: PathBuf,
        /// Where the key should be, in words.
        at: String,
    },
    /// A segment ends within a record: whoever wrote it ended there. What came before it is whole.
    #[error("`{}` ends within a record, at byte {offset}: what came before is whole", file.display())]
    Torn {
        /// The segment.
        file: PathBuf,
        /// Where the record begins.
        offset: u64,
    },
    /// So much of this server's was kept lately that more would drive out what others have there.
    #[error("more than {limit} messages a minute of one server are not kept")]
    TooOften {
        /// The limit.
        limit: u32,
    },
    /// It is longer than all that may be kept.
    #[error("{bytes} bytes are more than may be kept ({limit})\n  hint: raise `max_bytes` under `[quarantine]`")]
    TooLong {
        /// Its length.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}

/// What is wrong with a file, and what to do about it.
fn describe(why: Sealed) -> &'static str {
    match why {
        Sealed::OtherKey => "it was sealed with another key\n  hint: bring that key back to where the config names it",
        Sealed::Damaged => {
            "it is damaged, was changed, or was moved here from elsewhere\n  hint: bring it back from a backup, or delete it"
        }
        Sealed::TooLong => "it is longer than anything that is kept\n  hint: delete it",
        Sealed::Later => "a later version of lychgate wrote it\n  hint: use that version",
    }
}

/// Why a file cannot be opened with these keys of a store.
pub(super) fn closed(file: PathBuf, why: Sealed, keys: &Keys, of: &Keychain) -> StoreError {
    match why {
        Sealed::OtherKey if keys.first().is_none() => StoreError::NoKey { file, at: of.sources().first_named() },
        why => StoreError::Sealed { file, why },
    }
}

/// Says which store it is.
pub(super) fn of(of: &'static str) -> impl Fn(SealError) -> StoreError {
    move |error| StoreError::Place { of, error }
}
