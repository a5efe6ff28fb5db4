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
        file: PathBuf,
        /// What is wrong with it.
        why: Sealed,
    },
    /// Something in it cannot be opened, for the key is not where it should be. It is left as it is.
    #[error(
        "`{}` cannot be opened: no key in {at}\n  hint: restore the key there, or correct its path in the config",
        file.display()
    )]
    NoKey {
        file: PathBuf,
        /// Where the key should be, in words.
        at: String,
    },
    /// A segment ends within a record: whoever wrote it ended there. What came before it is whole.
    #[error("`{}` ends within a record, at byte {offset}; earlier records are complete", file.display())]
    Torn {
        /// The segment.
        file: PathBuf,
        /// Where the record begins.
        offset: u64,
    },
    /// So much of this server's was kept lately that more would drive out what others have there.
    #[error("the limit of {limit} stored messages per minute and server is reached")]
    TooOften { limit: u32 },
    /// It is longer than all that may be kept.
    #[error(
        "{bytes} bytes exceed the limit ({limit})\n  hint: raise `max_bytes` under `[quarantine]`"
    )]
    TooLong {
        /// Its length.
        bytes: u64,
        limit: u64,
    },
}

/// What is wrong with a file, and what to do about it.
fn describe(why: Sealed) -> &'static str {
    match why {
        Sealed::OtherKey => {
            "it is encrypted with another key\n  hint: restore that key at the path in the config"
        }
        Sealed::Damaged => {
            "it is damaged, modified, or belongs to another store\n  hint: restore it from a backup, or delete it"
        }
        Sealed::TooLong => "it is longer than any stored item\n  hint: delete it",
        Sealed::Later => "it was written by a newer version of lychgate\n  hint: use that version",
    }
}

/// Why a file cannot be opened with these keys of a store.
pub(super) fn closed(file: PathBuf, why: Sealed, keys: &Keys, of: &Keychain) -> StoreError {
    match why {
        Sealed::OtherKey if keys.first().is_none() => StoreError::NoKey {
            file,
            at: of.sources().first_named(),
        },
        why => StoreError::Sealed { file, why },
    }
}

/// Says which store it is.
pub(super) fn of(of: &'static str) -> impl Fn(SealError) -> StoreError {
    move |error| StoreError::Place { of, error }
}
